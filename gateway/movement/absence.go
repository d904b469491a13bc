package movement

import (
	"slices"
	"strconv"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
)

const (
	// ProviderSkew is how far a provider's clock may be from ours: where it says that
	// something has moved, that was no earlier and no later by more than this.
	ProviderSkew = 5 * time.Minute
	// longestMutations is how long before a movement its account's mutations are read
	// at most.
	longestMutations = 24 * time.Hour
)

// Mutation is a row of an account's own mutations: money that left it.
type Mutation struct {
	Reference string // ours, where the provider tells which movement it is; else ""
	Amount    money.Amount
}

// Mutations are an account's own mutations of a time, read completely.
type Mutations struct {
	From  time.Time
	Begun time.Time // when the reading began
	Rows  []Mutation
}

// Rowed are the amounts of a row that the movement may have made in its account's
// mutations: what was asked for, and that with the fee.
func (m *Movement) Rowed() []money.Amount {
	if m.Fee == 0 {
		return []money.Amount{m.Amount}
	}
	return []money.Amount{m.Amount, m.Amount + m.Fee}
}

// EqualsSince is from when on the transfers of its account count that a row of its
// amounts may be.
func (m *Movement) EqualsSince() time.Time { return m.CreatedAt.Add(-longestMutations) }

// MutationsFrom is from when on the account's mutations are read, to find a movement
// or to prove that it is not among them: before its creation by as much as the
// provider's clock may be behind. No other that a row may be lies across that moment,
// as far as it can be helped.
func (m *Movement) MutationsFrom(others []Movement) time.Time {
	from := m.CreatedAt.Add(-ProviderSkew)
	others = slices.Clone(others)
	slices.SortFunc(others, func(a, b Movement) int { return b.CreatedAt.Compare(a.CreatedAt) })
	for _, other := range others {
		begins := other.CreatedAt.Add(-ProviderSkew)
		if begins.Before(from) && !other.UpdatedAt.Add(ProviderSkew).Before(from) {
			from = begins
		}
	}
	return from
}

// Absent tells whether a movement is proven not to be among its account's mutations:
// there are no more rows that it may be than other transfers that have surely made
// one of these rows each. The text is for operators.
func (m *Movement) Absent(rules Rules, read Mutations, others []Movement) (text string, absent bool) {
	rowed := m.Rowed()
	named, rows, known := map[string]bool{}, 0, 0
	for _, row := range read.Rows {
		switch {
		case row.Reference == m.UpstreamReference():
			return "the account's mutations have a row of it", false
		case row.Reference != "":
			named[row.Reference] = true
		case slices.Contains(rowed, row.Amount):
			rows++
		}
	}
	for _, other := range others {
		inside := !other.CreatedAt.Add(-ProviderSkew).Before(read.From)
		listed := other.ProvenAfter(rules).Before(read.Begun) && other.UpdatedAt.Before(read.Begun)
		within := !slices.ContainsFunc(other.Rowed(), func(a money.Amount) bool { return !slices.Contains(rowed, a) })
		if other.ID != m.ID && inside && listed && within && !named[other.UpstreamReference()] {
			known++
		}
	}
	text = "of the account's mutations since " + stamp(read.From) + ", " + strconv.Itoa(rows) + " may be it, and " +
		strconv.Itoa(known) + " of these are other transfers"
	return text, rows <= known
}

// absent takes in that a movement is not among its account's mutations. With a
// "not found" that came often enough it proves that nothing was sent, if the mutations
// were read of its whole time, after nothing could be under way any more.
func absent(rules Rules, m Movement, f Fact) Transition {
	switch {
	case !m.State.Unknown(), !rules.NotFound.Mutations, !f.Proves, m.Misses < rules.NotFound.Times:
		return Transition{}
	case f.From.After(m.CreatedAt.Add(-ProviderSkew)), f.Begun.Before(m.ProvenAfter(rules)):
		return Transition{}
	}
	t := Transition{Detail: detail("source", f.source(), "from", stamp(f.From), "begun", stamp(f.Begun), "detail", f.Detail)}
	if rules.Resubmits {
		t.PolledBefore = m.PolledAt // a later poll may have sent it
	}
	t = free(m, t)
	return move(rules, m, f, t.To, t)
}
