package store_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/gateway/tier"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

const usageDay = "2026-01-02"

// usage is a part of the limit of a day.
func usage(name string, amount, ceiling int64) movement.Usage {
	return movement.Usage{Name: name, Period: usageDay, Amount: amount, Ceiling: ceiling}
}

// transfer is the draft of one that counts against limits.
func transfer(reference string, usages ...movement.Usage) movement.Movement {
	m := draft(reference)
	m.Kind, m.Operation, m.Provider, m.Usage = manifest.Transfer, "/wallet1/transfer/bank", "wallet1", usages
	return m
}

// used is what counts against the limits of the day.
func used(t *testing.T, s *store.Store) map[string]int64 {
	t.Helper()
	all, err := s.Usage(t.Context(), draft("").Owner, usageDay)
	if err != nil {
		t.Fatal(err)
	}
	counted := map[string]int64{}
	for _, u := range all {
		counted[u.Name] = u.Units
	}
	return counted
}

func wantUsed(t *testing.T, s *store.Store, want map[string]int64) {
	t.Helper()
	if got := used(t, s); !reflect.DeepEqual(got, want) {
		t.Errorf("used %v, want %v", got, want)
	}
}

// beyond checks that a reservation is refused for a limit.
func beyond(t *testing.T, s *store.Store, m movement.Movement, name string) {
	t.Helper()
	_, ours, err := s.Reserve(t.Context(), m)
	if limit, ok := errors.AsType[*movement.LimitError](err); !ok || limit.Name != name || ours {
		t.Errorf("%s: %v, %v; want the limit %s", m.Reference, ours, err, name)
	}
}

// TestPayoutLimits: every limit is kept to the rupiah, a refusal counts nothing, and what
// a transfer is stored with is what it is read with.
func TestPayoutLimits(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]store.Options{"shared commits": {MaxConns: 4}, "own commits": {MaxConns: 4, OwnCommits: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, database(t), options)
			first := transfer("A", usage("out.amount", 60, 100), usage("out.count", 1, 2))
			first.Fee, first.NameMatch, first.Destination, first.Fingerprint, first.Quote = 2_500, new(false), "014/2460888509", "fingerprint-", []byte(`{"session":"s"}`)
			m := reserve(t, s, first)
			kept := byID(t, s, m.ID)
			for i := range m.Usage {
				m.Usage[i].Ceiling = 0 // the policy's, not the transfer's
			}
			if !reflect.DeepEqual(kept, m) || kept.Fee != 2_500 || kept.Destination != "014/2460888509" || kept.NameMatch == nil || *kept.NameMatch {
				t.Errorf("read\n%+v\nwant\n%+v", kept, m)
			}
			beyond(t, s, transfer("B", usage("out.amount", 41, 100), usage("out.count", 1, 2)), "out.amount")
			reserve(t, s, transfer("B", usage("out.amount", 40, 100), usage("out.count", 1, 2)))
			beyond(t, s, transfer("C", usage("out.amount", 0, 100), usage("out.count", 1, 2)), "out.count")
			beyond(t, s, transfer("C", usage("to.x.count", 1, 0)), "to.x.count") // none at all
			wantUsed(t, s, map[string]int64{"out.amount": 100, "out.count": 2})
			if _, ours, err := s.Reserve(t.Context(), transfer("A", usage("out.amount", 60, 100), usage("out.count", 1, 2))); ours || err != nil {
				t.Errorf("a reference that is taken: %v, %v", ours, err) // it is answered, not counted
			}
			reserve(t, s, transfer("D")) // of a merchant without limits
		})
	}
}

