package database

import "syscall"

// dieWithParent asks the kernel to send sig to the child when the gateway dies, even by kill -9.
func dieWithParent(attr *syscall.SysProcAttr, sig syscall.Signal) { attr.Pdeathsig = sig }
