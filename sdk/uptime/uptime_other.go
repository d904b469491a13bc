//go:build !linux

package uptime

import "time"

// Shared says that [Now] tells all processes of this machine the same.
const Shared = false

var started = time.Now()

// Now tells this process how long it has been running. Go's monotonic clock may stand
// still while the machine sleeps, so a machine that sleeps is none for production.
func Now() time.Duration { return time.Since(started) }
