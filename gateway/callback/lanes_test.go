package callback

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// start is when tests begin.
var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func laneOf(n int) laneKey {
	return laneKey{merchant: "m" + strconv.Itoa(n), receiver: "shop.example:443"}
}

// run admits one delivery and ends it.
func run(t *testing.T, l *lanes, key laneKey, now time.Time, took time.Duration, o Outcome) {
	t.Helper()
	release, ok, retryAt := l.admit(key, now)
	if !ok {
		t.Fatalf("not admitted until %s", retryAt.Sub(now))
	}
	release(o, now.Add(took))
}

// admitAll admits as many as there is room for.
func admitAll(l *lanes, key laneKey, now time.Time) (releases []func(Outcome, time.Time)) {
	for {
		release, ok, _ := l.admit(key, now)
		if !ok {
			return releases
		}
		releases = append(releases, release)
	}
}

func TestLaneHasItsLimit(t *testing.T) {
	t.Parallel()
	l := newLanes(laneLimits{})
	key := laneOf(1)
	if got := len(admitAll(l, key, start)); got != 1 {
		t.Errorf("%d in flight in an unknown lane, want 1", got)
	}
	l = newLanes(laneLimits{})
	for range 10 {
		run(t, l, key, start, time.Millisecond, Delivered)
	}
	releases := admitAll(l, key, start)
	if len(releases) != 4 {
		t.Errorf("%d in flight in a good lane, want 4", len(releases))
	}
	if _, ok, retryAt := l.admit(key, start); ok || !retryAt.After(start) || retryAt.After(start.Add(time.Second)) {
		t.Errorf("a busy lane gives %t, %s", ok, retryAt.Sub(start))
	}
	if _, ok, _ := l.admit(laneKey{merchant: key.merchant, receiver: "other.example:443"}, start); !ok {
		t.Error("a busy receiver holds up another one of the merchant's")
	}
	releases[0](Delivered, start)
	releases[0](Delivered, start)
	if got := len(admitAll(l, key, start)); got != 1 {
		t.Errorf("one release, called twice, makes room for %d", got)
	}
}

func TestFailingLaneOpensAndIsProbed(t *testing.T) {
	t.Parallel()
	l, key, now := newLanes(laneLimits{}), laneOf(1), start
	for range failuresToOpen {
		run(t, l, key, now, 0, Failed)
	}
	for _, pause := range []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second,
		160 * time.Second, 320 * time.Second, 10 * time.Minute, 10 * time.Minute} {
		if _, ok, retryAt := l.admit(key, now); ok || retryAt.Sub(now) != pause {
			t.Fatalf("open: %t, %s; want %s", ok, retryAt.Sub(now), pause)
		}
		now = now.Add(pause)
		release, ok, _ := l.admit(key, now)
		if !ok {
			t.Fatalf("no probe after %s", pause)
		}
		if _, second, retryAt := l.admit(key, now); second || !retryAt.After(now) {
			t.Error("two probes at a time")
		}
		release(Refused, now)
	}
	now = now.Add(longestPause)
	run(t, l, key, now, 0, Aborted)
	run(t, l, key, now, 0, Delivered)
	if got := len(admitAll(l, key, now)); got != 2 {
		t.Errorf("%d in flight after a good probe, want 2", got)
	}
}

func TestWhatCountsAsFailure(t *testing.T) {
	t.Parallel()
	for outcome, opens := range map[Outcome]bool{Delivered: false, Gone: false, Aborted: false, Failed: true, Refused: true} {
		l, key := newLanes(laneLimits{}), laneOf(1)
		for range failuresToOpen {
			run(t, l, key, start, 0, outcome)
		}
		if _, ok, _ := l.admit(key, start); ok == opens {
			t.Errorf("%d times %s: admitted %t", failuresToOpen, outcome, ok)
		}
	}
	l, key := newLanes(laneLimits{}), laneOf(1)
	for n := range 10 * failuresToOpen {
		run(t, l, key, start, 0, []Outcome{Failed, Failed, Failed, Failed, Delivered}[n%5])
	}
}

// TestLateFailuresDontLengthenThePause has results of before the opening come
// after it.
func TestLateFailuresDontLengthenThePause(t *testing.T) {
	t.Parallel()
	l, key := newLanes(laneLimits{perLane: failuresToOpen + 2}), laneOf(1)
	for range failuresToOpen + 2 {
		run(t, l, key, start, 0, Delivered)
	}
	for _, release := range admitAll(l, key, start) {
		release(Failed, start)
	}
	if _, ok, retryAt := l.admit(key, start); ok || retryAt.Sub(start) != firstPause {
		t.Errorf("after %d failures: %t, %s; want a pause of %s", failuresToOpen+2, ok, retryAt.Sub(start), firstPause)
	}
}

