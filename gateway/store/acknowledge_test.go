package store_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

func TestAcknowledge(t *testing.T) {
	t.Parallel()
	s, _ := payerWith(t, 10_000, store.Options{MaxConns: 4})
	m := reserve(t, s, order("ORD/1", movement.Charged))
	want := m
	want.State, want.Answer = movement.Acknowledged, []byte(`{"status":"Pending"}`)
	want.Version++
	for _, answer := range []string{`{"status":"Pending"}`, `{"status":"other"}`} { // the first stays
		if got, err := s.Acknowledge(t.Context(), m, []byte(answer)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if ok, err := apply(t.Context(), s, epoch, posted(m, movement.NotSubmitted)); ok || err != nil {
		t.Errorf("what was acknowledged is not submitted: %v, %v", ok, err)
	}
	other := reserve(t, s, order("ORD/2", movement.Charged))
	moved(t, s, posted(other, movement.Succeeded))
	if got, err := s.Acknowledge(t.Context(), other, []byte(`{}`)); err != nil || got.State != movement.Succeeded || got.Answer != nil {
		t.Errorf("what is done: %+v, %v", got, err)
	}
	other.ID = movement.NewID()
	if _, err := s.Acknowledge(t.Context(), other, []byte(`{}`)); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("what is not there: %v", err)
	}
	moved(t, s, posted(want, movement.Failed))
	wantBalance(t, s, 8_500, 0)
	wantClean(t, s)
}

// TestAcknowledgedMeanwhile has a caller that saw a movement as submitting move, poll
// and miss it after it was acknowledged: nothing comes of it until the caller has seen
// that, and then all but proof that nothing was sent, which comes too late.
func TestAcknowledgedMeanwhile(t *testing.T) {
	t.Parallel()
	s, _ := payerWith(t, 100_000, store.Options{MaxConns: 4})
	for name, c := range map[string]struct {
		draft movement.Movement
		move  func(movement.Movement, movement.State) movement.Change
	}{
		"unpaid":  {draft(""), move},
		"charged": {order("", movement.Charged), posted},
		"held":    {order("", movement.Held), posted},
		"limited": {transfer("", usage("out.count", 1, 100)), move},
	} {
		for _, to := range []movement.State{movement.Pending, movement.Succeeded, movement.Failed} {
			draft := c.draft
			draft.ID, draft.Reference = movement.NewID(), fmt.Sprint(name, " ", to)
			seen := reserve(t, s, draft)
			now, err := s.Acknowledge(t.Context(), seen, []byte(`{}`))
			if err != nil || now.State != movement.Acknowledged {
				t.Fatal(now.State, err)
			}
			for i, m := range []movement.Movement{seen, now} {
				ok, err := apply(t.Context(), s, epoch, c.move(m, movement.NotSubmitted))
				if refused := m.State == movement.Acknowledged; ok || refused != errors.Is(err, store.ErrInvalid) || !refused && err != nil {
					t.Errorf("%s, seen %s, is free: %v, %v", draft.Reference, m.State, ok, err)
				}
				if misses, err := s.Miss(t.Context(), m, epoch); err != nil || misses != i {
					t.Errorf("%s, seen %s, was missed %d times, %v", draft.Reference, m.State, misses, err)
				}
				at := epoch.Add(time.Duration(i) * time.Minute)
				if ok, err := s.Poll(t.Context(), m, at, at, at); ok != (i == 1) || err != nil {
					t.Errorf("%s, seen %s, is polled: %v, %v", draft.Reference, m.State, ok, err)
				}
			}
			wantClean(t, s)
			if ok, err := apply(t.Context(), s, epoch, c.move(seen, to)); ok || err != nil {
				t.Errorf("%s, seen submitting, moved: %v, %v", draft.Reference, ok, err)
			}
			if got := moved(t, s, c.move(byID(t, s, seen.ID), to)); got.State != to || string(got.Answer) != `{}` {
				t.Errorf("%s: %s, %s", draft.Reference, got.State, got.Answer)
			}
			if _, err := s.Acknowledge(t.Context(), seen, []byte(`{"late":true}`)); err != nil || byID(t, s, seen.ID).State != to {
				t.Errorf("%s: acknowledged as %s, %v", draft.Reference, byID(t, s, seen.ID).State, err)
			}
		}
	}
	wantUsed(t, s, map[string]int64{"out.count": 2})
	wantClean(t, s)
}
