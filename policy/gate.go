package policy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Check is what a set is held against before it becomes a version.
type Check string

const (
	// CheckCompile is that data.json has its shape and the rules compile.
	CheckCompile Check = "compile"
	// CheckTests is that the set's tests pass.
	CheckTests Check = "tests"
	// CheckBuiltins is that rules call only functions that a policy may use.
	CheckBuiltins Check = "builtins"
	// CheckAnswer is that each operation of each tier is answered, and in the right shape.
	CheckAnswer Check = "answer"
	// CheckMeaning is that the set fits the merchants and operations there are. An operator may know better.
	CheckMeaning Check = "meaning"
	// CheckCost is that no request takes more than maxSteps.
	CheckCost Check = "cost"
)

// maxSteps is how many events of OPA's trace one question may take. Steps are counted because time differs from run to run.
const maxSteps = 20_000

// slow is from when an evaluation is warned about. Time refuses nothing: it depends on the machine.
const slow = 50 * time.Millisecond

// Facts are what a set is held against. What is not known is left out, and what would need it is not checked.
type Facts struct {
	// Merchants are how many there are, by tier.
	Merchants map[string]int
	// KnownMerchants says of each id of Mentioned whether there is such a merchant.
	KnownMerchants map[string]bool
	// Operations are all that can be asked for.
	Operations []Offered
	// SKUs are the names of all products.
	SKUs map[string]bool
	// Active is the set in force. What is wrong with it already is only a warning in the next.
	Active *Set `json:"-"`
	// Recorded are requests that were made.
	Recorded []AdmitInput
	// Now is the time, to measure how long evaluations take.
	Now func() time.Time `json:"-"`
}

// Offered is an operation and what rules see of its requests.
type Offered struct {
	Operation
	Amount bool // a request may have one
	Quote  bool // the rules are asked again with a quote
	// MustBeNamed says that each request is refused until the set names the path: an approval alone has brought it.
	MustBeNamed bool
	// Providers are those that serve it, in their order, where one is chosen for each request.
	Providers []string
	// Fields are the JSON Schemas of the fields that rules see, by name.
	Fields map[string]json.RawMessage
	// Destination are the fields that say where money goes, in the merchant's own spelling.
	Destination []string
}

// Finding is something that a check found.
type Finding struct {
	Check   Check  `json:"check"`
	Warning bool   `json:"warning"` // else the set is refused
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Col     int    `json:"column,omitempty"`
	Reason  string `json:"reason"`
	// Confirm says that whoever puts the set in force must say that this is meant.
	Confirm bool `json:"confirm,omitempty"`
	// Merchants is how many it is about.
	Merchants int `json:"merchants"`
}

// String is the finding as editors like to read it.
func (f Finding) String() string {
	text := Problem{File: f.File, Line: f.Line, Col: f.Col, Message: ""}.String()
	if f.Warning {
		text += "warning: "
	}
	text += string(f.Check) + ": " + f.Reason
	switch f.Merchants {
	case 0:
		return text
	case 1:
		return text + " (1 merchant)"
	}
	return fmt.Sprintf("%s (%d merchants)", text, f.Merchants)
}

// Forcible reports whether an operator may let the set pass all the same.
func (f Finding) Forcible() bool { return f.Check == CheckMeaning }

// Refused reports whether any of the findings refuses the set. With force, those of meaning don't.
func Refused(findings []Finding, force bool) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool { return !f.Warning && !(force && f.Forcible()) })
}

// compileTime is how long a pushed set may take to compile, its tests included. A replica has two seconds more for it later.
const compileTime = 8 * time.Second

// Gate compiles a source and holds the set against the facts. The set is nil where it does not compile; whether what else
// was found refuses it is Refused's to say. Findings are in the order of their places. The error is the context's.
func Gate(ctx context.Context, source Source, facts Facts) (*Set, []Finding, error) {
	return gateWithin(ctx, source, facts, compileTime)
}

func gateWithin(ctx context.Context, source Source, facts Facts, within time.Duration) (*Set, []Finding, error) {
	compiling, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	set, check, err := compileWithin(compiling, source)
	wrong, ok := errors.AsType[*Error](err)
	if err != nil && !ok && compiling.Err() != nil && ctx.Err() == nil {
		slow := Problem{File: dataFile, Line: 1, Col: 1, Message: fmt.Sprintf("the set and its tests do not compile within %s", within)}
		return nil, faultFindings(CheckCost, []Problem{slow}, facts.total()), nil
	}
	if err != nil {
		if !ok {
			return nil, nil, err
		}
		return nil, faultFindings(check, wrong.Problems, facts.total()), nil
	}
	g := &gate{set: set, facts: facts, found: map[place]map[string]*finding{}, counted: map[string]bool{}, reached: map[place]bool{}}
	err = g.ask(ctx)
	if err == nil {
		g.meaning(source)
	}
	found := g.findings()
	switch {
	case tooLarge(ctx) && !Refused(found, true): // nobody can tell by which rule
		large := Problem{File: dataFile, Line: 1, Col: 1, Message: "the set " + ErrTooLarge.Error()}
		return nil, append(found, faultFindings(CheckCost, []Problem{large}, facts.total())...), nil
	case tooLarge(ctx):
		return nil, found, nil
	case err != nil:
		return nil, nil, fmt.Errorf("policy: the gate: %w", err)
	}
	return set, found, nil
}

