// Package sdktest is the conformance suite that every plugin passes in its own
// tests. It runs the plugin as a real process behind the real transport, and
// compares the plugin's answers with what its upstream did. It must not know any
// provider: what differs between providers comes in through [Suite] and [Upstream].
package sdktest
