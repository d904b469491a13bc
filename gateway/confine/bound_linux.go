package confine

import (
	"os"

	"golang.org/x/sys/unix"
)

// room is what a Go program maps besides what it uses.
const room = 256 << 20

// Bound has the kernel bound the memory of this process, which is a helper of the gateway, and end it before the gateway
// where the machine has none left.
func Bound(memory int64) error {
	most := uint64(memory) + room //nolint:gosec // a few hundred MiB
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_DATA, &now); err != nil {
		return os.NewSyscallError("getrlimit", err)
	}
	most = min(most, now.Max)
	if err := unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: most, Max: most}); err != nil {
		return os.NewSyscallError("setrlimit", err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return os.NewSyscallError("setrlimit", err)
	}
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) // where /proc can be written
	return nil
}