// compileWithin is compile that ends with its context: OPA's compiler looks at none, and some sets take it hours. Then it
// goes on until the process ends.
func compileWithin(ctx context.Context, source Source) (*Set, Check, error) {
	type compiled struct {
		set   *Set
		check Check
		err   error
	}
	done := make(chan compiled, 1)
	go func() {
		set, check, err := compile(ctx, source)
		done <- compiled{set, check, err}
	}()
	var late <-chan time.Time
	for ended := ctx.Done(); ; {
		select {
		case c := <-done:
			return c.set, c.check, c.err
		case <-ended: // a test or an answer that was cut short says which it was
			const grace = time.Second
			ended, late = nil, time.After(grace)
		case <-late:
			return nil, CheckCost, fmt.Errorf("policy: %w", ctx.Err())
		}
	}
}

// Meaning holds a set that has passed the gate against the facts of now, in a fraction of the gate's time: limits and routes
// are asked for, decisions and tests are not. All it finds is of meaning. The error is the context's, or an *Error where the
// set does not compile.
func Meaning(ctx context.Context, source Source, facts Facts) ([]Finding, error) {
	set, _, err := untested(ctx, source)
	if err != nil {
		return nil, err
	}
	facts.Recorded = nil
	g := &gate{set: set, facts: facts, onlyMeaning: true, found: map[place]map[string]*finding{}, counted: map[string]bool{}, reached: map[place]bool{}}
	if err := g.ask(ctx); err != nil {
		return nil, fmt.Errorf("policy: the gate: %w", err)
	}
	g.meaning(source)
	return slices.DeleteFunc(g.findings(), func(f Finding) bool { return f.Check != CheckMeaning }), nil
}

// faultFindings are the findings of a set that does not compile. It is about every merchant.
func faultFindings(check Check, problems []Problem, merchants int) []Finding {
	var findings []Finding
	for _, p := range problems {
		of := check
		if name, ok := strings.CutPrefix(p.Message, "rego_type_error: "); ok {
			p.Message = name
		}
		if name, ok := strings.CutPrefix(p.Message, "undefined function "); ok && withheldFunction(name) {
			of, p.Message = CheckBuiltins, name+" is not for policies: they see no network, no clock, no chance and no environment"
		}
		findings = append(findings, Finding{
			Check: of, File: p.File, Line: p.Line, Col: p.Col, Reason: p.Message, Merchants: merchants,
		})
	}
	return findings
}

// total is how many merchants there are.
func (f Facts) total() int {
	sum := 0
	for _, n := range f.Merchants {
		sum += n
	}
	return sum
}

// gate collects findings about one set.
type gate struct {
	set   *Set
	facts Facts
	// onlyMeaning leaves decisions out.
	onlyMeaning bool
	found       map[place]map[string]*finding
	// counted are the quotas that count an operation, limited those without a limit of a merchant's own.
	counted, limited map[string]bool
	// allowed are the tiers of which a request was allowed that moves money.
	allowed map[string]bool
	// reached are the lines of rules that requests came to.
	reached map[place]bool
	// unanswered are, by tier, the operations without limits.
	unanswered map[string][]string
	// shown are, by part of merchants' own limits, the operations whose answers show it, and under false those whose don't.
	shown map[ownPart]map[bool][]string
}

// finding is a finding, and of which tiers' merchants. No tiers are all.
type finding struct {
	Finding
	tiers map[string]bool
	// about are the requests that showed it.
	about []string
}

// add notes a finding; the same one twice becomes one.
func (g *gate) add(check Check, warning bool, p Problem, tiers ...string) *finding {
	where := place{p.File, p.Line}
	if g.found[where] == nil {
		g.found[where] = map[string]*finding{}
	}
	f := g.found[where][p.Message]
	if f == nil {
		f = &finding{Finding: Finding{Check: check, Warning: warning, File: p.File, Line: p.Line, Col: p.Col, Reason: p.Message}, tiers: map[string]bool{}}
		g.found[where][p.Message] = f
	}
	for _, tier := range tiers {
		f.tiers[tier] = true
	}
	return f
}

// seen notes a request that shows a finding.
func (f *finding) seen(request string) {
	if !slices.Contains(f.about, request) {
		f.about = append(f.about, request)
	}
}

// findings are all of them, each with the number of merchants that it is about.
func (g *gate) findings() []Finding {
	var all []Finding
	for _, here := range g.found {
		for _, f := range here {
			if len(f.tiers) == 0 {
				f.Merchants = g.facts.total()
			}
			for tier := range f.tiers {
				f.Merchants += g.facts.Merchants[tier]
			}
			switch n := len(f.about); {
			case n > 1:
				f.Reason += fmt.Sprintf(", asked about %s and %d more", f.about[0], n-1)
			case n == 1:
				f.Reason += ", asked about " + f.about[0]
			}
			all = append(all, f.Finding)
		}
	}
	slices.SortFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col), cmp.Compare(a.Reason, b.Reason))
	})
	return all
}

