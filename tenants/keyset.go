package tenants

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
)

// ErrKeysetMode says that a keyset file can be read or written by others than its owner.
var ErrKeysetMode = errors.New("tenants: keyset file must not be accessible to group or others (chmod 600)")

// keysetMaxBytes is far above any keyset; what is larger is another file.
const keysetMaxBytes = 1 << 20

// CreateKeysetFile writes a new keyset with one AES-256-GCM key, with mode 0600. It never replaces a file (fs.ErrExist):
// whoever loses a keyset loses everything sealed with it. The file appears complete or not at all.
//
// The keyset is cleartext JSON: whoever reads the file can open every credential in the database. That is meant for
// development and small shops, where file and database live on different disks or with different backups.
func CreateKeysetFile(path string) error {
	handle, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		return fmt.Errorf("tenants: create keyset: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".keyset-*") // made with mode 0600
	if err != nil {
		return fmt.Errorf("tenants: create keyset: %w", err)
	}
	defer func() { _ = os.Remove(f.Name()) }()
	err = insecurecleartextkeyset.Write(handle, keyset.NewJSONWriter(f))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("tenants: write keyset: %w", err)
	}
	// Unlike a rename, a link fails where the name is taken.
	if err := os.Link(f.Name(), path); err != nil {
		return fmt.Errorf("tenants: create keyset: %w", err)
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes a new name survive a crash: what is sealed with a keyset soon stands in a database that does.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("tenants: create keyset: %w", err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fmt.Errorf("tenants: create keyset: %w", err)
	}
	return nil
}

// OpenKeysetFile reads a cleartext JSON keyset of AEAD keys and refuses one that others than its owner can access
// (ErrKeysetMode). The primary key seals, every enabled key opens, so keys rotate by adding, deploying and promoting.
func OpenKeysetFile(path string) (*Vault, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("tenants: open keyset: %w", err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("tenants: open keyset: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%w: %s has mode %#o", ErrKeysetMode, path, info.Mode().Perm())
	}
	handle, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(io.LimitReader(f, keysetMaxBytes)))
	if err != nil {
		// The cause may quote the file's content, which is the secret.
		return nil, fmt.Errorf("tenants: %s is not a keyset", path)
	}
	primitive, err := aead.New(handle)
	if err != nil {
		return nil, fmt.Errorf("tenants: keyset %s: %w", path, err)
	}
	return &Vault{aead: primitive}, nil
}
