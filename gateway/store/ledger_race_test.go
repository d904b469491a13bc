package store_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/gateway/tier"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// fleets are the ways in which a balance is raced for: by one replica or two,
// with commits that are shared and without.
var fleets = map[string][]store.Options{
	"shared commits":              {{MaxConns: 8}},
	"own commits":                 {{MaxConns: 8, OwnCommits: true}},
	"two replicas":                {{MaxConns: 8}, {MaxConns: 8}},
	"two replicas of either sort": {{MaxConns: 8}, {MaxConns: 8, OwnCommits: true}},
}

// someFleets are all fleets in the long tier, and two of them for each change.
func someFleets(t *testing.T) map[string][]store.Options {
	some := map[string][]store.Options{}
	for _, name := range tier.Sample(t, slices.Sorted(maps.Keys(fleets)), 2) {
		some[name] = fleets[name]
	}
	return some
}

// together opens the replicas of a payer with a balance.
func together(t *testing.T, options []store.Options, s *store.Store, url string) []*store.Store {
	t.Helper()
	stores := []*store.Store{s}
	for _, o := range options[1:] {
		stores = append(stores, open(t, url, o))
	}
	return stores
}

// TestTheLastRupiah has 200 reservations race for a balance that pays 120.
func TestTheLastRupiah(t *testing.T) { //nolint:tparallel // each round takes many connections
	t.Parallel()
	for name, options := range someFleets(t) {
		for charge, held := range map[movement.Charge]money.Amount{movement.Charged: 0, movement.Held: 120} {
			t.Run(fmt.Sprint(name, ", ", charge), func(t *testing.T) {
				s, url := payerWith(t, 120, options[0])
				stores := together(t, options, s, url)
				got := every(200, func(i int) string {
					m := order(fmt.Sprint("ORD/", i), charge)
					m.Amount = 1
					return reserves(t.Context(), stores[i%len(stores)], m)
				})
				if want := map[string]int{"reserved": 120, "insufficient": 80}; !reflect.DeepEqual(got, want) {
					t.Errorf("%v", got)
				}
				if n := count(t, url, rows); n != 120 {
					t.Errorf("%d movements", n)
				}
				wantBalance(t, s, 0, held)
				wantClean(t, s)
			})
		}
	}
}

// TestOneReferenceIsPaidOnce races equal orders: with money for all, and for one.
func TestOneReferenceIsPaidOnce(t *testing.T) {
	t.Parallel()
	for name, options := range someFleets(t) {
		for _, balance := range []money.Amount{1_500, 150_000} {
			s, url := payerWith(t, balance, options[0])
			stores := together(t, options, s, url)
			moved(t, s, posted(reserve(t, s, order("again", movement.Held)), movement.NotSubmitted))
			for _, reference := range []string{"fresh", "again"} {
				got := every(50, func(i int) string {
					return reserves(t.Context(), stores[i%len(stores)], order(reference, movement.Charged))
				})
				if want := map[string]int{"reserved": 1, "taken": 49}; !reflect.DeepEqual(got, want) {
					t.Errorf("%s, %s with %d: %v", name, reference, balance, got)
				}
				credit(t, s, reference, 1_500)
			}
			if n := count(t, url, "SELECT count(*) FROM ledger_transactions WHERE kind = 'charge'"); n != 2 {
				t.Errorf("%s with %d: charged %d times", name, balance, n)
			}
			wantClean(t, s)
		}
	}
}

// TestOneEnd races everything that can end an order.
func TestOneEnd(t *testing.T) { //nolint:tparallel // each round takes many connections
	t.Parallel()
	for name, options := range someFleets(t) {
		t.Run(name, func(t *testing.T) {
			s, url := payerWith(t, 1_000_000, options[0])
			stores := together(t, options, s, url)
			for round := range 10 {
				charge := []movement.Charge{movement.Charged, movement.Held}[round%2]
				m := reserve(t, s, order(fmt.Sprint("ORD/", round), charge))
				to := []movement.State{movement.Succeeded, movement.Failed, movement.NotSubmitted}
				got := every(24, func(i int) string {
					ok, err := apply(t.Context(), stores[i%len(stores)], epoch, posted(m, to[i%3]))
					return fmt.Sprint(ok, err)
				})
				if want := map[string]int{"true <nil>": 1, "false <nil>": 23}; !reflect.DeepEqual(got, want) {
					t.Errorf("%v", got)
				}
			}
			wantClean(t, s)
		})
	}
}

// TestAcknowledgedOrFree races an acknowledgement with the proof that nothing was
// sent: never both.
func TestAcknowledgedOrFree(t *testing.T) {
	t.Parallel()
	s, url := payerWith(t, 1_000_000, store.Options{MaxConns: 8})
	other := open(t, url, store.Options{MaxConns: 8})
	for round := range 30 {
		m := reserve(t, s, order(fmt.Sprint("ORD/", round), movement.Charged))
		got := every(2, func(i int) string {
			if i == 0 {
				ok, err := apply(t.Context(), s, epoch, posted(m, movement.NotSubmitted))
				return fmt.Sprint("free ", ok, err)
			}
			now, err := other.Acknowledge(t.Context(), m, []byte(`{}`))
			return fmt.Sprint("acknowledged ", now.Answer != nil && now.State == movement.Acknowledged, err)
		})
		free, acknowledged := got["free true <nil>"], got["acknowledged true <nil>"]
		if len(got) != 2 || free+acknowledged != 1 {
			t.Fatalf("%v", got)
		}
	}
	wantClean(t, s)
}

// TestAdjustmentsOfABusyMerchant credits and debits one whose orders never stop.
func TestAdjustmentsOfABusyMerchant(t *testing.T) {
	t.Parallel()
	s, _ := payerWith(t, 1_000_000, store.Options{MaxConns: 8})
	got := every(400, func(i int) string {
		if i%10 == 0 {
			amount := adjustment(fmt.Sprint("ADJ/", i), 100)
			if i%20 == 0 {
				amount.Amount = -100
			}
			_, err := s.Adjust(t.Context(), by("adjust"), amount, money.Max)
			return fmt.Sprint("adjusted ", err)
		}
		return reserves(t.Context(), s, order(fmt.Sprint("ORD/", i), movement.Charged))
	})
	if want := map[string]int{"reserved": 360, "adjusted <nil>": 40}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
	wantBalance(t, s, 1_000_000-360*1_500, 0)
	wantClean(t, s)
}
