package callback_test

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/callback"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/queue"
	"github.com/seed-f006e74d/gerbang/gateway/queue/queuetest"
)

// page is how many callbacks a dispatcher reads at once.
const page = 512

const (
	good = "https://good.example/callback"
	bad  = "https://bad.example/callback"
)

type dispatcher struct {
	*callback.Dispatcher
	log *queuetest.Log
	end func() // and everything is given back
}

func dispatch(t *testing.T, leases queue.LeaseStore, q *callbacks, s *sender, name string) dispatcher {
	t.Helper()
	log := &queuetest.Log{}
	d := callback.NewDispatcher(callback.Dependencies{
		Queue: q, Leases: queue.NewLeases(leases, "callbacks", name, movement.Buckets, time.Now), Send: s.Send,
		Secrets: keys{"mer_unsigned"}.CallbackSecrets, Observe: func(callback.Attempt) {}, Dead: q.tell, Log: slog.New(slog.NewTextHandler(log, nil)),
	})
	return dispatcher{d, log, queuetest.Start(t, d.Run)}
}

// TestDueCallbacksAreSentOnce has reads that last as long as deliveries, so that
// what is read has often been delivered meanwhile.
func TestDueCallbacksAreSentOnce(t *testing.T) {
	t.Parallel()
	for _, read := range []time.Duration{0, time.Millisecond, 30 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			q, s := newCallbacks(), newSender()
			q.read = read
			s.answer(good, reply{takes: 25 * time.Millisecond})
			for i := range 1000 {
				q.add(fmt.Sprintf("mer_%d", i%50), good)
			}
			c := dispatch(t, queuetest.NewTable(), q, s, "only")
			pass(10 * time.Second)
			c.end()
			if twice := s.twice(); q.left() != 0 || len(twice) > 0 || s.to(good) != 1000 {
				t.Errorf("reads of %v: %d left, %d sent; more than once: %v", read, q.left(), s.to(good), twice)
			}
			if c.log.Count("level=WARN") > 0 {
				t.Errorf("log:\n%s", c.log)
			}
		})
	}
}

// TestABacklogIsWorkedOff has reads that take a while, and receivers that could take more
// than is read.
func TestABacklogIsWorkedOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, s := newCallbacks(), newSender()
		q.read = 8 * time.Millisecond
		for i := range 10_000 {
			url := fmt.Sprintf("https://shop-%d.example/", i%200)
			s.answer(url, reply{takes: time.Millisecond})
			q.add(fmt.Sprintf("mer_%d", i%200), url)
		}
		c := dispatch(t, queuetest.NewTable(), q, s, "only")
		defer c.end()
		pass(700 * time.Millisecond)
		if q.left() > 0 {
			t.Errorf("%d are left after 0.7 s", q.left())
		}
	})
}

// TestTheBadDelayNobodyElse puts pages of callbacks of merchants whose
// receivers are slow, dead or many before one of another merchant.
func TestTheBadDelayNobodyElse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		merchants, receivers int // each merchant's own
		answer               reply
	}{
		"slow":                    {1, 1, reply{takes: 10 * time.Second}},
		"dead":                    {1, 1, reply{outcome: callback.Failed, takes: 10 * time.Second}},
		"refusing":                {1, 1, reply{outcome: callback.Failed}},
		"many slow receivers":     {1, 4 * page, reply{takes: 10 * time.Second}},
		"many merchants":          {5, 64, reply{takes: 10 * time.Second}},
		"many merchants refusing": {20, 64, reply{outcome: callback.Failed}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q, s := newCallbacks(), newSender()
				for i := range 6 * page {
					url := fmt.Sprintf("https://bad-%d.example/", i/c.merchants%c.receivers)
					s.answer(url, c.answer)
					q.add(fmt.Sprintf("mer_bad_%d", i%c.merchants), url)
				}
				run := dispatch(t, queuetest.NewTable(), q, s, "only")
				defer run.end()
				for turn := range 12 {
					pass(time.Second)
					id := q.add("mer_good", good)
					run.Wake()
					pass(time.Second)
					if c, _ := q.of(id); c.State != movement.CallbackDelivered {
						t.Errorf("after %d s: the good one's callback is %s", 2*turn, c.State)
					}
				}
				if q.reads > 24*50+10 {
					t.Errorf("%d reads in 24 s", q.reads)
				}
			})
		})
	}
}

