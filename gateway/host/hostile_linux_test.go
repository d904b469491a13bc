package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// target is what a hostile plugin is after.
type target struct {
	Secret             string // a file, and what its first bytes are
	Content            string
	Host, Sibling      int // processes
	Port               string
	UDP, Unix          string // addresses
	Abstract           string
	Descriptor         int
	Environment, Spare string // a variable of the host's; a file that may be lost
	Shared, Semaphores int    // of System V, as are the messages; they may be lost
	Messages           int
}

// A way is one that a hostile plugin tries. Its function returns nil where it got
// what it wanted. What is open is named in the handbook, in these words.
type way struct {
	name string
	open string
	try  func(target) error
}

// What is open, as the handbook says it.
const (
	factsOfFiles = "that a file exists, its size and its times, and where a link leads"
	namesByTCP   = "and 53 for names"
)

var errNothing = errors.New("got nothing")

// ways are tried on the host's user's own files and processes, which nothing but
// the confinement keeps from it.
var ways = []way{
	// Files.
	{"read a file", "", func(t target) error { return reads(t.Secret) }},
	{"read /etc/passwd", "", func(target) error { return reads("/etc/passwd") }},
	{"read a file through a link of its own", "", func(t target) error {
		link := filepath.Join(os.TempDir(), "link")
		return errors.Join(os.Symlink(t.Secret, link), reads(link))
	}},
	{"link a file into its own directory", "", func(t target) error { return os.Link(t.Spare, filepath.Join(os.TempDir(), "linked")) }},
	{"move a file into its own directory", "", func(t target) error { return os.Rename(t.Spare, filepath.Join(os.TempDir(), "moved")) }},
	{"write a file", "", func(t target) error { return writes(t.Spare, os.O_WRONLY) }},
	{"truncate a file", "", func(t target) error { return os.Truncate(t.Spare, 0) }},
	{"remove a file", "", func(t target) error { return os.Remove(t.Spare) }},
	{"open a file to others", "", func(t target) error { return os.Chmod(t.Spare, 0o666) }},
	{"give a file away", "", func(t target) error { return os.Lchown(t.Spare, os.Getuid(), os.Getgid()) }},
	{"change a file's time", "", func(t target) error { return unix.UtimesNanoAt(unix.AT_FDCWD, t.Spare, nil, 0) }},
	{"mark a file", "", func(t target) error { return unix.Setxattr(t.Spare, "user.x", []byte("1"), 0) }},
	{"make a file beside the secret", "", func(t target) error { return writes(t.Secret+"-new", os.O_CREATE|os.O_WRONLY) }},
	{"make a directory beside the secret", "", func(t target) error { return os.Mkdir(t.Secret+"-dir", 0o700) }},
	{"list the secret's directory", "", func(t target) error { return lists(filepath.Dir(t.Secret)) }},
	{"list the root", "", func(target) error { return lists("/") }},
	{"list /etc", "", func(target) error { return lists("/etc") }},
	{"write into a file of its own", "", func(target) error {
		return os.WriteFile(filepath.Join(os.TempDir(), "written"), []byte("x"), 0o600)
	}},
	{"write into a file that it removed", "", func(target) error {
		return inOwnFile(func(file *os.File) error {
			removed := os.Remove(file.Name())
			_, err := file.WriteString("x")
			return errors.Join(removed, err)
		})
	}},
	{"write into a file without a name", "", func(target) error {
		fd, err := unix.Open(os.TempDir(), unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
		if err == nil {
			_, err = unix.Write(fd, []byte("x"))
			_ = unix.Close(fd)
		}
		return err
	}},
	{"lengthen a file of its own", "", func(target) error { return inOwnFile(func(file *os.File) error { return file.Truncate(1 << 20) }) }},
	{"take room on the disk", "", func(target) error {
		return inOwnFile(func(file *os.File) error {
			return unix.Fallocate(int(file.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, 1<<20)
		})
	}},
	{"take room on the disk in another way", "", func(target) error {
		return inOwnFile(func(file *os.File) error {
			const reserve = 0x4030582a // FS_IOC_RESVSP64
			room := struct {
				kind, whence int16
				start, size  int64
				rest         [6]int32
			}{size: 1 << 20}
			return call(unix.SYS_IOCTL, file.Fd(), reserve, uintptr(unsafe.Pointer(&room)))
		})
	}},
	{"make a directory in its own", "", func(target) error { return os.Mkdir(filepath.Join(os.TempDir(), "d"), 0o300) }},
	{"write into /dev/shm", "", func(target) error {
		path := "/dev/shm/hostile-" + strconv.Itoa(os.Getpid())
		return errors.Join(writes(path, os.O_CREATE|os.O_WRONLY), os.Remove(path))
	}},
	{"make a device", "", func(target) error { return unix.Mknod(filepath.Join(os.TempDir(), "null"), unix.S_IFCHR|0o600, 1<<8|3) }},
	{"mount a file system", "", func(target) error {
		err := unix.Mount("none", os.TempDir(), "tmpfs", 0, "")
		if err == nil {
			err = unix.Unmount(os.TempDir(), unix.MNT_DETACH)
		}
		return err
	}},
	{"change its root", "", func(target) error { return unix.Chroot(os.TempDir()) }},
	{"open a file by its handle", "", func(t target) error {
		handle, mount, err := unix.NameToHandleAt(unix.AT_FDCWD, t.Secret, 0)
		_, _ = handle, mount
		return err
	}},
	{"watch the secret's directory", "", func(t target) error {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		if err == nil {
			_, err = unix.InotifyAddWatch(fd, filepath.Dir(t.Secret), unix.IN_ALL_EVENTS)
			_ = unix.Close(fd)
		}
		return err
	}},
	{"learn that a file exists", factsOfFiles, func(t target) error { _, err := os.Stat(t.Secret); return err }},
	{"learn where a link leads", factsOfFiles, func(t target) error { _, err := os.Readlink(t.Secret + "-link"); return err }},

	// /proc.
	{"read the host's environment", "", func(t target) error { return reads(proc(t.Host, "environ")) }},
	{"read the host's memory", "", func(t target) error { return reads(proc(t.Host, "mem")) }},
	{"read the host's map of memory", "", func(t target) error { return reads(proc(t.Host, "maps")) }},
	{"read the host's command line", "", func(t target) error { return reads(proc(t.Host, "cmdline")) }},
	{"list the host's descriptors", "", func(t target) error { return lists(proc(t.Host, "fd")) }},
	{"list the machine's processes", "", func(target) error { return lists("/proc") }},
	{"read a sibling's environment", "", func(t target) error { return reads(proc(t.Sibling, "environ")) }},
	{"have the host killed first", "", func(t target) error { return writes(proc(t.Host, "oom_score_adj"), os.O_WRONLY) }},

	// Other processes.
	{"trace the host", "", func(t target) error {
		runtime.LockOSThread()
		return unix.PtraceSeize(t.Host) // which does not stop it, and ends with the thread
	}},
	{"read the host's memory by a call", "", func(t target) error {
		buffer := make([]byte, 8)
		local := []unix.Iovec{{Base: &buffer[0]}}
		local[0].SetLen(len(buffer))
		_, err := unix.ProcessVMReadv(t.Host, local, []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&buffer[0])), Len: 8}}, 0)
		return err
	}},
	{"take the host's descriptor", "", func(t target) error {
		fd, err := unix.PidfdOpen(t.Host, 0)
		if err == nil {
			_, err = unix.PidfdGetfd(fd, 1, 0)
		}
		return err
	}},
	{"signal the host", "", func(t target) error { return unix.Kill(t.Host, 0) }},
	{"signal a sibling", "", func(t target) error { return unix.Kill(t.Sibling, 0) }},
	{"signal a thread of the host", "", func(t target) error { return unix.Tgkill(t.Host, t.Host, 0) }},
	{"queue a signal to the host", "", func(t target) error {
		info := make([]byte, 128)
		*(*int32)(unsafe.Pointer(&info[8])) = -1 // SI_QUEUE
		return call(unix.SYS_RT_SIGQUEUEINFO, uintptr(t.Host), 0, uintptr(unsafe.Pointer(&info[0])))
	}},
	{"signal the host by its descriptor", "", func(t target) error {
		fd, err := unix.PidfdOpen(t.Host, 0)
		if err == nil {
			err = unix.PidfdSendSignal(fd, 0, nil, 0)
		}
		return err
	}},
	{"have the kernel signal the host", "", func(t target) error {
		return inPipe(func(fd int) error { _, err := unix.FcntlInt(uintptr(fd), unix.F_SETOWN, t.Host); return err })
	}},
	{"have the kernel signal the host's thread", "", func(t target) error {
		return inPipe(func(fd int) error {
			owner := [2]int32{0, int32(t.Host)} // F_OWNER_TID
			return call(unix.SYS_FCNTL, uintptr(fd), unix.F_SETOWN_EX, uintptr(unsafe.Pointer(&owner[0])))
		})
	}},
	{"choose the signal that the kernel sends", "", func(target) error {
		return inPipe(func(fd int) error { _, err := unix.FcntlInt(uintptr(fd), unix.F_SETSIG, int(unix.SIGKILL)); return err })
	}},
	{"have a socket signal the host", "", func(t target) error {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.IoctlSetPointerInt(fd, unix.SIOCSPGRP, t.Host)
	}},
	{"take descriptors from the host", "", func(t target) error {
		var now unix.Rlimit
		if err := unix.Prlimit(t.Host, unix.RLIMIT_NOFILE, nil, &now); err != nil {
			return err
		}
		return unix.Prlimit(t.Host, unix.RLIMIT_NOFILE, &now, nil)
	}},
	{"slow the host down", "", func(t target) error { return unix.Setpriority(unix.PRIO_PROCESS, t.Host, 0) }},
	{"bind the host to a processor", "", func(t target) error {
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(t.Host, &set); err != nil {
			return err
		}
		return unix.SchedSetaffinity(t.Host, &set)
	}},

	// More processes, other programs, a longer life.
	{"fork", "", func(target) error { return forks(unix.SYS_CLONE, uintptr(unix.SIGCHLD)) }},
	{"fork by clone3", "", func(target) error {
		arguments := [11]uint64{4: uint64(unix.SIGCHLD)}
		return forks(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&arguments[0])), unsafe.Sizeof(arguments))
	}},
	{"run a command", "", func(target) error {
		command := exec.Command("/bin/echo")
		command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stderr, os.Stderr
		return command.Run()
	}},
	{"become another program", "", func(target) error { return syscall.Exec("/bin/echo", []string{"echo", "got"}, nil) }},
	{"become itself again", "", func(target) error {
		return syscall.Exec("/proc/self/exe", os.Args, []string{envRole + "=got"})
	}},
	{"become what it wrote", "", func(target) error {
		path := filepath.Join(os.TempDir(), "program")
		_ = os.WriteFile(path, []byte("#!/bin/sh\necho got\n"), 0o700)
		return syscall.Exec(path, []string{path}, nil)
	}},
	{"make a file in memory", "", func(target) error { _, err := unix.MemfdCreate("x", 0); return err }},
	{"leave its session", "", func(target) error { return call(unix.SYS_SETSID, 0, 0, 0) }},
	{"leave its process group", "", func(t target) error { return unix.Setpgid(0, 0) }},
	{"outlive its host", "", func(target) error { return unix.Prctl(unix.PR_SET_PDEATHSIG, 0, 0, 0, 0) }},
	{"become root of a namespace", "", func(target) error {
		runtime.LockOSThread() // whose thread is not used again
		return unix.Unshare(unix.CLONE_NEWNET)
	}},
	{"enter the host's namespace", "", func(t target) error {
		fd, err := unix.PidfdOpen(t.Host, 0)
		if err == nil {
			runtime.LockOSThread()
			err = unix.Setns(fd, unix.CLONE_NEWUTS)
		}
		return err
	}},

	// The kernel's other parts.
	{"load a program into the kernel", "", func(target) error {
		attributes := [16]uint32{1, 4, 4, 1} // an array of one entry
		return call(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&attributes[0])), unsafe.Sizeof(attributes))
	}},
	{"use a ring of calls", "", func(target) error {
		var parameters [120]byte
		return call(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&parameters[0])), 0)
	}},
	{"use the kernel's keys", "", func(target) error { _, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, true); return err }},
	{"leave memory behind", "", func(target) error {
		id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, 0o600)
		if err == nil {
			_, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
		}
		return err
	}},
	{"remove another's memory", "", func(t target) error { return removes(unix.SYS_SHMCTL, t.Shared) }},
	{"remove another's semaphores", "", func(t target) error { return removes(unix.SYS_SEMCTL, t.Semaphores) }},
	{"remove another's messages", "", func(t target) error { return removes(unix.SYS_MSGCTL, t.Messages) }},
	{"set the clock", "", func(target) error {
		var now unix.Timeval
		_ = unix.Gettimeofday(&now)
		return unix.Settimeofday(&now)
	}},
	{"open more files than it may", "", func(target) error {
		return unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 1 << 16, Max: 1 << 16})
	}},

	// Memory of the kernel, which is counted for nobody.
	{"keep memory between two sockets", "", func(target) error {
		ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			_, _ = unix.Close(ends[0]), unix.Close(ends[1])
		}
		return err
	}},
	{"keep memory in a large pipe", "", func(target) error {
		return inPipe(func(fd int) error { _, err := unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, 1<<20); return err })
	}},
	{"keep memory in what a socket sends", "", func(target) error { return buffers(unix.SO_SNDBUF) }},
	{"keep memory in what a socket receives", "", func(target) error { return buffers(unix.SO_RCVBUF) }},
	{"open two thousand files", "", func(target) error {
		var opened []*os.File
		defer func() {
			for _, file := range opened {
				_ = file.Close()
			}
		}()
		for len(opened) < 2000 {
			file, err := os.Open(os.TempDir())
			if err != nil {
				return err
			}
			opened = append(opened, file)
		}
		return nil
	}},

	// Sockets.
	{"connect to a port that is not its own", "", func(t target) error { return dials("tcp", "127.0.0.1:"+t.Port) }},
	{"connect by IPv6", "", func(t target) error { return dials("tcp6", "[::1]:"+t.Port) }},
	{"connect by MPTCP", "", func(t target) error { return connects(t.Port, unix.SOCK_STREAM, unix.IPPROTO_MPTCP) }},
	{"connect by fast open", "", fastOpens},
	{"connect by SCTP", "", func(target) error { return socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP) }},
	{"bind a port", "", func(target) error {
		listener, err := net.Listen("tcp4", "127.0.0.1:0")
		if err == nil {
			_ = listener.Close()
		}
		return err
	}},
	{"reach the hypervisor", "", func(target) error { return socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0) }},
	{"use the kernel's ciphers", "", func(target) error { return socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0) }},
	{"listen to the wire", "", func(target) error { return socket(unix.AF_PACKET, unix.SOCK_RAW, 0) }},
	{"send raw packets", "", func(target) error { return socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_TCP) }},
	{"connect to an abstract Unix socket", "", func(t target) error { return dials("unix", t.Abstract) }},
	{"connect to a Unix socket of its user", "Unix sockets with a path", func(t target) error { return dials("unix", t.Unix) }},
	{"ask for a name that has no room in a datagram", namesByTCP, func(target) error {
		if err := connects("53", unix.SOCK_STREAM, 0); !errors.Is(err, unix.ECONNREFUSED) { // where nobody answers
			return err
		}
		return nil
	}},
	{"send a datagram", "UDP", func(t target) error { return dials("udp", t.UDP) }},
	{"listen without binding", "listening on a port that the kernel chooses", func(target) error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Listen(fd, 1)
		}
		return err
	}},

	// What it was born with.
	{"use a descriptor of the host", "", func(t target) error {
		buffer := make([]byte, len(t.Content))
		if _, err := unix.Pread(t.Descriptor, buffer, 0); err != nil || string(buffer) != t.Content {
			return errNothing
		}
		return nil
	}},
	{"read the host's environment from its own", "", func(t target) error {
		if os.Getenv(t.Environment) == "" {
			return errNothing
		}
		return nil
	}},
	{"find a capability", "", func(target) error {
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		if err := unix.Capget(&header, &data[0]); err != nil || data[0].Permitted|data[1].Permitted == 0 {
			return errNothing
		}
		return nil
	}},
}

