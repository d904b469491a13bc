package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

const receiver = "https://shop.example/callback?order=1"

var (
	owner   = movement.Owner{MerchantID: "mer_1", Mode: "live"}
	buckets = func() (all []int) {
		for b := range movement.Buckets {
			all = append(all, b)
		}
		return all
	}()
)

func callbackTo(url string) *movement.CallbackEvent {
	return &movement.CallbackEvent{ID: uuid.New(), Event: "payments.status_update", URL: url, Body: json.RawMessage(`{"b":1,"a":2}`)}
}

func keyOf(event *movement.CallbackEvent) movement.CallbackKey {
	return movement.CallbackKey{Owner: owner, EventID: event.ID}
}

// added is a callback that belongs to no movement, made at a time.
func added(tb testing.TB, s *store.Store, o movement.Owner, now time.Time) uuid.UUID {
	tb.Helper()
	one := callbackTo(receiver)
	if err := s.AddCallback(tb.Context(), now, o, *one); err != nil {
		tb.Fatal(err)
	}
	return one.ID
}

func stored(tb testing.TB, s *store.Store, key movement.CallbackKey) movement.Callback {
	tb.Helper()
	c, err := s.Callback(tb.Context(), key)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func due(tb testing.TB, s *store.Store, d movement.DueCallbacks) (events []uuid.UUID) {
	tb.Helper()
	if d.Buckets == nil {
		d.Buckets = buckets
	}
	if d.Most == 0 {
		d.Most = 100
	}
	page, err := s.DueCallbacks(tb.Context(), d)
	if err != nil {
		tb.Fatal(err)
	}
	for _, c := range page {
		events = append(events, c.EventID)
	}
	return events
}

// TestCallbackWithItsChange changes a movement in each way that makes a callback, first where
// the guard lets nothing through.
func TestCallbackWithItsChange(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	now := epoch.Add(time.Hour)
	for name, c := range map[string]struct {
		from   movement.State
		change func(movement.Movement, *movement.CallbackEvent) (bool, error)
	}{
		"move": {movement.Pending, func(m movement.Movement, event *movement.CallbackEvent) (bool, error) {
			change := move(m, movement.Succeeded)
			change.Callback = event
			return apply(t.Context(), s, now, change)
		}},
		"paid late": {movement.Expired, func(m movement.Movement, event *movement.CallbackEvent) (bool, error) {
			change := record(m, movement.LateMoney, time.Time{})
			change.Callback = event
			return apply(t.Context(), s, now, change)
		}},
		"reversed": {movement.Succeeded, func(m movement.Movement, event *movement.CallbackEvent) (bool, error) {
			change := record(m, movement.MoneyBack, time.Time{})
			change.Callback = event
			return apply(t.Context(), s, now, change)
		}},
	} {
		for _, url := range []string{receiver, ""} {
			m := at(t, s, name+url, c.from)
			one, again := callbackTo(url), callbackTo(url)
			if ok, err := c.change(movement.Movement{Key: m.Key, ID: movement.NewID(), Attempt: 1, State: c.from}, again); ok || err != nil {
				t.Errorf("%s of nothing: %v, %v", name, ok, err)
			}
			if ok, err := c.change(m, one); !ok || err != nil {
				t.Fatalf("%s: %v, %v", name, ok, err)
			}
			if ok, err := c.change(m, again); ok || err != nil {
				t.Errorf("%s again: %v, %v", name, ok, err)
			}
			if _, err := s.Callback(t.Context(), keyOf(again)); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s: a callback of what did not happen: %v", name, err)
			}
			got, after := stored(t, s, keyOf(one)), byID(t, s, m.ID)
			want := movement.Callback{
				CallbackKey: keyOf(one), MovementID: m.ID, Sequence: after.Sequence, Event: one.Event, Reference: m.Reference,
				URL: url, Body: one.Body, State: movement.CallbackWaiting, CreatedAt: now, DueAt: now,
			}
			if url == "" {
				want.State, want.DueAt = movement.CallbackNone, time.Time{}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s:\n%v\nwant\n%v", name, got, want)
			}
		}
	}
	if got := len(due(t, s, movement.DueCallbacks{Now: now})); got != 3 {
		t.Errorf("%d are due, want those with a URL", got)
	}
}

