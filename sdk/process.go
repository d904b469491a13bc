package sdk

import (
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/hashicorp/go-plugin"
)

// EnvHostPID names the environment variable in which the gateway tells a
// process that it starts its parent's id.
const EnvHostPID = "GERBANG_HOST_PID"

// hostPID is the process that this one must not outlive. The environment names
// it, because a parent that has already died is replaced by another process.
func hostPID() int {
	if pid, err := strconv.Atoi(os.Getenv(EnvHostPID)); err == nil {
		return pid
	}
	return os.Getppid()
}

// exitWithHost ends this process soon after its parent ended, also when that
// was killed.
func exitWithHost(pid int) {
	for range time.Tick(250 * time.Millisecond) {
		if os.Getppid() != pid {
			removeSockets(os.Getenv(plugin.EnvUnixSocketDir))
			os.Exit(0)
		}
	}
}

// removeSockets removes the directory that the gateway made for this process
// alone, and can no longer remove itself.
func removeSockets(dir string) {
	if dir == "" {
		return
	}
	sockets, err := filepath.Glob(filepath.Join(dir, "plugin*"))
	if err != nil {
		return
	}
	for _, socket := range sockets {
		_ = os.Remove(socket)
	}
	_ = os.Remove(dir)
}
