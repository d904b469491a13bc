package movement_test

import (
	"slices"
	"strings"

	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// cell is what one fact means for a movement in one state and situation.
type cell struct {
	state     movement.State
	situation []string // one of each dimension
	fact      told
	to        movement.State // of a move, or ""
	means     string
	odd       string // why an engineer would stop at it, "" where nobody would
}

// cells are the whole table of a section.
func (s section) cells() []cell {
	var all []cell
	for _, state := range s.states() {
		for _, fact := range s.facts() {
			for _, chosen := range product(s.situations(state)) {
				all = append(all, s.cell(state, fact, chosen))
			}
		}
	}
	return all
}

func (s section) cell(state movement.State, fact told, chosen []situation) cell {
	_, _, t := s.apply(state, fact, chosen)
	c := cell{state: state, fact: fact, to: t.To, means: meaning(t)}
	for _, situation := range chosen {
		c.situation = append(c.situation, situation.name)
	}
	c.odd = oddityOf(s, c)
	return c
}

// apply applies a fact to a movement in a state and situation.
func (s section) apply(state movement.State, fact told, chosen []situation) (movement.Movement, movement.Fact, movement.Transition) {
	rules, m := s.rules, s.movement(state)
	for _, situation := range chosen {
		situation.change(&rules, &m)
	}
	f := fact.fact(&m)
	f.Source = fact.source
	if f.Now.IsZero() {
		f.Now = epoch.Add(seen)
	}
	return m, f, movement.Apply(rules, m, f)
}

const nothing = "nothing"

// postings are the same for both ways to pay from a balance.
var postings = map[ledger.Kind]string{
	ledger.Cost: "cost posted", ledger.Capture: "cost posted", ledger.Refund: "price given back", ledger.Release: "price given back",
	ledger.Reversal: "price and cost given back",
}

// meaning is a transition in words.
func meaning(t movement.Transition) string {
	var words []string
	say := func(so bool, word string) {
		if so {
			words = append(words, word)
		}
	}
	moves := t.Effect == movement.Move
	say(moves, "→ **"+string(t.To)+"**")
	say(t.Effect == movement.LateMoney, "late money recorded")
	say(t.Effect == movement.MoneyBack && t.Return.UndoneAt.IsZero(), "return recorded")
	say(t.Effect == movement.MoneyBack && !t.Return.UndoneAt.IsZero(), "return undone")
	say(t.Effect == movement.OtherAmount, "amount recorded")
	say(t.Effect == movement.Supplement, "added to the result")
	say(t.Effect == movement.Errored, "not found is proof sooner; polled on")
	say(t.Effect == movement.Renewal, "may be sent again; polled on")
	say(!moves && !t.MissUntil.IsZero(), "counted, polled once more")
	if t.Posting != nil {
		say(true, postings[t.Posting.Kind])
	}
	say(t.GivesBack > 0, "limits given back")
	say(t.GivesBack < 0, "limits used again")
	say(t.Releases, "amount free at once")
	say(t.Refusal != nil && t.Refusal.Unsent, "refusal kept: never sent")
	say(t.Refusal != nil && !t.Refusal.Unsent, "refusal kept")
	say(t.Answers, "answer kept")
	say(t.Tells == movement.EndedEvent, "callback: ended")
	say(t.Tells == movement.PaidLateEvent, "callback: paid late")
	say(t.Tells == movement.ReturnedEvent, "callback: returned")
	say(t.Tells == movement.AmountEvent, "callback: amount differs")
	say(t.Receipt, "receipt mailed")
	say(moves && !t.NextPoll.IsZero(), "polled on")
	say(moves && t.NextPoll.IsZero(), "no more polls")
	for _, cause := range t.Exceptions {
		words = append(words, "exception `"+cause.Reason+"`")
	}
	if len(words) == 0 {
		return nothing
	}
	return strings.Join(words, "; ")
}

// product is every choice of one situation a dimension.
func product(dimensions [][]situation) [][]situation {
	all := [][]situation{nil}
	for _, dimension := range dimensions {
		var next [][]situation
		for _, chosen := range all {
			for _, situation := range dimension {
				next = append(next, append(slices.Clone(chosen), situation))
			}
		}
		all = next
	}
	return all
}

// row is what many cells have in common.
type row struct {
	facts  []told
	where  string     // the situations, "" for any
	covers [][]string // the same, each
	means  string
	odd    string
}

func (r row) like(other row) bool {
	return r.where == other.where && r.means == other.means && r.odd == other.odd
}

// table is the rows of a state, or of every state.
type table struct {
	states []movement.State // none for every
	as     string           // the section or state that says the rest, or ""
	rows   []row
}

// tables are a section's: what is so in every state, and what is so in each.
func (s section) tables() []table {
	cells := s.cells()
	common := func(fact told) []row {
		var first []row
		for i, state := range s.states() {
			rows := s.rowsOf(cells, state, fact)
			if i == 0 {
				first = rows
			}
			if len(rows) != 1 || rows[0].where != "" || !rows[0].like(first[0]) {
				return nil
			}
		}
		return first
	}
	all := []table{{rows: s.collapse(common)}}
	for _, state := range s.states() {
		base := s.base(state)
		all = append(all, table{[]movement.State{state}, string(base), s.collapse(func(fact told) []row {
			rows := s.rowsOf(cells, state, fact)
			if common(fact) != nil || base != "" && alike(rows, s.rowsOf(cells, base, fact)) {
				return nil
			}
			return rows
		})})
	}
	return all
}

// beside are the tables of what another section does not say.
func (s section) beside(other *section) []table {
	var all []table
	cells, theirs := s.cells(), other.cells()
	for _, state := range s.states() {
		rows := s.collapse(func(fact told) []row {
			rows := s.rowsOf(cells, state, fact)
			if alike(rows, other.rowsOf(theirs, state, fact)) {
				return nil
			}
			return rows
		})
		same := slices.IndexFunc(all, func(t table) bool { return alike(t.rows, rows) })
		switch {
		case same >= 0:
			all[same].states = append(all[same].states, state)
		case rows != nil:
			all = append(all, table{[]movement.State{state}, other.title, rows})
		}
	}
	return all
}

// base is the state whose table is nearly that of another, "" for none.
func (s section) base(state movement.State) movement.State {
	switch state {
	case movement.Acknowledged:
		return movement.Submitting
	case movement.Expired:
		return movement.Failed
	default:
		return ""
	}
}

// collapse joins facts that mean the same where the same is true.
func (s section) collapse(rowsOf func(told) []row) []row {
	var rows []row
	for _, fact := range s.facts() {
		for _, r := range rowsOf(fact) {
			if i := slices.IndexFunc(rows, r.like); i >= 0 {
				rows[i].facts = append(rows[i].facts, fact)
				continue
			}
			rows = append(rows, r)
		}
	}
	return rows
}

// rowsOf are a fact's rows: one for each meaning that it has.
func (s section) rowsOf(cells []cell, state movement.State, fact told) []row {
	var rows []row
	for _, c := range cells {
		if c.state != state || !c.fact.is(fact) {
			continue
		}
		i := slices.IndexFunc(rows, func(r row) bool { return r.means == c.means && r.odd == c.odd })
		if i < 0 {
			i, rows = len(rows), append(rows, row{facts: []told{fact}, means: c.means, odd: c.odd})
		}
		rows[i].covers = append(rows[i].covers, c.situation)
	}
	for i := range rows {
		rows[i].where = s.where(state, rows[i].covers)
	}
	return rows
}

func alike(some, others []row) bool {
	return slices.EqualFunc(some, others, row.like)
}

func (c told) is(other told) bool {
	return c.source == other.source && c.says == other.says && c.how == other.how
}

// where names situations of a state: by dimension, if they are a product.
func (s section) where(state movement.State, some [][]string) string {
	var parts []string
	size := 1
	for i, dimension := range s.situations(state) {
		var names []string
		for _, situation := range dimension {
			if slices.ContainsFunc(some, func(chosen []string) bool { return chosen[i] == situation.name }) {
				names = append(names, situation.name)
			}
		}
		if size *= len(names); len(names) < len(dimension) {
			parts = append(parts, strings.Join(names, " or "))
		}
	}
	if size == len(some) {
		return strings.Join(parts, ", ")
	}
	var each []string
	for _, chosen := range some {
		each = append(each, strings.Join(chosen, ", "))
	}
	return strings.Join(each, "; or ")
}
