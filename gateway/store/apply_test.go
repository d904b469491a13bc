package store_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

var states = []movement.State{
	movement.Submitting, movement.Acknowledged, movement.Pending, movement.Succeeded, movement.Failed, movement.Expired, movement.NotSubmitted,
}

func TestMoveKeepsEverything(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	m := reserve(t, s, draft("INV/1"))
	if misses, err := s.Miss(t.Context(), m, epoch); err != nil || misses != 1 {
		t.Fatal(misses, err)
	}
	change := move(m, movement.Pending)
	change.Event, change.Detail = "accepted", `{"source":"call"}`
	change.Result, change.Answer = json.RawMessage(`{ "qr_string" : "00020101" }`), json.RawMessage(`{"b":1,"a":2}`)
	change.Refusal = &movement.Refusal{Code: "C", Message: "M", Fields: []movement.RefusalField{{Field: "f", Message: "m"}}}
	change.ProviderReference, change.FactID = "inv-1", "fact-1"
	change.ExpiresAt, change.NextPoll = epoch.Add(time.Hour), epoch.Add(time.Minute)
	want := m
	want.State, want.Sequence, want.UpdatedAt, want.Misses = movement.Pending, 2, epoch.Add(time.Second), 0
	want.Result, want.Answer, want.Refusal = change.Result, change.Answer, change.Refusal
	want.ProviderReference, want.FactID, want.ExpiresAt, want.DueAt = "inv-1", "fact-1", change.ExpiresAt, change.NextPoll
	want.Version++
	if got := moved(t, s, change); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	// What a later move does not name stays, but for the next poll.
	pending := want
	want.State, want.Sequence, want.Polled = movement.Succeeded, 3, movement.Polled{}
	if got := moved(t, s, move(pending, movement.Succeeded)); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	events := []movement.HistoryEntry{
		{Sequence: 2, Event: "accepted", At: epoch.Add(time.Second), Detail: `{"source":"call"}`},
		{Sequence: 3, Event: "succeeded", At: epoch.Add(time.Second), Detail: `{"source":"test"}`},
	}
	if got := history(t, s, m.ID); !reflect.DeepEqual(got, events) {
		t.Errorf("history %v", got)
	}
}

// seenAt is a movement as it stood in another state.
func seenAt(m movement.Movement, state movement.State) movement.Movement {
	m.State = state
	m.Version--
	return m
}

// TestMoveGuard tries to move what stands elsewhere than the caller saw it.
func TestMoveGuard(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	for _, state := range states {
		m := at(t, s, string(state), state)
		before := history(t, s, m.ID)
		wrong := map[string]movement.Movement{"another attempt": m, "an earlier attempt": m, "another movement": m}
		for _, other := range states {
			if other != state && (other != movement.Submitting || state != movement.Acknowledged) { // TestAcknowledgedMeanwhile
				wrong["seen "+string(other)] = seenAt(m, other)
			}
		}
		other := wrong["another attempt"]
		other.Attempt++
		wrong["another attempt"] = other
		other.Attempt = 0
		wrong["an earlier attempt"] = other
		other = m
		other.ID = movement.NewID()
		wrong["another movement"] = other
		for name, seen := range wrong {
			if ok, err := apply(t.Context(), s, epoch, move(seen, movement.Failed)); ok || err != nil {
				t.Errorf("%s, %s: %v, %v", state, name, ok, err)
			}
		}
		if got := byID(t, s, m.ID); !reflect.DeepEqual(got, m) || len(history(t, s, m.ID)) != len(before) {
			t.Errorf("%s became %+v", state, got)
		}
	}
}

func TestMovesThatAreRefused(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	m := reserve(t, s, draft("INV/1"))
	unknown, nul := move(m, "refunded"), move(m, movement.Pending)
	nul.Detail = "\x00"
	for name, change := range map[string]movement.Change{"an unknown state": unknown, "a NUL in the history": nul} {
		if ok, err := apply(t.Context(), s, epoch, change); ok || err == nil {
			t.Errorf("%s: %v, %v", name, ok, err)
		}
	}
	if got := byID(t, s, m.ID); got.State != movement.Submitting || len(history(t, s, m.ID)) != 0 {
		t.Errorf("half a move: %s, %v", got.State, history(t, s, m.ID))
	}
}

func TestMovesAtOnce(t *testing.T) {
	t.Parallel()
	s := open(t, database(t), store.Options{MaxConns: 16})
	for range 20 {
		draft := draft(movement.NewID().String())
		m := reserve(t, s, draft)
		var wait sync.WaitGroup
		var ours atomic.Int32
		for _, to := range []movement.State{movement.Pending, movement.Succeeded, movement.Failed, movement.Expired, movement.NotSubmitted} {
			wait.Go(func() {
				ok, err := apply(t.Context(), s, epoch, move(m, to))
				if err != nil {
					t.Error(err)
				}
				if ok {
					ours.Add(1)
				}
			})
		}
		wait.Wait()
		if events := history(t, s, m.ID); ours.Load() != 1 || len(events) != 1 || events[0].Event != string(byID(t, s, m.ID).State) {
			t.Fatalf("%d movers moved it, history %v", ours.Load(), events)
		}
	}
}

