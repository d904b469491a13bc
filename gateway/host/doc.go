// Package host finds, verifies, starts, watches and replaces the plugin
// processes, and is the only way to call them: with a deadline, a limit of
// calls in flight and a circuit breaker. It turns every failure of a process
// or its transport into an outcome that is true: not sent where nothing can
// have left, unknown everywhere else. It must not know the kinds of money, the
// database or HTTP, and it never retries a call.
package host
