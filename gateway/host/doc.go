// Package host verifies, starts, watches and replaces the plugin processes. It is
// the only way to call them: with a deadline, a bound of calls in flight and a
// circuit breaker. A failure of a process or its transport becomes an outcome: not
// sent where nothing can have left, unknown everywhere else. The package must not
// know the kinds of operations, the database or HTTP, and it never retries a call.
package host
