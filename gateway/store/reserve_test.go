package store_test

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

func TestReserveOfAFreshReference(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	m := draft("INV/2026/#001 · あ")
	m.CreatedAt = m.CreatedAt.Add(999).In(time.FixedZone("WIB", 7*3600)) // what the database can't keep is cut at once
	reserved := reserve(t, s, m)
	want := draft(m.Reference)
	want.ID, want.RequestID, want.Attempt, want.Sequence, want.UpdatedAt = m.ID, m.RequestID, 1, 1, epoch
	want.Version = movement.FirstVersion(1)
	if !reflect.DeepEqual(reserved, want) {
		t.Errorf("reserved %+v\nwant %+v", reserved, want)
	}
	for how, read := range map[string]func() (movement.Movement, error){
		"by id":  func() (movement.Movement, error) { return s.MovementByID(t.Context(), m.ID) },
		"by key": func() (movement.Movement, error) { return s.MovementByKey(t.Context(), m.Key) },
	} {
		if got, err := read(); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v\nwant %+v", how, got, err, want)
		}
	}
	if events := history(t, s, m.ID); len(events) != 0 {
		t.Errorf("history %v", events)
	}
}

func TestReserveOfATakenReference(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	for _, state := range []movement.State{movement.Submitting, movement.Acknowledged, movement.Pending, movement.Succeeded, movement.Failed, movement.Expired} {
		first := at(t, s, string(state), state)
		other := draft(string(state))
		other.Amount = 1
		existing, ours, err := s.Reserve(t.Context(), other)
		if err != nil || ours || existing.ID != first.ID || existing.State != state || existing.Amount != first.Amount {
			t.Errorf("%s: %+v, %v, %v", state, existing, ours, err)
		}
		if got := byID(t, s, first.ID); !reflect.DeepEqual(got, existing) {
			t.Errorf("%s: changed to %+v", state, got)
		}
	}
}

func TestReferencesOfDifferentOwners(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	ids := map[movement.ID]bool{}
	for _, change := range []func(*movement.Movement){
		func(*movement.Movement) {},
		func(m *movement.Movement) { m.Owner.MerchantID = "mer_2" },
		func(m *movement.Movement) { m.Owner.Mode = "test" },
		func(m *movement.Movement) { m.Kind = "order" },
		func(m *movement.Movement) { m.Reference = "inv/1" },
		func(m *movement.Movement) { m.Reference = "INV/1 " },
	} {
		m := draft("INV/1")
		change(&m)
		ids[reserve(t, s, m).ID] = true
	}
	if len(ids) != 6 {
		t.Errorf("%d movements", len(ids))
	}
	missing := draft("INV/1").Key
	missing.Owner.MerchantID = "mer_3"
	if _, err := s.MovementByKey(t.Context(), missing); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("another merchant's reference: %v", err)
	}
	if _, err := s.MovementByID(t.Context(), movement.NewID()); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("another id: %v", err)
	}
}

// TestReserveAgain takes over the row of an attempt of which nothing was sent. The
// provider knows it under another name, and nothing of the first attempt stays.
func TestReserveAgain(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	first := reserve(t, s, draft("INV/1"))
	if _, err := s.Miss(t.Context(), first, epoch); err != nil {
		t.Fatal(err)
	}
	if ok, err := s.Poll(t.Context(), first, epoch, epoch, epoch); err != nil || !ok {
		t.Fatal(ok, err)
	}
	change := move(byID(t, s, first.ID), movement.NotSubmitted)
	change.Result, change.Answer = json.RawMessage(`{"qr_string":"old"}`), json.RawMessage(`{"old":true}`)
	change.Refusal = &movement.Refusal{Code: "OLD"}
	change.ProviderReference, change.FactID, change.ExpiresAt = "old", "old", epoch
	moved(t, s, change)

	next := draft("INV/1")
	next.Amount, next.Operation, next.Provider, next.CallbackURL = 20_000, "/other", "other", "https://other.example"
	next.Request, next.PolicyVersion, next.DecisionID = json.RawMessage(`{}`), "v2", "d-2"
	next.CreatedAt, next.SendBy, next.DueAt = epoch.Add(time.Hour), epoch.Add(2*time.Hour), epoch.Add(3*time.Hour)
	want := next
	want.ID, want.Attempt, want.Sequence, want.UpdatedAt = first.ID, 2, 3, next.CreatedAt
	want.Version = movement.FirstVersion(3)
	reserved := reserve(t, s, next)
	if !reflect.DeepEqual(reserved, want) {
		t.Errorf("reserved %+v\nwant %+v", reserved, want)
	}
	if got := byID(t, s, first.ID); !reflect.DeepEqual(got, want) {
		t.Errorf("stored %+v\nwant %+v", got, want)
	}
	if first.UpstreamReference() == reserved.UpstreamReference() {
		t.Error("both requests have one name at the provider")
	}
	if ok, err := apply(t.Context(), s, epoch, move(first, movement.Pending)); ok || err != nil {
		t.Errorf("news of the first attempt moved the second: %v, %v", ok, err)
	}
}

