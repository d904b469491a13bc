// Package verifycallback holds the programs with which merchants verify callbacks, for the
// guide that shows them. They are programs to read and to copy. No part of the gateway
// calls them; the gateway's own tests run them.
package verifycallback

import "embed"

// Files are the programs, by their file names.
//
//go:embed verify.go verify.mjs verify.php verify.py
var Files embed.FS
