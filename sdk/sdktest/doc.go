// Package sdktest is the conformance suite that every plugin passes in its own
// tests. It runs the plugin as a real process behind the real transport and
// compares what the plugin says with what its upstream did, as an independent
// witness tells. It must not know any provider: what differs between them comes
// in through [Suite] and [Upstream].
package sdktest
