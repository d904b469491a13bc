package transfer_test

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// BenchmarkTransfers measures transfers that succeed at once, as BenchmarkProgram
// measures payments: from the request to an answer that tells the end, with the
// inquiry, the call and both commits between them.
//
// Beside it are the two commits of a transfer alone on the same database server:
// each by itself (db), and by the store as the gateway has it (store).
func BenchmarkTransfers(b *testing.B) {
	harness.RequireDurable(b)
	edit := &harness.PolicyData{File: filepath.Join(b.TempDir(), "data.json")}
	edit.LiftRates(b)
	p := harness.Start(b, harness.Settings{Flags: []string{"--policy-dir", filepath.Dir(edit.File)}})
	wallet(b, p, "balance", harness.Fields{"amount": 1_000_000_000_000})
	var shops []harness.Shop
	for merchant := range p.Merchants {
		shops = append(shops, p.Shop(merchant, "live"), p.Shop(merchant, "test"))
	}
	alone, shared := harness.OpenBareStore(b, true), harness.OpenBareStore(b, false)
	for _, r := range routes {
		b.Run("to="+r.String(), func(b *testing.B) {
			p.InTurns(b, func(client int) error {
				a, err := shops[client%len(shops)].Post(b.Context(), r.path, r.newTransfer().of(1000).body(harness.NewReference()))
				if err = harness.WantOK(a, err); err == nil && transferOf(a).Status != "Success" {
					err = fmt.Errorf("answered %s", a)
				}
				return err
			}, map[string]func(int) error{
				"db":    func(client int) error { return storeTransfer(alone, client, r) },
				"store": func(client int) error { return storeTransfer(shared, client, r) },
			})
		})
	}
}

// storeTransfer is the reservation and the application of a transfer.
func storeTransfer(a *harness.BareStore, client int, r route) error {
	now := time.Now()
	m := movement.Movement{
		Key: movement.Key{
			Owner: movement.Owner{MerchantID: fmt.Sprintf("mer_%d", client%4), Mode: "live"}, Kind: manifest.Transfer, Reference: uuid.NewString(),
		},
		ID: movement.NewID(), Operation: r.path, Provider: "wallet1", Amount: 1000,
		Quote:     json.RawMessage(`{"phone":"6281234567890","name":"Pelanggan Contoh 7890","session":"8a1f0b6c2d3e4f5a6b7c8d9e0f1a2b3c"}`),
		Request:   json.RawMessage(`{"body":{"amount":1000,"external_id":"3d0f5a2e-6f0f-4c55-9d7c-1a9a3f0f6a11","phone":"081234567890"},"path":"` + r.path + `"}`),
		RequestID: uuid.NewString(), PolicyVersion: uuid.NewString(), DecisionID: uuid.NewString(),
		ConnectionOwner: manifest.OwnerMerchant, ConnectionVersion: 1,
		Attempt: 1, CreatedAt: now, SendBy: now.Add(5 * time.Second),
		Polled: movement.Polled{DueAt: now.Add(10 * time.Second)},
	}
	reserved, ours, err := a.Store.Reserve(a.B.Context(), m)
	if err != nil || !ours {
		return fmt.Errorf("reserve: %t, %w", ours, err)
	}
	moved, err := a.Store.Apply(a.B.Context(), movement.Change{
		Movement: reserved, At: time.Now(),
		Transition: movement.Transition{
			Effect: movement.Move, From: []movement.State{movement.Submitting, movement.Acknowledged}, To: movement.Succeeded,
			Event: "done", Detail: `{"source":"call"}`,
			Result: json.RawMessage(`{"referenceNo":"6214e4d1f50ddf120bbaac5c"}`), ProviderReference: uuid.NewString(),
		},
		Callback: &movement.CallbackEvent{ID: uuid.New(), Event: "transfer.status_update", Body: json.RawMessage(`{"event":"transfer.status_update","data":{"status":"Success"}}`)},
	})
	if err == nil && !moved {
		err = fmt.Errorf("%s was not moved", m.Reference)
	}
	return err
}

// BenchmarkSealing measures what the sealing of a wallet's credentials costs: to
// seal them once, when an account is connected, and to open them for each
// transfer. Beside it is the cipher alone.
func BenchmarkSealing(b *testing.B) {
	d := harness.NewDeploymentOf(b, "wallet1")
	p := &harness.Program{Document: harness.Document{SandboxURL: d.SandboxURL}}
	var opened struct {
		Credentials json.RawMessage `json:"credentials"`
	}
	if status := p.Sandbox(b, "/connect", harness.Fields{"merchant": "mer_1", "mode": "live"}, &opened); status != http.StatusOK {
		b.Fatalf("connect: %d", status)
	}
	vault, err := tenants.OpenKeysetFile(filepath.Join(d.Dir, "keyset.json"))
	if err != nil {
		b.Fatal(err)
	}
	c := tenants.Connection{MerchantID: "mer_1", Mode: tenants.Live, Provider: "wallet1"}
	block, err := aes.NewCipher(make([]byte, 32))
	if err != nil {
		b.Fatal(err)
	}
	cipherAlone, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		b.Fatal(err)
	}
	bare := cipherAlone.Seal(nil, nil, opened.Credentials, nil)
	b.Run("seal", func(b *testing.B) {
		b.SetBytes(int64(len(opened.Credentials)))
		for b.Loop() {
			if c.Sealed, err = vault.SealCredentials(c.MerchantID, c.Mode, c.Provider, opened.Credentials); err != nil {
				b.Fatal(err)
			}
		}
		besides(b, func() { _ = cipherAlone.Seal(nil, nil, opened.Credentials, nil) })
	})
	b.Run("open", func(b *testing.B) {
		b.SetBytes(int64(len(opened.Credentials)))
		for b.Loop() {
			if _, err := vault.OpenCredentials(c); err != nil {
				b.Fatal(err)
			}
		}
		besides(b, func() { _, _ = cipherAlone.Open(nil, nil, bare, nil) }) // nothing has changed it
	})
}

// besides reports how often something else could be done in the time that was
// measured, for each that was done.
func besides(b *testing.B, other func()) {
	b.Helper()
	took := b.Elapsed()
	began := time.Now()
	for range b.N {
		other()
	}
	b.ReportMetric(took.Seconds()/time.Since(began).Seconds(), "x-cipher")
}
