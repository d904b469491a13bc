// Package sandbox owns what every simulator of an upstream shares: a durable
// journal, the witness of what was accepted, faults on order, webhooks with
// retries, a control API and the program around them. Authors of plugins build
// their upstream's simulator on it. It must not know any upstream's protocol,
// import the gateway, or be reachable from beyond loopback.
//
// A simulator declares topics on Env.Journal, calls Env.Begin, and from then on
// changes its state only by appending entries, which are applied by the same
// functions that replay them after a kill -9.
package sandbox
