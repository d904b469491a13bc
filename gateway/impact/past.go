package impact

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/policy"
)

// Move is a movement: an admitted request of which the whole body is known.
type Move struct {
	At           time.Time // of its decision, the second
	Reserved     time.Time
	Merchant     string
	Live         bool
	Operation    string
	Version      string // of the policy
	Input        Input
	Lists        []string  // that hold something of it now
	NotSubmitted bool      // nothing was sent in the end
	FailedAt     time.Time // zero where it did not fail
}

// Known finds what entries of the past are about: an operation by its path, a merchant's record by its version, nil where
// it is not kept, and the lists that the merchant is on now.
type Known struct {
	Operation func(path string) Operation
	Record    func(merchant string, version int64) *policy.Merchant
	Lists     func(merchant string) []string
}

// cell is where counts, inputs and movements meet.
type cell struct {
	second    int64
	merchant  string
	live      bool
	operation string
}

func (c cell) compare(o cell) int {
	live := 0
	if c.live != o.live {
		live = 1
		if c.live {
			live = -1
		}
	}
	return cmp.Or(cmp.Compare(c.second, o.second), cmp.Compare(c.merchant, o.merchant), live, cmp.Compare(c.operation, o.operation))
}

// contents is what is known of a cell. Counts are by series, whatever their outcome.
type contents struct {
	decided, spent, later []count
	unused                map[decision.Series]uint32
	inputs                map[decision.Series][]decision.Input
	moves                 []Move
}

type count struct {
	series decision.Series
	n      uint32
}

// PastOf joins what was counted in a minute with the inputs and movements of that minute. Where a count has no input, its
// entry has none.
func PastOf(minute time.Time, counted []decision.Counted, inputs []decision.Input, moves []Move, known Known) []Past {
	cells := map[cell]*contents{}
	of := func(c cell) *contents {
		found := cells[c]
		if found == nil {
			found = &contents{unused: map[decision.Series]uint32{}, inputs: map[decision.Series][]decision.Input{}}
			cells[c] = found
		}
		return found
	}
	for _, c := range counted {
		for _, n := range c.Counts {
			at := of(cell{minute.Unix() + int64(n.Second), c.Merchant, c.Live, c.Operation})
			switch c.Outcome {
			case decision.Decided:
				at.decided = append(at.decided, count{c.Series, n.N})
			case decision.Spent:
				at.spent = append(at.spent, count{c.Series, n.N})
			case decision.Later:
				at.later = append(at.later, count{c.Series, n.N})
			case decision.Unused:
				of := c.Series
				of.Outcome = decision.Decided
				at.unused[of] += n.N
			}
		}
	}
	for _, in := range inputs {
		at := of(cell{in.At.Unix(), in.Merchant, in.Live, in.Operation})
		at.inputs[in.Series] = append(at.inputs[in.Series], in)
	}
	for _, m := range moves {
		at := of(cell{m.At.Unix(), m.Merchant, m.Live, m.Operation})
		at.moves = append(at.moves, m)
	}
	where := make([]cell, 0, len(cells))
	for c := range cells {
		where = append(where, c)
	}
	slices.SortFunc(where, cell.compare)
	var past []Past
	for _, c := range where {
		past = append(past, cells[c].past(c, known)...)
	}
	return past
}

// past is the entries of a cell.
func (c *contents) past(at cell, known Known) []Past {
	entry := Past{At: time.Unix(at.second, 0).UTC(), Merchant: at.merchant, Live: at.live, Operation: known.Operation(at.operation), Lists: known.Lists(at.merchant)}
	var out []Past
	add := func(s decision.Series, n uint32, unused bool, input *Input) {
		if n > 0 {
			p := entry
			p.Version, p.Record, p.Rule, p.Outcome = s.Version, known.Record(s.Merchant, s.Record), s.Rule, s.Outcome
			p.N, p.Unused, p.Input = n, unused, input
			out = append(out, p)
		}
	}
	kept := func(s decision.Series, n uint32, unused bool) (taken uint32) {
		inputs := c.inputs[s]
		for taken < n && len(inputs) > 0 {
			add(s, 1, unused, inputOf(inputs[0]))
			last := &out[len(out)-1]
			last.At, last.Unused, last.Lists = inputs[0].At, unused || inputs[0].Unused, inputs[0].Lists
			inputs, taken = inputs[1:], taken+1
		}
		c.inputs[s] = inputs
		return taken
	}
	for _, d := range c.decided {
		rest, unused := d.n, min(c.unused[d.series], d.n)
		if d.series.Rule.Refuses() {
			stored := c.inputs[d.series]
			rest -= kept(d.series, rest, false)
			for _, in := range stored[:len(stored)-len(c.inputs[d.series])] {
				if in.Unused {
					unused -= min(1, unused)
				}
			}
		} else {
			rest, unused = c.admitted(d.series, rest, unused, add, kept, &out)
		}
		unused = min(unused, rest)
		add(d.series, unused, true, nil)
		add(d.series, rest-unused, false, nil)
	}
	for _, m := range c.moves { // more than were counted: a replica was killed, or the log was full
		out = append(out, m.past(entry, nil))
	}
	for _, s := range c.spent {
		add(s.series, s.n, false, nil)
	}
	return out
}

// admitted adds the movements of an admitted series and what was refused later, and returns what is left to be added.
func (c *contents) admitted(
	s decision.Series, rest, unused uint32,
	add func(decision.Series, uint32, bool, *Input), kept func(decision.Series, uint32, bool) uint32, out *[]Past,
) (left, leftUnused uint32) {
	take := func(n uint32, wasUnused bool) {
		rest -= min(n, rest)
		if wasUnused {
			unused -= min(n, unused)
		}
	}
	others := c.moves[:0:0]
	for _, m := range c.moves {
		if rest == 0 || m.Version != s.Version {
			others = append(others, m)
			continue
		}
		add(s, 1, m.NotSubmitted, new(m.Input))
		last := &(*out)[len(*out)-1]
		last.At, last.FailedAt, last.Lists = m.within(), m.FailedAt, m.Lists
		take(1, m.NotSubmitted)
	}
	c.moves = others
	for i := range c.later {
		l := &c.later[i]
		n := min(l.n, rest)
		if l.series.Version != s.Version || l.series.Record != s.Record || n == 0 {
			continue
		}
		got := kept(l.series, n, true)
		add(l.series, n-got, true, nil)
		take(n, true)
		l.n -= n
	}
	return rest, unused
}

// within is when it was reserved, as far as that was in the second of its decision.
func (m Move) within() time.Time {
	last := m.At.Add(time.Second - time.Microsecond)
	switch {
	case m.Reserved.Before(m.At):
		return m.At
	case m.Reserved.After(last):
		return last
	}
	return m.Reserved
}

// past is the entry of a movement.
func (m Move) past(entry Past, record *policy.Merchant) Past {
	entry.At, entry.Version, entry.Record, entry.N, entry.Unused, entry.Input, entry.Lists, entry.FailedAt = m.within(), m.Version, record, 1, m.NotSubmitted, &m.Input, m.Lists, m.FailedAt
	return entry
}

// Before is the entry of a transfer from before the span.
func (m Move) Before(known Known, record *policy.Merchant) Past {
	p := m.past(Past{At: m.At, Merchant: m.Merchant, Live: m.Live, Operation: known.Operation(m.Operation)}, record)
	p.Before = true
	return p
}

func inputOf(in decision.Input) *Input {
	return &Input{Amount: in.Amount, Fields: in.Fields, Quote: in.Quote, Parties: in.Parties, Limit: in.Limit}
}
