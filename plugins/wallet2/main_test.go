package main

import (
	"encoding/json"
	"testing"

	"github.com/seed-f006e74d/gerbang/plugins/wallet2/sandbox"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/sdktest"
)

func TestMain(m *testing.M) { sdktest.Main(m, main) }

func collect(name, body string) sdktest.Example {
	return sdktest.Example{Name: name, Operation: "/wallet2/create", Body: json.RawMessage(body), Want: sdk.Pending}
}

var examples = []sdktest.Example{
	collect("sale", `{"amount":10000,"payer_email":"pembeli@example.com","description":"Kopi"}`),
	collect("smallest", `{"amount":100,"payer_email":"pembeli@example.com"}`),
	collect("largest", `{"amount":999999999000,"payer_email":"pembeli@example.com"}`),
}

func TestConformance(t *testing.T) {
	t.Parallel()
	sdktest.Run(t, sdktest.Suite{Manifest: manifestJSON, Open: openUpstream(sandbox.DefaultOptions()), Examples: examples})
}

// Rows that come twice and backwards are the same rows.
func TestConformanceOfUntidyReports(t *testing.T) {
	t.Parallel()
	untidy := sandbox.DefaultOptions()
	untidy.Duplicate, untidy.Reorder = true, true
	sdktest.Run(t, sdktest.Suite{Manifest: manifestJSON, Open: openUpstream(untidy), Examples: examples[:1]})
}