// TestCallbackIsNotWrittenAlone breaks the callback of a move, which then does not
// happen either.
func TestCallbackIsNotWrittenAlone(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	m := at(t, s, "INV/1", movement.Pending)
	one := callbackTo(receiver)
	change := move(m, movement.Succeeded)
	change.Callback = one
	moved(t, s, change)
	other := at(t, s, "INV/2", movement.Pending)
	change = move(other, movement.Succeeded)
	change.Callback = one // its id is taken
	if ok, err := apply(t.Context(), s, epoch, change); ok || err == nil {
		t.Fatalf("a callback's id twice: %v, %v", ok, err)
	}
	if got := byID(t, s, other.ID); got.State != movement.Pending {
		t.Errorf("it is %s without its callback", got.State)
	}
}

func attempt(c movement.Callback, then movement.CallbackState, dueAt time.Time) movement.CallbackAttempt {
	return movement.CallbackAttempt{
		Callback: c, At: epoch.Add(time.Minute), Took: 1500 * time.Millisecond, Outcome: "failed", Status: 500,
		Fault: "answered 500", Answer: "no\n", Then: then, DueAt: dueAt,
	}
}

// TestOneOfTwoDispatchersWrites has two replicas write their try of one reading.
func TestOneOfTwoDispatchersWrites(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	next := epoch.Add(2 * time.Minute)
	for range 20 {
		c := stored(t, s, movement.CallbackKey{Owner: owner, EventID: added(t, s, owner, epoch)})
		var group sync.WaitGroup
		var written atomic.Int32
		for range 2 {
			group.Go(func() {
				ours, err := s.RecordAttempt(t.Context(), attempt(c, movement.CallbackWaiting, next))
				if err != nil {
					t.Error(err)
				} else if ours {
					written.Add(1)
				}
			})
		}
		group.Wait()
		tries, err := s.Attempts(t.Context(), c.CallbackKey)
		got := stored(t, s, c.CallbackKey)
		if err != nil || written.Load() != 1 || len(tries) != 1 || got.Tries != 1 || got.Attempts != 1 || !got.DueAt.Equal(next) {
			t.Fatalf("%d written, %d kept, %+v, %v", written.Load(), len(tries), got, err)
		}
		if want := attempt(c, "", time.Time{}); tries[0].Took != want.Took || !tries[0].At.Equal(want.At) ||
			tries[0].Outcome != want.Outcome || tries[0].Status != 500 || tries[0].Fault != want.Fault || tries[0].Answer != want.Answer {
			t.Errorf("kept %+v", tries[0])
		}
	}
}

// TestAGoneCallbackIsAnException: a receiver's 410 ends what is about money, and operators
// learn of it in the same commit; of a test they do not.
func TestAGoneCallbackIsAnException(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	e := callbackTo("https://shop.example:8443/cb?token=hidden")
	paid := move(reserve(t, s, draft("INV/1")), movement.Succeeded)
	paid.Callback = e
	m := moved(t, s, paid)
	for id, event := range map[movement.ID]movement.CallbackKey{m.ID: keyOf(e), {}: {Owner: owner, EventID: added(t, s, owner, epoch)}} {
		listed := 0
		if id == m.ID {
			event.Owner, listed = m.Owner, 1
		}
		c := stored(t, s, event)
		for range 2 { // of two replicas one writes
			if _, err := s.RecordAttempt(t.Context(), attempt(c, movement.CallbackGone, time.Time{})); err != nil {
				t.Fatal(err)
			}
		}
		x, err := s.ExceptionsOf(t.Context(), event.Owner, id.String())
		if err != nil || len(x) != listed {
			t.Errorf("of %s: %+v, %v", id, x, err)
		}
		if len(x) > 0 && (x[0].Reason != movement.ReasonGone || !strings.Contains(x[0].Detail, "shop.example:8443 has answered 410 to "+e.Event) || strings.Contains(x[0].Detail, "hidden")) {
			t.Errorf("listed %+v", x[0])
		}
	}
}

