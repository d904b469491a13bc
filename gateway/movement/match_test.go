package movement_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

const quarantine = 3 * time.Hour

// open is a collection that was made at the epoch and lives half an hour.
func open(amount money.Amount, state movement.State) movement.Candidate {
	return movement.Candidate{ID: movement.NewID(), Amount: amount, State: state, CreatedAt: epoch, ExpiresAt: epoch.Add(30 * time.Minute)}
}

// arrived is a line of some rupiah that came some time after the epoch.
func arrived(amount money.Amount, after time.Duration) movement.StatementLine {
	return movement.StatementLine{ImportedLine: movement.ImportedLine{Payment: "payment-1", Amount: amount, Currency: "IDR", At: epoch.Add(after), Paid: true}}
}

func TestFindMatch(t *testing.T) {
	t.Parallel()
	const s, min, h = time.Second, time.Minute, time.Hour
	const waits movement.LineState = ""
	pending, expired, succeeded := open(100, movement.Pending), open(100, movement.Expired), open(100, movement.Succeeded)
	submitting, failed := open(100, movement.Submitting), open(100, movement.Failed)
	taken := pending
	taken.Taken = true
	for name, c := range map[string]struct {
		amount money.Amount
		at     time.Duration
		among  []movement.Candidate
		want   movement.LineState
	}{
		"at its beginning":             {100, 0, []movement.Candidate{pending}, movement.LineMatched},
		"at its end":                   {100, 30 * min, []movement.Candidate{pending}, movement.LineMatched},
		"by a clock that is behind":    {100, -movement.Skew, []movement.Candidate{pending}, movement.LineMatched},
		"while it is being made":       {100, 0, []movement.Candidate{submitting}, waits},
		"before it":                    {100, -movement.Skew - s, []movement.Candidate{pending}, waits},
		"before it, and it is unpaid":  {100, -movement.Skew - s, []movement.Candidate{expired}, movement.LineUnmatched},
		"before it, and it is paid":    {100, -movement.Skew - s, []movement.Candidate{succeeded, taken}, movement.LineUnmatched},
		"a day before it":              {100, -24 * h, []movement.Candidate{expired}, movement.LineUnmatched},
		"more than a day before it":    {100, -24*h - s, []movement.Candidate{expired, pending}, movement.LineUnmatched},
		"before one that failed":       {100, -h, []movement.Candidate{failed}, movement.LineUnmatched},
		"another amount":               {101, 0, []movement.Candidate{pending}, movement.LineUnmatched},
		"nobody's":                     {100, 0, nil, movement.LineUnmatched},
		"late, not ended":              {100, 30*min + s, []movement.Candidate{pending}, waits},
		"late":                         {100, 30*min + s, []movement.Candidate{expired}, movement.LineMatched},
		"in its life, told late":       {100, min, []movement.Candidate{expired}, movement.LineMatched},
		"at the end of the quarantine": {100, 30*min + 3*h, []movement.Candidate{expired}, movement.LineMatched},
		"after it":                     {100, 30*min + 3*h + s, []movement.Candidate{expired}, movement.LineUnmatched},
		"a day later":                  {100, 30*min + 24*h, []movement.Candidate{expired, succeeded}, movement.LineUnmatched},
		"more than a day later":        {100, 30*min + 24*h + s, []movement.Candidate{expired}, movement.LineUnmatched},
		"of one that has failed":       {100, min, []movement.Candidate{failed}, movement.LineUnmatched},
		"a failed one beside its own":  {100, min, []movement.Candidate{failed, pending}, movement.LineMatched},
		"paid":                         {100, min, []movement.Candidate{succeeded}, movement.LineAgain},
		"being paid":                   {100, min, []movement.Candidate{taken}, movement.LineAgain},
		"of two":                       {100, min, []movement.Candidate{pending, expired}, movement.LineAmbiguous},
		"of two, one of which is paid": {100, min, []movement.Candidate{pending, succeeded}, movement.LineAmbiguous},
		"of two amounts":               {100, min, []movement.Candidate{open(101, movement.Pending), pending}, movement.LineMatched},
	} {
		among := slices.Clone(c.among)
		got, decided := movement.Rules{Quarantine: quarantine}.FindMatch(arrived(c.amount, c.at), among)
		if decided != (c.want != waits) || decided && got.State != c.want {
			t.Errorf("%s: %s, %v, want %s", name, got.State, decided, c.want)
		}
		if matched := c.want == movement.LineMatched; matched != (got.Movement != movement.ID{}) ||
			matched && (got.Movement != among[len(among)-1].ID || !among[len(among)-1].Taken) {
			t.Errorf("%s: it pays %s", name, got.Movement)
		}
		meant := slices.Contains([]string{
			"after it", "a day later", "of one that has failed", "before it, and it is unpaid", "a day before it", "before one that failed",
		}, name)
		if listed := c.want == movement.LineAmbiguous || c.want == movement.LineAgain || meant; listed != (got.Reason != "") {
			t.Errorf("%s: an exception for %q", name, got.Reason)
		}
	}
}

