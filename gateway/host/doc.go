// Package host verifies, starts, watches and replaces the plugin processes. It is
// the only way to call them: with a deadline, a bound of calls in flight and a
// circuit breaker. A failure of a process or its transport becomes an outcome: not
// sent where nothing can have left, unknown everywhere else. The package must not
// know the kinds of operations, the database or HTTP, and it never retries a call.
//
// Calls of plugins that offer it share one stream a process (package sdk, Stream):
// BenchmarkStream measures 1.4 times as many calls a second as without it one at a time,
// and twice as many from 16 in flight on. A stream that ends is a connection that was cut: the calls on
// it are unknown, and later ones go without it.
package host
