package store_test

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

func fact(subject, reason, id string) movement.Exception {
	return movement.Exception{
		Owner: movement.Owner{MerchantID: "mer_1", Mode: "live"}, Subject: subject, Reason: reason, FactID: id,
		Provider: "payments", Detail: "agreed on 100, the provider says 90", Times: 1, At: epoch,
	}
}

func TestExceptions(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	first := fact("m-1", "amount_differs", "")
	later := fact("m-1", "amount_differs", "evt-1")
	later.At = epoch.Add(time.Hour)
	test := first
	test.Owner.Mode, test.At = "test", epoch.Add(time.Minute)
	for _, a := range []movement.Exception{first, later, test} {
		if added, err := s.AddException(t.Context(), a); err != nil || !added {
			t.Fatalf("%+v: %v, %v", a, added, err)
		}
		again := a
		again.At, again.Detail = epoch.Add(24*time.Hour), "once more"
		if added, err := s.AddException(t.Context(), again); err != nil || added {
			t.Errorf("%+v again: %v, %v", a, added, err)
		}
	}
	expect := func(most int, want ...movement.Exception) {
		t.Helper()
		if got, err := s.OpenExceptions(t.Context(), most); err != nil || len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Errorf("open: %+v, %v", got, err)
		}
	}
	expect(10, later, test, first)
	expect(2, later, test)

	if err := s.ResolveException(t.Context(), epoch, later, "ops-1", "paid back by hand"); err != nil {
		t.Error(err)
	}
	expect(10, test, first)
	for what, a := range map[string]movement.Exception{"one that is resolved": later, "one that never was": fact("m-2", "paid_late", "")} {
		if err := s.ResolveException(t.Context(), epoch, a, "ops-2", "me too"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: %v", what, err)
		}
	}
	// The provider says it once more: a person has decided it.
	if added, err := s.AddException(t.Context(), later); err != nil || added {
		t.Errorf("once more: %v, %v", added, err)
	}
	expect(10, test, first)
}

// What lasts stands on the list once, and after each time that it was resolved
// and goes on all the same, once more. What was resolved stays as it was.
func TestLastingException(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	a := fact("connection to ppob", "our_account", "3 our deposit is 100% too low_")
	a.Lasting = true
	other := a
	other.FactID = "3 our deposit"
	tell := func(a movement.Exception, after time.Duration, want bool) {
		t.Helper()
		a.At = epoch.Add(after)
		if added, err := s.AddException(t.Context(), a); err != nil || added != want {
			t.Fatalf("%q after %v: %v, %v, want %v", a.FactID, after, added, err, want)
		}
	}
	resolve := func(id string, after time.Duration) {
		t.Helper()
		entry := a
		entry.FactID = id
		if err := s.ResolveException(t.Context(), epoch.Add(after), entry, "ops-1", "topped up"); err != nil {
			t.Fatal(err)
		}
	}
	tell(a, 0, true)
	tell(a, 24*time.Hour, false)
	tell(other, 24*time.Hour, true)
	resolve(a.FactID, 25*time.Hour)
	tell(a, 25*time.Hour, false) // from before it was resolved
	tell(a, 26*time.Hour, true)
	tell(a, 27*time.Hour, false)
	resolve(a.FactID+" #2", 28*time.Hour)
	tell(a, 29*time.Hour, true)
	tell(a, 30*time.Hour, false)

	var open []string
	entries, err := s.OpenExceptions(t.Context(), 10)
	for _, e := range entries {
		open = append(open, e.FactID)
	}
	if err != nil || !slices.Equal(open, []string{a.FactID + " #3", other.FactID}) {
		t.Errorf("open: %q, %v", open, err)
	}
	if counted, err := s.CountExceptions(t.Context()); err != nil || !maps.Equal(counted, map[string]int64{"our_account": 2}) {
		t.Errorf("counted %v, %v", counted, err)
	}
}

func TestExceptionIsSignedByItsResolver(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := open(t, url, store.Options{})
	a := fact("m-1", "paid_late", "")
	if _, err := s.AddException(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if err := s.ResolveException(t.Context(), epoch, a, "ops-1", "paid back"); err != nil {
		t.Fatal(err)
	}
	const signed = "SELECT count(*) FROM exceptions WHERE resolved_at = $1 AND resolved_by = 'ops-1' AND resolution = 'paid back'"
	if n := count(t, url, signed, epoch); n != 1 {
		t.Error("nobody has resolved it")
	}
	if err := s.ResolveException(t.Context(), epoch, a, "ops-2", "paid back"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("it was resolved once more: %v", err)
	}
	const audited = "SELECT count(*) FROM audit WHERE action = 'exception.resolve'"
	if n := count(t, url, audited+" AND operator = 'ops-1' AND at = $1 AND merchant_id = $2 AND detail = 'paid_late of m-1, mode live: paid back'", epoch, a.Owner.MerchantID); n != 1 {
		t.Error("it is not in the audit")
	}
	if n := count(t, url, audited); n != 1 {
		t.Errorf("%d are in the audit", n)
	}
}

func TestExceptionsAtOnce(t *testing.T) {
	t.Parallel()
	s := open(t, database(t), store.Options{MaxConns: 8})
	var wait sync.WaitGroup
	var added atomic.Int32
	for range 20 {
		wait.Go(func() {
			ok, err := s.AddException(t.Context(), fact("m-1", "paid_again", "evt-1"))
			if err != nil {
				t.Error(err)
			}
			if ok {
				added.Add(1)
			}
		})
	}
	wait.Wait()
	if added.Load() != 1 {
		t.Errorf("%d entries of one fact", added.Load())
	}
}