// TestAReceiverDoesNotDelayItsMerchantsOthers is the same between two receivers
// of one merchant.
func TestAReceiverDoesNotDelayItsMerchantsOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, s := newCallbacks(), newSender()
		s.answer(bad, reply{takes: 10 * time.Second})
		for range 4 * page {
			q.add("mer_1", bad)
		}
		c := dispatch(t, queuetest.NewTable(), q, s, "only")
		defer c.end()
		pass(5 * time.Second)
		id := q.add("mer_1", good)
		pass(time.Second)
		if got, _ := q.of(id); got.State != movement.CallbackDelivered {
			t.Errorf("the good receiver's callback is %s", got.State)
		}
	})
}

// TestADeadLaneIsPutOff counts the tries at a receiver that fails: five, then
// probes with growing pauses, however many callbacks wait for it.
func TestADeadLaneIsPutOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, s := newCallbacks(), newSender()
		s.answer(bad, reply{outcome: callback.Failed})
		for range 100 {
			q.add("mer_1", bad)
		}
		c := dispatch(t, queuetest.NewTable(), q, s, "only")
		pass(time.Minute)
		if sends := s.to(bad); sends < 6 || sends > 12 {
			t.Errorf("%d tries in a minute at a receiver that fails", sends)
		}
		if q.put == 0 {
			t.Error("nothing was put off")
		}
		s.answer(bad, reply{})
		pass(15 * time.Minute)
		c.end()
		if q.left() != 0 {
			t.Errorf("%d left when the receiver is well again", q.left())
		}
	})
}

// A test is no money: it is given up after a day.
func TestATestIsGivenUpSooner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, s := newCallbacks(), newSender()
		const url = "https://bad.example/"
		s.answer(url, reply{outcome: callback.Failed})
		early, last := q.add("mer_1", url), q.add("mer_2", url)
		for id, age := range map[uuid.UUID]time.Duration{early: 24*time.Hour - 5*time.Second, last: 24 * time.Hour} {
			q.rows[id].MovementID, q.rows[id].CreatedAt = movement.ID{}, time.Now().Add(-age)
		}
		c := dispatch(t, queuetest.NewTable(), q, s, "only")
		defer c.end()
		pass(3 * time.Second)
		for id, want := range map[uuid.UUID]movement.CallbackState{early: movement.CallbackWaiting, last: movement.CallbackDead} {
			if row, tries := q.of(id); row.State != want || len(tries) != 1 {
				t.Errorf("after %d tries: %s with %d tries, want %s", row.Attempts, row.State, len(tries), want)
			}
		}
	})
}

// TestAllEndWhenTheyAreOld: of 200 callbacks for a receiver that is dead for good,
// each ends when it is 30 days old, however few of them its lane let through; what was
// sent again then has its own 30 days.
func TestAllEndWhenTheyAreOld(t *testing.T) {
	t.Parallel()
	const lasts = 30 * 24 * time.Hour
	synctest.Test(t, func(t *testing.T) {
		q, s := newCallbacks(), newSender()
		s.answer(bad, reply{outcome: callback.Failed, takes: time.Second})
		again := q.add("mer_1", bad)
		q.rows[again].CreatedAt, q.rows[again].ResentAt = time.Now().Add(-lasts), time.Now()
		for range 200 {
			q.rows[q.add("mer_1", bad)].CreatedAt = time.Now().Add(time.Hour - lasts)
		}
		c := dispatch(t, queuetest.NewTable(), q, s, "only")
		defer c.end()
		pass(45 * time.Minute)
		if q.left() != 201 {
			t.Errorf("%d wait before they are old", q.left())
		}
		pass(45 * time.Minute)
		if row, _ := q.of(again); q.left() != 1 || row.State != movement.CallbackWaiting {
			t.Errorf("%d wait after it, what was sent again is %s", q.left(), row.State)
		}
	})
}