// TestPayoutLimitsComeBack: what came to nothing counts nothing, once, whatever the limit
// is by then; what is open or done goes on counting.
func TestPayoutLimitsComeBack(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	counts := func(ceiling int64) []movement.Usage {
		return []movement.Usage{usage("out.amount", 10, 10*ceiling), usage("out.count", 1, ceiling)}
	}
	var all []movement.Movement
	for i := range 5 {
		all = append(all, reserve(t, s, transfer(fmt.Sprint(i), counts(5)...)))
	}
	moved(t, s, move(all[0], movement.Succeeded))
	pending := moved(t, s, move(all[1], movement.Pending))
	freed := moved(t, s, move(byID(t, s, all[2].ID), movement.NotSubmitted))
	failed := moved(t, s, move(all[3], movement.Failed))
	wantUsed(t, s, map[string]int64{"out.amount": 30, "out.count": 3})
	for _, m := range []movement.Movement{all[2], all[3]} { // somebody who is late
		if ok, err := apply(t.Context(), s, epoch, move(m, movement.Failed)); ok || err != nil {
			t.Errorf("moved again: %v, %v", ok, err)
		}
	}
	beyond(t, s, transfer("5", counts(3)...), "out.amount") // lowered below what is used with it
	beyond(t, s, transfer("5", counts(1)...), "out.amount") // and below what is used already
	if again, ours, err := s.Reserve(t.Context(), transfer("2", counts(4)...)); err != nil || !ours || again.ID != freed.ID || again.Attempt != 2 {
		t.Errorf("free again: %+v, %v, %v", again, ours, err)
	}
	wantUsed(t, s, map[string]int64{"out.amount": 40, "out.count": 4})
	moved(t, s, move(pending, movement.Failed))
	moved(t, s, move(byID(t, s, freed.ID), movement.Failed))
	moved(t, s, move(all[4], movement.NotSubmitted))
	wantUsed(t, s, map[string]int64{"out.amount": 10, "out.count": 1})
	if _, ours, err := s.Reserve(t.Context(), transfer("3", counts(5)...)); ours || err != nil {
		t.Errorf("%s, which failed, is free: %v, %v", failed.Reference, ours, err)
	}
	wantUsed(t, s, map[string]int64{"out.amount": 10, "out.count": 1})
}

// TestPayoutLimitsWhoseAnswerIsCut counts each once, though nobody heard of its commit.
func TestPayoutLimitsWhoseAnswerIsCut(t *testing.T) {
	t.Parallel()
	p, s, truth, _ := cuttable(t)
	p.arm(cut{at: execution})
	if _, ours, err := s.Reserve(t.Context(), transfer("A", usage("out.count", 1, 1))); ours || err == nil {
		t.Errorf("%v, %v", ours, err)
	}
	wantUsed(t, truth, map[string]int64{})
	p.arm(cut{at: execution, after: true})
	m := reserve(t, s, transfer("A", usage("out.count", 1, 1)))
	wantUsed(t, truth, map[string]int64{"out.count": 1})
	p.arm(cut{at: execution})
	if ok, err := apply(t.Context(), s, epoch, move(m, movement.Failed)); ok || err == nil {
		t.Errorf("%v, %v", ok, err)
	}
	wantUsed(t, truth, map[string]int64{"out.count": 1})
	p.arm(cut{at: execution, after: true})
	if ok, err := apply(t.Context(), s, epoch, move(m, movement.Failed)); !ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	wantUsed(t, truth, map[string]int64{"out.count": 0})
}

// TestTheLastOfALimit has 200 reservations race for limits that let 37 through, by the
// amount of all, the number of all, or the number to one destination of two.
func TestTheLastOfALimit(t *testing.T) { //nolint:tparallel // each round takes many connections
	t.Parallel()
	wants := map[string]map[string]int{
		"out.amount": {"reserved": 37, "out.amount": 163}, "out.count": {"reserved": 37, "out.count": 163}, "to.0.count": {"reserved": 137, "to.0.count": 63},
	}
	type round struct{ fleet, limit string }
	var rounds []round
	for _, fleet := range slices.Sorted(maps.Keys(fleets)) {
		for _, limit := range slices.Sorted(maps.Keys(wants)) {
			rounds = append(rounds, round{fleet, limit})
		}
	}
	for _, r := range tier.Sample(t, rounds, 4) {
		options, limit, want := fleets[r.fleet], r.limit, wants[r.limit]
		t.Run(r.fleet+", "+limit, func(t *testing.T) {
			s, url := payerWith(t, 1, options[0])
			stores := together(t, options, s, url)
			got := every(200, func(i int) string {
				usages := []movement.Usage{usage("out.amount", 3, 1000), usage("out.count", 1, 1000), usage(fmt.Sprint("to.", i%2, ".count"), 1, 1000)}
				for k := range usages {
					if usages[k].Name == limit {
						usages[k].Ceiling = 37*usages[k].Amount + usages[k].Amount - 1
					}
				}
				return outs(t.Context(), stores[i%len(stores)], transfer(fmt.Sprint(i), usages...))
			})
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
			n := int64(want["reserved"])
			if counted := used(t, s); counted["out.amount"] != 3*n || counted["out.count"] != n || counted["to.0.count"]+counted["to.1.count"] != n {
				t.Errorf("%v of %d", counted, n)
			}
		})
	}
}

