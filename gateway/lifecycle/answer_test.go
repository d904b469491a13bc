package lifecycle

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// TestRemainingQuotaWhereNoneCounts is null.
func TestRemainingQuotaWhereNoneCounts(t *testing.T) {
	t.Parallel()
	op := telling(t)
	answer := withRemaining(t.Context(), Request{Operation: op}, Answer{Data: json.RawMessage(`{"status":"PENDING"}`)})
	if got := string(answer.Data.(json.RawMessage)); got != `{"status":"PENDING","remaining_quota":null}` {
		t.Error(got)
	}
	// One that was claimed by a replica that died has no answer that tells it.
	late := withRemaining(t.Context(), Request{Operation: op, Left: func(context.Context) *int64 { return new(int64(4)) }}, Answer{Data: json.RawMessage(`{"status":"PENDING"}`)})
	if got := string(late.Data.(json.RawMessage)); got != `{"status":"PENDING","remaining_quota":4}` {
		t.Error(got)
	}
	kept := withRemaining(t.Context(), Request{Operation: op, Ticket: policy.Ticket{Remaining: new(int64(3))}}, Answer{Data: json.RawMessage(`{"remaining_quota":7}`)})
	if got := string(kept.Data.(json.RawMessage)); got != `{"remaining_quota":7}` {
		t.Error(got)
	}
}

// telling is an operation whose answer tells what a quota leaves.
func telling(t *testing.T) *catalog.Operation {
	t.Helper()
	op, _ := snapshotOf(t).ByPath("/wallet2/create")
	return op
}

// snapshotOf is what the plugin wallet2 offers.
func snapshotOf(t *testing.T) *catalog.Snapshot {
	t.Helper()
	document, err := os.ReadFile(filepath.Join("..", "..", "plugins", "wallet2", "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := manifest.Parse(document)
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := catalog.Build([]*manifest.Manifest{parsed})
	if err != nil {
		t.Fatal(err)
	}
	return snapshot
}
