// Package uptime reads how long this machine has been running: a clock that nobody
// sets, and that is the same for all processes of the machine. It tells spans, never
// the time of day.
package uptime
