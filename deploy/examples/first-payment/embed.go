// Package firstpayment holds the programs of a merchant's first hour, for the list of first steps that shows them: one that
// creates a test payment, and one that receives its callback and verifies it, in each language. They are programs to read
// and to copy, with nothing but the language's own library. No part of the gateway calls them; its tests run them.
package firstpayment

import "embed"

// Files are the programs, by their file names.
//
//go:embed pay.* receive.*
var Files embed.FS
