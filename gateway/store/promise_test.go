package store_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

func TestPromise(t *testing.T) {
	t.Parallel()
	s, _ := payerWith(t, 10_000, store.Options{MaxConns: 4})
	m := claim(t, s, order("ORD/1", movement.Charged))
	want := m
	want.Answer = []byte(`{"status":"Pending"}`)
	for _, answer := range []string{`{"status":"Pending"}`, `{"status":"other"}`} { // the first stays
		if got, err := s.Acknowledge(t.Context(), m, []byte(answer)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if ok, err := s.Move(t.Context(), epoch, settled(m, movement.NotSubmitted)); ok || err != nil {
		t.Errorf("what was promised is unsent: %v, %v", ok, err)
	}
	other := claim(t, s, order("ORD/2", movement.Charged))
	moved(t, s, settled(other, movement.Succeeded))
	if got, err := s.Acknowledge(t.Context(), other, []byte(`{}`)); err != nil || got.State != movement.Succeeded || got.Answer != nil {
		t.Errorf("what is done: %+v, %v", got, err)
	}
	other.ID = movement.NewID()
	if _, err := s.Acknowledge(t.Context(), other, []byte(`{}`)); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("what is not there: %v", err)
	}
	moved(t, s, settled(m, movement.Failed))
	wantBalance(t, s, 8_500, 0)
	wantClean(t, s)
}

// TestUnsentOnlyUnasked frees nothing that somebody has asked about, where the
// caller says so.
func TestUnsentOnlyUnasked(t *testing.T) {
	t.Parallel()
	s, _ := payerWith(t, 10_000, store.Options{MaxConns: 4})
	m := claim(t, s, order("ORD/1", movement.Held))
	if ok, err := s.Poll(t.Context(), m, epoch, epoch, epoch); err != nil || !ok {
		t.Fatal(ok, err)
	}
	change := settled(m, movement.NotSubmitted)
	change.Unasked = true
	if ok, err := s.Move(t.Context(), epoch, change); ok || err != nil {
		t.Errorf("it was asked: %v, %v", ok, err)
	}
	wantBalance(t, s, 8_500, 1_500)
	change.Unasked = false
	moved(t, s, change)
	fresh := claim(t, s, order("ORD/1", movement.Held)) // the next attempt was not asked about
	change = settled(fresh, movement.NotSubmitted)
	change.Unasked = true
	moved(t, s, change)
	wantBalance(t, s, 10_000, 0)
	wantClean(t, s)
}
