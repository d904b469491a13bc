package sdk

import (
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/hashicorp/go-plugin"
)

// EnvHostPID names the environment variable in which the gateway tells a
// process that it starts who its parent is.
const EnvHostPID = "GERBANG_HOST_PID"

// hostPID is the process this one must not outlive. It is told by environment,
// because a parent that died before we looked would already be replaced.
func hostPID() int {
	if pid, err := strconv.Atoi(os.Getenv(EnvHostPID)); err == nil {
		return pid
	}
	return os.Getppid()
}

// exitWithHost ends this process soon after its parent ended, also when that
// was killed and could not say goodbye.
func exitWithHost(pid int) {
	for range time.Tick(250 * time.Millisecond) {
		if os.Getppid() != pid {
			removeSockets(os.Getenv(plugin.EnvUnixSocketDir))
			os.Exit(0)
		}
	}
}

// removeSockets cleans up the directory that the gateway made for this process
// alone, and can no longer clean up itself.
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
