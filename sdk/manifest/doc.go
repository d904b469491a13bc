// Package manifest owns what a provider plugin declares about itself: its
// operations, their kinds, paths and schemas, and how its upstream is asked about
// money. The gateway trusts a manifest with money, so it is decoded strictly,
// checked as a whole, and named by a digest that operators pin. The package must
// not know processes, transports or the gateway.
package manifest
