// Package adminapi is the admin API as JSON: what operators send and receive, and
// the client that speaks it. The console answers with these types; the command line and
// pages in the console's process read them, so that all mean the same by each field.
// It holds no rule: it must not check, decide or import anything of the gateway but its
// errors.
package adminapi