// TestTheUnsignedEndWhenTheyAreOld: a callback that can't be signed, whether its
// secret can't be opened or the message can't be signed, ends at 30 days as any other.
func TestTheUnsignedEndWhenTheyAreOld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, s := newCallbacks(), newSender()
		s.answer(bad, reply{outcome: callback.Aborted})
		old := []uuid.UUID{q.add("mer_unsigned", good), q.add("mer_1", bad)}
		for _, id := range old {
			q.rows[id].CreatedAt = time.Now().Add(time.Hour - 30*24*time.Hour)
		}
		young := q.add("mer_unsigned", good)
		c := dispatch(t, queuetest.NewTable(), q, s, "only")
		defer c.end()
		pass(59 * time.Minute)
		if q.left() != 3 {
			t.Errorf("%d wait before they are old", q.left())
		}
		pass(2 * time.Minute)
		for _, id := range old {
			if row, tries := q.of(id); row.State != movement.CallbackDead || len(tries) != 0 {
				t.Errorf("at 30 days: %s after %d tries", row.State, len(tries))
			}
		}
		if row, _ := q.of(young); row.State != movement.CallbackWaiting {
			t.Errorf("the young one is %s", row.State)
		}
	})
}

// TestAnEndIsToldBeforeItIsRecorded, with or without a last try, and once it is told, the end
// is recorded: what could not be told goes on.
func TestAnEndIsToldBeforeItIsRecorded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, s := newCallbacks(), newSender()
		const gone = "https://gone.example/"
		s.answer(bad, reply{outcome: callback.Failed})
		s.answer(gone, reply{outcome: callback.Gone})
		last, ended, unsigned, delivered := q.add("mer_1", bad), q.add("mer_2", gone), q.add("mer_unsigned", good), q.add("mer_3", good)
		for _, id := range []uuid.UUID{last, unsigned} {
			q.rows[id].CreatedAt = time.Now().Add(-30 * 24 * time.Hour)
		}
		q.untold = 3 // the first of each
		c := dispatch(t, queuetest.NewTable(), q, s, "only")
		defer c.end()
		pass(2 * time.Second)
		for _, id := range []uuid.UUID{last, ended, unsigned} {
			if row, _ := q.of(id); row.State != movement.CallbackWaiting || q.told[id] > 0 {
				t.Errorf("%s is %s, told %d times, before anybody could be told", row.URL, row.State, q.told[id])
			}
		}
		pass(2 * time.Minute)
		for id, want := range map[uuid.UUID]movement.CallbackState{last: movement.CallbackDead, ended: movement.CallbackGone, unsigned: movement.CallbackDead} {
			if row, _ := q.of(id); row.State != want || q.told[id] != 1 {
				t.Errorf("%s is %s, told %d times, want %s and once", row.URL, row.State, q.told[id], want)
			}
		}
		if q.told[delivered] > 0 {
			t.Error("a delivery is told as dead")
		}
	})
}

// TestManyEndsAreToldInTime: each has as long as a write, some at once, and one that takes
// for ever holds neither the others nor a stop.
func TestManyEndsAreToldInTime(t *testing.T) {
	t.Parallel()
	for takes, want := range map[time.Duration]int{time.Second: 0, 24 * time.Hour: 100} {
		synctest.Test(t, func(t *testing.T) {
			q, s := newCallbacks(), newSender()
			q.tells = takes
			s.answer(bad, reply{outcome: callback.Failed})
			for range 100 {
				q.rows[q.add("mer_1", bad)].CreatedAt = time.Now().Add(time.Minute - 30*24*time.Hour)
			}
			c := dispatch(t, queuetest.NewTable(), q, s, "only")
			pass(time.Hour)
			if left := q.left(); left != want {
				t.Errorf("told in %s each: %d are left", takes, left)
			}
			began := time.Now()
			c.end()
			if took := time.Since(began); took > time.Minute {
				t.Errorf("told in %s each: the stop took %s", takes, took)
			}
		})
	}
}

