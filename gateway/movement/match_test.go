package movement_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

const cool = 3 * time.Hour

// open is a collection that was made at the epoch and lives half an hour.
func open(amount money.Amount, state movement.State) movement.Candidate {
	return movement.Candidate{ID: movement.NewID(), Amount: amount, State: state, CreatedAt: epoch, ExpiresAt: epoch.Add(30 * time.Minute)}
}

func TestMatchPayment(t *testing.T) {
	t.Parallel()
	const s, min, h = time.Second, time.Minute, time.Hour
	pending, expired, done := open(100, movement.Pending), open(100, movement.Expired), open(100, movement.Succeeded)
	sending := open(100, movement.Submitting)
	taken := pending
	taken.Taken = true
	for name, c := range map[string]struct {
		amount money.Amount
		at     time.Duration
		among  []movement.Candidate
		want   movement.Relation
	}{
		"at its beginning":             {100, 0, []movement.Candidate{pending}, movement.Paying},
		"at its end":                   {100, 30 * min, []movement.Candidate{pending}, movement.Paying},
		"by a clock that is behind":    {100, -movement.Skew, []movement.Candidate{pending}, movement.Paying},
		"while it is being made":       {100, 0, []movement.Candidate{sending}, movement.Waiting},
		"before it":                    {100, -movement.Skew - s, []movement.Candidate{pending}, movement.Unmatched},
		"another amount":               {101, 0, []movement.Candidate{pending}, movement.Unmatched},
		"nobody's":                     {100, 0, nil, movement.Unmatched},
		"late, not ended":              {100, 30*min + s, []movement.Candidate{pending}, movement.Waiting},
		"late":                         {100, 30*min + s, []movement.Candidate{expired}, movement.Paying},
		"in its life, told late":       {100, min, []movement.Candidate{expired}, movement.Paying},
		"at the end of the cooling":    {100, 30*min + 3*h, []movement.Candidate{expired}, movement.Paying},
		"after it":                     {100, 30*min + 3*h + s, []movement.Candidate{expired}, movement.Unmatched},
		"paid":                         {100, min, []movement.Candidate{done}, movement.Again},
		"being paid":                   {100, min, []movement.Candidate{taken}, movement.Again},
		"of two":                       {100, min, []movement.Candidate{pending, expired}, movement.Ambiguous},
		"of two, one of which is paid": {100, min, []movement.Candidate{pending, done}, movement.Ambiguous},
		"of two amounts":               {100, min, []movement.Candidate{open(101, movement.Pending), pending}, movement.Paying},
	} {
		got, id := movement.FindMatch(movement.Arrival{Amount: c.amount, At: epoch.Add(c.at)}, c.among, cool)
		if got != c.want || got == movement.Paying && id != c.among[len(c.among)-1].ID {
			t.Errorf("%s: %d for %s, want %d", name, got, id, c.want)
		}
	}
}

// TestNothingIsGuessed says that what pays is the only one that it can be for, and
// asked for exactly this amount.
func TestNothingIsGuessed(t *testing.T) {
	t.Parallel()
	states := []movement.State{movement.Submitting, movement.Pending, movement.Succeeded, movement.Expired}
	rapid.Check(t, func(t *rapid.T) {
		var among []movement.Candidate
		for range rapid.IntRange(0, 5).Draw(t, "candidates") {
			c := open(money.Amount(rapid.Int64Range(100, 102).Draw(t, "amount")), rapid.SampledFrom(states).Draw(t, "state"))
			c.CreatedAt = c.CreatedAt.Add(time.Duration(rapid.IntRange(-300, 300).Draw(t, "made")) * time.Minute)
			c.ExpiresAt = c.CreatedAt.Add(30 * time.Minute)
			among = append(among, c)
		}
		p := movement.Arrival{Amount: 101, At: epoch}
		match, id := movement.FindMatch(p, among, cool)
		possible := 0
		for _, c := range among {
			if c.Amount == p.Amount && !p.At.Before(c.CreatedAt.Add(-movement.Skew)) && !p.At.After(c.ExpiresAt.Add(cool)) {
				possible++
			}
			if match == movement.Paying && c.ID == id && (c.Amount != p.Amount || c.State == movement.Succeeded) {
				t.Fatalf("%+v is paid", c)
			}
		}
		if match == movement.Paying && possible != 1 || match == movement.Ambiguous && possible < 2 || (match == movement.Unmatched) != (possible == 0) {
			t.Fatalf("%d of %d possible", match, possible)
		}
	})
}

// TestJudgeCollections holds the table: only a sale's books end it, as paid or not.
func TestJudgeCollections(t *testing.T) {
	t.Parallel()
	rules, served := movement.RulesOf(manifest.Collection)
	if !served || rules.Life != 30*time.Minute {
		t.Fatalf("a life of %v", rules.Life)
	}
	const (
		same = movement.Nothing
		move = movement.Move
		late = movement.LateMoney
		back = movement.Reversal
		odd  = movement.Contradiction
	)
	want := map[movement.State][6]movement.Effect{
		//                 Sending Pending Done  Failed Expired Unsent
		movement.Submitting:   {same, move, move, move, move, move},
		movement.Pending:      {odd, same, move, odd, move, odd},
		movement.Succeeded:    {odd, same, same, back, same, odd},
		movement.Failed:       {odd, same, late, same, same, odd},
		movement.Expired:      {odd, same, late, same, same, odd},
		movement.NotSubmitted: {move, odd, odd, odd, odd, same},
	}
	judges(t, rules, want)
}

// TestLooksAtBooks says when the books are looked at for a collection.
func TestLooksAtBooks(t *testing.T) {
	t.Parallel()
	const s, min, h = time.Second, time.Minute, time.Hour
	key := movement.Key{Kind: manifest.Collection}
	m := movement.Movement{Key: key, State: movement.Pending, CreatedAt: epoch, ExpiresAt: epoch.Add(30 * min)}
	want := []time.Duration{5 * s, 10 * s, 20 * s, 40 * s, 80 * s, 160 * s, 5 * min, 10 * min, 15 * min, 20 * min, 25 * min, 30*min + 2*s, 30*min + 30*s}
	for i, at := range looks(m, 0, 0, len(want)) {
		if at != want[i] {
			t.Errorf("look %d after %v, want %v", i, at, want[i])
		}
	}
	for _, ended := range []movement.State{movement.Expired, movement.Succeeded} {
		after := looks(movement.Movement{Key: key, State: ended, UpdatedAt: epoch}, 0, 0, 20)
		if len(after) != 7 || after[0] != 5*min || after[6] != 24*h {
			t.Errorf("%s: %v", ended, after)
		}
	}
}