// TestALateLineNamesItsCollections says which collections an exception names: the
// newest of those that a payment may be meant for, and how many more there are.
func TestALateLineNamesItsCollections(t *testing.T) {
	t.Parallel()
	var among []movement.Candidate
	for i := range 7 {
		c := open(100, movement.Expired)
		c.CreatedAt, c.ExpiresAt = c.CreatedAt.Add(time.Duration(i)*time.Hour), c.ExpiresAt.Add(time.Duration(i)*time.Hour)
		among = append(among, c)
	}
	other, next := open(101, movement.Expired), open(100, movement.Succeeded)
	next.CreatedAt, next.ExpiresAt = epoch.Add(20*time.Hour), epoch.Add(21*time.Hour)
	got, _ := movement.Rules{Quarantine: quarantine}.FindMatch(arrived(100, 19*time.Hour), append(slices.Clone(among), other, next))
	if got.State != movement.LineUnmatched || got.Reason != movement.ReasonUnmatched || !strings.Contains(got.Detail, "2 more: 100 at 2026-") {
		t.Errorf("%+v", got)
	}
	for i, c := range append(among, other, next) {
		if named := strings.Contains(got.Detail, c.ID.String()); named != (i >= 2 && i < 7) {
			t.Errorf("collection %d is named: %v, in %q", i, named, got.Detail)
		}
	}
}

// TestAFailedCollectionEndsTheOneBefore: a payment in its life is not the one's again, and
// the exception names both.
func TestAFailedCollectionEndsTheOneBefore(t *testing.T) {
	t.Parallel()
	first, next := open(100, movement.Succeeded), open(100, movement.Failed)
	next.CreatedAt, next.ExpiresAt = epoch.Add(12*time.Minute), epoch.Add(42*time.Minute)
	for after, want := range map[time.Duration]movement.LineState{11 * time.Minute: movement.LineAgain, 15 * time.Minute: movement.LineUnmatched} {
		got, decided := movement.Rules{Quarantine: quarantine}.FindMatch(arrived(100, after), []movement.Candidate{first, next})
		if !decided || got.State != want {
			t.Errorf("after %v: %+v, %v, want %s", after, got, decided, want)
		}
		if want == movement.LineUnmatched && !(strings.Contains(got.Detail, first.ID.String()) && strings.Contains(got.Detail, next.ID.String())) {
			t.Errorf("not both are named: %s", got.Detail)
		}
	}
}

