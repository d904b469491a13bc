package confine

import "golang.org/x/sys/unix"

const architecture = unix.AUDIT_ARCH_AARCH64

// deniedHere are the machine's own; older forms of calls do not exist on it.
var deniedHere = []uint32{unix.SYS_KEXEC_FILE_LOAD}
