package movement

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/manifest"
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

// span is between what amounts the row is that a transfer makes in its account's
// mutations: what was asked for, and that with any fee. Which fee the provider takes
// nobody knows: the one that its merchant is shown may be another.
type span struct{ least, most money.Amount }

func (m *Movement) span() span {
	return span{m.Amount, m.Amount + manifest.HighestFee(m.Amount)}
}

// OthersLike are the transfers of a movement's account that a row of its amounts may
// be: of the amounts from Least to Most, created since Since.
type OthersLike struct {
	Least, Most money.Amount
	Since       time.Time
}

// OthersLike says which transfers may have made a row that the movement may have made.
func (m *Movement) OthersLike() OthersLike {
	own := m.span()
	return OthersLike{m.Amount - manifest.HighestFee(m.Amount), own.most, m.CreatedAt.Add(-longestMutations)}
}

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
// each of the other transfers that have surely made a row has one, and there is no way
// to leave one for the movement, too. The text is for operators.
func (m *Movement) Absent(rules Rules, read Mutations, others []Movement) (text string, absent bool) {
	names := map[string]bool{}
	for _, other := range others {
		names[other.UpstreamReference()] = false
	}
	var rows []money.Amount
	for _, row := range read.Rows {
		if _, another := names[row.Reference]; another {
			names[row.Reference] = true
			continue
		}
		if row.Reference == m.UpstreamReference() {
			return "the account's mutations have a row of it", false
		}
		rows = append(rows, row.Amount) // a text that names no other may be the bank's own
	}
	var known []span
	for _, other := range others {
		if other.ID != m.ID && !names[other.UpstreamReference()] && other.listed(rules, read) {
			known = append(known, other.span())
		}
	}
	text = "the account's mutations since " + stamp(read.From) + " have " + strconv.Itoa(len(rows)) + " rows that name no transfer, and " +
		strconv.Itoa(len(known)) + " other transfers of such an amount are known to have one"
	switch {
	case !fit(known, rows):
		return text + ": some of these lack theirs, so the list proves nothing", false
	case fit(append(known, m.span()), rows):
		return text + ": one may be it", false
	}
	return text + ": none can be it", true
}

// listed tells whether a transfer that has succeeded surely has its row in mutations.
func (m *Movement) listed(rules Rules, read Mutations) bool {
	inside := !m.CreatedAt.Add(-ProviderSkew).Before(read.From)
	return inside && m.UpdatedAt.Add(rules.Pace.SettlesWithin+2*ClockSkew).Before(read.Begun)
}

// fit tells whether each span can have a row of its own. The span that ends first
// takes the least row that it can: the others that could take that row can take any
// greater one of the span's as well.
func fit(spans []span, rows []money.Amount) bool {
	spans, rows = slices.Clone(spans), slices.Clone(rows)
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.most, b.most) })
	slices.Sort(rows)
	for _, s := range spans {
		i, _ := slices.BinarySearch(rows, s.least)
		if i == len(rows) || rows[i] > s.most {
			return false
		}
		rows = slices.Delete(rows, i, i+1)
	}
	return true
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
	t = free(m, t)
	return move(rules, m, f, t.To, t)
}
