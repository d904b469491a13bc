package database

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

const (
	ephemeralPrefix = "gerbang-db-"   // a home in the temporary directory
	awayPrefix      = "gerbang-data-" // a cluster that could not live in its home
)

// home is the directory of a server of our own, held by a lock for as long as the server lives. The lock is the
// kernel's, so it goes with the process however that ends, and what is found running under a free lock is an orphan.
type home struct {
	dir       string
	lock      *os.File
	temporary bool
	away      string // where the cluster really is, when not in dir
}

// openHome makes and locks the directory.
func openHome(ctx context.Context, o Options) (*home, error) {
	if o.Ephemeral {
		sweep(ctx, os.TempDir())
		dir, err := os.MkdirTemp("", ephemeralPrefix)
		if err != nil {
			return nil, fmt.Errorf("database: temporary directory: %w", err)
		}
		return lockHome(dir, true)
	}
	if o.Dir == "" {
		return nil, errors.New("database: no data directory was named")
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("database: data directory: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("database: data directory: %w", err)
	}
	return lockHome(dir, false)
}

func lockHome(dir string, temporary bool) (*home, error) {
	if os.Geteuid() == 0 {
		// PostgreSQL refuses to run as root, and its own account must get through; what is inside has modes of its own.
		if err := os.Chmod(dir, 0o711); err != nil {
			return nil, fmt.Errorf("database: data directory: %w", err)
		}
	}
	h := &home{dir: dir, temporary: temporary}
	var err error
	if temporary {
		// Locked before it gets the name that sweep looks for, else sweep could take it in between.
		h.lock, err = tryLock(filepath.Join(dir, "lock.new"))
		if err == nil {
			err = os.Rename(filepath.Join(dir, "lock.new"), filepath.Join(dir, "lock"))
		}
	} else {
		h.lock, err = tryLock(filepath.Join(dir, "lock"))
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("database: %s is in use by another running process", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("database: data directory: %w", err)
	}
	return h, nil
}

// release gives the lock back, and removes a temporary home. Only the first call does anything.
func (h *home) release() error {
	if h.lock == nil {
		return nil
	}
	lock := h.lock
	h.lock = nil
	var err error
	if h.temporary {
		err = os.RemoveAll(h.dir)
		if h.away != "" {
			err = errors.Join(err, os.RemoveAll(h.away))
		}
	}
	return errors.Join(err, unlock(lock))
}

func tryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// unlock gives the lock back before closing the file: a child that is just being forked shares the open file for a
// moment, and would hold the lock on.
func unlock(f *os.File) error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
}

// sweep removes what killed processes left in the temporary directory: homes whose lock is free, and clusters that
// no home points to any more. It touches only directories that this user made.
func sweep(ctx context.Context, temp string) {
	homes, _ := filepath.Glob(filepath.Join(temp, ephemeralPrefix+"*", "lock"))
	for _, path := range homes {
		dir := filepath.Dir(path)
		if !ownedBy(dir, os.Geteuid()) {
			continue
		}
		lock, err := tryLock(path)
		if err != nil {
			continue
		}
		if stopOrphan(ctx, filepath.Join(dir, "postgresql")) == nil {
			_ = os.RemoveAll(dir)
		}
		_ = unlock(lock)
	}
	origins, _ := filepath.Glob(filepath.Join(temp, awayPrefix+"*", "origin"))
	for _, path := range origins {
		dir := filepath.Dir(path)
		origin, err := os.ReadFile(path)
		if err != nil || !ownedBy(path, os.Geteuid()) {
			continue
		}
		if target, err := os.Readlink(string(origin)); err == nil && target == filepath.Join(dir, "postgresql") {
			continue
		}
		if stopOrphan(ctx, filepath.Join(dir, "postgresql")) == nil {
			_ = os.RemoveAll(dir)
		}
	}
}

func ownedBy(path string, uid int) bool {
	owner, err := ownerOf(path)
	return err == nil && owner == uid
}

func ownerOf(path string) (int, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, fmt.Errorf("%s: %w", path, fs.ErrInvalid)
	}
	return int(stat.Uid), nil
}

// writeFile writes a small private file so that it is there whole or not at all.
func writeFile(path, content string) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("database: %w", err)
	}
	_, err = f.WriteString(content)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("database: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}
