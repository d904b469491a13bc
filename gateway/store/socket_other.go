//go:build !linux

package store

import (
	"context"
	"syscall"
)

// boundUnacknowledged does nothing: only Linux has the option.
func boundUnacknowledged(context.Context, string, string, syscall.RawConn) error { return nil }
