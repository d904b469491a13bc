// Package sdk is what plugin authors write against, and what the gateway sees of
// a plugin. An author writes a manifest and a few functions over plain Go types
// ([Call], [Lookup], [Notification]) and hands both to [Serve]. The gateway uses
// the same types through a [Client]. This package alone converts them to and from
// the wire.
//
// A provider of transfers should declare mutations in its manifest and answer them
// ([Statement], From): without the account's own records the gateway can never tell that
// a transfer was not made, and an operator has to.
//
// The package must not know the gateway, a database or any upstream.
package sdk
