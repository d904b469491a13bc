// Package adminapi is the admin API as a table: each act of an operator is an Endpoint with
// its route, the permission that it takes, its input and its answer. The console serves
// the table, the command line and the consoles' pages call it, and so all mean the same by
// each field. What the gateway's domain already names is shown as it is, without any secret.
// It holds no rule: it must not check or decide anything.
package adminapi