// TestKeepAnswer adds an answer once, and only where the call can have had one.
func TestKeepAnswer(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	for _, state := range states {
		m := at(t, s, string(state), state)
		change := movement.Change{
			Movement: seenAt(m, movement.Submitting), Answer: json.RawMessage(`{"first":true}`),
			Transition: movement.Transition{
				Effect: movement.KeepAnswer, Result: json.RawMessage(`{"qr":1}`), ProviderReference: "inv-1", ExpiresAt: epoch.Add(time.Hour),
			},
		}
		want := m
		if state != movement.Submitting && state != movement.Acknowledged && state != movement.NotSubmitted {
			want.Result, want.Answer, want.ProviderReference, want.ExpiresAt = change.Result, change.Answer, "inv-1", change.ExpiresAt
		}
		second := change
		second.Result, second.Answer, second.ProviderReference = json.RawMessage(`{"qr":2}`), json.RawMessage(`{"first":false}`), "inv-2"
		other := change
		other.Movement.Attempt++
		for _, c := range []movement.Change{other, change, second} {
			if ok, err := s.Apply(t.Context(), c); !ok || err != nil {
				t.Fatal(ok, err)
			}
		}
		if got := byID(t, s, m.ID); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v\nwant %+v", state, got, want)
		}
	}
}

// TestKeepAnswerWithoutAResult keeps none as none.
func TestKeepAnswerWithoutAResult(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	m := at(t, s, "INV/1", movement.Pending)
	change := movement.Change{Movement: m, Answer: json.RawMessage(`{}`), Transition: movement.Transition{Effect: movement.KeepAnswer}}
	if ok, err := s.Apply(t.Context(), change); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if got := byID(t, s, m.ID); got.Result != nil || string(got.Answer) != `{}` {
		t.Errorf("result %q, answer %q", got.Result, got.Answer)
	}
}

// TestSupplement puts another result in the place of the one that was seen, of what
// is done, and nothing else.
func TestSupplement(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	fuller := json.RawMessage(`{"sn":"1"}`)
	change := func(m movement.Movement) movement.Change {
		return movement.Change{Movement: m, Transition: movement.Transition{
			Effect: movement.Supplement, Result: fuller, Event: "supplemented", Detail: `{"source":"test"}`,
		}}
	}
	for _, state := range states {
		m := at(t, s, string(state), state)
		other, otherResult := m, m
		other.Attempt++
		otherResult.Result = json.RawMessage(`{}`)
		for _, seen := range []movement.Movement{other, otherResult} {
			if ok, err := apply(t.Context(), s, epoch, change(seen)); ok || err != nil {
				t.Errorf("%s, of what is not there: %v, %v", state, ok, err)
			}
		}
		before := history(t, s, m.ID)
		want := m
		if state == movement.Succeeded {
			want.Result, want.Sequence = fuller, m.Sequence+1
			before = append(before, movement.HistoryEntry{Sequence: want.Sequence, Event: "supplemented", At: epoch.Add(time.Hour), Detail: `{"source":"test"}`})
		}
		for i := range 2 { // once
			ok, err := apply(t.Context(), s, epoch.Add(time.Hour), change(m))
			if err != nil || ok != (state == movement.Succeeded && i == 0) {
				t.Errorf("%s: %v, %v", state, ok, err)
			}
		}
		if got := byID(t, s, m.ID); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v\nwant %+v", state, got, want)
		}
		if got := history(t, s, m.ID); !reflect.DeepEqual(got, before) {
			t.Errorf("%s: the history is %+v, want %+v", state, got, before)
		}
		if state == movement.Succeeded {
			if ok, err := apply(t.Context(), s, epoch, change(want)); !ok || err != nil {
				t.Errorf("of what has a result: %v, %v", ok, err)
			}
			if ok, err := apply(t.Context(), s, epoch, record(byID(t, s, m.ID), movement.MoneyBack, epoch)); !ok || err != nil {
				t.Fatal(ok, err)
			}
			if ok, err := apply(t.Context(), s, epoch, change(want)); ok || err != nil {
				t.Errorf("of what was taken back: %v, %v", ok, err)
			}
		}
	}
}

