package movement_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// states are those of any kind.
var states = []movement.State{
	movement.Submitting, movement.Acknowledged, movement.Pending, movement.Succeeded, movement.Failed, movement.Expired, movement.NotSubmitted,
}

// rules are those of a kind whose upstream is asked at a pace.
func rules(t testing.TB, kind manifest.Kind, pace movement.Pace) movement.Rules {
	t.Helper()
	r, ok := movement.RulesOf(kind)
	if !ok {
		t.Fatalf("%s has no rules", kind)
	}
	r.Pace = pace
	return r
}

// polls are the moments at which the movement is polled, always in time, as offsets
// from the epoch.
func polls(m movement.Movement, rules movement.Rules, from time.Duration, n int) []time.Duration {
	var at []time.Duration
	now := epoch.Add(from)
	for range n {
		next := m.NextPoll(now, rules)
		if next.IsZero() {
			break
		}
		at = append(at, next.Sub(epoch))
		now = next
	}
	return at
}

func TestPolls(t *testing.T) {
	t.Parallel()
	const s, min, h = time.Second, time.Minute, time.Hour
	submitting := movement.Movement{State: movement.Submitting, CreatedAt: epoch.Add(-5 * s), SendBy: epoch}
	errored, freed := submitting, submitting
	errored.ErroredAt = epoch.Add(-4 * s)
	freed.ErroredAt = epoch.Add(-6 * s) // the attempt before
	const soon = s + 2*movement.ClockSkew
	pending := movement.Movement{State: movement.Pending, CreatedAt: epoch}
	ending := pending
	ending.ExpiresAt = epoch.Add(30 * min)
	for name, c := range map[string]struct {
		m       movement.Movement
		from    time.Duration
		settles time.Duration
		want    []time.Duration
	}{
		"submitting":                   {submitting, -5 * s, 10 * s, []time.Duration{2 * s, 10 * s, 30 * s, 40 * s, 90 * s, 10*min + 30*s, h + 30*s, h + 15*min + 30*s}},
		"submitting, settled at once":  {submitting, -5 * s, 0, []time.Duration{2 * s, 10 * s, 20 * s, 30 * s, 80 * s}}, // by a clock behind ours
		"ended in an error":            {errored, -4 * s, 60 * s, []time.Duration{soon, soon + 10*s, soon + min}},
		"its last attempt was":         {freed, -5 * s, 10 * s, []time.Duration{2 * s, 10 * s, 30 * s}},
		"submitting, found after days": {submitting, 40 * 24 * h, 30 * s, []time.Duration{41 * 24 * h, 42 * 24 * h}},
		"pending":                      {pending, 0, 30 * s, []time.Duration{min, 5 * min, 15 * min, h, 2 * h, 3 * h}},
		"pending with an end":          {ending, 0, 30 * s, []time.Duration{min, 5 * min, 15 * min, 30*min + 2*s, 30*min + 30*s, 32 * min, 40 * min, h + 30*min, h + 45*min}},
		"pending, just over":           {ending, 30 * min, 30 * s, []time.Duration{30*min + 2*s}},
		"a transfer":                   {movement.Movement{Key: movement.Key{Kind: manifest.Transfer}, State: movement.Pending, CreatedAt: epoch}, 0, 0, []time.Duration{10 * s, 30 * s, 2 * min, 10 * min, h, 25 * h, 49 * h}},
		"expired":                      {movement.Movement{State: movement.Expired, UpdatedAt: epoch}, 0, 0, []time.Duration{h}},
	} {
		kind := cmp.Or(c.m.Kind, manifest.Payment)
		got := polls(c.m, rules(t, kind, movement.Pace{SettlesWithin: c.settles, ErrorSettlesWithin: 5 * s}), c.from, len(c.want))
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestTwoProofsComeSoon says that what was due only late, because nobody was there to
// poll, does not wait a day for its second poll.
func TestTwoProofsComeSoon(t *testing.T) {
	t.Parallel()
	m := movement.Movement{State: movement.Submitting, SendBy: epoch}
	late := epoch.Add(2 * time.Hour)
	if next := m.NextPoll(late, rules(t, manifest.Payment, movement.Pace{SettlesWithin: time.Minute})); next.Sub(late) > 30*time.Minute {
		t.Errorf("polled two hours late, and again after %v", next.Sub(late))
	}
}

func anyMovement() *rapid.Generator[movement.Movement] {
	offset := rapid.Int64Range(-int64(90*24*time.Hour), int64(90*24*time.Hour))
	moment := rapid.Custom(func(t *rapid.T) time.Time { return epoch.Add(time.Duration(offset.Draw(t, "offset"))) })
	return rapid.Custom(func(t *rapid.T) movement.Movement {
		m := movement.Movement{
			State: rapid.SampledFrom(states).Draw(t, "state"), CreatedAt: moment.Draw(t, "created"),
			SendBy: moment.Draw(t, "send by"), UpdatedAt: moment.Draw(t, "updated"),
		}
		if rapid.Bool().Draw(t, "ends") {
			m.ExpiresAt = moment.Draw(t, "expires")
		}
		return m
	})
}

func TestNextPollLiesAhead(t *testing.T) {
	t.Parallel()
	payments := rules(t, manifest.Payment, movement.Pace{})
	rapid.Check(t, func(t *rapid.T) {
		m, rules := anyMovement().Draw(t, "movement"), payments
		rules.Pace.SettlesWithin = time.Duration(rapid.Int64Range(0, int64(24*time.Hour)).Draw(t, "settles"))
		next := m.NextPoll(epoch, rules)
		switch m.State {
		case movement.Succeeded, movement.Failed, movement.NotSubmitted:
			if !next.IsZero() {
				t.Fatalf("%s is polled again, at %v", m.State, next)
			}
			return
		case movement.Expired:
			if next.IsZero() {
				return
			}
		case movement.Submitting, movement.Acknowledged, movement.Pending:
		}
		if !next.After(epoch) { // zero, too: money that is open is never forgotten
			t.Fatalf("%s is polled at %v", m.State, next)
		}
		if m.State == movement.Pending && next.After(epoch.Add(24*time.Hour)) {
			t.Fatalf("%s waits until %v", m.State, next)
		}
		end := m.ExpiresAt.Add(2 * time.Second)
		if m.State == movement.Pending && epoch.Before(m.ExpiresAt) && next.After(end) {
			t.Fatalf("its life is over at %v, and it is polled at %v", m.ExpiresAt, next)
		}
	})
}

// TestAClockAheadPutsNothingOff: a movement that was made by a replica a day
// ahead of ours is polled as one that was made now.
func TestAClockAheadPutsNothingOff(t *testing.T) {
	t.Parallel()
	m := movement.Movement{State: movement.Pending, CreatedAt: epoch.Add(24*time.Hour - time.Minute + 1)}
	if next := m.NextPoll(epoch, rules(t, manifest.Payment, movement.Pace{})); !next.Equal(epoch.Add(time.Minute)) {
		t.Errorf("polled at %v, want a minute from now", next)
	}
}

// TestSubmittingIsProvenTwice follows the polls of a call that was never answered: two
// of them lie where not-found is proof, within a minute of its beginning.
func TestSubmittingIsProvenTwice(t *testing.T) {
	t.Parallel()
	payments := rules(t, manifest.Payment, movement.Pace{})
	rapid.Check(t, func(t *rapid.T) {
		settles := time.Duration(rapid.Int64Range(0, int64(24*time.Hour)).Draw(t, "settles"))
		m := movement.Movement{State: movement.Submitting, SendBy: epoch}
		rules := payments
		rules.Pace.SettlesWithin = settles
		proof := m.ProvenAfter(rules)
		if !proof.Equal(epoch.Add(settles + 2*movement.ClockSkew)) {
			t.Fatalf("proof begins at %v", proof)
		}
		proofs := 0
		for _, at := range polls(m, rules, -time.Second, 5) {
			if moment := epoch.Add(at); !moment.Before(proof) && moment.Before(proof.Add(time.Minute)) {
				proofs++
			}
		}
		if proofs != 2 {
			t.Fatalf("%d polls within a minute of %v", proofs, proof)
		}
	})
}

// TestPollsLeaveTheUpstreamAlone holds the span that an upstream wants between two
// polls of one movement, whatever is known of it.
func TestPollsLeaveTheUpstreamAlone(t *testing.T) {
	t.Parallel()
	payments := rules(t, manifest.Payment, movement.Pace{SettlesWithin: time.Minute, Every: time.Minute})
	rapid.Check(t, func(t *rapid.T) {
		m := anyMovement().Draw(t, "movement")
		next := m.NextPoll(epoch, payments)
		if m.State.Open() && next.Before(epoch.Add(payments.Pace.Every)) {
			t.Fatalf("asked again after %v", next.Sub(epoch))
		}
	})
}