// TestAFailureFollowsTheSchedule fails each try of a delivery, at receivers of their
// own so that no lane's pause comes on top.
func TestAFailureFollowsTheSchedule(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, s := newCallbacks(), newSender()
		waits := []time.Duration{
			5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute,
			time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 12 * time.Hour,
		}
		for range 30 {
			waits = append(waits, 24*time.Hour)
		}
		ids := make([]uuid.UUID, len(waits)+1)
		for i := range ids {
			url := fmt.Sprintf("https://bad-%d.example/", i)
			s.answer(url, reply{outcome: callback.Failed, takes: time.Second})
			ids[i] = q.add("mer_1", url)
			q.rows[ids[i]].Attempts = i
		}
		q.rows[ids[len(waits)]].CreatedAt = time.Now().Add(-30 * 24 * time.Hour)
		c := dispatch(t, queuetest.NewTable(), q, s, "only")
		defer c.end()
		pass(3 * time.Second)
		for i, wait := range waits {
			row, tries := q.of(ids[i])
			if len(tries) != 1 {
				t.Fatalf("try %d was made %d times", i+1, len(tries))
			}
			after := row.DueAt.Sub(tries[0].At.Add(tries[0].Took))
			if row.State != movement.CallbackWaiting || after < wait*9/10 || after > wait*11/10 {
				t.Errorf("after try %d: %s, due after %v, want %v", i+1, row.State, after, wait)
			}
		}
		if row, tries := q.of(ids[len(waits)]); row.State != movement.CallbackDead || len(tries) != 1 || !row.DueAt.IsZero() {
			t.Errorf("after the last try: %s, due %v", row.State, row.DueAt)
		}
		pass(4 * time.Minute)
		times := s.times(ids[0])
		if len(times) != 4 { // at 0, 5 s, 35 s and 155 s, each a second long, or a tenth sooner or later
			t.Fatalf("%d tries in 4 minutes", len(times))
		}
		for i, wait := range waits[:3] {
			if after := times[i+1].Sub(times[i]) - time.Second; after < wait*9/10 || after > wait*11/10+time.Second {
				t.Errorf("try %d came %v after the one before", i+2, after)
			}
		}
	})
}

func TestEndsAndWhatIsNotCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, s := newCallbacks(), newSender()
		s.answer("https://gone.example/", reply{outcome: callback.Gone})
		s.answer("https://unsigned.example/", reply{outcome: callback.Aborted})
		s.answer("https://inside.example/", reply{outcome: callback.Refused})
		gone, aborted := q.add("mer_1", "https://gone.example/"), q.add("mer_1", "https://unsigned.example/")
		refused := q.add("mer_1", "https://inside.example/")
		var secretless []uuid.UUID
		for range 2 * page {
			secretless = append(secretless, q.add("mer_unsigned", "https://unknown.example/"))
		}
		after := q.add("mer_2", good)
		c := dispatch(t, queuetest.NewTable(), q, s, "only")
		defer c.end()
		pass(10 * time.Second)
		if row, tries := q.of(after); row.State != movement.CallbackDelivered || len(tries) != 1 {
			t.Errorf("behind those that can't be signed: %s", row.State)
		}
		pass(5 * time.Minute)
		if row, tries := q.of(gone); row.State != movement.CallbackGone || len(tries) != 1 || len(s.times(gone)) != 1 {
			t.Errorf("410: %s after %d tries", row.State, len(tries))
		}
		row, tries := q.of(aborted)
		if sends := len(s.times(aborted)); row.State != movement.CallbackWaiting || row.Attempts != 0 || len(tries) != 0 || sends < 5 || sends > 12 {
			t.Errorf("aborted: %s, %d counted, %d sends in 5 minutes", row.State, row.Attempts, sends)
		}
		if row, tries := q.of(refused); row.State != movement.CallbackWaiting || len(tries) != 4 {
			t.Errorf("refused by the guard: %s, %d tries, want 4 within 5 minutes", row.State, len(tries))
		}
		for _, id := range secretless {
			if row, tries := q.of(id); row.State != movement.CallbackWaiting || len(tries) != 0 {
				t.Fatalf("without a secret: %s, %d tries", row.State, len(tries))
			}
		}
	})
}

// TestWhatIsNotWrittenIsSentAgain loses the database's writes alone, as a full
// disk does.
func TestWhatIsNotWrittenIsSentAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, s := newCallbacks(), newSender()
		q.unwrites = queuetest.ErrAway
		id := q.add("mer_1", good)
		c := dispatch(t, queuetest.NewTable(), q, s, "only")
		defer c.end()
		pass(time.Minute)
		if sends := len(s.times(id)); sends < 2 || sends > 13 {
			t.Errorf("%d sends in a minute without writes", sends)
		}
		if c.log.Count("record an attempt") == 0 {
			t.Errorf("nobody is told:\n%s", c.log)
		}
		q.change(func() { q.unwrites = nil })
		pass(10 * time.Second)
		sends := len(s.times(id))
		if row, tries := q.of(id); row.State != movement.CallbackDelivered || len(tries) != 1 {
			t.Errorf("when it is back: %s, %d tries", row.State, len(tries))
		}
		pass(time.Minute)
		if again := len(s.times(id)); again != sends {
			t.Errorf("sent %d times more after it was written", again-sends)
		}
	})
}

