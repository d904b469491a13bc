//go:build !cgo

package host

const cgo = false
