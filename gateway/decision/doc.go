// Package decision owns what is kept of the policy's decisions: the ids that merchants read, by which each is explained also
// where nothing was stored, and the numbers of what decided. It must not decide anything, nor know HTTP or SQL. Nothing in
// it reads a clock.
package decision
