//go:build linux && (amd64 || arm64)

package confine

import (
	"errors"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The filter closes what Landlock does not know: other programs and processes, the
// gateway's own limits and priorities, owners and modes of files, sockets that are
// neither TCP, UDP nor of this machine, and the kernel's less-travelled parts. Where
// a program asks for what it can do without, it is told so and goes on.

// denied are the system calls that a plugin does not get, on every architecture.
var denied = []uint32{
	// Other processes: their memory, descriptors, limits and turns.
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE, unix.SYS_PROCESS_MRELEASE,
	unix.SYS_KCMP, unix.SYS_PIDFD_GETFD, unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_TKILL, unix.SYS_SETNS, unix.SYS_UNSHARE,
	unix.SYS_SETPRIORITY, unix.SYS_IOPRIO_SET, unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETATTR, unix.SYS_SCHED_SETPARAM,
	unix.SYS_SCHED_SETSCHEDULER, unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES, unix.SYS_SETPGID, unix.SYS_SETSID,
	// What Landlock lets the owner of a file do to it.
	unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_UTIMENSAT,
	unix.SYS_INOTIFY_ADD_WATCH, // which tells the names of files in a directory that can't be listed
	unix.SYS_FALLOCATE,         // which takes room on the disk beyond the limit of a file's size
	unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR,
	// Memory that is counted for nobody, or stays when the process has ended.
	unix.SYS_SOCKETPAIR, unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SEMGET, unix.SYS_SEMCTL, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP,
	unix.SYS_MSGGET, unix.SYS_MSGCTL, unix.SYS_MSGSND, unix.SYS_MSGRCV,
	// The machine.
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_FSOPEN, unix.SYS_FSMOUNT,
	unix.SYS_FSCONFIG, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_FANOTIFY_INIT,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_KEXEC_LOAD, unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_QUOTACTL, unix.SYS_SYSLOG, unix.SYS_ACCT,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
	unix.SYS_PERSONALITY, unix.SYS_VHANGUP, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_NFSSERVCTL,
}

// newest is the last system call that was judged for this list. Later ones, and on
// amd64 those of the 32-bit form, do not exist for a plugin.
const newest = unix.SYS_MSEAL

// condition refuses a call whose argument its test does not let pass.
type condition struct {
	argument uint32
	test     []unix.SockFilter
	errno    unix.Errno
}

// judged are the calls whose arguments decide. The process's own id is self.
func judged(self uint32) map[uint32][]condition {
	own := []condition{{0, oneOf(self), unix.EPERM}}
	return map[uint32][]condition{
		// Threads, but no processes.
		unix.SYS_CLONE: {{0, has(unix.CLONE_THREAD), unix.EPERM}},
		unix.SYS_KILL:  own, unix.SYS_TGKILL: own, unix.SYS_RT_SIGQUEUEINFO: own, unix.SYS_RT_TGSIGQUEUEINFO: own,
		unix.SYS_PRLIMIT64: {{0, oneOf(0, self), unix.EPERM}},
		// The kernel signals the owner of a descriptor, with the rights of the plugin's user. What a pipe
		// or a socket holds is memory that is counted for nobody, so they stay as large as they are made.
		unix.SYS_FCNTL: {{1, noneOf(unix.F_SETOWN, unix.F_SETOWN_EX, unix.F_SETSIG, unix.F_SETPIPE_SZ), unix.EPERM}},
		unix.SYS_SETSOCKOPT: {{1, where(unix.SOL_SOCKET, 2,
			noneOf(unix.SO_SNDBUF, unix.SO_RCVBUF, unix.SO_SNDBUFFORCE, unix.SO_RCVBUFFORCE)), unix.EPERM}},
		// It must not outlive its host.
		unix.SYS_PRCTL: {{0, noneOf(unix.PR_SET_PDEATHSIG), unix.EPERM}},
		// Landlock bounds the ports of TCP alone, and only where connect is called.
		unix.SYS_SOCKET: {
			{0, oneOf(unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK), unix.EAFNOSUPPORT},
			{2, oneOf(0, unix.IPPROTO_TCP, unix.IPPROTO_UDP), unix.EPROTONOSUPPORT},
		},
		// What is asked of sockets and pipes; some file systems take room on the disk by others.
		unix.SYS_IOCTL:    {{1, oneOf(fionread, fionbio, fioclex, fionclex, unix.SIOCGIFCONF, unix.SIOCGIFNAME, unix.SIOCGIFINDEX), unix.ENOTTY}},
		unix.SYS_SENDTO:   {{3, lacks(unix.MSG_FASTOPEN), unix.EPERM}},
		unix.SYS_SENDMSG:  {{2, lacks(unix.MSG_FASTOPEN), unix.EPERM}},
		unix.SYS_SENDMMSG: {{3, lacks(unix.MSG_FASTOPEN), unix.EPERM}},
	}
}

// As the kernel's ioctls.h has them.
const fionread, fionbio, fionclex, fioclex = 0x541b, 0x5421, 0x5450, 0x5451

// What a filter reads of a call is the kernel's struct seccomp_data. Of an argument
// it reads the lower half, which is all that the calls above take of theirs.
const offsetNumber, offsetArch, offsetArguments = 0, 4, 16

const (
	load     = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	equals   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	greater  = unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K
	anyBitOf = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	give     = unix.BPF_RET | unix.BPF_K
)

func verdict(value uint32) unix.SockFilter { return unix.SockFilter{Code: give, K: value} }

func refusal(errno unix.Errno) unix.SockFilter {
	return verdict(unix.SECCOMP_RET_ERRNO | uint32(errno)) //nolint:gosec // an errno has twelve bits
}

// A test jumps over the refusal, which is the next instruction after it.
func oneOf(values ...uint32) []unix.SockFilter {
	code := make([]unix.SockFilter, len(values))
	for i, v := range values {
		code[i] = unix.SockFilter{Code: equals, K: v, Jt: uint8(len(values) - i)} //nolint:gosec // a few
	}
	return code
}

func noneOf(values ...uint32) []unix.SockFilter {
	code := make([]unix.SockFilter, len(values))
	for i, v := range values {
		code[i] = unix.SockFilter{Code: equals, K: v, Jt: uint8(len(values) - 1 - i)} //nolint:gosec // a few
	}
	code[len(code)-1].Jf = 1
	return code
}

// where tests another argument, where this one has the value.
func where(value, argument uint32, test []unix.SockFilter) []unix.SockFilter {
	return append([]unix.SockFilter{
		{Code: equals, K: value, Jf: uint8(len(test) + 2)}, //nolint:gosec // a few
		{Code: load, K: offsetArguments + 8*argument},
	}, test...)
}

func has(bit uint32) []unix.SockFilter { return []unix.SockFilter{{Code: anyBitOf, K: bit, Jt: 1}} }

func lacks(bit uint32) []unix.SockFilter { return []unix.SockFilter{{Code: anyBitOf, K: bit, Jf: 1}} }

// filter assembles the program. An execution is given to the verdict.
func filter(self, execution uint32) []unix.SockFilter {
	code := []unix.SockFilter{
		{Code: load, K: offsetArch}, {Code: equals, K: architecture, Jt: 1}, verdict(unix.SECCOMP_RET_KILL_PROCESS),
		{Code: load, K: offsetNumber}, {Code: greater, K: newest, Jf: 1}, refusal(unix.ENOSYS),
	}
	on := func(call uint32, body ...unix.SockFilter) {
		code = append(append(code, unix.SockFilter{Code: equals, K: call, Jf: uint8(len(body))}), body...) //nolint:gosec // a dozen at most
	}
	on(unix.SYS_CLONE3, refusal(unix.ENOSYS)) // its flags are in memory; everybody falls back to clone
	on(unix.SYS_EXECVE, verdict(execution))
	on(unix.SYS_EXECVEAT, verdict(execution))
	for _, call := range slices.Concat(denied, deniedHere) {
		on(call, refusal(unix.EPERM))
	}
	for call, conditions := range judged(self) {
		var body []unix.SockFilter
		for _, c := range conditions {
			body = append(body, unix.SockFilter{Code: load, K: offsetArguments + 8*c.argument})
			body = append(append(body, c.test...), refusal(c.errno))
		}
		on(call, append(body, verdict(unix.SECCOMP_RET_ALLOW))...)
	}
	return append(code, verdict(unix.SECCOMP_RET_ALLOW))
}

// installFilter puts this thread under the filter. Executions wait for the listener
// whose descriptor it returns. A kernel before 5.7, or a container whose own filter
// has a listener, has none: then Landlock alone bounds what can be executed. A
// listener of Linux 5.0 to 5.4 can't let an execution go on, and nothing tells but a
// flag that is newer. It means nothing where threads are not synchronised.
func installFilter() (listener int, err error) {
	self := uint32(os.Getpid()) //nolint:gosec // a process id is above zero
	listener, err = setFilter(filter(self, unix.SECCOMP_RET_USER_NOTIF), unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EBUSY) {
		_, err = setFilter(filter(self, unix.SECCOMP_RET_ALLOW), 0)
		listener = -1
	}
	return listener, err
}

func setFilter(code []unix.SockFilter, flags uintptr) (int, error) {
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]} //nolint:gosec // the kernel takes 4096 at most
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

// The kernel's struct seccomp_notif and struct seccomp_notif_resp.
type (
	notification struct {
		id         uint64
		pid, flags uint32
		data       [64]byte
	}
	reply struct {
		id           uint64
		value        int64
		errno, flags uint32
	}
)

// letExecute lets executions go on until one ends this thread. It calls nothing that
// the runtime could stop it in.
//
//go:nosplit
func letExecute(listener int) {
	for {
		var asked notification
		if _, _, errno := unix.RawSyscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&asked))); errno != 0 {
			continue
		}
		goOn := reply{id: asked.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		_, _, _ = unix.RawSyscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&goOn))) // one that was interrupted asks again
	}
}