func proc(pid int, file string) string { return fmt.Sprintf("/proc/%d/%s", pid, file) }

func reads(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.Read(make([]byte, 1))
	if strings.HasSuffix(path, "/mem") { // nothing is mapped at its beginning
		return nil
	}
	return err
}

func writes(path string, how int) error {
	file, err := os.OpenFile(path, how, 0o600)
	if err == nil {
		_ = file.Close()
	}
	return err
}

// inPipe does something with an end of a new pipe.
func inPipe(do func(fd int) error) error {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	defer func() { _, _ = unix.Close(ends[0]), unix.Close(ends[1]) }()
	return do(ends[0])
}

// inOwnFile does something with a new file in the directory that is the plugin's own.
func inOwnFile(do func(*os.File) error) error {
	file, err := os.CreateTemp("", "own")
	if err != nil {
		return err
	}
	defer file.Close()
	return do(file)
}

func lists(path string) error { _, err := os.ReadDir(path); return err }

func call(number, a, b, c uintptr) error {
	if _, _, errno := unix.Syscall(number, a, b, c); errno != 0 {
		return errno
	}
	return nil
}

// forks ends the child at once.
func forks(number uintptr, arguments ...uintptr) error {
	arguments = append(arguments, 0, 0)
	pid, _, errno := unix.RawSyscall(number, arguments[0], arguments[1], 0)
	if errno != 0 {
		return errno
	}
	if pid == 0 {
		_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	return nil
}

func socket(domain, kind, protocol int) error {
	fd, err := unix.Socket(domain, kind|unix.SOCK_CLOEXEC, protocol)
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}

func dials(network, address string) error {
	conn, err := net.Dial(network, address)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Write([]byte("x"))
	return err
}

// buffers makes a buffer of a socket larger than sockets have.
func buffers(which int) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, which, 4<<20)
}