// TestTheNextCollectionEndsTheOne says whose a line is where an amount was soon another's:
// the one's until the next begins, and then the next one's; nobody's where clocks may
// differ.
func TestTheNextCollectionEndsTheOne(t *testing.T) {
	t.Parallel()
	const s, min = time.Second, time.Minute
	first, next := open(100, movement.Succeeded), open(100, movement.Pending)
	next.CreatedAt, next.ExpiresAt = epoch.Add(20*min), epoch.Add(50*min)
	late := first
	late.State, late.Taken = movement.Expired, false
	for name, c := range map[string]struct {
		at    time.Duration
		first movement.Candidate
		want  movement.LineState
		pays  movement.ID
	}{
		"before the next":               {18*min - s, first, movement.LineAgain, movement.ID{}},
		"before the next, late":         {18*min - s, late, movement.LineMatched, late.ID},
		"a little before the next":      {20*min - s, first, movement.LineAmbiguous, movement.ID{}},
		"when the next begins":          {20 * min, first, movement.LineMatched, next.ID},
		"in the quarantine of the one":  {40 * min, late, movement.LineMatched, next.ID},
		"in the quarantine of the next": {60 * min, late, "", movement.ID{}},
	} {
		for _, among := range [][]movement.Candidate{{c.first, next}, {next, c.first}} {
			got, decided := movement.Rules{Quarantine: quarantine}.FindMatch(arrived(100, c.at), among)
			if decided != (c.want != "") || decided && (got.State != c.want || got.Movement != c.pays) {
				t.Errorf("%s: %+v, %v, want %s", name, got, decided, c.want)
			}
		}
	}
}

// TestOddLinesMatchNothing holds what a line is that no collection can be paid by,
// although one asked for its amount.
func TestOddLinesMatchNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*movement.StatementLine)
		want   movement.LineState
		reason string
	}{
		"its rows differ":      {func(l *movement.StatementLine) { l.Differs = true }, movement.LineAmbiguous, movement.ReasonAmbiguous},
		"taken back":           {func(l *movement.StatementLine) { l.ReversedAt = epoch }, movement.LineReversed, ""},
		"differing, and back":  {func(l *movement.StatementLine) { l.Differs, l.ReversedAt = true, epoch }, movement.LineAmbiguous, movement.ReasonAmbiguous},
		"in another currency":  {func(l *movement.StatementLine) { l.Currency = "USD" }, movement.LineUnmatched, movement.ReasonUnmatched},
		"in nobody's currency": {func(l *movement.StatementLine) { l.Currency, l.Amount = "USD", 101 }, movement.LineUnmatched, ""},
	} {
		line := arrived(100, time.Minute)
		c.change(&line)
		got, decided := movement.Rules{Quarantine: quarantine}.FindMatch(line, []movement.Candidate{open(100, movement.Pending)})
		if !decided || got.State != c.want || got.Reason != c.reason || got.Movement != (movement.ID{}) {
			t.Errorf("%s: %+v, %v", name, got, decided)
		}
	}
}

// TestTwoLinesPayOneCollectionOnce says that a match takes its candidate.
func TestTwoLinesPayOneCollectionOnce(t *testing.T) {
	t.Parallel()
	among := []movement.Candidate{open(100, movement.Pending)}
	for i, want := range []movement.LineState{movement.LineMatched, movement.LineAgain} {
		if got, _ := (movement.Rules{Quarantine: quarantine}).FindMatch(arrived(100, time.Minute), among); got.State != want {
			t.Errorf("line %d: %s, want %s", i+1, got.State, want)
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
		line := arrived(101, 0)
		match, decided := movement.Rules{Quarantine: quarantine}.FindMatch(line, among)
		matched, possible := decided && match.State == movement.LineMatched, 0
		over := func(c movement.Candidate) bool { // another had begun before the line
			return slices.ContainsFunc(among, func(next movement.Candidate) bool {
				return next.Amount == c.Amount && next.CreatedAt.After(c.CreatedAt) && !next.CreatedAt.After(line.At)
			})
		}
		for _, c := range among {
			if !over(c) && c.Amount == line.Amount && !line.At.Before(c.CreatedAt.Add(-movement.Skew)) && !line.At.After(c.ExpiresAt.Add(quarantine)) {
				possible++
			}
			if matched && c.ID == match.Movement && (c.Amount != line.Amount || c.State == movement.Succeeded) {
				t.Fatalf("%+v is paid", c)
			}
		}
		ambiguous, unmatched := match.State == movement.LineAmbiguous, decided && match.State == movement.LineUnmatched
		if matched && possible != 1 || ambiguous && possible < 2 || unmatched && possible != 0 || decided && !unmatched && possible == 0 {
			t.Fatalf("%s of %d possible", match.State, possible)
		}
	})
}

