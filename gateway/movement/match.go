package movement

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// Candidate is a collection of the account that a payment arrived on.
type Candidate struct {
	ID        ID
	Amount    money.Amount // payable
	State     State
	CreatedAt time.Time
	ExpiresAt time.Time
	Taken     bool // another payment pays it
}

// Skew is how much earlier than its collection was made a payment may seem to be:
// clocks differ, and statements tell whole seconds.
const Skew = 2 * time.Minute

// FindMatch finds the collection that a new statement line is for: the one that
// asked for exactly this amount, and in whose life, or the quarantine of its amount
// after it, the payment lies. The next collection of the amount ends that: what was
// paid before it began is the earlier one's, whenever it is read, and what was paid
// after is its own. Where clocks may differ it is neither. FindMatch notes among the
// candidates which of them the line pays.
//
// A line that is for none, but that could be a payment of what a collection asked for,
// by a payer who was slower than any quarantine, of a collection that has failed, in
// another currency or with a wrong time, is left to operators.
//
// It is false for a line that can't be matched yet: nobody knows whether the payer
// of its collection could pay at all, or it is late for a collection that is not
// known to have been unpaid in its life, or too early for one that may still be paid.
func (r Rules) FindMatch(line StatementLine, candidates []Candidate) (Match, bool) {
	match := Match{Payment: line.Payment, State: LineUnmatched}
	switch {
	case line.Differs: // as where a part of it was taken back
		return match.listed(line, LineAmbiguous, ReasonAmbiguous, "its lines do not agree"), true
	case !line.ReversedAt.IsZero(): // it was taken back before anybody was told of it
		match.State = LineReversed
		return match, true
	case line.Currency != "IDR":
		return Unmatched(line, candidates), true
	}
	found, several := candidateFor(line, candidates, r.Quarantine)
	switch {
	case several:
		return match.listed(line, LineAmbiguous, ReasonAmbiguous, "it may be for two collections"), true
	case found == nil && slices.ContainsFunc(candidates, func(c Candidate) bool { return line.tooEarlyFor(c) && line.maybeFor(c) && c.State.Open() }):
		return match, false
	case found == nil:
		return Unmatched(line, candidates), true
	case found.Taken || found.State == Succeeded:
		return match.listed(line, LineAgain, ReasonPaidAgain, "its collection is paid already"), true
	case found.State.Unknown(), line.At.After(found.ExpiresAt) && found.State != Expired:
		return match, false
	}
	found.Taken = true
	match.State, match.Movement = LineMatched, found.ID
	return match, true
}

// CandidatesBetween is when collections were made that lines of a span of time may
// be for, or be meant for.
func (r Rules) CandidatesBetween(first, last time.Time) (earliest, latest time.Time) {
	return first.Add(-max(r.Quarantine, MeantWithin) - r.Life), last.Add(MeantWithin)
}

// MeantWithin is how long after its life a payment of a collection's amount may still
// be meant for it: its payer kept the code. It is also how long before the collection was
// made: statements whose clock or time zone is wrong tell other times. Others are
// nobody's.
const MeantWithin = 24 * time.Hour

// tooEarlyFor tells whether a line tells a time at which nobody could pay a collection.
func (l StatementLine) tooEarlyFor(c Candidate) bool { return l.At.Before(c.CreatedAt.Add(-Skew)) }

// maybeFor tells whether a line may be meant for a collection. One that a payment with a
// right time has paid misses none with a wrong one.
func (l StatementLine) maybeFor(c Candidate) bool {
	if l.tooEarlyFor(c) && (c.Taken || c.State == Succeeded) {
		return false
	}
	return c.Amount == l.Amount && !l.At.Before(c.CreatedAt.Add(-MeantWithin)) && !l.At.After(c.ExpiresAt.Add(MeantWithin))
}

// QuarantineBeyond is how much longer than lines may be late an amount stays its
// collection's own: more than Skew, and time for an operator to see it.
const QuarantineBeyond = 10 * time.Minute

// FreeAfterPaid is how long after its line is in, and its collection knows, a paid
// amount stays its own: its payer is done, and a line of the next collection can't seem
// to be from before it, also by clocks that differ by Skew.
const FreeAfterPaid = 10 * time.Minute

// Reservation is the amount that a movement reserves, and until when, where lines of
// its account may be so late.
func (r Rules) Reservation(m Movement, late time.Duration) ReservedAmount {
	return ReservedAmount{Account: m.Account(), FreeAt: m.ExpiresAt.Add(late + QuarantineBeyond)}
}

// candidateFor is the only candidate that a line may be for, or that there are
// several. What has failed was never to be paid, as far as anybody knows; but whoever
// paid while it stood did not pay the collection before it.
func candidateFor(line StatementLine, candidates []Candidate, quarantine time.Duration) (found *Candidate, several bool) {
	var begun time.Time // of the last one before the line
	for _, c := range candidates {
		if c.Amount == line.Amount && !c.CreatedAt.After(line.At) && c.CreatedAt.After(begun) {
			begun = c.CreatedAt
		}
	}
	for i := range candidates {
		c := &candidates[i]
		if c.Amount != line.Amount || c.State == Failed || line.tooEarlyFor(*c) || line.At.After(c.ExpiresAt.Add(quarantine)) ||
			c.CreatedAt.Before(begun) {
			continue
		}
		if found != nil {
			return nil, true
		}
		found = c
	}
	return found, false
}

// mostNamed is how many collections the exception of a line names, the newest.
const mostNamed = 5

// Unmatched is the match of a line that is no collection's for certain: an exception
// that names those that it may be meant for, and none where there are none.
func Unmatched(line StatementLine, candidates []Candidate) Match {
	var meant []Candidate
	for _, c := range candidates {
		if line.maybeFor(c) {
			meant = append(meant, c)
		}
	}
	m := Match{Payment: line.Payment, State: LineUnmatched}
	if len(meant) == 0 {
		return m
	}
	slices.SortStableFunc(meant, func(a, b Candidate) int { return b.CreatedAt.Compare(a.CreatedAt) })
	names := make([]string, 0, mostNamed)
	for _, c := range meant[:min(len(meant), mostNamed)] {
		names = append(names, c.ID.String()+" ("+string(c.State)+")")
	}
	if more := len(meant) - len(names); more > 0 {
		names = append(names, strconv.Itoa(more)+" more")
	}
	why := "it pays no collection by itself"
	if line.Currency != "IDR" {
		why = "it is in " + line.Currency
	}
	return m.listed(line, LineUnmatched, ReasonUnmatched, why+", and may be meant for "+strings.Join(names, ", "))
}

// listed is the match of a line that needs a person.
func (m Match) listed(line StatementLine, state LineState, reason, text string) Match {
	m.State, m.Reason, m.Detail = state, reason, text+": "+line.Amount.String()+" at "+stamp(line.At)
	return m
}
