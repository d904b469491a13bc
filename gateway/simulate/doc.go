// Package simulate runs histories of movements on the real lifecycle and kinds, with a
// store in memory or the real one, providers with every fault, and virtual time. It is
// for tests alone. It must not be imported by the program.
package simulate
