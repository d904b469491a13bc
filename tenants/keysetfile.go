package tenants

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// errKeysetMode says that a keyset file can be read or written by others than its owner.
var errKeysetMode = errors.New("tenants: keyset file must not be accessible to group or others (chmod 600)")

// keysetMaxBytes is far above any keyset; what is larger is another file.
const keysetMaxBytes = 1 << 20

// CreateKeysetFile writes a new keyset with one key, with mode 0600. It never replaces a file (fs.ErrExist): whoever
// loses a keyset loses everything sealed with it. The file appears complete or not at all.
//
// The keyset is cleartext JSON: whoever reads the file can open every credential in the database. That is meant for
// development and small shops, where file and database live on different disks or with different backups.
func CreateKeysetFile(path string) error {
	k, err := NewKeyset()
	if err != nil {
		return err
	}
	document, err := k.Document()
	if err != nil {
		return err
	}
	// Unlike a rename, a link fails where the name is taken.
	return writeKeysetFile(path, document, nil, os.Link)
}

// EditKeysetFile changes a keyset file, wholly or not at all; where the edit fails or changes nothing the file stays as
// it is. Edits of the files of one directory wait for one another, so that none takes away the other's new key, which
// may have sealed something already. Mode and owner stay.
func EditKeysetFile(path string, edit func(*Keyset) error) error {
	path, err := filepath.EvalSymlinks(path) // or the link would be replaced instead of the file
	if err != nil {
		return fmt.Errorf("tenants: open keyset: %w", err)
	}
	unlock, err := lockDir(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("tenants: lock keyset: %w", err)
	}
	defer unlock()
	before, info, err := readKeysetFile(path)
	if err != nil {
		return err
	}
	k, err := ParseKeyset(before)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if before, err = k.Document(); err != nil { // as it is written now
		return err
	}
	if err := edit(k); err != nil {
		return err
	}
	after, err := k.Document()
	if err != nil || bytes.Equal(before, after) {
		return err
	}
	return writeKeysetFile(path, after, info, os.Rename)
}

// writeKeysetFile writes a file beside the place and puts it there.
func writeKeysetFile(path string, document []byte, like fs.FileInfo, put func(from, to string) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".keyset-*") // made with mode 0600
	if err != nil {
		return fmt.Errorf("tenants: write keyset: %w", err)
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.Write(document)
	if err = errors.Join(err, takeAfter(f, like), f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("tenants: write keyset: %w", err)
	}
	if err := put(f.Name(), path); err != nil {
		return fmt.Errorf("tenants: write keyset: %w", err)
	}
	return syncDir(filepath.Dir(path))
}

// takeAfter gives a file the mode and the owner of another: a gateway must still be able to read what somebody else,
// as root, has changed for it.
func takeAfter(f *os.File, like fs.FileInfo) error {
	if like == nil {
		return nil
	}
	if owner, ok := like.Sys().(*syscall.Stat_t); ok {
		if err := f.Chown(int(owner.Uid), int(owner.Gid)); err != nil {
			return err
		}
	}
	return f.Chmod(like.Mode().Perm())
}

// private reports whether a file's mode leaves nothing to others than its owner. Where that is not who reads it, as for what an
// orchestrator lays before a gateway, the group may read.
func private(mode fs.FileMode, owner, reader int) bool {
	return mode&0o077 == 0 || owner != reader && mode&0o037 == 0
}

// ownerOf is the user that a file belongs to, -1 where none is known.
func ownerOf(info fs.FileInfo) int {
	if owner, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(owner.Uid)
	}
	return -1
}

// syncDir makes a new name survive a crash: what is sealed with a keyset soon stands in a database that does.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("tenants: write keyset: %w", err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fmt.Errorf("tenants: write keyset: %w", err)
	}
	return nil
}

// lockDir waits until nobody else holds the directory. The lock goes with the process, too.
func lockDir(path string) (unlock func(), err error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return func() { _ = dir.Close() }, nil
}

// readKeysetFile refuses a file that is not private (errKeysetMode).
func readKeysetFile(path string) ([]byte, fs.FileInfo, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("tenants: open keyset: %w", err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, fmt.Errorf("tenants: open keyset: %w", err)
	}
	if !private(info.Mode().Perm(), ownerOf(info), os.Geteuid()) {
		return nil, nil, fmt.Errorf("%w: %s has mode %#o", errKeysetMode, path, info.Mode().Perm())
	}
	document, err := io.ReadAll(io.LimitReader(f, keysetMaxBytes))
	if err != nil {
		return nil, nil, fmt.Errorf("tenants: open keyset: %w", err)
	}
	return document, info, nil
}
