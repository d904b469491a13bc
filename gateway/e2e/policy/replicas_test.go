package policy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/tier"
)

// replicaSet is three replicas, each with a way of its own to the database they share.
type replicaSet struct {
	whole       *testing.T          // of all stories: what one story starts runs in the next
	d, sales    *harness.Deployment // of payments and of wallet2
	databaseURL string
	links       []*harness.Proxy // before the database, one for each replica
	replicas    []*harness.Program
}

// TestThreeReplicas tells what policies do on three replicas. The stories follow one another on the same replicas, each
// with merchants of its own; one replica is stopped in one story, one killed in another, and others join.
func TestThreeReplicas(t *testing.T) { //nolint:tparallel // its parts take turns on one gateway
	t.Parallel()
	r := &replicaSet{whole: t, d: harness.NewDeployment(t), databaseURL: harness.ServeDatabase(t)}
	r.sales = r.d.Another(t, "wallet2")
	r.join(3)
	for _, story := range []struct {
		name string
		tell func(*testing.T, *replicaSet)
	}{
		{"versions change on all replicas", versionsAcrossReplicas},
		{"many merchants have limits of their own", ownLimitsOfMany},
		{"a flood of denials", floodOfDenials},
		{"a quota is kept", quotaAcrossReplicas},
		{"the database is gone while a version is activated", databaseGone},
	} {
		if !t.Run(story.name, func(t *testing.T) { story.tell(t, r) }) {
			t.Fatalf("the replicas may be in any state after: %s", story.name)
		}
	}
}

// join starts replicas, all at once.
func (r *replicaSet) join(n int) {
	t := r.whole
	t.Helper()
	var started []*harness.Program
	for range n {
		link := harness.NewProxy(t, r.databaseURL)
		r.links = append(r.links, link)
		started = append(started, r.d.Launch(t, link.URL, r.d.Approved, r.sales.Approved.Beside()))
	}
	r.d.Join(t, started...)
	r.replicas = append(r.replicas, started...)
}

// newShop makes a merchant of tier scale with an account at both providers.
func (r *replicaSet) newShop(t *testing.T, p *harness.Program) harness.Shop {
	t.Helper()
	s := r.d.NewShop(t, p, "scale")
	r.sales.Connect(t, p, s.MerchantID)
	return s
}

// quotaAcrossReplicas has many clients use up a quota on three replicas, one
// of which is killed and one loses its database for a while. Admissions never
// exceed the limit, and in the end all of it is used. The killed replica stays in the set.
func quotaAcrossReplicas(t *testing.T, set *replicaSet) {
	t.Helper()
	const clients = 4 // of each replica
	quota := int64(240)
	if tier.IsLong() {
		quota = 900
	}
	set.join(3 - len(set.replicas))
	replicas := set.replicas
	stays, silent, dies := replicas[0], replicas[1], replicas[2]
	r := &quotaRun{Shop: set.newShop(t, stays)}
	r.limit(t, quota, replicas...)
	stopWatching := r.watch(t)

	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for _, p := range replicas {
		for range clients {
			group.Go(func() { r.call(ctx, p) })
		}
	}
	harness.Await(t, 5*time.Minute, "a third of the quota", func() bool { return r.used(t) >= quota/3 })
	dies.Kill(t)
	harness.Await(t, 5*time.Minute, "half of the quota", func() bool { return r.used(t) >= quota/2 })
	set.links[1].Silence()
	<-time.After(4 * time.Second) // longer than a count may take
	set.links[1].Restore()
	set.join(1)
	joins := set.replicas[3]
	for range clients {
		group.Go(func() { r.call(ctx, joins) })
	}
	harness.Await(t, 5*time.Minute, "the end of the quota", func() bool { return r.denied.Load() > 100 && r.used(t) == quota })
	harness.Await(t, 5*time.Minute, "nothing that is given back", func() bool { return r.deniedEverywhere(t, stays, silent, joins) })
	stop()
	group.Wait()
	r.check(t, quota, clients, stays, stopWatching())
}

// quotaRun is calls that use a quota up.
type quotaRun struct {
	harness.Shop
	next   atomic.Int64
	denied atomic.Int64

	mu    sync.Mutex
	calls []*oneCall
}

// oneCall is a create, and what came of it.
type oneCall struct {
	order harness.Fields
	at    *harness.Program
	got   harness.Answer
	err   error
}

// sold is what the checks read of a collection's answer.
type sold struct {
	ExternalID string `json:"external_id"`
	Remaining  *int64 `json:"remaining_quota"`
}

func soldIn(a harness.Answer) sold {
	var one sold
	_ = json.Unmarshal(a.Data, &one)
	return one
}

// saleOf is the body of a collection, under a reference of its own.
func saleOf(amount int64) harness.Fields {
	return harness.Fields{"amount": amount, "payer_email": "payer@example.com", "external_id": harness.NewReference()}
}