// TestTriesAreWrittenTogether: each as by itself. A row that another has locked keeps all of them from being written.
func TestTriesAreWrittenTogether(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := open(t, url, store.Options{MaxConns: 8})
	next := epoch.Add(2 * time.Minute)
	var all []movement.CallbackAttempt
	for i, then := range []movement.CallbackState{movement.CallbackWaiting, movement.CallbackDelivered, movement.CallbackDead, movement.CallbackGone, movement.CallbackWaiting} {
		a := attempt(stored(t, s, movement.CallbackKey{Owner: owner, EventID: added(t, s, owner, epoch)}), then, time.Time{})
		if a.Status = 500 + i; then == movement.CallbackWaiting {
			a.DueAt = next
		}
		all = append(all, a)
	}
	last := len(all) - 1
	if ours, err := s.RecordAttempt(t.Context(), all[last]); !ours || err != nil { // another replica has tried the last one
		t.Fatal(ours, err)
	}
	letGo := lockRow(t, url, "UPDATE callbacks SET tries = tries WHERE event_id = $1", all[1].Callback.EventID)
	if ours, err := s.RecordAttempts(t.Context(), all); err == nil {
		t.Errorf("beside a locked row: %v", ours)
	}
	letGo()
	ours, err := s.RecordAttempts(t.Context(), all)
	if err != nil || fmt.Sprint(ours) != "[true true true true false]" {
		t.Errorf("written: %v, %v", ours, err)
	}
	for i, a := range all {
		got := stored(t, s, a.Callback.CallbackKey)
		tries, err := s.Attempts(t.Context(), a.Callback.CallbackKey)
		if err != nil || len(tries) != 1 || tries[0].Status != 500+i || tries[0].Took != a.Took || !tries[0].At.Equal(a.At) ||
			got.State != a.Then || !got.DueAt.Equal(a.DueAt) || got.Tries != 1 || got.Attempts != 1 {
			t.Errorf("%s is %+v with %+v, %v", a.Then, got, tries, err)
		}
	}
}

func TestResend(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	later := epoch.Add(time.Hour)
	for then, again := range map[movement.CallbackState]bool{
		movement.CallbackDelivered: true, movement.CallbackGone: true, movement.CallbackDead: true, movement.CallbackWaiting: false,
	} {
		first := stored(t, s, movement.CallbackKey{Owner: owner, EventID: added(t, s, owner, epoch)})
		var next time.Time
		if then == movement.CallbackWaiting {
			next = epoch.Add(time.Minute)
		}
		if ours, err := s.RecordAttempt(t.Context(), attempt(first, then, next)); !ours || err != nil {
			t.Fatal(ours, err)
		}
		if ok, err := s.Resend(t.Context(), later, first.CallbackKey); ok != again || err != nil {
			t.Errorf("%s: %v, %v", then, ok, err)
		}
		if !again {
			continue
		}
		second := stored(t, s, first.CallbackKey)
		if second.State != movement.CallbackWaiting || second.Attempts != 0 || second.Tries != 1 || !second.DueAt.Equal(later) {
			t.Errorf("%s became %+v", then, second)
		}
		// A dispatcher that has not heard of it writes nothing into the new series.
		if ours, err := s.RecordAttempt(t.Context(), attempt(first, movement.CallbackDelivered, time.Time{})); ours || err != nil {
			t.Errorf("%s: a try of the old series: %v, %v", then, ours, err)
		}
		if ours, err := s.RecordAttempt(t.Context(), attempt(second, movement.CallbackDelivered, time.Time{})); !ours || err != nil {
			t.Errorf("%s: the new series: %v, %v", then, ours, err)
		}
		if tries, err := s.Attempts(t.Context(), first.CallbackKey); err != nil || len(tries) != 2 {
			t.Errorf("%s: %d tries are kept, %v", then, len(tries), err)
		}
	}
	none := callbackTo("")
	if err := s.AddCallback(t.Context(), epoch, owner, *none); err != nil {
		t.Fatal(err)
	}
	stranger := movement.CallbackKey{Owner: movement.Owner{MerchantID: "mer_2", Mode: "live"}, EventID: none.ID}
	for name, key := range map[string]movement.CallbackKey{"nowhere to send": keyOf(none), "another's": stranger} {
		if ok, err := s.Resend(t.Context(), later, key); ok || err != nil {
			t.Errorf("%s: %v, %v", name, ok, err)
		}
	}
}