func TestSlowLanesLeaveRoom(t *testing.T) {
	t.Parallel()
	type answer struct {
		outcome Outcome
		took    time.Duration
	}
	fast, slow, dead := answer{Delivered, slowAnswer - 1}, answer{Delivered, slowAnswer}, answer{Failed, slowAnswer}
	for name, c := range map[string]struct {
		answers []answer
		want    int
	}{
		"slow": {[]answer{slow}, 5}, "dead": {[]answer{dead}, 5}, "unknown": {nil, 15}, "only aborted": {[]answer{{Aborted, time.Hour}}, 15},
		"quick": {[]answer{fast}, 20}, "quick to refuse": {[]answer{{Failed, 0}}, 20}, "guarded": {[]answer{{Refused, 0}}, 20},
		"slow once": {[]answer{fast, slow}, 15}, "slow twice": {[]answer{fast, slow, dead}, 5}, "slow and well again": {[]answer{dead, dead, fast}, 20},
	} {
		l, held := newLanes(laneLimits{total: 20, perMerchant: 20}), 0
		for n := range 100 {
			for _, a := range c.answers {
				run(t, l, laneOf(n), start, a.took, a.outcome)
			}
		}
		for n := range 100 {
			held += len(admitAll(l, laneOf(n), start))
		}
		if held != c.want {
			t.Errorf("%s: %d of 20 are held, want %d", name, held, c.want)
		}
		for n := range 100 {
			held += len(admitAll(l, laneOf(1000+n), start))
		}
		if want := max(c.want, 15); held != want {
			t.Errorf("%s, and new lanes: %d are held, want %d", name, held, want)
		}
	}
}

// TestRoomIsWhatMayBegin: where the places of doubtful receivers are taken it is all, because most of what is due may have to
// be read to be left out.
func TestRoomIsWhatMayBegin(t *testing.T) {
	t.Parallel()
	l := newLanes(laneLimits{total: 20, perMerchant: 20})
	for n := range 20 {
		run(t, l, laneOf(n), start, 0, Delivered) // quick
	}
	var begun []func(Outcome, time.Time)
	begin := func(lanes ...int) {
		for _, n := range lanes {
			if release, ok, _ := l.admit(laneOf(n), start); ok {
				begun = append(begun, release)
			}
		}
	}
	want := func(what string, room int) {
		t.Helper()
		if got := l.room(); got != room {
			t.Errorf("%s: room for %d, want %d", what, got, room)
		}
	}
	want("nothing is under way", 20)
	begin(0, 1, 2)
	want("three are", 17)
	for n := range 14 {
		begin(1000 + n) // unknown
	}
	want("one place of the doubtful is left", 3)
	begin(2000)
	want("none is", 20)
	begin(3, 4)
	want("nothing may begin", 0)
	begun[0](Delivered, start)
	want("a quick one may", 20)
	for _, release := range begun {
		release(Delivered, start)
	}
	want("all have ended", 20)
}

func TestMerchantHasAShare(t *testing.T) {
	t.Parallel()
	l, held := newLanes(laneLimits{}), 0
	for n := range 1000 {
		held += len(admitAll(l, laneKey{merchant: "m", receiver: strconv.Itoa(n) + ".example:443"}, start))
	}
	if held != 64 {
		t.Errorf("one merchant with many hosts holds %d, want 64", held)
	}
	if got := len(admitAll(l, laneOf(1), start)); got != 1 {
		t.Errorf("another merchant has %d, want 1", got)
	}
}

func TestLanesAreForgotten(t *testing.T) {
	t.Parallel()
	l := newLanes(laneLimits{total: 10, remembered: 100})
	open := laneOf(-1)
	for range failuresToOpen {
		run(t, l, open, start, 0, Failed)
	}
	busy := admitAll(l, laneOf(-2), start)
	for n := range 10000 {
		run(t, l, laneOf(n), start.Add(time.Duration(n)*time.Microsecond), 0, Delivered)
		if l.size() > 100 {
			t.Fatalf("%d lanes are remembered", l.size())
		}
	}
	if _, ok, _ := l.admit(open, start.Add(time.Second)); ok {
		t.Error("an open lane is forgotten while there are closed ones")
	}
	if got := len(admitAll(l, laneOf(-2), start)); got != 0 || len(busy) != 1 {
		t.Error("a lane in flight is forgotten")
	}
}

