//go:build linux && (amd64 || arm64)

package confine

import (
	"fmt"
	"os"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// Level says how far this machine's kernel confines: "yes", or what it leaves open.
func Level() string {
	version, err := ll.LandlockGetABIVersion()
	switch {
	case err != nil || version < 1:
		return "no: this kernel has no Landlock, or it is turned off, so plugins read what the gateway's user can read"
	case version < 4:
		return fmt.Sprintf("partly: this kernel's Landlock (version %d) leaves TCP ports and abstract sockets open", version)
	case version < 6:
		return fmt.Sprintf("partly: this kernel's Landlock (version %d) leaves abstract sockets open", version)
	}
	return "yes"
}

const (
	readRights = ll.AccessFSReadFile | ll.AccessFSReadDir
	// A socket, and what go-plugin does before: it makes an empty file, for its name, and
	// removes it. No links: one could lead out of the directory whoever reads it later. No
	// directories: the host must be able to list and remove everything.
	scratchRights = readRights | ll.AccessFSWriteFile | ll.AccessFSMakeReg | ll.AccessFSMakeSock | ll.AccessFSRemoveFile
)

// journalRights are a simulator's in its directory: it keeps what it knows there.
const journalRights = scratchRights | ll.AccessFSMakeDir | ll.AccessFSRemoveDir | ll.AccessFSRefer | ll.AccessFSTruncate

const portDNS = 53

// confine puts every thread into a Landlock domain. What the kernel does not know
// yet is left out; [Level] tells that.
func (o Order) confine() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("PR_SET_NO_NEW_PRIVS", err)
	}
	rules := []landlock.Rule{landlock.BindUDP(0), landlock.ConnectSendUDP(portDNS), landlock.ConnectTCP(portDNS)}
	if o.Listen != 0 {
		rules = append(rules, landlock.PathAccess(journalRights, o.Scratch), landlock.BindTCP(o.Listen))
	} else {
		rules = append(rules, landlock.PathAccess(scratchRights, o.Scratch))
	}
	for _, path := range readable() {
		if info, err := os.Stat(path); err == nil { // no machine has all of them
			rules = append(rules, landlock.PathAccess(rightsOf(info, readRights), path).IgnoreIfMissing())
		}
	}
	for _, path := range o.Read {
		info, err := os.Stat(path)
		if err != nil {
			fmt.Fprintf(os.Stderr, "read: %v; the plugin can't read it before it is started again\n", err)
			continue
		}
		// A library or a loader that is named must also be executable.
		rules = append(rules, landlock.PathAccess(rightsOf(info, readRights|ll.AccessFSExecute), path).IgnoreIfMissing())
	}
	for _, port := range o.Ports {
		rules = append(rules, landlock.ConnectTCP(port))
	}
	if err := landlock.V11.BestEffort().Restrict(rules...); err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	return nil
}

func rightsOf(info os.FileInfo, rights landlock.AccessFSSet) landlock.AccessFSSet {
	if info.IsDir() {
		return rights
	}
	return rights &^ ll.AccessFSReadDir
}
