//go:build !linux

package database

import "syscall"

// dieWithParent does nothing where the kernel offers no parent-death signal: after a kill -9 of the gateway its
// server keeps running, and the next start on the same directory stops it (see stopOrphan).
func dieWithParent(*syscall.SysProcAttr, syscall.Signal) {}
