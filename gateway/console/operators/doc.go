// Package operators is the console of operators' people, on the operators' listener: what
// the command line does, for those who would rather look than read. It acts through
// the admin API within the process, as the person whose session it is and with that
// person's role, so that checks, roles and audit are the same. It must not decide what a
// role may do, nor show a secret twice.
package operators