// TestLimitsUnderGivingBack has reservations race with those that come to nothing: each
// is reserved or refused for a limit, and nothing is left of them.
func TestLimitsUnderGivingBack(t *testing.T) { //nolint:tparallel // each round takes many connections
	t.Parallel()
	for name, options := range someFleets(t) {
		t.Run(name, func(t *testing.T) {
			s, url := payerWith(t, 1, options[0])
			stores := together(t, options, s, url)
			got := every(400, func(i int) string {
				k := stores[i%len(stores)]
				to := []string{fmt.Sprint("to.", i%3), fmt.Sprint("to.", (i+1)%3)} // in both orders
				m := transfer(fmt.Sprint(i), usage("out.amount", 3, 12), usage("out.count", 1, 4), usage(to[0], 1, 2), usage(to[1], 1, 2))
				if i%5 == 0 {
					m.Usage = m.Usage[2:]
				}
				said := outs(t.Context(), k, m)
				if said != "reserved" {
					return said
				}
				if m, err := k.MovementByKey(t.Context(), m.Key); err != nil {
					return err.Error()
				} else if _, err := apply(t.Context(), k, epoch, move(m, movement.Failed)); err != nil {
					return "giving back: " + err.Error()
				}
				return said
			})
			for said := range got {
				if !slices.Contains([]string{"reserved", "out.amount", "out.count", "to.0", "to.1", "to.2"}, said) {
					t.Errorf("%d times: %s", got[said], said)
				}
			}
			if counted := used(t, s); got["reserved"] == 0 || counted["out.amount"]+counted["out.count"]+counted["to.0"]+counted["to.1"]+counted["to.2"] != 0 {
				t.Errorf("%d reserved, and %v is left", got["reserved"], counted)
			}
		})
	}
}

// outs reserves, and says in a word what came of it.
func outs(ctx context.Context, s *store.Store, m movement.Movement) string {
	_, ours, err := s.Reserve(ctx, m)
	limit, limited := errors.AsType[*movement.LimitError](err)
	switch {
	case limited:
		return limit.Name
	case err != nil:
		return err.Error()
	case ours:
		return "reserved"
	}
	return "taken"
}

// TestLastEqual: the newest of those with a fingerprint, of one merchant, mode and kind.
func TestLastEqual(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	fingerprint := "\x1eabc-"
	named := func(number int, mode, fingerprint string) movement.Movement {
		m := transfer(fmt.Sprintf("%s%08d", fingerprint, number))
		m.Owner.Mode, m.Fingerprint = mode, fingerprint
		return m
	}
	if _, err := s.LastEqual(t.Context(), draft("").Owner, manifest.Transfer, fingerprint); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("none: %v", err)
	}
	for _, n := range []int{9, 11, 2, 10} {
		reserve(t, s, named(n, "live", fingerprint))
	}
	reserve(t, s, named(12, "test", fingerprint))
	reserve(t, s, named(13, "live", "\x1eabd-"))
	got, err := s.LastEqual(t.Context(), draft("").Owner, manifest.Transfer, fingerprint)
	if err != nil || got.Reference != fingerprint+"00000011" || got.Fingerprint != fingerprint {
		t.Errorf("%+v, %v", got, err)
	}
	reserve(t, s, transfer("00000001"))
	if _, err := s.LastEqual(t.Context(), draft("").Owner, manifest.Transfer, ""); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("of those with a reference: %v", err)
	}
	if _, err := s.LastEqual(t.Context(), draft("").Owner, manifest.Order, fingerprint); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("of another kind: %v", err)
	}
}

// TestPayoutLimitsOfWhatMovedAgainstProof: what was given back as never sent counts again
// when it has moved after all, beyond any limit, and is given back once at most.
func TestPayoutLimitsOfWhatMovedAgainstProof(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	counts := []movement.Usage{usage("out.amount", 10, 20), usage("out.count", 1, 2)}
	var all []movement.Movement
	for i := range 2 {
		all = append(all, reserve(t, s, transfer(fmt.Sprint(i), counts...)))
	}
	freed := moved(t, s, move(all[0], movement.NotSubmitted))
	reserve(t, s, transfer("2", counts...)) // takes its place
	wantUsed(t, s, map[string]int64{"out.amount": 20, "out.count": 2})
	pending := moved(t, s, move(freed, movement.Pending))
	wantUsed(t, s, map[string]int64{"out.amount": 30, "out.count": 3})
	beyond(t, s, transfer("3", counts...), "out.amount")
	moved(t, s, move(pending, movement.Failed))
	wantUsed(t, s, map[string]int64{"out.amount": 20, "out.count": 2})
	other := moved(t, s, move(all[1], movement.NotSubmitted))
	moved(t, s, move(other, movement.Succeeded))
	wantUsed(t, s, map[string]int64{"out.amount": 20, "out.count": 2})
}
