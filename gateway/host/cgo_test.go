//go:build cgo

package host

const cgo = true
