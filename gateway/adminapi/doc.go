// Package adminapi is the admin API as JSON: what operators send and receive, and
// the client that speaks it. The console answers with these types and the command
// line reads them, so that both mean the same by each field. It holds no rule: it
// must not check, decide or import anything of the gateway but its errors.
package adminapi
