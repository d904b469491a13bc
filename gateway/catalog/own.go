package catalog

import (
	_ "embed"

	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// EventsPath is where a merchant reads its events: an operation of the
// gateway's own, which has no provider.
const EventsPath = "/events"

// BalancePath is where a merchant reads its balance: likewise.
const BalancePath = "/balance"

//go:embed own.json
var ownDocument []byte

// Own tells whether the gateway answers an operation by itself.
func (op *Operation) Own() bool { return op.Provider == "" }

// ownManifest declares the gateway's own operations as a plugin declares its
// own, so that the same checks, schemas and document are made of them.
func ownManifest() (*manifest.Manifest, error) { return manifest.Parse(ownDocument) }
