// Package upstream is what a plugin needs to speak HTTP to its upstream. It owns the
// client that sends no request twice and tells whether one left, the addresses that
// keep credentials encrypted, and foreign text made fit to be shown. It knows no
// upstream: what an answer means is the adapter's to say.
package upstream
