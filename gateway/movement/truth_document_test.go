package movement_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

var update = flag.Bool("update", false, "write the golden files")

const golden = "TRUTH.md"

func TestTruthGolden(t *testing.T) {
	got := document(pages(t))
	if *update { // before the tests that run in parallel, so that none that fails hides the difference
		if err := os.WriteFile(golden, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Parallel()
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the table is not %s any more; look at the difference after go test ./gateway/movement -update", golden)
	}
}

const preface = `# The truth table

What ` + "`movement.Apply`" + ` does with every fact, for every kind, state and situation. The table is written by
` + "`go test ./gateway/movement -update`" + `, and the tests fail where it is out of date. It says what the code does today; cells that an
engineer would stop at are marked **[n]**, and the list below their section says why.

How to read it:

- A *fact* is what a source says. Sources: the *call* that submitted the movement, a *lookup* (a poll), a *notification*, the
  *statement* of an account, the merchant's *cancel*, *operators* (an override) and the *clock*. The brackets say how it is said;
  without brackets the row is about every way that is not among *in every state*.
- *If* tells the situation; an empty cell is any. *Lookups resubmit* is a manifest whose lookup sends the same request again.
- **→** is a new state, written to the history. *Answer kept*: the creation has its first answer from now on, unless it has one.
  *Callback* is the event that the merchant is sent. *Exception* is the reason under which the fact waits for a person. *Nothing* is
  nothing at all.
- Every change is guarded by what was seen: if the movement has moved meanwhile, or somebody has begun to poll it, the fact is applied
  again, to what stands then; but a *not found* proves nothing any more.
- Late money is recorded once, and so is each return, and that it was undone: a record is guarded by all that was seen before it.
- Facts that the gateway never makes for a kind are left out: a call has no room for a currency, and an order's refusal is a failure.
`

// page is a section as the document has it.
type page struct {
	section
	tables []table
	rest   *page // that says the rest, nil for none
}

func pages(t testing.TB) []*page {
	t.Helper()
	var all []*page
	for _, s := range sections(t) {
		p := &page{section: s}
		if s.title == billed {
			p.rest = all[len(all)-1]
			p.tables = s.beside(&p.rest.section)
		} else {
			p.tables = s.tables()
		}
		all = append(all, p)
	}
	return all
}

// document is the whole of TRUTH.md.
func document(pages []*page) []byte {
	var b bytes.Buffer
	b.WriteString(preface)
	for _, p := range pages {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", p.title, p.about)
		if p.rest == nil {
			b.WriteString(p.diagram())
		}
		b.WriteString(p.text())
	}
	return b.Bytes()
}

// text is the table of a section, and its odd cells.
func (p *page) text() string {
	var b strings.Builder
	var odd []string
	mark := func(r row) string {
		if r.odd == "" {
			return ""
		}
		if !slices.Contains(odd, r.odd) {
			odd = append(odd, r.odd)
		}
		return fmt.Sprintf(" **[%d]**", slices.Index(odd, r.odd)+1)
	}
	b.WriteString("\n| fact | if | what happens |\n| --- | --- | --- |\n")
	var before []told
	for _, t := range p.tables {
		fmt.Fprintf(&b, "| %s | | |\n", t.title())
		for _, r := range t.rows {
			fmt.Fprintf(&b, "| %s | %s | %s%s |\n", p.named(r.facts, before), r.where, r.means, mark(r))
		}
		if t.states == nil {
			for _, r := range t.rows {
				before = append(before, r.facts...)
			}
		}
	}
	if odd != nil {
		fmt.Fprintf(&b, "\nOdd cells of *%s*:\n\n", p.title)
	}
	for i, why := range odd {
		fmt.Fprintf(&b, "%d. %s\n", i+1, why)
	}
	return b.String()
}

func (t table) title() string {
	if t.states == nil {
		return "**in every state**"
	}
	var names []string
	for _, state := range t.states {
		names = append(names, "**"+string(state)+"**")
	}
	title := strings.Join(names, ", ")
	if t.as != "" {
		title += ": as *" + t.as + "*, but for"
	}
	return title
}

// diagram draws the transitions of the rules, with the facts that make them.
func (s section) diagram() string {
	var b strings.Builder
	b.WriteString("\n```mermaid\nstateDiagram-v2\n    [*] --> submitting: reserved\n")
	var never []string
	cells := s.cells()
	for _, from := range s.states() {
		for _, to := range states {
			if !slices.Contains(s.rules.From[to], from) {
				continue
			}
			label := s.causes(cells, from, to)
			if label == "" {
				never = append(never, string(from)+" to "+string(to))
				label = "no fact"
			}
			fmt.Fprintf(&b, "    %s --> %s: %s\n", from, to, label)
		}
	}
	b.WriteString("```\n")
	if never != nil {
		fmt.Fprintf(&b, "\nThe rules allow a move that no fact makes: %s.\n", strings.Join(never, ", "))
	}
	return b.String()
}

// causes are the words that make a move, "" where none does.
func (s section) causes(cells []cell, from, to movement.State) string {
	switch to {
	case movement.Submitting:
		return "reserved again"
	case movement.Acknowledged:
		return "its merchant reads Pending"
	default:
	}
	var words []string
	for _, c := range cells {
		if c.state == from && c.to == to && !slices.Contains(words, c.fact.says) {
			words = append(words, c.fact.says)
		}
	}
	return strings.Join(words, ", ")
}

// named are facts in few words: by source, status, and how it is said, where that is
// not every way that was not named before.
func (s section) named(facts, before []told) string {
	type status struct{ sources, text string }
	left := slices.DeleteFunc(s.facts(), func(c told) bool { return slices.ContainsFunc(before, c.is) })
	var statuses []status
	for _, source := range distinct(facts, func(c told) (movement.Source, bool) { return c.source, true }) {
		for _, says := range distinct(facts, func(c told) (string, bool) { return c.says, c.source == source }) {
			text := says
			if hows := waysOf(facts, source, says); len(hows) < len(waysOf(left, source, says)) || len(hows) == 1 && hows[0] != "" {
				text += " (" + strings.Join(hows, ", ") + ")"
			}
			if i := slices.IndexFunc(statuses, func(have status) bool { return have.text == text }); i >= 0 {
				statuses[i].sources += ", " + string(source)
				continue
			}
			statuses = append(statuses, status{string(source), text})
		}
	}
	var texts []string
	for _, sources := range distinctOf(statuses, func(have status) string { return have.sources }) {
		var of []string
		for _, have := range statuses {
			if have.sources == sources {
				of = append(of, have.text)
			}
		}
		texts = append(texts, sources+": "+strings.Join(of, ", "))
	}
	return strings.Join(texts, "; ")
}

func waysOf(facts []told, source movement.Source, says string) []string {
	return distinct(facts, func(c told) (string, bool) { return c.how, c.source == source && c.says == says })
}

func distinct[T comparable](facts []told, of func(told) (T, bool)) []T {
	var all []T
	for _, c := range facts {
		if value, counts := of(c); counts && !slices.Contains(all, value) {
			all = append(all, value)
		}
	}
	return all
}

func distinctOf[S any, T comparable](some []S, of func(S) T) []T {
	var all []T
	for _, one := range some {
		if value := of(one); !slices.Contains(all, value) {
			all = append(all, value)
		}
	}
	return all
}
