// Command midtrans is the plugin for payments through Midtrans, and with the
// argument "sandbox" a simulator of Midtrans' APIs. It owns the embedded manifest.
// It must not know the gateway, nor keep anything for it.
package main

import (
	_ "embed"
	"os"

	"github.com/seed-f006e74d/gerbang/plugins/midtrans/adapter"
	"github.com/seed-f006e74d/gerbang/plugins/midtrans/sandbox"
	"github.com/seed-f006e74d/gerbang/sdk"
)

//go:embed manifest.json
var manifestJSON []byte

func main() {
	if len(os.Args) > 1 && os.Args[1] == "sandbox" {
		os.Exit(sandbox.Program().Main(os.Args[2:]))
	}
	sdk.Serve(manifestJSON, adapter.Handlers())
}
