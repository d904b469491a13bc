package movement_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// TestTruthIsWhole says that each combination is told by exactly one row of the
// document, and by no row that says otherwise.
func TestTruthIsWhole(t *testing.T) {
	t.Parallel()
	for _, p := range pages(t) {
		for _, c := range p.cells() {
			if found := p.find(c); len(found) != 1 || found[0].means != c.means || found[0].odd != c.odd || c.means == "" {
				t.Errorf("%s: %s, %s: %s (%s), %q: %s: told by %d rows: %+v", p.title, c.state, c.fact.source, c.fact.says, c.fact.how, c.situation, c.means, len(found), found)
			}
		}
	}
}

// find finds the rows that a reader finds for a cell: in its state's own table, in
// every state's, or where its state's table points.
func (p *page) find(c cell) []row {
	for _, own := range []bool{true, false} {
		for _, t := range p.tables {
			if own != slices.Contains(t.states, c.state) || !own && t.states != nil {
				continue
			}
			if rows := covering(t.rows, c); rows != nil {
				return rows
			}
		}
	}
	if p.rest != nil {
		return p.rest.find(c)
	}
	base := p.base(c.state)
	if base == "" {
		return nil
	}
	c.state = base
	return p.find(c)
}

// covering are the rows that are about a cell.
func covering(rows []row, c cell) []row {
	var found []row
	for _, r := range rows {
		in := r.where == "" || slices.ContainsFunc(r.covers, func(chosen []string) bool { return subset(c.situation, chosen) })
		if in && slices.ContainsFunc(r.facts, c.fact.is) {
			found = append(found, r)
		}
	}
	return found
}

// subset tells whether a row's situation is a cell's.
func subset(situation, chosen []string) bool {
	return !slices.ContainsFunc(chosen, func(name string) bool { return !slices.Contains(situation, name) })
}

// TestTruthSaysEverything says that the facts of the table have every word that a fact
// can have, from every source, and that the states are those of the rules.
func TestTruthSaysEverything(t *testing.T) {
	t.Parallel()
	said, sources := map[movement.Says]bool{}, map[movement.Source]bool{}
	for _, s := range sections(t) {
		for _, state := range s.states() {
			for _, fact := range s.facts() {
				m := s.movement(state)
				said[fact.fact(&m).Says], sources[fact.source] = true, true
			}
		}
		for to, from := range s.rules.From {
			for _, state := range append(slices.Clone(from), to) {
				if !slices.Contains(s.states(), state) {
					t.Errorf("%s: the table has no %s", s.title, state)
				}
			}
		}
	}
	for i, name := range wordsOfFacts(t) {
		if !said[movement.Says(i)] {
			t.Errorf("the table never says %s", name)
		}
	}
	for _, source := range []movement.Source{
		movement.FromCall, movement.FromLookup, movement.FromNotification, movement.FromStatement, movement.FromCancel, movement.FromOperators, movement.FromClock,
	} {
		if !sources[source] {
			t.Errorf("the table hears nothing from %s", source)
		}
	}
}

// wordsOfFacts are the names of all that a fact can say, as transition.go declares them.
func wordsOfFacts(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "transition.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Says") {
			names = append(names, spec.Names[0].Name)
		}
		return true
	})
	if len(names) == 0 {
		t.Fatal("transition.go declares nothing that a fact can say")
	}
	return names
}

// TestOddCellsExist says that every odd cell is there: one that was mended must leave
// the list.
func TestOddCellsExist(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, s := range sections(t) {
		for _, c := range s.cells() {
			seen[c.odd] = true
		}
	}
	for _, o := range oddities {
		if !seen[o.why] {
			t.Errorf("no cell is odd because: %s", o.why)
		}
	}
}

// TestPostings holds which posting each way to pay ends with, and that an order on its
// merchant's own connection does the same without one.
func TestPostings(t *testing.T) {
	t.Parallel()
	kinds := map[movement.Charge][]ledger.Kind{
		movement.Charged: {ledger.Cost, ledger.Refund, ledger.Reversal}, movement.Held: {ledger.Capture, ledger.Release, ledger.Reversal},
	}
	for _, s := range sections(t) {
		own := s
		own.charge = movement.Unpaid
		s.each(func(state movement.State, fact told, chosen []situation) {
			_, _, got := s.apply(state, fact, chosen)
			if got.Posting != nil && !slices.Contains(kinds[s.charge], got.Posting.Kind) {
				t.Errorf("%s: %s, %s: posts %s", s.title, state, fact.says, got.Posting.Kind)
			}
			if s.charge != movement.Charged {
				return
			}
			without, words := own.cell(state, fact, chosen), strings.Split(s.cell(state, fact, chosen).means, "; ")
			words = slices.DeleteFunc(words, func(word string) bool { return got.Posting != nil && word == postings[got.Posting.Kind] })
			if without.means != strings.Join(words, "; ") {
				t.Errorf("%s: %s, %s: unpaid: %s", s.title, state, fact.says, without.means)
			}
		})
	}
}

// each is everything that the table has a cell for.
func (s section) each(do func(movement.State, told, []situation)) {
	for _, state := range s.states() {
		for _, fact := range s.facts() {
			for _, chosen := range product(s.situations(state)) {
				do(state, fact, chosen)
			}
		}
	}
}

// TestTheTableHasEveryKind counts the kinds of the document.
func TestTheTableHasEveryKind(t *testing.T) {
	t.Parallel()
	for _, kind := range movement.Kinds() {
		if !slices.ContainsFunc(sections(t), func(s section) bool { return s.rules.Kind == kind }) {
			t.Errorf("%s is not in the table", kind)
		}
	}
	if _, served := movement.RulesOf(manifest.Query); served {
		t.Error("queries have movements")
	}
}

// TestTruthFollowsTheRules makes the change of gateway/README.md: transfers are looked up
// three times. The document must say what has changed, and where.
func TestTruthFollowsTheRules(t *testing.T) {
	t.Parallel()
	three := titled(t, "Transfer")
	three.rules.NotFound = movement.Proof{Times: 3, Apart: 30 * time.Second, Mutations: true}
	text := (&page{section: three, tables: three.tables()}).text()
	for _, row := range []string{
		"| lookup: not found (first proof, second proof, third proof) |  | counted, polled once more |",
		"| statement: absent from the mutations (after the third proof, read in time) |  | → **not_submitted**; limits given back; no more polls |",
		"| statement: absent from the mutations (after the third proof, read in time) |  | → **failed**; limits given back; refusal kept: never sent; callback: ended; no more polls |",
	} {
		if !strings.Contains(text, row) {
			t.Errorf("three lookups: the document has no row %s", row)
		}
	}
	if diagram := three.diagram(); !strings.Contains(diagram, "submitting --> not_submitted: not sent, absent from the mutations") {
		t.Errorf("three lookups: no proof is drawn: %s", diagram)
	}
	three = titled(t, "Payment")
	three.rules.NotFound.Times = 3
	text = (&page{section: three, tables: three.tables()}).text()
	for _, row := range []string{
		"| lookup: not found (first proof, second proof) |  | counted, polled once more |",
		"| lookup: not found (third proof) |  | → **not_submitted**; no more polls |",
	} {
		if !strings.Contains(text, row) {
			t.Errorf("three lookups of a payment: the document has no row %s", row)
		}
	}
}