func TestShutdownAbortsAndReleases(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leases, q, s := queuetest.NewTable(), newCallbacks(), newSender()
		s.answer(bad, reply{takes: 9 * time.Second})
		id := q.add("mer_1", bad)
		c := dispatch(t, leases, q, s, "first")
		pass(time.Second)
		begun := time.Now()
		c.end()
		if took := time.Since(begun); took > 0 || leases.Held("first") != 0 {
			t.Errorf("the end took %v and kept %d leases", took, leases.Held("first"))
		}
		if row, tries := q.of(id); row.State != movement.CallbackWaiting || row.Attempts != 0 || len(tries) != 0 {
			t.Errorf("%s, %d counted", row.State, row.Attempts)
		}
		if c.log.Count("level=WARN") > 0 {
			t.Errorf("an end is no fault:\n%s", c.log)
		}
		next := dispatch(t, leases, q, s, "second")
		defer next.end()
		pass(10 * time.Second)
		if row, _ := q.of(id); row.State != movement.CallbackDelivered || len(s.times(id)) != 2 {
			t.Errorf("the next one: %s after %d sends", row.State, len(s.times(id)))
		}
	})
}

func TestWakeIsImmediate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, s := newCallbacks(), newSender()
		c := dispatch(t, queuetest.NewTable(), q, s, "only")
		defer c.end()
		pass(5*time.Second + 30*time.Millisecond)
		for _, wake := range []bool{true, false} {
			id := q.add("mer_1", good)
			begun := time.Now()
			if wake {
				c.Wake()
				c.Wake()
			}
			pass(300 * time.Millisecond)
			times := s.times(id)
			if len(times) != 1 {
				t.Fatalf("%d sends", len(times))
			}
			if took := times[0].Sub(begun); (took > 25*time.Millisecond) == wake {
				t.Errorf("woken %v: sent after %v", wake, took)
			}
		}
		before := q.readCount()
		for range 1000 {
			c.Wake()
			pass(time.Millisecond)
		}
		if reads := q.readCount() - before; reads < 40 || reads > 51 {
			t.Errorf("%d reads in a second of waking", reads)
		}
	})
}

// TestASilentDatabase does not answer a write that puts callbacks off.
func TestASilentDatabase(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, s := newCallbacks(), newSender()
		s.answer(bad, reply{outcome: callback.Failed})
		for range 10 {
			q.add("mer_1", bad)
		}
		q.silent = true
		c := dispatch(t, queuetest.NewTable(), q, s, "only")
		defer c.end()
		pass(30 * time.Second)
		id := q.add("mer_2", good)
		pass(6 * time.Second)
		if row, _ := q.of(id); row.State != movement.CallbackDelivered {
			t.Errorf("it is %s", row.State)
		}
	})
}

// TestDispatchersShare has a second replica come and go while the first is sending:
// what is under way is not sent twice.
func TestDispatchersShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leases, q, s := queuetest.NewTable(), newCallbacks(), newSender()
		s.answer(good, reply{takes: 4 * time.Second})
		add := func() {
			for i := range 100 {
				q.add(fmt.Sprintf("mer_%d", i), good)
			}
		}
		first := dispatch(t, leases, q, s, "first")
		for range 10 {
			add()
			pass(500 * time.Millisecond)
		}
		second := dispatch(t, leases, q, s, "second")
		for range 40 {
			add()
			pass(500 * time.Millisecond)
		}
		if held := leases.Held("second"); held < 8 {
			t.Errorf("the second holds %d buckets and memberships after 20 s", held)
		}
		pass(3 * time.Minute)
		second.end()
		add()
		pass(3 * time.Minute)
		first.end()
		if twice := s.twice(); q.left() != 0 || len(twice) != 0 {
			t.Errorf("%d left; sent more than once: %v", q.left(), twice)
		}
	})
}
