// Package sdk is what a plugin author sees, and what the gateway sees of a
// plugin. An author writes a manifest and a few functions over plain Go types
// ([Call], [Lookup], [Notification]) and hands both to [Serve]; the gateway
// speaks to the same types through a [Client]. All conversion from and to the
// wire happens here and nowhere else; the package must not know the gateway,
// a database or any upstream.
package sdk
