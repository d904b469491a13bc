package kind

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// What manifests may promise is what kinds answer, no more and no less.
func TestAnswersAreAsManifestsMayPromise(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 14, 30, 0, 0, time.UTC)
	for path, k := range map[string]lifecycle.Kind{
		"/payments/create": &Payment{}, "/wallet2/create": &Collection{}, "/ppob/order": &Order{}, "/wallet1/transfer/bank": &Transfer{}, "/wallet1/transfer/wallet": &Transfer{},
	} {
		op := shipped(t, path)
		m := movement.Movement{
			Key: movement.Key{Kind: op.Kind, Reference: "A"}, State: movement.Succeeded, Amount: 100, Request: json.RawMessage(`{"body":{}}`),
			Result: json.RawMessage(`{"qr_string":"QR"}`), ProviderReference: "up", CreatedAt: at, UpdatedAt: at, PaidAt: at, Channel: "QRIS", PaidLateAt: at, ReturnedAt: at, PaidAmount: 1,
			Collected: movement.Collected{Remaining: new(int64(1))}, Payout: movement.Payout{NameMatch: new(true)},
		}
		answer, err := k.Answer(op, m)
		if err != nil {
			t.Fatal(err)
		}
		raw := m
		raw.Request = json.RawMessage(`{"body":{"type":"qris"}}`)
		other, err := k.Answer(op, raw)
		if err != nil {
			t.Fatal(err)
		}
		creation := namesOf(t, answer, other)
		status := namesOf(t, k.Describe(op.Status, op, m))
		if op.Kind == manifest.Transfer { // each path has its own of the two ids
			creation, status = withBoth(creation), withBoth(status)
			creation = append(creation, "fee", "name_match")
		}
		compare(t, path, creation, manifest.Answered(op.Kind, true))
		compare(t, path+" status", status, manifest.Answered(op.Kind, false))
	}
}

func withBoth(names []string) []string { return append(names, "refId", "txId") }

func compare(t *testing.T, what string, got, want []string) {
	t.Helper()
	want = append(slices.Clone(want), lifecycle.RemainingQuota)
	got = append(slices.Clone(got), lifecycle.RemainingQuota) // which the lifecycle adds
	slices.Sort(got)
	slices.Sort(want)
	if got, want = slices.Compact(got), slices.Compact(want); !slices.Equal(got, want) {
		t.Errorf("%s: answered are %q, promised may be %q", what, got, want)
	}
}

func namesOf(t *testing.T, answers ...lifecycle.Answer) []string {
	t.Helper()
	all := map[string]any{}
	for _, a := range answers {
		text, err := json.Marshal(a.Data)
		if err != nil {
			t.Fatal(err)
		}
		var told map[string]any
		if err := json.Unmarshal(text, &told); err != nil {
			t.Fatal(err)
		}
		maps.Copy(all, told)
	}
	return slices.Sorted(maps.Keys(all))
}

func shipped(t *testing.T, path string) *catalog.Operation {
	t.Helper()
	var all []*manifest.Manifest
	for _, name := range []string{"payments", "ppob", "wallet1", "wallet2"} {
		document, err := os.ReadFile("../../plugins/" + name + "/manifest.json")
		if err != nil {
			t.Fatal(err)
		}
		m, err := manifest.Parse(document)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	snapshot, err := catalog.Build(all)
	if err != nil {
		t.Fatal(err)
	}
	op, ok := snapshot.ByPath(path)
	if !ok {
		t.Fatalf("there is no %s", path)
	}
	return op
}
