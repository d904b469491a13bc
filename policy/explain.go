package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// maxTrace bounds the lines of a trace.
const maxTrace = 2_000

// Explanation is a decision, what gave it, and what it cost.
type Explanation struct {
	Decision Decision
	// Because has an entry for each reason and rule that gave it, in the order of the reasons and then of the rules.
	Because []Because
	// Steps counts what was evaluated: the events of OPA's trace. The same set and input always take the same.
	Steps int
}

// Because is a reason and a rule that gave it.
type Because struct {
	Reason string
	Rule   Rule
}

// TraceLine is one step of an evaluation: what was done with which line. Values are left out.
type TraceLine struct {
	Op   string `json:"op"` // Enter, Eval, Fail, Exit or Redo
	Rule Rule   `json:"-"`
	File string `json:"file"`
	Line int    `json:"line"`
	Text string `json:"text"` // the line's source
}

// Explain decides as Admit does and names the rules that refused. It is several times as slow, so it is for what was
// refused and for people who ask.
func (s *Set) Explain(ctx context.Context, in AdmitInput) (Explanation, error) {
	w := &witness{table: s.table, reasons: map[string]map[int]bool{}, inner: map[string]int{}}
	decision, err := s.admitTraced(ctx, in, w, 0)
	explained := Explanation{Decision: decision, Steps: w.steps}
	if err != nil || decision.Allow {
		return explained, err
	}
	for _, reason := range decision.Reasons {
		explained.Because = append(explained.Because, s.because(w, reason)...)
	}
	return explained, nil
}

// because is the rules of one reason. A reason that no rule gave is the document's own: it answered no without one, or
// answered nothing.
func (s *Set) because(w *witness, reason string) []Because {
	var found []Because
	for number := range w.reasons[reason] {
		found = append(found, Because{reason, s.Rule(number)})
	}
	slices.SortFunc(found, func(a, b Because) int { return a.Rule.Number - b.Rule.Number })
	if len(found) > 0 {
		return found
	}
	if number := w.inner[reason]; number > 0 {
		return []Because{{reason, s.Rule(number)}}
	}
	return []Because{{reason, s.table.of(s.rules.GetRules(admitRef)[0])}}
}

// Trace decides as Admit does and tells every step of the rules, at most 2,000.
func (s *Set) Trace(ctx context.Context, in AdmitInput) ([]TraceLine, error) {
	w := &witness{table: s.table, keep: maxTrace, reasons: map[string]map[int]bool{}, inner: map[string]int{}}
	_, err := s.admitTraced(ctx, in, w, 0)
	return w.trace, err
}

// admitTraced is Admit under a witness, ended after a number of steps unless that is 0.
func (s *Set) admitTraced(ctx context.Context, in AdmitInput, w *witness, most int) (Decision, error) {
	input, err := s.admitTerm(&in)
	if err != nil {
		return Decision{Version: s.version}, err
	}
	answer, err := s.askTraced(ctx, &s.admit, input, w, most)
	if err != nil {
		return Decision{Version: s.version}, err
	}
	return s.decision(answer)
}

// askTraced evaluates a question under a witness.
func (s *Set) askTraced(ctx context.Context, q *question, input *ast.Term, w *witness, most int) (*ast.Term, error) {
	answer, err := s.evaluate(ctx, q, input, func(query *topdown.Query) *topdown.Query {
		return query.WithQueryTracer(w).WithCancel(budget{deadline{ctx}, w, most})
	})
	if most > 0 && w.steps > most {
		return nil, fmt.Errorf("policy: %s: %w", q.name, errTooManySteps)
	}
	return answer, err
}

// errTooManySteps ends an evaluation that costs more than it may.
var errTooManySteps = errors.New("more evaluation steps than a rule may take")

// budget ends an evaluation that takes too many steps.
type budget struct {
	deadline
	witness *witness
	most    int // 0 is no bound
}

// Cancelled reports whether the context is done or the steps are used up.
func (b budget) Cancelled() bool {
	return b.most > 0 && b.witness.steps > b.most || b.deadline.Cancelled()
}

// witness is a tracer: it counts steps, and notes which rule gave which reason.
type witness struct {
	table ruleTable
	steps int
	// reasons are what rules with many values (`contains`) gave. inner is, for what only a rule of one value gave, the first
	// that did.
	reasons map[string]map[int]bool
	inner   map[string]int
	// lines counts steps by place, where it is not nil. last is where the evaluation is.
	lines map[place]int
	last  place
	// keep is how many lines of trace are wanted.
	keep  int
	trace []TraceLine
}

// place is a line of a file.
type place struct {
	file string
	line int
}

// Enabled reports that events are wanted.
func (w *witness) Enabled() bool { return true }

// Config asks for events without the values of variables.
func (w *witness) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

// TraceEvent takes in one event.
func (w *witness) TraceEvent(event topdown.Event) {
	w.steps++
	if event.Location != nil && event.Location.File != "" {
		w.last = place{event.Location.File, event.Location.Row}
		if w.lines != nil {
			w.lines[w.last]++
		}
		w.write(event)
	}
	rule, ok := event.Node.(*ast.Rule)
	if !ok || event.Op != topdown.ExitOp || w.reasons == nil {
		return
	}
	number := w.table.number[rule]
	if rule.Head.RuleKind() == ast.MultiValue {
		if reason, ok := event.Plug(rule.Head.Key).Value.(ast.String); ok {
			if w.reasons[string(reason)] == nil {
				w.reasons[string(reason)] = map[int]bool{}
			}
			w.reasons[string(reason)][number] = true
		}
		return
	}
	if rule.Head.Value != nil {
		w.gave(event.Plug(rule.Head.Value).Value, number, 0)
	}
}

// gave notes the texts of a rule's one value: itself, its elements, or the reasons of an object.
func (w *witness) gave(value ast.Value, number, depth int) {
	switch value := value.(type) {
	case ast.String:
		if _, told := w.inner[string(value)]; !told {
			w.inner[string(value)] = number
		}
	case *ast.Array, ast.Set:
		if depth < 2 {
			_ = each(value, func(element ast.Value) error { w.gave(element, number, depth+1); return nil })
		}
	case ast.Object:
		if reasons := field(value, "reasons"); reasons != nil {
			w.gave(reasons, number, depth+1)
		}
	}
}

// write keeps a line of the trace, as long as some are wanted.
func (w *witness) write(event topdown.Event) {
	switch event.Op {
	case topdown.EnterOp, topdown.EvalOp, topdown.FailOp, topdown.ExitOp, topdown.RedoOp:
	default:
		return
	}
	if len(w.trace) >= w.keep {
		return
	}
	text, _, _ := strings.Cut(string(event.Location.Text), "\n")
	w.trace = append(w.trace, TraceLine{
		Op: string(event.Op), Rule: w.table.at(w.last.file, w.last.line), File: w.last.file, Line: w.last.line, Text: text,
	})
}
