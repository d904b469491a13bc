// Command wallet1 is the plugin for wallet and bank transfers through SNAP, and
// with the argument "sandbox" a simulator of a wallet issuer's API. It owns the
// embedded manifest and the list of banks. It must not know the gateway, nor
// keep anything for it.
package main

import (
	_ "embed"
	"fmt"
	"os"

	"github.com/seed-f006e74d/gerbang/plugins/wallet1/sandbox"
	"github.com/seed-f006e74d/gerbang/plugins/wallet1/snap"
	"github.com/seed-f006e74d/gerbang/sdk"
)

//go:embed manifest.json
var manifestJSON []byte

//go:embed banks.csv
var banksCSV []byte

func main() {
	if len(os.Args) > 1 && os.Args[1] == "sandbox" {
		os.Exit(sandbox.Program().Main(os.Args[2:]))
	}
	banks, err := snap.ReadBanks(banksCSV)
	if err != nil {
		fmt.Fprintln(os.Stderr, "wallet1:", err)
		os.Exit(1)
	}
	sdk.Serve(manifestJSON, snap.Handlers(banks))
}
