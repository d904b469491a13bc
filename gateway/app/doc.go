// Package app wires the program: it turns a configuration into values, in the
// order in which they need one another, runs them under one context, and ends
// them in the opposite order. The layer test and the tests of the whole program
// live here too. It must hold no rule of its own: whatever decides something
// belongs to the package that owns it.
package app