// limit gives the merchant a quota of its own, and no rate, and waits until all
// replicas know.
func (r *quotaRun) limit(t *testing.T, quota int64, replicas ...*harness.Program) {
	t.Helper()
	r.MustRun(t, "", nil, "merchant", "limit", r.MerchantID, "--quota", fmt.Sprintf("wallet2=%d", quota),
		"--rate", "1000000/s", "--burst", "1000000", "--reason", "for a test")
	for _, p := range replicas {
		harness.Await(t, harness.ReadyWithin, "the merchant's own limit", func() bool {
			a := r.Shop.At(p).Ask(t, "/wallet2/status", harness.Fields{"external_id": "none"})
			return strings.Contains(a.Header.Get("RateLimit-Policy"), "q=1000000")
		})
	}
}

// used is what the database says.
func (r *quotaRun) used(t *testing.T) (used int64) {
	t.Helper()
	r.QueryRow(t, &used, "SELECT COALESCE(SUM(used), 0)::INT8 FROM usage WHERE merchant_id = $1 AND name = 'wallet2'", r.MerchantID)
	return used
}

// watch looks at what is used all the time, until it is told to end and tell the
// most that it has seen.
func (r *quotaRun) watch(t *testing.T) (most func() int64) {
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
			if conn.QueryRow(ctx, "SELECT COALESCE(MAX(used), 0)::INT8 FROM usage WHERE merchant_id = $1", r.MerchantID).Scan(&now) == nil {
				highest = max(highest, now)
			}
			<-time.After(5 * time.Millisecond)
		}
		seen <- highest
	}()
	return func() int64 { stop(); return <-seen }
}

// call makes collections at a replica until the context ends, or the replica has.
func (r *quotaRun) call(ctx context.Context, at *harness.Program) {
	for ctx.Err() == nil {
		one := &oneCall{at: at, order: saleOf(100_000 + 1_000*r.next.Add(1))}
		one.got, one.err = r.Shop.At(at).Post(context.WithoutCancel(ctx), "/wallet2/create", one.order)
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
func (r *quotaRun) deniedEverywhere(t *testing.T, replicas ...*harness.Program) bool {
	t.Helper()
	return !slices.ContainsFunc(replicas, func(p *harness.Program) bool {
		a, err := r.Shop.At(p).Post(t.Context(), "/wallet2/create", saleOf(99_000))
		if err == nil && a.Success {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.calls = append(r.calls, &oneCall{at: p, order: harness.Fields{"external_id": soldIn(a).ExternalID}, got: a})
		}
		return err != nil || a.Code != fault.QuotaExceeded
	})
}

// check counts what was admitted in each of the ways in which that can be seen.
func (r *quotaRun) check(t *testing.T, quota int64, clients int, at *harness.Program, most int64) {
	t.Helper()
	codes, cut, unknown, left := map[fault.Code]int{}, 0, 0, map[int64]int{}
	for _, one := range r.calls {
		switch {
		case one.err != nil:
			cut++
		case one.got.Success:
			codes["success"]++
			left[*soldIn(one.got).Remaining]++
		default:
			if codes[one.got.Code]++; one.got.Sent == fault.SentUnknown {
				unknown++
			}
		}
	}
	var reserved int64
	r.QueryRow(t, &reserved, "SELECT count(*) FROM movements WHERE merchant_id = $1 AND state <> 'not_submitted'", r.MerchantID)
	used, admitted := r.used(t), int64(codes["success"])
	t.Logf("limit %d: %d answered with success, %d collections made, %d used, at most %d at any moment; %d requests cut by the kill, %d answered with an unknown end; answers %v",
		quota, admitted, reserved, used, most, cut, unknown, codes)
	if used != quota || most > quota || admitted > reserved || reserved > quota {
		t.Error("the quota was not kept, or not all of it is used")
	}
	// What was counted and never made can only have been in the killed replica's
	// hands.
	if lost := used - reserved; lost > int64(clients) {
		t.Errorf("%d units were used by nothing, and %d requests were under way at the kill", lost, clients)
	}
	if made := reserved - admitted; made > int64(cut+unknown) {
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
	wantReplayed(t, r.Shop.At(at), r.calls)
	if now := r.used(t); now != quota {
		t.Errorf("after replays %d are used", now)
	}
}

// wantReplayed asks for everything once more: what was made is answered as before,
// what was cut is answered if it was made, and all others are beyond the quota.
func wantReplayed(t *testing.T, s harness.Shop, calls []*oneCall) {
	t.Helper()
	late := 0
	for _, one := range calls {
		if one.order["payer_email"] == nil || one.err == nil && !one.got.Success && one.got.Sent != fault.SentUnknown {
			continue
		}
		var a harness.Answer
		harness.Await(t, harness.ResolvesWithin, "an answer to what was cut", func() bool {
			a = s.Ask(t, "/wallet2/create", one.order)
			return !slices.Contains(harness.Unfinished, a.Code)
		})
		switch {
		case one.err == nil && one.got.Success:
			if !a.Replayed() || string(a.Data) != string(one.got.Data) {
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