func loopback(port string) *unix.SockaddrInet4 {
	number, err := strconv.Atoi(port)
	if err != nil {
		panic(err)
	}
	return &unix.SockaddrInet4{Port: number, Addr: [4]byte{127, 0, 0, 1}}
}

func connects(port string, kind, protocol int) error {
	fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, loopback(port))
}

// fastOpens connects without the call that Landlock judges.
func fastOpens(t target) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, loopback(t.Port))
}

// attempt tries one way, in the plugin.
func attempt(name string, at target) string {
	i := slices.IndexFunc(ways, func(w way) bool { return w.name == name })
	if err := ways[i].try(at); err != nil {
		return err.Error()
	}
	return "got"
}

func newTarget(t *testing.T) target {
	t.Helper()
	dir := t.TempDir()
	at := target{
		Secret: filepath.Join(dir, "keyset.json"), Spare: filepath.Join(dir, "spare"), Content: "the keyset", Host: os.Getpid(),
		Environment: "GERBANG_DATABASE_URL", Abstract: "@hostile-" + strconv.Itoa(os.Getpid()), Unix: filepath.Join(dir, "s"),
	}
	if err := os.WriteFile(at.Secret, []byte(at.Content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("keyset.json", at.Secret+"-link"); err != nil {
		t.Fatal(err)
	}
	var err error
	if at.Descriptor, err = syscall.Open(at.Secret, syscall.O_RDONLY, 0); err != nil { // which children inherit
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(at.Descriptor) })
	for _, listen := range []string{"tcp", "unix", "abstract"} {
		network, address := listen, map[string]string{"tcp": "127.0.0.1:0", "unix": at.Unix, "abstract": at.Abstract}[listen]
		if listen == "abstract" {
			network = "unix"
		}
		listener, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
		if listen == "tcp" {
			_, at.Port, _ = net.SplitHostPort(listener.Addr().String())
		}
	}
	if six, err := net.Listen("tcp6", "[::1]:"+at.Port); err == nil { // not every machine has IPv6
		t.Cleanup(func() { _ = six.Close() })
	}
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = packets.Close() })
	at.UDP = packets.LocalAddr().String()
	at.Shared = systemV(t, unix.SYS_SHMGET, unix.SYS_SHMCTL, 4096, 0o600)
	at.Semaphores = systemV(t, unix.SYS_SEMGET, unix.SYS_SEMCTL, 1, 0o600)
	at.Messages = systemV(t, unix.SYS_MSGGET, unix.SYS_MSGCTL, 0o600, 0)
	return at
}