// ask asks the set about every operation of every tier, with generated requests, and about the recorded ones.
func (g *gate) ask(ctx context.Context) error {
	g.allowed = map[string]bool{}
	g.unanswered, g.limited, g.shown = map[string][]string{}, map[string]bool{}, map[ownPart]map[bool][]string{}
	tiers := g.set.tiers()
	for _, tier := range slices.Sorted(maps.Keys(g.facts.Merchants)) {
		if g.facts.Merchants[tier] > 0 && !slices.Contains(tiers, tier) {
			tiers = append(tiers, tier)
		}
	}
	values := g.set.literals()
	offered := g.facts.Operations
	if len(offered) == 0 {
		offered = g.set.guessed(values)
	}
	for _, op := range offered {
		for _, tier := range tiers {
			limited, what := true, "a generated request of "+op.Path
			for i, in := range g.samples(op, tier, values) {
				if i < 2 { // limits depend on the merchant and the mode, and the first two samples differ in both
					got := g.set.tryLimits(ctx, in, ofRequest)
					g.fault(ctx, got, in, what)
					limited = limited && (got.fault != nil || len(got.limits.Rates) > 0)
					for _, quota := range got.limits.Quotas {
						g.counted[quota.Name] = true
						g.limited[quota.Name] = g.limited[quota.Name] || i == 0
					}
				}
				if !g.onlyMeaning {
					g.judge(ctx, in, what)
				}
				g.route(ctx, in, op.Providers, what)
				if err := ctx.Err(); err != nil {
					return err
				}
			}
			g.askOwn(ctx, op, tier)
			if !limited && len(g.facts.Operations) > 0 {
				g.unanswered[tier] = append(g.unanswered[tier], op.Path)
			}
		}
	}
	for _, in := range g.facts.Recorded {
		what := "a recorded request of " + in.Operation.Path
		g.fault(ctx, g.set.tryLimits(ctx, in, ofRequest), in, what)
		g.judge(ctx, in, what)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if g.onlyMeaning {
		return nil
	}
	return g.refusesAll(ctx, offered, values)
}

// judge asks for a decision on one request, and notes what is wrong with the answer and with its cost.
func (g *gate) judge(ctx context.Context, in AdmitInput, what string) {
	var begun time.Time
	if g.facts.Now != nil {
		begun = g.facts.Now()
	}
	got := g.set.tryAdmit(ctx, in, ofRequest)
	g.fault(ctx, got, in, what)
	if got.decision.Allow && slices.Contains(moneyKinds, in.Operation.Kind) {
		g.allowed[in.Merchant.Tier] = true
	}
	rule := g.set.rules.GetRules(admitRef)[0]
	switch {
	case got.fault != nil || ctx.Err() != nil:
	case !got.answered:
		g.add(CheckAnswer, false, at(rule.Location, "", admitRef.String()+" has no answer"), in.Merchant.Tier).seen(what)
	case g.facts.Now != nil && g.facts.Now().Sub(begun) > slow && g.slowAgain(ctx, in):
		g.add(CheckCost, true, at(rule.Location, "", fmt.Sprintf("this takes more than %s", slow)), in.Merchant.Tier).seen(what)
	}
}

// route holds the order of providers for a request against those there are.
func (g *gate) route(ctx context.Context, in AdmitInput, providers []string, what string) {
	if len(providers) == 0 || !g.set.Routes() {
		return
	}
	input, err := g.set.admitTerm(&in)
	if err != nil {
		return // the decision has told it
	}
	var got tried
	answer := g.set.tryOne(ctx, &got, &g.set.route, routeRef, input, ofRequest)
	if answer != nil {
		var named []string
		if named, err = readRoute(answer.Value); err != nil {
			got.misses(g.set, routeRef, err)
		}
		for _, name := range named {
			if !slices.Contains(providers, name) {
				place := at(g.set.rules.GetRules(routeRef)[0].Location, "", fmt.Sprintf("no provider of %s is named %q: there are %q", in.Operation.Path, name, providers))
				g.add(CheckMeaning, false, place, in.Merchant.Tier).seen(what)
			}
		}
	}
	g.fault(ctx, got, in, what)
}

// fault notes why there is no right answer.
func (g *gate) fault(ctx context.Context, got tried, in AdmitInput, what string) {
	for line := range got.lines {
		g.reached[line] = true
	}
	if got.fault != nil && (ctx.Err() == nil || tooLarge(ctx)) {
		g.add(got.check, false, *got.fault, in.Merchant.Tier).seen(what)
	}
}

// slowAgain asks once more: the machine may have been busy with something else.
func (g *gate) slowAgain(ctx context.Context, in AdmitInput) bool {
	begun := g.facts.Now()
	g.set.tryAdmit(ctx, in, ofRequest)
	return g.facts.Now().Sub(begun) > slow
}
