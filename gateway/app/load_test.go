package app_test

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// attempt is one reference that was used, and what came of it. Its amount is
// its alone, so that the upstream's movements can be told apart by it.
type attempt struct {
	order  fields
	amount int64
	first  *answer // nil when the request was cut
	began  time.Time
	took   time.Duration // until there was an answer
	at     *program      // where it was sent first, when there are several
	err    error
}

// load is what a test has tried so far. Its amounts begin beyond the magic ones.
type load struct {
	shop
	next     atomic.Int64
	mu       sync.Mutex
	attempts []*attempt
}

const firstAmount = 100_000

func newLoad(s shop) *load { return &load{shop: s} }

func (l *load) attempt(kind string) *attempt {
	amount := firstAmount + l.next.Add(1)
	a := &attempt{amount: amount, order: l.order(fields{"amount": amount, "type": kind})}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attempts = append(l.attempts, a)
	return a
}

// try sends an attempt once. It is for any goroutine.
func (l *load) try(ctx context.Context, a *attempt) { a.try(ctx, l.shop) }

func (a *attempt) try(ctx context.Context, at shop) {
	a.began = time.Now()
	got, err := at.post(ctx, "/payments/create", a.order)
	a.took, a.err = time.Since(a.began), err
	if err == nil {
		a.first = &got
	}
}

// run creates payments from a number of clients until the context ends. What
// is under way then is waited for.
func (l *load) run(ctx context.Context, clients int) {
	var group sync.WaitGroup
	for client := range clients {
		kind := []string{"payment_link", "qris"}[client%2]
		group.Go(func() {
			for ctx.Err() == nil {
				a := l.attempt(kind)
				l.try(context.WithoutCancel(ctx), a)
				if a.err != nil {
					return // the gateway is gone
				}
				if a.first.Code == fault.RateLimited {
					<-time.After(100 * time.Millisecond)
				}
			}
		})
	}
	group.Wait()
}

// unfinished are the codes after which the same reference is sent again.
var unfinished = []fault.Code{
	fault.InProgress, fault.ProviderTimeout, fault.ProviderUnavailable, fault.Internal, fault.RateLimited,
}

// resolvesWithin is what the longest story takes: a call of which nothing came
// back is proven never sent by two lookups, the first after send_by and
// settles_within, which are 35 s after the claim.
const resolvesWithin = 100 * time.Second

// settle sends every reference again until it is answered, and then holds the
// answers and the upstream's movements against one another: nothing that was
// answered is lost, and nothing is there twice.
func (l *load) settle(t *testing.T) {
	t.Helper()
	codes := map[fault.Code]int{}
	for _, a := range l.attempts {
		if a.first != nil {
			codes[a.first.Code]++
		}
	}
	t.Logf("%d references; first answers by code: %v, cut: %d", len(l.attempts), codes, len(l.attempts)-sum(codes))
	ctx, cancel := context.WithTimeout(t.Context(), resolvesWithin)
	defer cancel()
	var group sync.WaitGroup
	turns := make(chan struct{}, 16)
	for _, a := range l.attempts {
		group.Go(func() { l.insist(ctx, t, a, turns) })
	}
	group.Wait()
	upstream := l.onceUpstream(t)
	for _, a := range l.attempts {
		if upstream[a.amount] != 1 {
			t.Errorf("reference %s: %d times upstream, want once", a.order["external_id"], upstream[a.amount])
		}
	}
}

func sum[K comparable](counts map[K]int) int {
	total := 0
	for count := range maps.Values(counts) {
		total += count
	}
	return total
}

// insist sends an attempt's request again until it is answered with success.
func (l *load) insist(ctx context.Context, t *testing.T, a *attempt, turns chan struct{}) {
	for {
		turns <- struct{}{}
		got, err := l.post(context.WithoutCancel(ctx), "/payments/create", a.order)
		<-turns
		switch {
		case err != nil:
			t.Errorf("%s: %v", a.order["external_id"], err)
			return
		case got.Success:
			if a.first != nil && a.first.Success && (string(got.Data) != string(a.first.Data) || !got.replayed()) {
				t.Errorf("answered %s at first, and %s after all (replayed: %t)", a.first, got, got.replayed())
			}
			return
		case a.first != nil && a.first.Success, !slices.Contains(unfinished, got.Code):
			t.Errorf("%s: %s, after %v", a.order["external_id"], got, a.first)
			return
		}
		select {
		case <-ctx.Done():
			t.Errorf("%s is not resolved after %v: %s", a.order["external_id"], resolvesWithin, got)
			return
		case <-time.After(time.Second):
		}
	}
}

// inContract holds first answers to creations against what the contract allows
// when something is out of order.
func (l *load) inContract(t *testing.T, longest time.Duration, codes ...fault.Code) {
	t.Helper()
	for _, a := range l.attempts {
		switch {
		case a.first == nil:
			t.Errorf("%s: no answer: %v", a.order["external_id"], a.err)
		case a.took > longest:
			t.Errorf("%s: answered after %v", a.order["external_id"], a.took)
		case !a.first.Success && !slices.Contains(codes, a.first.Code):
			t.Errorf("%s: %s, want one of %v", a.order["external_id"], a.first, codes)
		case a.first.Code == fault.ProviderTimeout && (a.first.Sent != fault.SentUnknown || a.first.Retry != fault.RetryLookupFirst || a.first.HTTP != http.StatusInternalServerError):
			t.Errorf("%s: %s", a.order["external_id"], a.first)
		}
	}
}