// TestReserveOfANamedAttempt takes a row over as the attempt that is named, if that
// lies above the last one: of what is paid from a balance, and of what is not.
func TestReserveOfANamedAttempt(t *testing.T) {
	t.Parallel()
	for _, charge := range []movement.Charge{movement.Unpaid, movement.Charged, movement.Held} {
		t.Run(string(charge), func(t *testing.T) {
			t.Parallel()
			s, _ := payerWith(t, 10_000, store.Options{MaxConns: 4})
			named := func(attempt int) movement.Movement {
				m := order("ORD/1", charge)
				if m.Attempt = attempt; charge == movement.Unpaid {
					m.ConnectionOwner = manifest.OwnerMerchant
				}
				return m
			}
			first := reserve(t, s, named(1))
			for _, attempt := range []int{0, 1, 2, 9} {
				if m, ours, err := s.Reserve(t.Context(), named(attempt)); ours || err != nil || m.ID != first.ID {
					t.Errorf("of what is being sent, as %d: %v, %v", attempt, ours, err)
				}
			}
			last := first
			for _, c := range []struct{ attempt, want int }{{1, 0}, {7, 7}, {6, 0}, {7, 0}, {0, 8}, {9, 9}, {math.MaxInt32, math.MaxInt32}} {
				if last.State == movement.Submitting {
					last = moved(t, s, posted(last, movement.NotSubmitted))
				}
				m, ours, err := s.Reserve(t.Context(), named(c.attempt))
				switch {
				case err != nil || ours != (c.want > 0):
					t.Fatalf("as %d after %d: %v, %v", c.attempt, last.Attempt, ours, err)
				case ours && (m.ID != first.ID || m.Attempt != c.want || byID(t, s, m.ID).Attempt != c.want):
					t.Errorf("as %d after %d: reserved as %d", c.attempt, last.Attempt, m.Attempt)
				case !ours && (m.ID != first.ID || m.State != movement.NotSubmitted):
					t.Errorf("as %d after %d: %+v", c.attempt, last.Attempt, m)
				}
				if ours {
					last = m
				}
			}
			wantClean(t, s)
		})
	}
}

// TestReserveOfANamedAttemptTooPoor differs from one whose number was passed.
func TestReserveOfANamedAttemptTooPoor(t *testing.T) {
	t.Parallel()
	s, _ := payerWith(t, 1_500, store.Options{MaxConns: 4})
	moved(t, s, posted(reserve(t, s, order("ORD/1", movement.Charged)), movement.NotSubmitted))
	reserve(t, s, order("ORD/2", movement.Charged))
	m := order("ORD/1", movement.Charged)
	m.Attempt = 500
	if _, ours, err := s.Reserve(t.Context(), m); ours || !errors.Is(err, movement.ErrInsufficient) {
		t.Errorf("%v, %v", ours, err)
	}
	m.Attempt = 1
	if existing, ours, err := s.Reserve(t.Context(), m); ours || err != nil || existing.State != movement.NotSubmitted {
		t.Errorf("%+v, %v, %v", existing, ours, err)
	}
}

// TestEqualReservationsAtOnce: one of many gets a reference, which has one id, also
// where none of them saw it taken.
func TestEqualReservationsAtOnce(t *testing.T) {
	t.Parallel()
	for _, options := range []store.Options{{MaxConns: 16}, {MaxConns: 16, OwnCommits: true}} {
		s := open(t, database(t), options)
		freed := at(t, s, "again", movement.NotSubmitted)
		for _, reference := range []string{"again", "A", "B", "C", "D", "E", "F", "G", "H"} {
			var wait sync.WaitGroup
			var ours atomic.Int32
			ids := make(chan movement.ID, 50)
			for range 50 {
				wait.Go(func() {
					same := draft(reference)
					same.ID = movement.NameKey{}.ID(same.Key)
					m, reserved, err := s.Reserve(t.Context(), same)
					if err != nil {
						t.Error(err)
					}
					if reserved {
						ours.Add(1)
					}
					ids <- m.ID
				})
			}
			wait.Wait()
			close(ids)
			distinct := map[movement.ID]bool{}
			for id := range ids {
				distinct[id] = true
			}
			if ours.Load() != 1 || len(distinct) != 1 {
				t.Errorf("%s: %d of 50 reservations are ours, of %d movements", reference, ours.Load(), len(distinct))
			}
		}
		if got := byID(t, s, freed.ID); got.Attempt != 2 {
			t.Errorf("reserved %d times", got.Attempt)
		}
	}
}

func TestReservationsThatAreRefused(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	for name, change := range map[string]func(*movement.Movement){
		"no amount":            func(m *movement.Movement) { m.Amount = 0 },
		"a negative amount":    func(m *movement.Movement) { m.Amount = -15_000 },
		"a NUL in the name":    func(m *movement.Movement) { m.Reference = "INV\x001" },
		"a NUL in a document":  func(m *movement.Movement) { m.Request = json.RawMessage("{\"a\":\"\x00\"}") },
		"a kind without rules": func(m *movement.Movement) { m.Kind = "loan" },
		"an unknown charge":    func(m *movement.Movement) { m.Charge = "owed" },
		"a charge of a kind that takes nothing from a balance": func(m *movement.Movement) { m.Charge = movement.Held },
		"bytes, not UTF-8": func(m *movement.Movement) { m.Reference = "INV\xff1" },
	} {
		m := draft("INV/1")
		change(&m)
		if _, ours, err := s.Reserve(t.Context(), m); err == nil || ours {
			t.Errorf("%s: %v, %v", name, ours, err)
		}
		if _, err := s.MovementByID(t.Context(), m.ID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	m := draft("INV/1")
	m.Amount = money.Max
	if reserve(t, s, m); byID(t, s, m.ID).Amount != money.Max {
		t.Error("the largest amount is not kept")
	}
	twin := draft("INV/2")
	twin.ID = m.ID
	if _, ours, err := s.Reserve(t.Context(), twin); err == nil || ours {
		t.Errorf("an id that is in use: %v, %v", ours, err)
	}
}
