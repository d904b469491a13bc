//go:build !linux

package harness

import (
	"testing"
	"time"
)

// SmallDisk is a PostgreSQL on a disk of its own that can be filled, on Linux.
type SmallDisk struct{ *PostgreSQL }

// NewSmallDisk skips the test.
func NewSmallDisk(t *testing.T) *SmallDisk {
	t.Helper()
	t.Skip("a disk of memory is mounted on Linux alone")
	return nil
}

// Full is never called.
func (*SmallDisk) Full(*testing.T, time.Duration) {}
