package harness

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// Attempt is one reference that was used, and what came of it. Its amount is
// its alone, so that the upstream's movements can be told apart by it.
type Attempt struct {
	Order  Fields
	Amount int64
	First  *Answer // nil when the request was cut
	HTTP   int     // the status, 0 where there was none
	Began  time.Time
	Took   time.Duration // until there was an answer
	At     *Program      // where it was sent first, when there are several
	Err    error
	ended  bool // as far as its load knows
}

// Load is what a test has tried so far. Its amounts begin beyond the magic ones.
type Load struct {
	Shop
	next     atomic.Int64
	mu       sync.Mutex
	Attempts []*Attempt
}

const firstAmount = 100_000

// NewLoad is a load that has tried nothing yet.
func NewLoad(s Shop) *Load { return &Load{Shop: s} }

// NewAttempt is another reference to try, for payments of a type.
func (l *Load) NewAttempt(kind string) *Attempt {
	amount := firstAmount + l.next.Add(1)
	a := &Attempt{Amount: amount, Order: l.PaymentBody(Fields{"amount": amount, "type": kind})}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Attempts = append(l.Attempts, a)
	return a
}

// Tried are the attempts that have ended, in the order of their beginnings. It is for
// any goroutine.
func (l *Load) Tried() []*Attempt {
	l.mu.Lock()
	defer l.mu.Unlock()
	ended := make([]*Attempt, 0, len(l.Attempts))
	for _, a := range l.Attempts {
		if a.ended {
			ended = append(ended, a)
		}
	}
	return ended
}

// Try sends an attempt once. It is for any goroutine.
func (l *Load) Try(ctx context.Context, a *Attempt) {
	a.Try(ctx, l.Shop)
	l.mu.Lock()
	defer l.mu.Unlock()
	a.ended = true
}

// Try sends the attempt once, to a shop's program.
func (a *Attempt) Try(ctx context.Context, at Shop) {
	a.Began = time.Now()
	got, err := at.Post(ctx, "/payments/create", a.Order)
	a.Took, a.Err, a.HTTP = time.Since(a.Began), err, got.HTTP
	if err == nil {
		a.First = &got
	}
}

// CreateUntilDone creates payments from a number of clients until the context
// ends, and waits for the requests that are under way then.
func (l *Load) CreateUntilDone(ctx context.Context, clients int) {
	var group sync.WaitGroup
	for client := range clients {
		kind := []string{"payment_link", "qris"}[client%2]
		group.Go(func() {
			for ctx.Err() == nil {
				a := l.NewAttempt(kind)
				l.Try(context.WithoutCancel(ctx), a)
				if a.Err != nil {
					return // the gateway is gone
				}
				if a.First.Code == fault.RateLimited {
					<-time.After(100 * time.Millisecond)
				}
			}
		})
	}
	group.Wait()
}

// Unfinished are the codes after which the same reference is sent again.
var Unfinished = []fault.Code{
	fault.InProgress, fault.ProviderTimeout, fault.ProviderUnavailable, fault.Internal, fault.RateLimited,
}

// Resolve sends every reference again until it is answered, and then compares the
// answers with the upstream's movements: nothing that was answered is lost, and
// nothing is there twice.
func (l *Load) Resolve(t *testing.T) {
	t.Helper()
	codes := map[fault.Code]int{}
	for _, a := range l.Attempts {
		if a.First != nil {
			codes[a.First.Code]++
		}
	}
	t.Logf("%d references; first answers by code: %v, cut: %d", len(l.Attempts), codes, len(l.Attempts)-sum(codes))
	ctx, cancel := context.WithTimeout(t.Context(), ResolvesWithin)
	defer cancel()
	var group sync.WaitGroup
	turns := make(chan struct{}, 16)
	for _, a := range l.Attempts {
		group.Go(func() { l.insist(ctx, t, a, turns) })
	}
	group.Wait()
	upstream := l.WantOnceUpstream(t)
	for _, a := range l.Attempts {
		if upstream[a.Amount] != 1 {
			t.Errorf("reference %s: %d times upstream, want once", a.Order["external_id"], upstream[a.Amount])
		}
	}
}

// insist sends an attempt's request again until it is answered with success.
func (l *Load) insist(ctx context.Context, t *testing.T, a *Attempt, turns chan struct{}) {
	for {
		turns <- struct{}{}
		got, err := l.Post(context.WithoutCancel(ctx), "/payments/create", a.Order)
		<-turns
		switch {
		case err != nil:
			t.Errorf("%s: %v", a.Order["external_id"], err)
			return
		case got.Success:
			if a.First != nil && a.First.Success && (string(got.Data) != string(a.First.Data) || !got.Replayed()) {
				t.Errorf("answered %s at first, and %s after all (replayed: %t)", a.First, got, got.Replayed())
			}
			return
		case a.First != nil && a.First.Success, !slices.Contains(Unfinished, got.Code):
			t.Errorf("%s: %s, after %v", a.Order["external_id"], got, a.First)
			return
		}
		select {
		case <-ctx.Done():
			t.Errorf("%s is not resolved after %v: %s", a.Order["external_id"], ResolvesWithin, got)
			return
		case <-time.After(time.Second):
		}
	}
}

// WantInContract holds first answers to creations against what the contract allows
// when something is out of order.
func (l *Load) WantInContract(t *testing.T, longest time.Duration, codes ...fault.Code) {
	t.Helper()
	for _, a := range l.Attempts {
		switch {
		case a.First == nil:
			t.Errorf("%s: no answer: %v", a.Order["external_id"], a.Err)
		case a.Took > longest:
			t.Errorf("%s: answered after %v", a.Order["external_id"], a.Took)
		case !a.First.Success && !slices.Contains(codes, a.First.Code):
			t.Errorf("%s: %s, want one of %v", a.Order["external_id"], a.First, codes)
		case a.First.Code == fault.ProviderTimeout && (a.First.Sent != fault.SentUnknown || a.First.Retry != fault.RetryLookupFirst || a.First.HTTP != http.StatusInternalServerError):
			t.Errorf("%s: %s", a.Order["external_id"], a.First)
		}
	}
}