// systemV makes an object that outlives its process, and removes it with the test.
func systemV(t *testing.T, get, control, a, b uintptr) int {
	t.Helper()
	id, _, errno := unix.Syscall(get, unix.IPC_PRIVATE, a, b)
	if errno != 0 {
		t.Fatal(errno)
	}
	t.Cleanup(func() { _ = removes(control, int(id)) })
	return int(id)
}

func removes(control uintptr, id int) error {
	if control == unix.SYS_SEMCTL {
		return call(control, uintptr(id), 0, unix.IPC_RMID)
	}
	return call(control, uintptr(id), unix.IPC_RMID, 0)
}

// TestHostilePlugin lets a plugin try everything. Whatever is not named as open in
// the handbook must get it nothing.
func TestHostilePlugin(t *testing.T) {
	t.Setenv("GERBANG_DATABASE_URL", "postgres://secret")
	handbook, err := os.ReadFile(filepath.Join("..", "..", "deploy", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	at := newTarget(t)
	h := startHost(t, calm, Config{Specs: []Spec{testSpec("one"), testSpec("two")}})
	at.Sibling = h.Status()[1].PID
	var open []string
	for _, w := range ways {
		if err := os.WriteFile(at.Spare, []byte("spare"), 0o600); err != nil {
			t.Fatal(err)
		}
		said, ok := tries(t, h, w, at)
		if !ok {
			continue
		}
		switch {
		case said == "got" && w.open == "":
			t.Errorf("%s: it got it", w.name)
		case said == "got":
			open = append(open, w.open)
		default:
			t.Logf("%-45s %s", w.name, said)
		}
		if w.open != "" && !bytes.Contains(handbook, []byte(w.open)) {
			t.Errorf("the handbook does not say that %q is open", w.open)
		}
	}
	if !slices.Contains(open, namesByTCP) {
		t.Error("a name can't be asked for over TCP")
	}
	if pid := h.Status()[0].Restarts; pid != 0 {
		t.Errorf("it was started again %d times", pid)
	}
	if len(ways)-len(open) < 40 {
		t.Errorf("%d ways got nothing, want at least 40", len(ways)-len(open))
	}
	t.Logf("%d ways: %d got nothing, %d are open: %s", len(ways), len(ways)-len(open), len(open), strings.Join(open, "; "))
}

// tries has the plugin try a way, and returns what it says.
func tries(t *testing.T, h *Host, w way, at target) (said string, ok bool) {
	t.Helper()
	order, err := json.Marshal(hostileOrder{"try", w.name, at})
	if err != nil {
		t.Fatal(err)
	}
	c := callTo("try")
	c.Body = order
	r := h.Call(t.Context(), ofOne, c, patience)
	if r.Outcome != sdk.Done || json.Unmarshal(r.Data, &said) != nil {
		t.Errorf("%s: the plugin ended: %+v", w.name, r)
		return "", false
	}
	return said, true
}

// TestHostilePluginOfAnotherUser: a user of its own closes the sockets of the gateway's user,
// as the handbook says, and opens nothing.
func TestHostilePluginOfAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can run a plugin as another user")
	}
	t.Setenv("GERBANG_DATABASE_URL", "postgres://secret")
	at := newTarget(t)
	one, two := testSpec("one"), testSpec("two")
	one.User = "65534"
	h := startHost(t, calm, Config{Specs: []Spec{one, two}})
	at.Sibling = h.Status()[1].PID
	for _, w := range ways {
		if err := os.WriteFile(at.Spare, []byte("spare"), 0o600); err != nil {
			t.Fatal(err)
		}
		said, _ := tries(t, h, w, at)
		if said == "got" && (w.open == "" || strings.Contains(w.open, "Unix sockets")) {
			t.Errorf("%s: it got it", w.name)
		}
	}
}

