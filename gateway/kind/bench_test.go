package kind_test

import (
	"encoding/json"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/kind"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// BenchmarkPayment is what is answered of a payment, by its kind alone.
func BenchmarkPayment(b *testing.B) {
	text, err := os.ReadFile("../../plugins/payments/manifest.json")
	if err != nil {
		b.Fatal(err)
	}
	m, err := manifest.Parse(text)
	if err != nil {
		b.Fatal(err)
	}
	snapshot, err := catalog.Build([]*manifest.Manifest{m})
	if err != nil {
		b.Fatal(err)
	}
	create, _ := snapshot.ByPath("/payments/create")
	l := lifecycle.New(lifecycle.Dependencies{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	payments := kind.AddPayment(l, "https://pay.example")
	body := catalog.Document{
		"external_id": "INV/2026/#001", "amount": json.Number("25000"), "payer_email": "a@example.com", "type": "payment_link", "description": "Two coffees",
	}
	request, err := create.Canonical(create.WithDefaults(body))
	if err != nil {
		b.Fatal(err)
	}
	now := time.Now()
	paid := movement.Movement{
		Key: movement.Key{Kind: manifest.Payment, Reference: "INV/2026/#001"}, Operation: create.Path, Provider: m.Name, State: movement.Pending,
		Amount: 25_000, Request: request, Result: json.RawMessage(`{"payment_url":"https://checkout.example/web/643f1a2b3c4d5e6f7a8b9c0d"}`),
		CreatedAt: now, UpdatedAt: now, ProviderReference: "643f1a2b3c4d5e6f7a8b9c0d",
	}
	b.Run("describe", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = payments.Describe(create.Status, create, paid)
		}
	})
	b.Run("answer", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := payments.Answer(create, paid); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("check", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := payments.CheckOffer(paid, paid.Result); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("canonical", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := create.Canonical(body); err != nil {
				b.Fatal(err)
			}
		}
	})
}