// TestLanesHoldTheirLimits does anything in any order.
func TestLanesHoldTheirLimits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limits := laneLimits{perLane: rapid.IntRange(1, 5).Draw(t, "per lane"), perMerchant: 8, total: rapid.IntRange(1, 12).Draw(t, "total"), remembered: 30}
		l, now := newLanes(limits), start
		type flight struct {
			key     laneKey
			release func(Outcome, time.Time)
		}
		var flying []flight
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(3*time.Second)).Draw(t, "pause")))
			if len(flying) > 0 && rapid.Bool().Draw(t, "land") {
				n := rapid.IntRange(0, len(flying)-1).Draw(t, "which")
				flying[n].release(rapid.SampledFrom([]Outcome{Delivered, Failed, Gone, Refused, Aborted}).Draw(t, "outcome"), now)
				flying = slices.Delete(flying, n, n+1)
				continue
			}
			key := laneKey{merchant: strconv.Itoa(rapid.IntRange(0, 3).Draw(t, "merchant")), receiver: strconv.Itoa(rapid.IntRange(0, 5).Draw(t, "receiver"))}
			release, ok, retryAt := l.admit(key, now)
			if ok != (release != nil) || ok != retryAt.IsZero() || !ok && !retryAt.After(now) {
				t.Fatalf("admitted %t, retry at %s", ok, retryAt)
			}
			if ok {
				flying = append(flying, flight{key, release})
			}
			same, merchant := 0, 0
			for _, f := range flying {
				if f.key == key {
					same++
				}
				if f.key.merchant == key.merchant {
					merchant++
				}
			}
			if same > limits.perLane || merchant > limits.perMerchant || len(flying) > limits.total {
				t.Fatalf("%d in the lane, %d of the merchant, %d in all; limits %+v", same, merchant, len(flying), limits)
			}
		}
		for _, f := range flying {
			f.release(Delivered, now)
		}
		if l.inFlight != [quick + 1]int{} || len(l.merchants) != 0 {
			t.Fatalf("when all have landed: %v in flight, %v", l.inFlight, l.merchants)
		}
	})
}

// event is a delivery that asks to begin, or that ends.
type event struct {
	at       time.Time
	receiver int
	release  func(Outcome, time.Time)
	due      time.Time
}

type agenda []event

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].at.Before(a[j].at) }
func (a agenda) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)        { *a = append(*a, x.(event)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// TestGoodReceiversDontWaitForBadOnes plays 40 s of 100 receivers with
// one callback a second each, on lanes with little room. A tenth is dead (10 s
// each), a tenth slow (9 s each), the others answer in 20 ms.
func TestGoodReceiversDontWaitForBadOnes(t *testing.T) {
	t.Parallel()
	alone, beside := goodWaits(0), goodWaits(2)
	t.Logf("the good wait p99 %s alone, %s beside the bad", quantile(alone, 99), quantile(beside, 99))
	if got := quantile(beside, 99); got > 100*time.Millisecond {
		t.Errorf("99 %% of the good begin within %s, want 100 ms; alone %s", got, quantile(alone, 99))
	}
	if got := beside[len(beside)-1]; got > 15*time.Second {
		t.Errorf("one waited for %s", got)
	}
}

func goodWaits(badKinds int) []time.Duration {
	const receivers, seconds = 100, 40
	l, a, waits := newLanes(laneLimits{total: 32}), &agenda{}, []time.Duration{}
	kind := func(receiver int) int {
		if k := receiver % 10; k < badKinds {
			return k // 0 dead, 1 slow
		}
		return 2
	}
	for receiver := range receivers {
		for second := range seconds {
			at := start.Add(time.Duration(second)*time.Second + time.Duration(receiver)*10*time.Millisecond)
			heap.Push(a, event{at: at, due: at, receiver: receiver})
		}
	}
	end := start.Add((seconds + 20) * time.Second)
	for a.Len() > 0 {
		e := heap.Pop(a).(event)
		k := kind(e.receiver)
		if e.release != nil {
			e.release([]Outcome{Failed, Delivered, Delivered}[k], e.at)
			continue
		}
		release, ok, retryAt := l.admit(laneOf(e.receiver), e.at)
		switch {
		case !ok && retryAt.Before(end):
			e.at = retryAt
			heap.Push(a, e)
		case ok:
			if k == 2 {
				waits = append(waits, e.at.Sub(e.due))
			}
			took := []time.Duration{10 * time.Second, 9 * time.Second, 20 * time.Millisecond}[k]
			heap.Push(a, event{at: e.at.Add(took), release: release, receiver: e.receiver})
		}
	}
	slices.SortFunc(waits, cmp.Compare)
	return waits
}

func quantile(sorted []time.Duration, percent int) time.Duration {
	return sorted[len(sorted)*percent/100]
}

func BenchmarkAdmit(b *testing.B) {
	for _, lanes := range []int{1, 1000, 100000} {
		b.Run(fmt.Sprint(lanes, " lanes"), func(b *testing.B) {
			l, keys := newLanes(laneLimits{}), make([]laneKey, lanes)
			for n := range keys {
				keys[n] = laneOf(n)
			}
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				release, ok, _ := l.admit(keys[n%lanes], start)
				if !ok {
					b.Fatal("not admitted")
				}
				release(Delivered, start)
			}
		})
	}
}
