package main

import (
	"encoding/json"
	"testing"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/sdktest"
)

func TestMain(m *testing.M) { sdktest.Main(m, main) }

// create is an example of a create.
func create(name, body string, want sdk.Outcome) sdktest.Example {
	example := sdktest.Example{Name: name, Operation: "/payments/create", Body: json.RawMessage(body), Want: want}
	if want == sdk.Refused {
		example.Code = sdk.RefuseOther
	}
	return example
}

func cancel(name, ends string, leaves sdk.Status) sdktest.Example {
	return sdktest.Example{
		Name: name, Operation: "/payments/cancel", Body: json.RawMessage(`{"external_id":"INV/1"}`),
		Want: sdk.Done, Ends: ends, Leaves: leaves,
	}
}

const (
	link = `{"type":"payment_link","amount":25000,"payer_email":"pembeli@example.com","description":"Kopi","success_url":"https://toko.example/ok"}`
	qris = `{"type":"qris","amount":15000,"payer_email":"pembeli@example.com"}`
)

func TestConformance(t *testing.T) {
	t.Parallel()
	sdktest.Run(t, sdktest.Suite{
		Manifest: manifestJSON,
		Open:     openUpstream("invoice"), OwnErrors: true,
		Examples: []sdktest.Example{
			create("link", link, sdk.Pending),
			create("qris", qris, sdk.Pending),
			create("more than an invoice can be", `{"amount":1000000001,"payer_email":"pembeli@example.com"}`, sdk.Refused),
			create("more than a QR code can be", `{"type":"qris","amount":10000001,"payer_email":"pembeli@example.com"}`, sdk.Refused),
			create("a channel that is not active", `{"amount":10100,"payer_email":"pembeli@example.com"}`, sdk.NotSent),
			create("a channel that is down", `{"type":"qris","amount":10101,"payer_email":"pembeli@example.com"}`, sdk.NotSent),
			cancel("cancel a link", "link", sdk.StatusExpired),
			cancel("cancel a QR code", "qris", sdk.StatusPending), // the upstream has no such call
		},
	})
}

// Links can be QR codes: the same operation, the other upstream call.
func TestConformanceOfLinksAsQRCodes(t *testing.T) {
	t.Parallel()
	sdktest.Run(t, sdktest.Suite{
		Manifest: manifestJSON,
		Open:     openUpstream("qr"), OwnErrors: true,
		Examples: []sdktest.Example{
			create("link", link, sdk.Pending),
			cancel("cancel", "link", sdk.StatusPending),
		},
	})
}
