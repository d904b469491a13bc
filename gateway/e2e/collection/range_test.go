package collection_test

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// The random codes, and how many of the small ones there are.
const (
	smallCodes = 99
	mostCodes  = 999
)

// atOnce makes so many collections of one amount at the same time.
func (w *outlet) atOnce(t *testing.T, count, base int) []harness.Answer {
	t.Helper()
	const clients = 32
	answers, faults := make([]harness.Answer, count), make([]error, count)
	var group sync.WaitGroup
	for client := range clients {
		group.Go(func() {
			for i := client; i < count; i += clients {
				answers[i], faults[i] = w.Insist(t.Context(), "/wallet2/create", collectionBody(w.Shop, harness.Fields{"amount": base}))
			}
		})
	}
	group.Wait()
	if err := errors.Join(faults...); err != nil {
		t.Fatal(err)
	}
	return answers
}

// codesOf are the random codes of collections that must all have been made, and
// must all differ.
func codesOf(t *testing.T, answers []harness.Answer, base int64) []int64 {
	t.Helper()
	var codes []int64
	for _, a := range answers {
		c := collectionOf(a)
		if !a.Success || c.Amount != base+c.Code || c.Base != base {
			t.Fatalf("create: %s", a)
		}
		codes = append(codes, c.Code)
	}
	slices.Sort(codes)
	if different := len(slices.Compact(slices.Clone(codes))); different != len(answers) {
		t.Errorf("%d different amounts of %d", different, len(answers))
	}
	return codes
}

// checkCollectionRange uses up all amounts that a sale can have. Small codes come
// first. A request that gets none uses no quota, and its reference stays free.
func checkCollectionRange(t *testing.T, p *harness.Program) {
	const base, apart = 200_000, 300_000
	w := newOutlet(t, p)
	if few := codesOf(t, w.atOnce(t, smallCodes, apart), apart); few[0] != 1 || few[len(few)-1] != smallCodes {
		t.Errorf("the first %d codes are %d to %d", smallCodes, few[0], few[len(few)-1])
	}
	// Most other amounts are taken as sales of an earlier one take them, so that a few sales
	// at once fill the range.
	const free = 60
	one := collect(t, w.Shop, harness.Fields{"amount": base})
	w.takeAllBut(t, one, free)
	first := w.atOnce(t, free, base)
	codes := codesOf(t, first, base)
	if codes[0] < mostCodes-free || codes[len(codes)-1] != mostCodes {
		t.Errorf("%d codes that were free are %v", len(codes), codes)
	}
	used := usedOf(t, w.Shop)
	for _, a := range w.atOnce(t, 20, base) {
		wait, err := strconv.Atoi(a.Header.Get("Retry-After"))
		at, parsed := time.Parse(time.RFC3339, a.RetryAt)
		if a.Code != fault.InProgress || a.HTTP != http.StatusConflict || a.Sent != fault.SentNo || a.Retry != fault.RetryLater ||
			err != nil || wait < 1 || wait > 3600 || parsed != nil || time.Until(at) < 2*time.Hour || time.Until(at) > 3*time.Hour {
			t.Fatalf("no amount is free: %s, headers %v", a, a.Header)
		}
	}
	reference := harness.NewReference()
	refuses(t, w.Shop, "no amount is free", "/wallet2/create", collectionBody(w.Shop, harness.Fields{"amount": base, "external_id": reference}), harness.Refusal{Code: fault.InProgress, Sent: fault.SentNo, Retry: fault.RetryLater})
	if now := usedOf(t, w.Shop); now != used || used != smallCodes+1+free {
		t.Errorf("%d of the quota used, and then %d; %d were made", used, now, smallCodes+1+free)
	}
	collect(t, w.Shop, harness.Fields{"amount": base + 1000, "external_id": reference}) // it is free, and so are other amounts
}
