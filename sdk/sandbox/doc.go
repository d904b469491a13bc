// Package sandbox is a kit for simulators of upstreams: a durable journal, a record
// of every accepted movement, injected faults, webhooks with retries, a control API
// and the program around them. Plugin authors build the simulator of their upstream
// on it. It must not know any upstream's protocol, import the gateway, or listen
// beyond loopback.
//
// A simulator declares topics on Env.Journal, calls Env.Begin, and from then on
// changes its state only by appending entries. The same functions apply an entry
// when it is appended and when it is replayed after a kill -9.
package sandbox
