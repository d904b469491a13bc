package policy_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/admission"
	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/limit"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// TestQuotaWithSkewedClocks counts on three replicas whose clocks differ by
// minutes, while a month ends. Each names the month by its own clock, and no
// month exceeds its limit, though every replica asks for more.
func TestQuotaWithSkewedClocks(t *testing.T) {
	t.Parallel()
	const quota, each = 500, 400
	databaseURL := dbtest.New(t, "", nil)
	if err := store.Migrate(t.Context(), databaseURL, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	ends := time.Date(2026, 11, 30, 17, 0, 0, 0, time.UTC) // in Jakarta
	admitted := map[string]*atomic.Int64{"2026-11": {}, "2026-12": {}}
	var unjudged atomic.Int64
	var group sync.WaitGroup
	for _, skew := range []time.Duration{-3 * time.Minute, 0, 2 * time.Minute} {
		node := newCountingNode(t, databaseURL, quota)
		for client := range 8 {
			group.Go(func() {
				for i := client; i < 2*each; i += 8 { // twice what each may want, over ten minutes
					now := ends.Add(-5*time.Minute + time.Duration(i)*10*time.Minute/(2*each) + skew)
					ticket, err := node.admit(t.Context(), now)
					month := limit.Month(now.In(harness.Jakarta)).Name
					switch {
					case err == nil && ticket.Quotas[0].Period == month:
						admitted[month].Add(1)
					case err == nil:
						t.Errorf("counted in %s at %v", ticket.Quotas[0].Period, now)
					case fault.From(err).Code == fault.Internal: // a policy has its time, which a busy machine may not
						unjudged.Add(1)
					case fault.From(err).Code != fault.QuotaExceeded:
						t.Error(err)
					}
				}
			})
		}
	}
	group.Wait()
	conn, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	for _, month := range slices.Sorted(maps.Keys(admitted)) {
		var used int64
		if err := conn.QueryRow(t.Context(), "SELECT used FROM usage WHERE period = $1", month).Scan(&used); err != nil {
			t.Fatal(err)
		}
		got := admitted[month].Load()
		t.Logf("%s: %d admitted and %d used of %d, of %d calls on clocks that differ by five minutes, %d of them not judged", month, got, used, quota, 3*each, unjudged.Load())
		if got != quota || used != quota {
			t.Errorf("%s: %d admitted, %d used, want %d", month, got, used, quota)
		}
	}
}

// countingNode is what a replica admits with, at a time that the caller tells.
type countingNode struct {
	admission *admission.Admission
	id        tenants.Identity
	op        *catalog.Operation
}

func newCountingNode(t *testing.T, databaseURL string, quota int) *countingNode {
	t.Helper()
	s, err := store.Open(t.Context(), databaseURL, store.Options{MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	counter := limit.NewBatcher(s, slog.New(slog.DiscardHandler))
	t.Cleanup(counter.Close)
	data, err := json.Marshal(harness.Fields{
		"tiers":  harness.Fields{"scale": harness.Fields{"rate_per_second": 1_000_000, "burst": 1_000_000, "quotas": harness.Fields{"wallet2": harness.Fields{"limit": quota}}}},
		"quotas": harness.Fields{"wallet2": harness.Fields{"operations": []string{"/wallet2/create", "/wallet2/status"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	source := policy.Default()
	source["data.json"] = data
	set, err := policy.Compile(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	account, err := tenants.NewAccount(tenants.Merchant{ID: "mer_clocks", Name: "Toko", Tier: "scale", Status: tenants.Active, Version: 1}, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	node := &countingNode{admission: admission.New(policy.NewActive(set), limit.New(), counter, admission.Config{}), op: wallet2Status(t)}
	node.id = tenants.Identity{Account: account, Mode: tenants.Live}
	return node
}

func (n *countingNode) admit(ctx context.Context, now time.Time) (admission.Ticket, error) {
	ticket, err := n.admission.Admit(ctx, now, n.id, n.op, nil)
	if err != nil {
		return ticket, err
	}
	return n.admission.Reserve(ctx, now, ticket, n.id, n.op)
}

// wallet2Status is the operation of the plugin's own manifest.
func wallet2Status(t *testing.T) *catalog.Operation {
	t.Helper()
	document, err := os.ReadFile(filepath.Join(harness.Root, "plugins", "wallet2", "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Parse(document)
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := catalog.Build([]*manifest.Manifest{m})
	if err != nil {
		t.Fatal(err)
	}
	op, ok := snapshot.ByPath("/wallet2/status")
	if !ok {
		t.Fatal("the manifest has no /wallet2/status")
	}
	return op
}
