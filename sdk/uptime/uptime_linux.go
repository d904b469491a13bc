package uptime

import (
	"time"

	"golang.org/x/sys/unix"
)

// Shared says that [Now] tells all processes of this machine the same.
const Shared = true

// Now goes on while the machine sleeps (CLOCK_BOOTTIME).
func Now() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		panic("uptime: CLOCK_BOOTTIME can't be read: " + err.Error()) // every Linux since 2.6.39 has it
	}
	return time.Duration(now.Nano())
}
