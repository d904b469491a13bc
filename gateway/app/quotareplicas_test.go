package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/admission"
	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/limit"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// TestQuotaReplicas has many clients use a quota up on three replicas, of which one
// is killed and another loses its database for a while. What is admitted is never
// above the limit, and all of it is used in the end.
func TestQuotaReplicas(t *testing.T) {
	t.Parallel()
	const quota, clients = 900, 6 // of each replica
	databaseURL := dbtest.New(t, "", nil)
	cut := newWire(t, databaseURL)
	d := newDeploymentOf(t, "wallet2")
	replicas := d.start(t, databaseURL, cut.url, databaseURL)
	stays, silent, dies := replicas[0], replicas[1], replicas[2]
	r := &run{shop: d.newShop(t, stays, "scale")}
	r.limit(t, quota, replicas...)
	stopWatching := r.watch(t)

	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for _, p := range replicas {
		for range clients {
			group.Go(func() { r.call(ctx, p) })
		}
	}
	await(t, time.Minute, "a third of the quota", func() bool { return r.used(t) >= quota/3 })
	dies.kill(t)
	await(t, time.Minute, "half of the quota", func() bool { return r.used(t) >= quota/2 })
	cut.silence()
	<-time.After(4 * time.Second) // longer than a count may take
	cut.restore()
	joins := d.start(t, databaseURL)[0]
	for range clients {
		group.Go(func() { r.call(ctx, joins) })
	}
	await(t, time.Minute, "the end of the quota", func() bool { return r.denied.Load() > 100 && r.used(t) == quota })
	await(t, time.Minute, "nothing that is given back", func() bool { return r.deniedEverywhere(t, stays, silent, joins) })
	stop()
	group.Wait()
	r.check(t, quota, clients, stays, stopWatching())
}

// run is calls that use a quota up.
type run struct {
	shop
	next   atomic.Int64
	denied atomic.Int64

	mu    sync.Mutex
	calls []*oneCall
}

// oneCall is a create, and what came of it.
type oneCall struct {
	order fields
	at    *program
	got   answer
	err   error
}

// limit gives the merchant a quota of its own, and no rate, and waits until all
// replicas know.
func (r *run) limit(t *testing.T, quota int, replicas ...*program) {
	t.Helper()
	r.succeed(t, "", nil, "merchant", "limit", r.merchant, "--quota", fmt.Sprintf("wallet2=%d", quota),
		"--rate", "1000000/s", "--burst", "1000000", "--reason", "for a test")
	for _, p := range replicas {
		await(t, actsWithin, "the merchant's own limit", func() bool {
			a := r.shop.at(p).ask(t, "/wallet2/status", fields{"external_id": "none"})
			return strings.Contains(a.Header.Get("RateLimit-Policy"), "q=1000000")
		})
	}
}

// used is what the database says.
func (r *run) used(t *testing.T) (used int64) {
	t.Helper()
	r.query(t, &used, "SELECT COALESCE(SUM(used), 0)::INT8 FROM usage WHERE merchant_id = $1 AND name = 'wallet2'", r.merchant)
	return used
}

// watch looks at what is used all the time, until it is told to end and tell the
// most that it has seen.
func (r *run) watch(t *testing.T) (most func() int64) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), r.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	seen := make(chan int64, 1)
	go func() {
		defer conn.Close(context.WithoutCancel(ctx))
		var highest, now int64
		for ctx.Err() == nil {
			if conn.QueryRow(ctx, "SELECT COALESCE(MAX(used), 0)::INT8 FROM usage WHERE merchant_id = $1", r.merchant).Scan(&now) == nil {
				highest = max(highest, now)
			}
			<-time.After(5 * time.Millisecond)
		}
		seen <- highest
	}()
	return func() int64 { stop(); return <-seen }
}

// call makes collections at a replica until the context ends, or the replica has.
func (r *run) call(ctx context.Context, at *program) {
	for ctx.Err() == nil {
		one := &oneCall{at: at, order: r.collection(fields{"amount": int(100_000 + 1_000*r.next.Add(1))})}
		one.got, one.err = r.shop.at(at).post(context.WithoutCancel(ctx), "/wallet2/create", one.order)
		r.mu.Lock()
		r.calls = append(r.calls, one)
		r.mu.Unlock()
		switch {
		case one.err != nil:
			return
		case one.got.Code == fault.QuotaExceeded:
			r.denied.Add(1)
			<-time.After(20 * time.Millisecond)
		}
	}
}