// TestWhatIsDue leaves out what a dispatcher names, and nothing else.
func TestWhatIsDue(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	test := movement.Owner{MerchantID: "mer_1", Mode: "test"}
	oldest, young := added(t, s, owner, epoch), added(t, s, owner, epoch.Add(time.Second))
	inTest, later := added(t, s, test, epoch.Add(2*time.Second)), added(t, s, owner, epoch.Add(time.Minute))
	now := epoch.Add(3 * time.Second)
	all := []uuid.UUID{oldest, young, inTest}
	for name, c := range map[string]struct {
		due  movement.DueCallbacks
		want []uuid.UUID
	}{
		"all":                   {movement.DueCallbacks{}, all},
		"the first":             {movement.DueCallbacks{Most: 1}, all[:1]},
		"since":                 {movement.DueCallbacks{Since: epoch.Add(time.Millisecond)}, all[1:]},
		"under way":             {movement.DueCallbacks{UnderWay: []uuid.UUID{young}}, []uuid.UUID{oldest, inTest}},
		"a merchant and mode":   {movement.DueCallbacks{Held: []string{"mer_1/live"}}, all[2:]},
		"a receiver":            {movement.DueCallbacks{Held: []string{"mer_1/live/shop.example"}}, all[2:]},
		"another receiver":      {movement.DueCallbacks{Held: []string{"mer_1/live/else.example", "mer_1", "mer_2/live"}}, all},
		"a bucket":              {movement.DueCallbacks{Buckets: []int{movement.ID(oldest).Bucket()}}, inBucket(movement.ID(oldest).Bucket(), all)},
		"everything is held":    {movement.DueCallbacks{Held: []string{"mer_1/live", "mer_1/test"}}, nil},
		"everything is on wing": {movement.DueCallbacks{UnderWay: all}, nil},
	} {
		c.due.Now = now
		if got := due(t, s, c.due); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	until := now.Add(time.Hour)
	put := []movement.Postponed{
		{CallbackKey: movement.CallbackKey{Owner: owner, EventID: oldest}, Until: until},
		{CallbackKey: movement.CallbackKey{Owner: test, EventID: inTest}, Until: until.Add(time.Second)},
		{CallbackKey: movement.CallbackKey{Owner: test, EventID: young}, Until: until}, // nobody's
		{CallbackKey: movement.CallbackKey{Owner: owner, EventID: later}, Until: until},
	}
	if err := s.PostponeCallbacks(t.Context(), now, put); err != nil {
		t.Fatal(err)
	}
	if got := due(t, s, movement.DueCallbacks{Now: now}); !slices.Equal(got, []uuid.UUID{young}) {
		t.Errorf("due after the others were put off: %v", got)
	}
	for key, want := range map[movement.CallbackKey]time.Time{
		put[0].CallbackKey: until, put[1].CallbackKey: until.Add(time.Second), put[3].CallbackKey: epoch.Add(time.Minute),
	} {
		if c := stored(t, s, key); !c.DueAt.Equal(want) || c.Attempts != 0 {
			t.Errorf("put off to %v after %d tries, want %v", c.DueAt, c.Attempts, want)
		}
	}
}

// TestWhatIsDueOfOneBucket has more in one bucket than its part of a page.
func TestWhatIsDueOfOneBucket(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	var all []uuid.UUID
	for len(all) < 24 {
		one := callbackTo(receiver)
		if movement.ID(one.ID).Bucket() != 3 && len(all) != 20 { // one other, and it is not among the oldest
			continue
		}
		if err := s.AddCallback(t.Context(), epoch.Add(time.Duration(len(all))*time.Second), owner, *one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one.ID)
	}
	now := epoch.Add(time.Hour)
	for most, want := range map[int][]uuid.UUID{1: all[:1], 20: all[:20], 24: all, 100: all} {
		if got := due(t, s, movement.DueCallbacks{Now: now, Most: most}); !slices.Equal(got, want) {
			t.Errorf("the first %d are %v, want %v", most, got, want)
		}
	}
	if got := due(t, s, movement.DueCallbacks{Now: now, Most: 10, UnderWay: all[:10]}); !slices.Equal(got, all[10:20]) {
		t.Errorf("behind those under way are %v", got)
	}
}

// TestGiveUpCallbacks ends what is due and waits, and nothing else; what is sent again
// begins anew.
func TestGiveUpCallbacks(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	over, later := added(t, s, owner, epoch), added(t, s, owner, epoch.Add(time.Minute))
	keys := []movement.CallbackKey{{Owner: owner, EventID: over}, {Owner: owner, EventID: later}}
	if err := s.GiveUpCallbacks(t.Context(), epoch.Add(time.Second), keys); err != nil {
		t.Fatal(err)
	}
	if c := stored(t, s, keys[0]); c.State != movement.CallbackDead || !c.DueAt.IsZero() || !c.Begun().Equal(c.CreatedAt) {
		t.Errorf("what is over is %+v", c)
	}
	if c := stored(t, s, keys[1]); c.State != movement.CallbackWaiting {
		t.Errorf("what is not due is %s", c.State)
	}
	again := epoch.Add(time.Hour)
	if done, err := s.Resend(t.Context(), again, keys[0]); !done || err != nil {
		t.Fatal(done, err)
	}
	if c := stored(t, s, keys[0]); c.State != movement.CallbackWaiting || !c.Begun().Equal(again) {
		t.Errorf("sent again it is %+v", c)
	}
}

func inBucket(bucket int, events []uuid.UUID) []uuid.UUID {
	return slices.DeleteFunc(slices.Clone(events), func(id uuid.UUID) bool { return movement.ID(id).Bucket() != bucket })
}

// TestEventsWaitForOpenCommits holds the commit of an event open while a later one of a
// replica whose clock is behind is through: whoever reads on and on skips neither.
func TestEventsWaitForOpenCommits(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := open(t, url, store.Options{MaxConns: 4})
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	held := uuid.New()
	tx, err := conn.Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), `INSERT INTO callbacks (merchant_id, mode, event_id, movement_id, sequence, event, reference, url, body,
			state, attempts, created_at, due_bucket) VALUES ($1, $2, $3, $3, 1, 'e', 'r', '', '{}', 'none', 0, $4, 0)`, owner.MerchantID, owner.Mode, held, epoch)
	}
	if err != nil {
		t.Fatal(err)
	}
	later := added(t, s, owner, epoch.Add(-movement.ClockSkew))
	read := func(after uuid.UUID) (ids []uuid.UUID) {
		t.Helper()
		listed, err := s.Events(t.Context(), owner, after, movement.EventsSettle, 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range listed {
			ids = append(ids, e.ID)
		}
		return ids
	}
	if got := read(uuid.Nil); len(got) != 0 {
		t.Errorf("read past a commit that is open: %v", got)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	execute(t, url, "UPDATE callbacks SET written_at = written_at - INTERVAL '5 seconds'") // which have passed
	if got := read(uuid.Nil); !slices.Equal(got, []uuid.UUID{held, later}) {
		t.Errorf("read %v, want %v", got, []uuid.UUID{held, later})
	}
	if got := read(held); !slices.Equal(got, []uuid.UUID{later}) {
		t.Errorf("after the first: %v", got)
	}
	execute(t, url, "UPDATE callbacks SET written_at = NULL") // as earlier versions have left them
	if got := read(uuid.Nil); !slices.Equal(got, []uuid.UUID{later, held}) {
		t.Errorf("events of an earlier version are read as %v", got)
	}
}

// TestEvents reads all events of a merchant page by page, though many were made
// in the same microsecond and others' lie between.
func TestEvents(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	others := []movement.Owner{{MerchantID: "mer_1", Mode: "test"}, {MerchantID: "mer_2", Mode: "live"}}
	var strangers []uuid.UUID
	made := map[uuid.UUID]bool{}
	for i := range 30 {
		now := epoch.Add(time.Duration(i/10) * time.Microsecond)
		made[added(t, s, owner, now)] = true
		for _, other := range others {
			strangers = append(strangers, added(t, s, other, now))
		}
	}
	var after uuid.UUID
	var last movement.ListedEvent
	for pages := 0; ; pages++ {
		listed, err := s.Events(t.Context(), owner, after, 0, 7)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range listed {
			if !made[n.ID] || n.At.Before(last.At) || string(n.Body) != `{"b":1,"a":2}` {
				t.Fatalf("page %d: %s at %v after %v, %s", pages, n.ID, n.At, last.At, n.Body)
			}
			delete(made, n.ID)
			after, last = n.ID, n
		}
		if len(listed) < 7 {
			break
		}
	}
	if len(made) != 0 {
		t.Errorf("never read: %v", made)
	}
	if held, err := s.Events(t.Context(), owner, uuid.Nil, movement.EventsSettle, 100); err != nil || len(held) != 0 {
		t.Errorf("%d events are listed at once, %v", len(held), err)
	}
	for _, unknown := range []uuid.UUID{uuid.New(), strangers[0], strangers[1]} {
		if got, err := s.Events(t.Context(), owner, unknown, 0, 7); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("after another's event: %v, %v", got, err)
		}
	}
}

