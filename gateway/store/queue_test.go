package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/queue"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

var everyBucket = func() (all []int) {
	for b := range movement.Buckets {
		all = append(all, b)
	}
	return all
}()

func references(tb testing.TB, s *store.Store, buckets []int, since, now time.Time, most int) []string {
	tb.Helper()
	scan := movement.DueScan{Now: now, Most: most}
	for _, bucket := range buckets {
		scan.From = append(scan.From, movement.QueuePlace{Bucket: bucket, DueAt: since})
	}
	due, err := s.Due(tb.Context(), scan)
	if err != nil {
		tb.Fatal(err)
	}
	names := make([]string, len(due))
	for i, poll := range due {
		m := byID(tb, s, poll.ID)
		if !m.DueAt.Equal(poll.DueAt) || m.QueueAccount() != poll.Account {
			tb.Errorf("%+v of %+v", poll, m)
		}
		names[i] = m.Reference
	}
	return names
}

func TestDue(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	for i := range 6 {
		m := draft(fmt.Sprint(i))
		m.ID[15] = byte(i % 2)
		m.DueAt = epoch.Add(time.Duration(10-i) * time.Minute) // the last reserved is the first due
		reserve(t, s, m)
	}
	never := draft("never")
	never.DueAt = time.Time{}
	reserve(t, s, never)
	ended := draft("ended")
	moved(t, s, move(reserve(t, s, ended), movement.Succeeded))

	const m = time.Minute
	for _, c := range []struct {
		what    string
		buckets []int
		since   time.Time
		now     time.Duration
		most    int
		want    []string
	}{
		{"all, the oldest first", everyBucket, time.Time{}, time.Hour, 10, []string{"5", "4", "3", "2", "1", "0"}},
		{"at the very moment", everyBucket, time.Time{}, 6 * m, 10, []string{"5", "4"}},
		{"a moment earlier", everyBucket, time.Time{}, 6*m - time.Microsecond, 10, []string{"5"}},
		{"a page of each", everyBucket, time.Time{}, time.Hour, 2, []string{"5", "4", "3", "2"}},
		{"some buckets", []int{1, 7}, time.Time{}, time.Hour, 10, []string{"5", "3", "1"}},
		{"no bucket", nil, time.Time{}, time.Hour, 10, []string{}},
		{"since the very moment", everyBucket, epoch.Add(8 * m), time.Hour, 10, []string{"2", "1", "0"}},
		{"since a moment later", everyBucket, epoch.Add(8*m + time.Microsecond), time.Hour, 10, []string{"1", "0"}},
	} {
		if got := references(t, s, c.buckets, c.since, epoch.Add(c.now), c.most); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}

func TestAskOnceInASpan(t *testing.T) {
	t.Parallel()
	s := open(t, database(t), store.Options{MaxConns: 16})
	m := reserve(t, s, draft("INV/1"))
	const span = 5 * time.Second
	for round := range 3 {
		now, m := epoch.Add(time.Duration(round)*span), byID(t, s, m.ID)
		var wait sync.WaitGroup
		var ours atomic.Int32
		for asker := range 20 {
			wait.Go(func() {
				now := now.Add(time.Duration(asker) * time.Millisecond) // replicas' clocks differ
				ok, err := s.Poll(t.Context(), m, now, now.Add(-span+20*time.Millisecond), now.Add(time.Hour))
				if err != nil {
					t.Error(err)
				}
				if ok {
					ours.Add(1)
				}
			})
		}
		wait.Wait()
		if ours.Load() != 1 {
			t.Errorf("round %d: %d of 20 poll the provider", round, ours.Load())
		}
	}
}

// TestPolledInAFuture that no right clock tells keeps nobody from polling.
func TestPolledInAFuture(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	m := reserve(t, s, draft("INV/1"))
	for _, c := range []struct {
		at   time.Duration // by the clock of the one who polls
		want bool
	}{
		{2 * movement.ClockSkew, true}, {0, false}, // ahead by as much as clocks may differ
		{24 * time.Hour, true}, {0, true}, {time.Second, false},
	} {
		now := epoch.Add(c.at)
		if ours, err := s.Poll(t.Context(), byID(t, s, m.ID), now, now.Add(-5*time.Second), now.Add(time.Hour)); err != nil || ours != c.want {
			t.Errorf("at %v: %v, %v", c.at, ours, err)
		}
	}
}

// TestPollByState: what is open is polled, and what has ended as long as there is a next
// poll.
func TestPollByState(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	next := epoch.Add(time.Hour)
	for _, state := range states {
		for _, polledOn := range []bool{false, true} {
			m := at(t, s, fmt.Sprint("before ", state, polledOn), movement.Submitting)
			switch change := move(m, state); {
			case state == movement.Acknowledged:
				m = at(t, s, fmt.Sprint(state, polledOn), state)
			case state != movement.Submitting:
				if polledOn {
					change.NextPoll = epoch
				}
				m = moved(t, s, change)
			}
			asks := state.Open() || polledOn
			if ok, err := s.Poll(t.Context(), m, epoch, epoch.Add(-time.Second), next); err != nil || ok != asks {
				t.Errorf("%s: %v, %v", state, ok, err)
			}
			got := byID(t, s, m.ID)
			if asks && (!got.PolledAt.Equal(epoch) || !got.DueAt.Equal(next)) || !asks && (!got.PolledAt.IsZero() || !got.DueAt.IsZero()) {
				t.Errorf("%s: polled %v, due %v", state, got.PolledAt, got.DueAt)
			}
			if got.Sequence != m.Sequence || !got.UpdatedAt.Equal(m.UpdatedAt) {
				t.Errorf("%s: a poll is no change", state)
			}
			if !asks {
				continue
			}
			if ok, err := s.Poll(t.Context(), m, epoch.Add(time.Second), epoch, next); err != nil || ok {
				t.Errorf("%s, as it was seen before: %v, %v", state, ok, err)
			}
			if ok, err := s.Poll(t.Context(), got, epoch.Add(time.Second), epoch, time.Time{}); err != nil || !ok {
				t.Errorf("%s, a span later: %v, %v", state, ok, err)
			}
			if got := byID(t, s, m.ID); !got.DueAt.IsZero() || (got.Version != 0) != state.Open() {
				t.Errorf("%s: %+v, and there is no next poll", state, got.Polled)
			}
		}
	}
	if ok, err := s.Poll(t.Context(), movement.Movement{ID: movement.NewID(), Attempt: 1, State: movement.Submitting}, epoch, epoch, epoch); ok || err != nil {
		t.Errorf("nothing: %v, %v", ok, err)
	}
}

// TestWhatAnOlderGatewayMade has no row of polls: it is carried over once it is due, or
// once somebody reads it, with what was known of asking about it.
func TestWhatAnOlderGatewayMade(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := open(t, url, store.Options{MaxConns: 8})
	var due, read, again movement.Movement
	for i, m := range []*movement.Movement{&due, &read, &again} {
		*m = reserve(t, s, draft(fmt.Sprint("made ", i)))
	}
	freed := moved(t, s, move(reserve(t, s, draft("freed")), movement.NotSubmitted))
	execute(t, url, "DELETE FROM polls", "UPDATE movements SET due_at = created_at, polled_at = created_at, misses = 1 WHERE state = 'submitting'",
		// A row that an older gateway has left, of an attempt that it has taken up anew.
		fmt.Sprintf(`INSERT INTO polls (movement_id, attempt, version, account, bucket, misses) VALUES ('%s', 0, 9, 'a', 0, 0)`, again.ID))
	want := movement.Polled{PolledAt: epoch, Misses: 1, DueAt: epoch, Version: movement.FirstVersion(1)}
	const left = 30 * time.Second // to an older gateway that still runs
	if names := references(t, s, everyBucket, time.Time{}, epoch.Add(left-time.Second), 10); len(names) != 0 {
		t.Errorf("%v are taken from an older gateway", names)
	}
	for range 2 {
		if names := references(t, s, everyBucket, time.Time{}, epoch.Add(left), 10); len(names) != 3 {
			t.Errorf("%v are due", names)
		}
		for _, m := range []movement.Movement{due, read, again} {
			if got := byID(t, s, m.ID); got.Polled != want {
				t.Errorf("%s: %+v", m.Reference, got.Polled)
			}
		}
		execute(t, url, fmt.Sprintf("DELETE FROM polls WHERE movement_id = '%s'", read.ID), fmt.Sprintf("UPDATE movements SET due_at = '%s' WHERE id = '%s'", epoch.Format(time.RFC3339Nano), read.ID))
		if got, err := s.MovementByKey(t.Context(), read.Key); err != nil || got.Polled != want {
			t.Errorf("read: %+v, %v", got.Polled, err)
		}
	}
	execute(t, url, fmt.Sprintf("DELETE FROM polls WHERE movement_id = '%s'", again.ID), fmt.Sprintf("UPDATE movements SET due_at = NULL WHERE id = '%s'", again.ID))
	if got := byID(t, s, again.ID); !got.DueAt.Equal(got.CreatedAt) {
		t.Errorf("made at %v and never due: due at %v", got.CreatedAt, got.DueAt)
	}
	moved(t, s, move(byID(t, s, due.ID), movement.Succeeded))
	if got := byID(t, s, freed.ID); got.Version != 0 {
		t.Errorf("nothing is asked about what was freed: %+v", got.Polled)
	}
}

// TestOneThatCannotBeCarriedOver, because somebody keeps it locked, holds up no other.
func TestOneThatCannotBeCarriedOver(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := open(t, url, store.Options{MaxConns: 8})
	var all []movement.Movement
	for i := range 12 {
		all = append(all, reserve(t, s, draft(fmt.Sprint(i))))
	}
	locked, due := all[0], all[11]
	execute(t, url, fmt.Sprintf("DELETE FROM polls WHERE movement_id <> '%s'", due.ID),
		fmt.Sprintf("UPDATE movements SET due_at = created_at WHERE id <> '%s'", due.ID),
		fmt.Sprintf("UPDATE movements SET due_at = created_at - INTERVAL '1 hour' WHERE id = '%s'", locked.ID))
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "SELECT 1 FROM movements WHERE id = $1 FOR UPDATE", uuid.UUID(locked.ID)); err != nil {
		t.Fatal(err)
	}
	scan := movement.DueScan{Now: epoch.Add(time.Hour), Most: 20}
	for _, bucket := range everyBucket {
		scan.From = append(scan.From, movement.QueuePlace{Bucket: bucket})
	}
	if polls, err := s.Due(t.Context(), scan); len(polls) != 11 || err == nil {
		t.Errorf("%d are due, and %v", len(polls), err)
	}
	scan.Behind = true
	if polls, err := s.Due(t.Context(), scan); len(polls) != 11 || err != nil {
		t.Errorf("%d are due in the scan behind it, and %v", len(polls), err)
	}
	scan.Behind = false
	ids := make([]movement.ID, len(all))
	for i, m := range all {
		ids[i] = m.ID
	}
	if read, err := s.MovementsByID(t.Context(), ids); len(read) != 11 || err == nil {
		t.Errorf("%d are read, and %v", len(read), err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if polls, err := s.Due(t.Context(), scan); len(polls) != 12 || err != nil {
		t.Errorf("%d are due once it is free, and %v", len(polls), err)
	}
}

// TestPollOfAnEarlierAttempt is dropped once it is due: an older gateway has taken the
// reference up anew, and ended it.
func TestPollOfAnEarlierAttempt(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := open(t, url, store.Options{MaxConns: 8})
	for _, next := range []time.Time{{}, epoch.Add(time.Hour)} {
		ended := moved(t, s, move(reserve(t, s, draft(fmt.Sprint(next))), movement.Succeeded))
		execute(t, url, fmt.Sprintf(`INSERT INTO polls (movement_id, attempt, version, account, bucket, due, misses)
			VALUES ('%s', 0, 9, 'a', %d, '%s', 0)`, ended.ID, ended.ID.Bucket(), epoch.Format(time.RFC3339)))
		if _, err := s.Poll(t.Context(), byID(t, s, ended.ID), epoch, epoch, next); err != nil {
			t.Error(err)
		}
		if left := count(t, url, "SELECT count(*) FROM polls"); left != 0 {
			t.Errorf("next poll %v: it is still due", next)
		}
	}
}

func TestMiss(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	m := reserve(t, s, draft("INV/1"))
	next := epoch.Add(time.Minute)
	for want := 1; want <= 3; want++ {
		if n, err := s.Miss(t.Context(), m, next); err != nil || n != want {
			t.Errorf("%d, %v; want %d", n, err, want)
		}
	}
	if got := byID(t, s, m.ID); got.Misses != 3 || !got.DueAt.Equal(next) {
		t.Errorf("%d misses, due %v", got.Misses, got.DueAt)
	}
	other := m
	other.Attempt = 2
	if n, err := s.Miss(t.Context(), other, next); n != 0 || err != nil {
		t.Errorf("another attempt: %d, %v", n, err)
	}
	for _, state := range states[2:] { // of which the provider's word has come
		m := at(t, s, string(state), state)
		if n, err := s.Miss(t.Context(), m, next); n != 0 || err != nil {
			t.Errorf("%s: %d, %v", state, n, err)
		}
		if got := byID(t, s, m.ID); got.Misses != 0 || !got.DueAt.IsZero() {
			t.Errorf("%s: %d misses, due %v", state, got.Misses, got.DueAt)
		}
	}
}

func TestLeases(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	after := func(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }
	take := func(name, holder string, now, until int, buckets ...int) []int {
		t.Helper()
		ours, err := s.TakeLeases(t.Context(), queue.Lease{Queue: name, Buckets: buckets, Holder: holder}, after(now), after(until))
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(ours)
		return ours
	}
	live := func(name string, now, want int) {
		t.Helper()
		if n, err := s.LiveLeases(t.Context(), name, after(now), after(now+10)); err != nil || n != want {
			t.Errorf("%d live leases, want %d, %v", n, want, err)
		}
	}
	one, two := []int{1}, []int{2}
	for _, step := range []struct {
		what, queue string
		buckets     []int
		holder      string
		now, until  int // seconds
		want        []int
	}{
		{"a free one", "q", one, "a", 0, 10, one},
		{"another's, and a free one", "q", []int{2, 1}, "b", 5, 15, two},
		{"another queue's", "r", one, "b", 5, 15, one},
		{"a renewal, and another's", "q", []int{1, 2}, "a", 5, 20, one},
		{"one that was renewed", "q", one, "b", 12, 22, nil},
		{"a moment before its end", "q", one, "b", 19, 29, nil},
		{"those that ran out", "q", []int{1, 3, 2}, "b", 20, 30, []int{1, 2, 3}},
		{"one that was lost", "q", one, "a", 21, 31, nil},
		{"none", "q", nil, "a", 21, 31, nil},
	} {
		if step.what == "those that ran out" {
			live("q", 14, 2)
			live("q", 15, 1)
		}
		if got := take(step.queue, step.holder, step.now, step.until, step.buckets...); !slices.Equal(got, step.want) {
			t.Errorf("%s: %v", step.what, got)
		}
	}
	live("q", 29, 3)
	live("q", 3600, 0)
	live("s", 0, 0)

	// Of a replica whose clock was an hour ahead, and which is gone.
	if got := take("ahead", "a", 3600, 3610, 1, 2); !slices.Equal(got, []int{1, 2}) {
		t.Errorf("taken ahead: %v", got)
	}
	live("ahead", 0, 0)
	if got := take("ahead", "b", 0, 10, 1); !slices.Equal(got, one) {
		t.Errorf("what was taken an hour ahead keeps others from it: %v", got)
	}
	if got := take("ahead", "c", 0, 10, 1); len(got) > 0 {
		t.Errorf("then: %v", got)
	}
	const ahead = int(2 * movement.ClockSkew / time.Second) // as far as clocks may differ
	take("ahead", "a", ahead, ahead+10, 3)
	live("ahead", 0, 2)
	if got := take("ahead", "c", 0, 10, 3); len(got) > 0 {
		t.Errorf("a clock that is right is not believed: %v", got)
	}

	for _, step := range []struct {
		holder string
		want   []int
	}{{"a", nil}, {"b", []int{1, 3}}} { // b holds them
		if err := s.DropLeases(t.Context(), queue.Lease{Queue: "q", Buckets: []int{1, 3}, Holder: step.holder}); err != nil {
			t.Fatal(err)
		}
		if got := take("q", "c", 22, 32, 1, 2, 3); !slices.Equal(got, step.want) {
			t.Errorf("dropped by %s: taken %v", step.holder, got)
		}
	}
}

func TestLeasesAtOnce(t *testing.T) {
	t.Parallel()
	const all = 16
	s := open(t, database(t), store.Options{MaxConns: 16})
	for round := range 3 { // free at first, run out afterwards
		now := epoch.Add(time.Duration(round) * time.Minute)
		var wait sync.WaitGroup
		var ours atomic.Int32
		for i := range 20 {
			wait.Go(func() {
				buckets := rand.Perm(all) // in any order, and none waits for another in a circle
				l := queue.Lease{Queue: "q", Buckets: buckets, Holder: fmt.Sprintf("%d-%d", round, i)}
				taken, err := s.TakeLeases(t.Context(), l, now, now.Add(10*time.Second))
				if err != nil {
					t.Error(err)
				}
				if err := s.DropLeases(t.Context(), queue.Lease{Queue: "given back", Buckets: buckets, Holder: l.Holder}); err != nil {
					t.Error(err)
				}
				ours.Add(int32(len(taken)))
			})
		}
		wait.Wait()
		if ours.Load() != all {
			t.Errorf("round %d: %d buckets are held", round, ours.Load())
		}
	}
}