// deniedEverywhere tells whether each replica says that the quota is used up.
func (r *run) deniedEverywhere(t *testing.T, replicas ...*program) bool {
	t.Helper()
	return !slices.ContainsFunc(replicas, func(p *program) bool {
		a, err := r.shop.at(p).post(t.Context(), "/wallet2/create", r.collection(fields{"amount": 99_000}))
		if err == nil && a.Success {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.calls = append(r.calls, &oneCall{at: p, order: fields{"external_id": a.collected().ExternalID}, got: a})
		}
		return err != nil || a.Code != fault.QuotaExceeded
	})
}

// check counts what was admitted in each of the ways in which that can be seen.
func (r *run) check(t *testing.T, quota int64, clients int, at *program, most int64) {
	t.Helper()
	codes, cut, unknown, left := map[fault.Code]int{}, 0, 0, map[int64]int{}
	for _, one := range r.calls {
		switch {
		case one.err != nil:
			cut++
		case one.got.Success:
			codes["success"]++
			left[*one.got.collected().Remaining]++
		default:
			if codes[one.got.Code]++; one.got.Sent == fault.SentUnknown {
				unknown++
			}
		}
	}
	var claimed int64
	r.query(t, &claimed, "SELECT count(*) FROM movements WHERE merchant_id = $1 AND state <> 'not_submitted'", r.merchant)
	used, admitted := r.used(t), int64(codes["success"])
	t.Logf("limit %d: %d answered with success, %d collections made, %d used, at most %d at any moment; %d requests cut by the kill, %d answered with an unknown end; answers %v",
		quota, admitted, claimed, used, most, cut, unknown, codes)
	if used != quota || most > quota || admitted > claimed || claimed > quota {
		t.Error("the quota was not kept, or not all of it is used")
	}
	// What was counted and never made can only have been in the killed replica's hands.
	if lost := used - claimed; lost > int64(clients) {
		t.Errorf("%d units were used by nothing, and %d requests were under way at the kill", lost, clients)
	}
	if made := claimed - admitted; made > int64(cut+unknown) {
		t.Errorf("%d collections were made and not answered; %d requests were cut and %d ended in the unknown", made, cut, unknown)
	}
	// A number is told again only where a unit was given back after it was told, or
	// by a replica that had to ask what had become of its count.
	again := 0
	for remaining, times := range left {
		if again += times - 1; remaining < 0 || remaining >= quota {
			t.Errorf("remaining_quota %d of %d", remaining, quota)
		}
	}
	if may := clients + codes[fault.Internal] + codes[fault.ProviderUnavailable] + codes[fault.ProviderTimeout]; again > may {
		t.Errorf("%d answers told a remaining_quota that another had told, want %d at most", again, may)
	}
	r.shop.at(at).wantReplayed(t, r.calls)
	if now := r.used(t); now != quota {
		t.Errorf("after replays %d are used", now)
	}
}

// wantReplayed asks for everything once more: what was made is answered as before,
// what was cut is answered if it was made, and all others are beyond the quota.
func (s shop) wantReplayed(t *testing.T, calls []*oneCall) {
	t.Helper()
	late := 0
	for _, one := range calls {
		if one.order["payer_email"] == nil || one.err == nil && !one.got.Success && one.got.Sent != fault.SentUnknown {
			continue
		}
		var a answer
		await(t, resolvesWithin, "an answer to what was cut", func() bool {
			a = s.ask(t, "/wallet2/create", one.order)
			return !slices.Contains(unfinished, a.Code)
		})
		switch {
		case one.err == nil && one.got.Success:
			if !a.replayed() || string(a.Data) != string(one.got.Data) {
				t.Errorf("answered %s at first, and %s again", one.got, a)
			}
		case a.Success:
			late++
		case a.Code != fault.QuotaExceeded:
			t.Errorf("cut at first (%v %s), and then %s", one.err, one.got, a)
		}
	}
	t.Logf("%d of those without an answer had been made", late)
}

// TestQuotaClocks counts on three replicas whose clocks differ by minutes, while a
// month ends: each calls the month by its own clock, and no month is above its
// limit, though every replica wants more than that.
func TestQuotaClocks(t *testing.T) {
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
					month := limit.Month(now.In(wib)).Name
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
	data, err := json.Marshal(fields{
		"tiers":  fields{"scale": fields{"rate_per_second": 1_000_000, "burst": 1_000_000, "quotas": fields{"wallet2": fields{"limit": quota}}}},
		"quotas": fields{"wallet2": fields{"operations": []string{"/wallet2/create", "/wallet2/status"}}},
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
	document, err := os.ReadFile(filepath.Join(root, "plugins", "wallet2", "manifest.json"))
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
