package catalog

import (
	_ "embed"

	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// EventsPath is where a merchant reads its events. The operation is the gateway's
// own and has no provider.
const EventsPath = "/events"

// BalancePath is where a merchant reads its balance. It too has no provider.
const BalancePath = "/balance"

//go:embed own.json
var ownDocument []byte

// Own reports whether the gateway answers an operation by itself.
func (op *Operation) Own() bool { return op.Provider == "" }

// ownManifest declares the gateway's own operations as a plugin declares its own,
// so that they pass the same checks and stand in the same document.
func ownManifest() (*manifest.Manifest, error) { return manifest.Parse(ownDocument) }
