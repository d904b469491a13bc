//go:build linux && (amd64 || arm64)

package confine

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Command gives the process that becomes the plugin. It is this very program, also
// where its file was replaced meanwhile.
func (o Order) Command() (*exec.Cmd, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	return &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{o.Name, Command},
		Env:         []string{envOrder + "=" + string(text), "GODEBUG=asyncpreemptoff=1"}, // see execute
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}, nil
}

// Launch becomes the plugin that the environment orders. It returns only to say why
// nothing was started.
func Launch() error {
	var o Order
	if err := json.Unmarshal([]byte(os.Getenv(envOrder)), &o); err != nil {
		return errors.New("this command is the gateway's own: it starts a plugin, and needs the gateway's order")
	}
	binary, err := o.seal()
	if err != nil {
		return err
	}
	// Filters and capabilities belong to a thread. This one becomes the process.
	runtime.LockOSThread()
	for _, step := range []func() error{closeDescriptors, o.limit, o.become, o.confine, dropCapabilities, o.endWithHost} {
		if err := step(); err != nil {
			return err
		}
	}
	return o.execute(binary)
}

// seal copies the binary into memory that nobody can change any more. What was
// hashed is what runs, whatever becomes of the file.
func (o Order) seal() (*os.File, error) {
	fd, err := unix.MemfdCreate("plugin", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // Linux before 6.3 knows no MFD_EXEC, and executes anyway
		fd, err = unix.MemfdCreate("plugin", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	file := os.NewFile(uintptr(fd), "plugin")
	if err := o.copyTo(file); err != nil {
		return nil, err
	}
	const all = unix.F_SEAL_WRITE | unix.F_SEAL_GROW | unix.F_SEAL_SHRINK | unix.F_SEAL_SEAL
	for try := 1; ; try++ {
		_, err := unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, all)
		switch {
		case err == nil:
			return file, nil
		case !errors.Is(err, unix.EBUSY) || try == sealTries:
			return nil, os.NewSyscallError("seal the binary", err)
		}
		time.Sleep(sealPause)
	}
}

// The kernel seals no memory while it holds pages of it itself, as when it moves or
// looks at them; a busy machine has that for a moment.
const (
	sealTries = 100
	sealPause = 50 * time.Millisecond
)

// closeDescriptors leaves the plugin its standard ones. The host may have inherited
// others from whoever started it.
func closeDescriptors() error {
	err := unix.CloseRange(3, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) { // Linux before 5.11
		for fd := 3; fd < 1<<16; fd++ {
			unix.CloseOnExec(fd)
		}
		return nil
	}
	return os.NewSyscallError("close_range", err)
}

// The bounds of a plugin's descriptors and of a file that it writes. Each descriptor may
// be a socket, whose buffers the kernel counts for nobody. A file may have
// no byte: the plugin must be able to remove files, for the sake of its socket, and
// nobody sees how large one is that was removed and is still open. Memory is not
// bounded here: address space is no measure of what a Go program uses. Nor are
// processes, because the limit counts all of a user's.
const (
	maxDescriptors        = 1024
	maxFileSize           = 0
	maxClients            = 4096      // a simulator's descriptors
	maxFileSizeOfJournals = 256 << 20 // and its files
)

func (o Order) limit() error {
	limits := map[int]uint64{unix.RLIMIT_CORE: 0, unix.RLIMIT_NOFILE: maxDescriptors, unix.RLIMIT_FSIZE: maxFileSize}
	if o.Listen != 0 {
		limits[unix.RLIMIT_NOFILE], limits[unix.RLIMIT_FSIZE] = maxClients, maxFileSizeOfJournals
	}
	if o.User != nil {
		limits[unix.RLIMIT_NPROC] = MaxThreads // the user is the plugin's alone
	}
	for what, most := range limits {
		var now unix.Rlimit
		if err := unix.Getrlimit(what, &now); err != nil {
			return os.NewSyscallError("getrlimit", err)
		}
		most = min(most, now.Max)
		if err := unix.Setrlimit(what, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return os.NewSyscallError("setrlimit", err)
		}
	}
	return nil
}

// become takes on the plugin's own user.
func (o Order) become() error {
	if o.User == nil {
		return nil
	}
	if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(o.User.GID), syscall.Setuid(o.User.UID)); err != nil {
		return fmt.Errorf("run as user %d: %w", o.User.UID, err)
	}
	return nil
}

// dropCapabilities makes root a user like others.
func dropCapabilities() error {
	for capability := uintptr(0); capability < 64; capability++ {
		_ = unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0) // who has none can drop none
	}
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) // likewise
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return os.NewSyscallError("capset", unix.Capset(&header, &none[0]))
}

// endWithHost has the kernel kill the plugin when the host ends, however it ends.
// The host may have ended before that was in force.
func (o Order) endWithHost() error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return os.NewSyscallError("PR_SET_PDEATHSIG", err)
	}
	if os.Getppid() != o.Host {
		return errors.New("the host has ended")
	}
	return nil
}

// execute becomes the binary, as the last program that this process can become.
// Whoever executes anything must be let by a listener, which is another thread
// here, and which the first execution ends. While an execution is under way the
// runtime starts no thread. So the listener must need nothing of the runtime any
// more by then: nothing preempts it, and neither does a collection.
func (o Order) execute(binary *os.File) error {
	debug.SetGCPercent(-1)
	runtime.GOMAXPROCS(3) // neither of the two waits for the other's turn
	listener, err := installFilter()
	if err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	if listener >= 0 {
		listening := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(listening)
			letExecute(listener)
		}()
		<-listening
	}
	err = syscall.Exec("/proc/self/fd/"+strconv.Itoa(int(binary.Fd())), append([]string{o.Name}, o.Args...), o.Env)
	if errors.Is(err, unix.EACCES) {
		err = fmt.Errorf("%w: a binary that is not linked statically needs its loader and libraries in read", err)
	}
	return fmt.Errorf("execute %s: %w", o.Path, err)
}

// HideMemory keeps other processes of this one's user from reading its memory.
func HideMemory() error {
	return os.NewSyscallError("PR_SET_DUMPABLE", unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
}
