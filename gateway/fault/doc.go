// Package fault owns the one error type of the gateway, the one table of error
// codes that merchants see, and the one JSON envelope in which a refused request
// is answered. Documents, the OpenAPI description and every renderer are made
// from this table, so that a code means the same everywhere. It must not know
// HTTP writers, logging or any other package of the gateway.
package fault