// TestCallbacksAreCounted: of one merchant in one mode, by days and states; the first delivery tells how long it took.
func TestCallbacksAreCounted(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	day := time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)
	of := movement.Owner{MerchantID: "mer_" + uuid.NewString(), Mode: "live"}
	try := func(at, tried time.Time, outcome string, then movement.CallbackState) uuid.UUID {
		id := added(t, s, of, at)
		one := attempt(stored(t, s, movement.CallbackKey{Owner: of, EventID: id}), then, time.Time{})
		one.At, one.Took, one.Outcome = tried, 250*time.Millisecond, outcome
		if ours, err := s.RecordAttempt(t.Context(), one); !ours || err != nil {
			t.Fatal(ours, err)
		}
		return id
	}
	for n := range 20 {
		at := day.Add(time.Duration(n) * time.Minute)
		try(at, at.Add(time.Duration(n)*time.Second), "delivered", movement.CallbackDelivered)
	}
	try(day.Add(25*time.Hour), day.Add(26*time.Hour), "failed", movement.CallbackDead)
	added(t, s, of, day.Add(30*time.Hour))
	added(t, s, of, day.Add(-time.Minute))
	added(t, s, movement.Owner{MerchantID: of.MerchantID, Mode: "test"}, day)
	days := []time.Time{day, day.AddDate(0, 0, 1), day.AddDate(0, 0, 2)}
	want := movement.Figures{
		Counts: []movement.Count{{Span: 0, State: "delivered", N: 20}, {Span: 1, State: "dead", N: 1}, {Span: 1, State: "waiting", N: 1}},
		Waits:  []movement.Wait{{Span: 0, N: 20, Median: 9250, Most: 18_250}},
	}
	for most, want := range map[int]movement.Figures{22: want, 21: {TooMany: true}} {
		if got, err := s.CallbackFigures(t.Context(), of, days, most); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("of at most %d: %+v, %v, want %+v", most, got, err, want)
		}
	}
}
