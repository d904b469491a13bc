// Package judge has policies compiled, tested, tried and held against the past in
// a process of its own, which may take so much memory and time and no more: what
// a set takes is not known before it has taken it. It owns that process, its
// bounds and what is said to it and back. It must not decide anything about
// a policy, read a database or keep a version.
//
// The process is this very program with a hidden command, [Command]; [Main] is
// it. Its memory is bounded by itself, which names the rule that is at fault, and
// on Linux by the kernel besides. Where no process can be started nothing is
// judged; only what was pushed before, and so has passed a process once, is compiled
// in the gateway's own, which is logged. A process that somebody else ends has
// said nothing about the policy.
package judge
