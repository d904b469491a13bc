// Package fault owns the one error type of the gateway and the one table of
// error codes that merchants see. Documents, the OpenAPI description and the
// renderer at the edge are all made from this table, so that a code means the
// same everywhere. It must not know HTTP writers, logging or any other package
// of the gateway.
package fault
