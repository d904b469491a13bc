// Package conformance proves what a plugin must do before it may touch money. It
// runs the plugin and the simulator of its upstream as two processes, stands
// between them as a proxy that makes faults, and compares what the plugin says
// with what the simulator did. It owns the form of examples.json and the list of
// cases. It must not know any provider, nor need a line of Go of the plugin:
// whatever differs between providers stands in the manifest, the examples and the
// simulator's door ([github.com/seed-f006e74d/gerbang/sdk/sandbox]).
package conformance