// TestPollsOfCollections: nobody asks about a collection alone, unless readings of its
// account's statement have not ended it.
func TestPollsOfCollections(t *testing.T) {
	t.Parallel()
	const min, h = time.Minute, time.Hour
	collections, key := rules(t, manifest.Collection, movement.Pace{}), movement.Key{Kind: manifest.Collection}
	m := movement.Movement{Key: key, State: movement.Pending, CreatedAt: epoch, ExpiresAt: epoch.Add(30 * min)}
	if at := polls(m, collections, 0, 3); !slices.Equal(at, []time.Duration{3*h + 30*min, 24*h + 30*min, 30*h + 30*min}) {
		t.Errorf("pending: %v", at)
	}
	for _, ended := range []movement.State{movement.Expired, movement.Succeeded} {
		if after := polls(movement.Movement{Key: key, State: ended, UpdatedAt: epoch}, collections, 0, 20); len(after) != 0 {
			t.Errorf("%s: %v", ended, after)
		}
	}
}

// TestNextReading says when an account's statement is read again.
func TestNextReading(t *testing.T) {
	t.Parallel()
	const s, min, h = time.Second, time.Minute, time.Hour
	sale := func(age time.Duration) movement.Candidate {
		return movement.Candidate{State: movement.Pending, CreatedAt: epoch.Add(-age), ExpiresAt: epoch.Add(30*min - age)}
	}
	for name, c := range map[string]struct {
		polled, through time.Duration // ago
		pending         []movement.Candidate
		want            time.Duration
	}{
		"a new sale":                      {h, 0, []movement.Candidate{sale(0)}, 5 * s},
		"after as long again":             {h, 0, []movement.Candidate{sale(80 * s)}, 80 * s},
		"by a clock behind its":           {h, 0, []movement.Candidate{sale(-2 * s)}, 5 * s},
		"not beyond five minutes":         {h, 0, []movement.Candidate{sale(20 * min)}, 5 * min},
		"the newest wants it":             {h, 0, []movement.Candidate{sale(20 * min), sale(40 * s), sale(10 * min)}, 40 * s},
		"its life ends":                   {h, 0, []movement.Candidate{sale(29 * min)}, min + 2*s},
		"its life has just ended":         {h, 0, []movement.Candidate{sale(30*min + s)}, 5 * s},
		"its life is over, and told late": {h, 2 * h, []movement.Candidate{sale(2*h + 28*min)}, 2*min + 2*s},
		"it could have been told":         {h, 2 * h, []movement.Candidate{sale(3 * h)}, h},
		"a report that is broken":         {h, 400 * h, []movement.Candidate{sale(300 * h)}, h},
		"nothing is sold any more":        {10 * min, 0, nil, 20 * min},
		"nothing, since a moment":         {5 * s, 0, nil, 5 * min},
		"nothing for long":                {2 * h, 0, nil, 4 * h},
		"nothing for longer":              {50 * h, 0, nil, 6 * h},
	} {
		read := movement.Statement{PolledAt: epoch.Add(-c.polled), Through: epoch.Add(-c.through)}
		if got := read.NextReading(epoch, c.pending).Sub(epoch); got != c.want {
			t.Errorf("%s: after %v, want %v", name, got, c.want)
		}
	}
}
