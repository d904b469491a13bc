package harness

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// smallDisk is large enough for what a test writes.
const smallDisk = "size=1g,mode=0711"

// SmallDisk is a PostgreSQL on a disk of its own, of 1 GiB of memory, that can be filled.
type SmallDisk struct {
	*PostgreSQL
	ballast string
}

// NewSmallDisk starts one. It skips the test where this user may not mount.
func NewSmallDisk(t *testing.T) *SmallDisk {
	t.Helper()
	disk := filepath.Dir(DataDir(t))
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, smallDisk); err != nil {
		t.Skipf("mount a disk of memory, which root may: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return &SmallDisk{PostgreSQL: newPostgreSQL(t, filepath.Join(disk, "data")), ballast: filepath.Join(disk, "ballast")}
}

// Full fills the disk for a while. What the server then did is as it is on a real one:
// it may have ended, and is started again.
func (d *SmallDisk) Full(t *testing.T, lasts time.Duration) {
	t.Helper()
	file, err := os.Create(d.ballast)
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(lasts); time.Now().Before(deadline); <-time.After(100 * time.Millisecond) {
		// Whatever the server has freed since is taken too.
		if _, err := io.Copy(file, zeros{}); !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	if err := errors.Join(file.Close(), os.Remove(d.ballast)); err != nil {
		t.Fatal(err)
	}
	select {
	case <-d.server.Done():
		d.again(t)
	default:
	}
}

// zeros never end.
type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(page []byte) (int, error) {
	clear(page)
	return len(page), nil
}
