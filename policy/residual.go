package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// Unknown says what is not known of a request.
type Unknown struct {
	Body  bool // amount, fields, parties and quote
	Clock bool // the time
}

// Residual is what a set makes of a request of which not all is known.
type Residual struct {
	// Decision is the answer, where Known says that it depends on nothing that is unknown.
	Decision Decision
	Known    bool
	// Rest is what is left to evaluate, as a text. Two sets that leave the same text decide alike, whatever is unknown.
	Rest string
}

// Residual decides as far as it can be decided without what is unknown.
func (s *Set) Residual(ctx context.Context, in AdmitInput, unknown Unknown) (Residual, error) {
	rest, known, err := s.rest(ctx, &s.admit, in, unknown)
	if err != nil || !known {
		return Residual{Rest: rest}, err
	}
	// Whatever the unknown is, the answer is the same: also where there is none of it.
	if unknown.Body {
		in.Amount, in.Fields, in.Quote, in.Parties = nil, nil, nil, Parties{}
	}
	decision, err := s.Admit(ctx, in)
	return Residual{Decision: decision, Known: err == nil}, err
}

// rest is what is left to evaluate of a question without what is unknown, or that nothing is left that reads it: then the
// answer is known.
func (s *Set) rest(ctx context.Context, q *question, in AdmitInput, unknown Unknown) (rest string, known bool, err error) {
	input := ast.NewObjectWithCapacity(4)
	input.Insert(termMerchant, in.Merchant.term(in.Now))
	input.Insert(termMode, ast.StringTerm(in.Mode))
	input.Insert(termOperation, s.operation(in.Operation))
	s.insertLists(input, &in) // what is not known of a request is on none
	var unknowns []*ast.Term
	reference := func(names ...*ast.Term) {
		for _, name := range names {
			unknowns = append(unknowns, ast.NewTerm(ast.InputRootRef.Append(name)))
		}
	}
	if unknown.Body {
		reference(termAmount, termFields, termDestination, termProduct, termPayer, termQuote, termTold)
	} else if s.reads.fields {
		input.Insert(termFields, ast.NewTerm(ast.InternedEmptyObjectValue))
	}
	if unknown.Clock {
		reference(termNow, termClock)
	} else {
		input.Insert(termNow, ast.StringTerm(in.Now.UTC().Format(rfc3339)))
		input.Insert(termClock, clockTerm(in.Now))
	}
	if len(unknowns) == 0 {
		return "", true, nil
	}
	partials, support, err := topdown.NewQuery(q.body).
		WithQueryCompiler(q.compiler).WithCompiler(s.rules).WithStore(s.store).WithTransaction(s.txn).
		WithInput(ast.NewTerm(input)).WithUnknowns(unknowns).WithCancel(deadline{ctx}).WithMetrics(metrics.NoOp()).
		WithStrictBuiltinErrors(true).PartialRun(ctx)
	if ctx.Err() != nil {
		return "", false, fmt.Errorf("policy: %s: %w", q.name, ctx.Err())
	}
	if err != nil {
		return "", false, fmt.Errorf("policy: %s: %w", q.name, err)
	}
	reads, calls := readsInput(partials, support)
	if !reads && !calls {
		return "", true, nil
	}
	rest = textOf(partials, support)
	if calls { // what a rule or the data of this set says is not in the text
		rest += "\n# " + string(s.version)
	}
	return rest, false, nil
}

const rfc3339 = "2006-01-02T15:04:05Z07:00"

// readsInput reports whether what is left to evaluate reads anything unknown, and whether it asks rules or data of the set,
// which may: a function with an else is left as it is, and so is a comprehension that reads something unknown. The rules of
// support are no such: partial evaluation has made them, and all of them is in the text.
func readsInput(partials []ast.Body, support []*ast.Module) (reads, calls bool) {
	see := func(ref ast.Ref) bool {
		reads = reads || ref.HasPrefix(ast.InputRootRef)
		made := slices.ContainsFunc(support, func(m *ast.Module) bool { return ref.HasPrefix(m.Package.Path) })
		calls = calls || ref.HasPrefix(ast.DefaultRootRef) && !made
		return false
	}
	for _, body := range partials {
		ast.WalkRefs(body, see)
	}
	for _, module := range support {
		for _, rule := range module.Rules {
			for ; rule != nil; rule = rule.Else {
				ast.WalkRefs(rule.Head, see)
				ast.WalkRefs(rule.Body, see)
			}
		}
	}
	return reads, calls
}

// textOf is what is left to evaluate, in one order.
func textOf(partials []ast.Body, support []*ast.Module) string {
	rest := make([]string, 0, len(partials)+len(support))
	for _, body := range partials {
		rest = append(rest, body.String())
	}
	for _, module := range support {
		rest = append(rest, module.String())
	}
	slices.Sort(rest)
	return strings.Join(rest, "\n")
}
