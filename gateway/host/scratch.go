package host

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// scratchBase is where this process makes the directories of its plugins, with their
// sockets. The path of a socket may have 104 bytes on macOS, whose own temporary
// directory takes half.
var scratchBase = sync.OnceValue(func() string {
	const short = "/tmp"
	if info, err := os.Stat(short); err == nil && info.IsDir() {
		return ownDirectory(short, os.Getpid())
	}
	return ownDirectory(os.TempDir(), os.Getpid())
})

const scratchPrefix = "gerbang-"

// ownDirectory makes the directory of a process, and removes those of processes that
// are gone: what is killed removes nothing itself. Where that is not possible it is the
// common one.
func ownDirectory(in string, pid int) string {
	left, err := filepath.Glob(filepath.Join(in, scratchPrefix+"*"))
	if err != nil {
		return in
	}
	for _, directory := range left {
		of, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(directory), scratchPrefix))
		if err == nil && (of == pid || gone(of)) {
			_ = os.RemoveAll(directory) // somebody else's stays
		}
	}
	own := filepath.Join(in, scratchPrefix+strconv.Itoa(pid))
	if err := os.Mkdir(own, 0o700); err != nil {
		return in
	}
	if err := os.Chmod(own, 0o711); err != nil { // plugins of another user go through it to their own, whatever the umask
		return in
	}
	return own
}

// gone tells whether there is no such process.
func gone(pid int) bool { return pid > 0 && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