// TestTheHostHidesItsMemory, which holds every merchant's key: no program of its user
// reads or traces it, and it leaves no core.
func TestTheHostHidesItsMemory(t *testing.T) {
	t.Parallel()
	startHost(t, calm, Config{Specs: []Spec{testSpec("one")}})
	if dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); dumpable != 0 || err != nil {
		t.Errorf("dumpable is %d, %v", dumpable, err)
	}
}

// TestHostileWaysAreReal tries the same without confinement. Most ways get there,
// so it is the confinement that closes them.
func TestHostileWaysAreReal(t *testing.T) {
	t.Setenv("GERBANG_DATABASE_URL", "postgres://secret")
	at := newTarget(t)
	sibling := runChild(t, envRole+"=idle")
	at.Sibling = sibling.Process.Pid
	got := 0
	for _, w := range ways {
		if err := os.WriteFile(at.Spare, []byte("spare"), 0o600); err != nil {
			t.Fatal(err)
		}
		order, err := json.Marshal(hostileOrder{"try", w.name, at})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		command := exec.CommandContext(ctx, binary())
		command.Env = append(os.Environ(), envRole+"=unconfined", "HOSTILE_ORDER="+string(order), "TMPDIR="+t.TempDir())
		out, _ := command.Output() // a way may end the process
		cancel()
		if strings.Contains(string(out), "got") {
			got++
		} else {
			t.Logf("%-45s %s", w.name, bytes.TrimSpace(out))
		}
	}
	t.Logf("%d of %d ways get there without confinement", got, len(ways))
	if want := len(ways) / 2; got < want {
		t.Errorf("%d ways get there without confinement, want at least %d", got, want)
	}
}

func hostileUnconfined() {
	var order hostileOrder
	if err := json.Unmarshal([]byte(os.Getenv("HOSTILE_ORDER")), &order); err != nil {
		panic(err)
	}
	fmt.Println(attempt(order.Name, order.Target))
}

func hostileTry(body []byte) string {
	var order hostileOrder
	if err := json.Unmarshal(body, &order); err != nil {
		return err.Error()
	}
	return attempt(order.Name, order.Target)
}

type hostileOrder struct {
	Do     string `json:"do"`
	Name   string `json:"name"`
	Target target `json:"target"`
}
