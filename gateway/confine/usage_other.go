//go:build !linux

package confine

import "errors"

// UsageOf measures a process on Linux alone.
func UsageOf(int) (Usage, error) { return Usage{}, errors.ErrUnsupported }