// TestLateFacts records each once, where it can be, and never changes a state.
func TestLateFacts(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	when := epoch.Add(time.Hour)
	for _, state := range states {
		m := at(t, s, string(state), state)
		want, events := m, history(t, s, m.ID)
		late := state == movement.Expired || state == movement.Failed
		for i := range 2 {
			ok, err := apply(t.Context(), s, when, record(m, movement.LateMoney, when))
			if (err == nil) != late || ok != (late && i == 0) {
				t.Errorf("%s, paid late: %v, %v", state, ok, err)
			}
			ok, err = apply(t.Context(), s, when, record(m, movement.MoneyBack, when))
			if (err == nil) != (state == movement.Succeeded) || ok != (state == movement.Succeeded && i == 0) {
				t.Errorf("%s, returned: %v, %v", state, ok, err)
			}
		}
		name := ""
		switch {
		case late:
			want.PaidLateAt, name = when, "paid_late"
		case state == movement.Succeeded:
			want.ReturnedAt, name = when, "returned"
			want.Returns = []movement.Return{{ID: "r-1", Sort: movement.Reversal, Amount: m.Amount, At: when}}
		}
		if late {
			want.DueAt = time.Time{}
		}
		if name != "" {
			want.Sequence, want.UpdatedAt = m.Sequence+1, when
			events = append(events, movement.HistoryEntry{Sequence: want.Sequence, Event: name, At: when, Detail: "{}"})
		}
		if got := byID(t, s, m.ID); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v\nwant %+v", state, got, want)
		}
		if got := history(t, s, m.ID); !reflect.DeepEqual(got, events) {
			t.Errorf("%s: history %v", state, got)
		}
	}
}

// TestLateFactsWithoutATime are records all the same, and only once.
func TestLateFactsWithoutATime(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	expired, done := at(t, s, "INV/1", movement.Expired), at(t, s, "INV/2", movement.Succeeded)
	for i := range 2 {
		late, err := apply(t.Context(), s, epoch, record(expired, movement.LateMoney, time.Time{}))
		if err != nil || late != (i == 0) {
			t.Errorf("paid late: %v, %v", late, err)
		}
		back, err := apply(t.Context(), s, epoch, record(done, movement.MoneyBack, time.Time{}))
		if err != nil || back != (i == 0) {
			t.Errorf("returned: %v, %v", back, err)
		}
	}
	if got := byID(t, s, expired.ID); !got.PaidLateAt.Equal(epoch) {
		t.Errorf("paid late at %v", got.PaidLateAt)
	}
}

// TestLateMoneyIsWatched opens a poll where none was left, and takes over one that was;
// who saw what was before asks no more, and what goes back leaves the watch as it is.
func TestLateMoneyIsWatched(t *testing.T) {
	t.Parallel()
	s, next := fresh(t), epoch.Add(24*time.Hour)
	for reference, left := range map[string]time.Time{"INV/1": {}, "INV/2": epoch.Add(time.Hour)} {
		pending := at(t, s, reference, movement.Pending)
		end := move(pending, movement.Expired)
		end.NextPoll = left
		expired := moved(t, s, end)
		change := record(expired, movement.LateMoney, epoch)
		change.NextPoll = next
		if ok, err := apply(t.Context(), s, epoch, change); !ok || err != nil {
			t.Fatal(ok, err)
		}
		paid := byID(t, s, expired.ID)
		if !paid.DueAt.Equal(next) || paid.Version != movement.FirstVersion(paid.Sequence) {
			t.Errorf("%s is due at %v, version %d, sequence %d", reference, paid.DueAt, paid.Version, paid.Sequence)
		}
		if due := references(t, s, everyBucket, time.Time{}, next, 10); !slices.Contains(due, reference) {
			t.Errorf("%s is not among what is due: %v", reference, due)
		}
		if ours, err := s.Poll(t.Context(), expired, next, next, time.Time{}); ours || err != nil {
			t.Errorf("%s is asked about by who saw it before: %v, %v", reference, ours, err)
		}
		if ok, err := apply(t.Context(), s, epoch, record(paid, movement.MoneyBack, epoch)); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if got := byID(t, s, paid.ID); !got.DueAt.Equal(next) || got.Version != paid.Version {
			t.Errorf("%s went back, and is due at %v, version %d", reference, got.DueAt, got.Version)
		}
	}
}

// TestReturnOfLateMoney records the return of late money where the caller saw
// that money, once.
func TestReturnOfLateMoney(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	expired := at(t, s, "INV/1", movement.Expired)
	if ok, err := apply(t.Context(), s, epoch, record(expired, movement.LateMoney, epoch)); !ok || err != nil {
		t.Fatal(ok, err)
	}
	paid := byID(t, s, expired.ID)
	for i, c := range []struct {
		seen movement.Movement
		want bool
	}{{expired, false}, {paid, true}, {paid, false}} {
		ok, err := apply(t.Context(), s, epoch.Add(time.Hour), record(c.seen, movement.MoneyBack, epoch.Add(time.Hour)))
		if (err == nil) == c.seen.PaidLateAt.IsZero() || ok != c.want {
			t.Errorf("%d: %v, %v", i, ok, err)
		}
	}
	if got := byID(t, s, expired.ID); got.State != movement.Expired || !got.ReturnedAt.Equal(epoch.Add(time.Hour)) {
		t.Errorf("%s, returned at %v", got.State, got.ReturnedAt)
	}
}
