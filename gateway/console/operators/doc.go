// Package operators is the console of operators' people, on the operators' listener. It
// acts through the admin API within the process, as the person whose session it is and
// with that person's role, so that checks, roles and audit are the same as the command
// line's.
package operators
