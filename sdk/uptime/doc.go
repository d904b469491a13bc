// Package uptime reads how long this machine has been running. It owns the one clock
// that nobody sets, and that is the same for all processes of the machine. It must not
// tell the time of day.
package uptime
