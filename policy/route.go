package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// routeRef is the third question, which a set need not answer.
var routeRef = ast.MustParseRef("data.gerbang.route")

// Routes reports whether the rules say anything of the order of providers.
func (s *Set) Routes() bool { return s.routes }

// Route answers which providers an allowed request may go to, in the order in which they are tried. It is nil where the rules
// say nothing: then the gateway's own order holds. An empty list is none.
func (s *Set) Route(ctx context.Context, in AdmitInput) ([]string, error) {
	if !s.Routes() {
		return nil, nil
	}
	input, err := s.admitTerm(&in)
	if err != nil {
		return nil, err
	}
	answer, err := s.ask(ctx, &s.route, input)
	if err != nil || answer == nil {
		return nil, err
	}
	providers, err := readRoute(answer.Value)
	if err != nil {
		return nil, fmt.Errorf("policy: the answer of %s: %w", routeRef, err)
	}
	return providers, nil
}

// KeptRoute is Route where the answer is kept or the rules say nothing: nothing has to be evaluated. Nobody may change it.
func (s *Set) KeptRoute(in AdmitInput) ([]string, bool) {
	if !s.Routes() {
		return nil, true
	}
	if kept := s.keptOf(&in.Merchant, in.Mode, in.Operation, in.Now); kept != nil {
		if known := kept.route.known.Load(); known != nil {
			return *known, true
		}
	}
	return nil, false
}

// RouteAndKeep is Route for a merchant as its record is. The answer is kept as [Set.AdmitAndKeep] keeps a decision.
func (s *Set) RouteAndKeep(ctx context.Context, in AdmitInput) ([]string, error) {
	providers, err := s.Route(ctx, in)
	if err == nil && s.Routes() {
		study(ctx, s, &s.keeping(&in.Merchant, in.Mode, in.Operation, in.Now).route, &s.route, in, providers)
	}
	return providers, err
}

// readRoute reads the names of providers.
func readRoute(value ast.Value) ([]string, error) {
	list, ok := value.(*ast.Array)
	if !ok {
		return nil, fmt.Errorf("%s where a list of providers must be: a set has no order", ast.ValueName(value))
	}
	providers := make([]string, 0, list.Len())
	err := list.Iter(func(term *ast.Term) error {
		name, ok := term.Value.(ast.String)
		if !ok {
			return errors.New("a provider must be a string")
		}
		if slices.Contains(providers, string(name)) {
			return fmt.Errorf("%q is there twice", string(name))
		}
		providers = append(providers, string(name))
		return nil
	})
	return providers, err
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
