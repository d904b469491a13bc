package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// Routed reports whether the operation is a contract's, and a provider of it is chosen for
// each movement: of several, or of one that takes less than the contract.
func (op *Operation) Routed() bool { return len(op.Candidates) > 0 }

// Serving are the operation as each provider of its path serves it, itself where there
// is one.
func (op *Operation) Serving() []*Operation {
	if op.Routed() {
		return op.Candidates
	}
	return []*Operation{op}
}

// Providers names those that serve the path, in their order, where it is a contract's.
func (op *Operation) Providers() []string {
	var names []string
	for _, c := range op.Candidates {
		names = append(names, c.Provider)
	}
	return names
}

// Of is the operation as a provider serves it; false where that one does not serve the
// path. What only one provider has is that one's.
func (op *Operation) Of(provider string) (*Operation, bool) {
	if !op.Routed() {
		return op, op.Provider == provider
	}
	i := slices.IndexFunc(op.Candidates, func(c *Operation) bool { return c.Provider == provider })
	if i < 0 {
		return nil, false
	}
	return op.Candidates[i], true
}

// WaitsForRoute tells whether a provider serves a path beside others and takes nothing
// there unless a policy's route names it.
func (s *Snapshot) WaitsForRoute(provider string) bool {
	return slices.ContainsFunc(s.operations, func(op *Operation) bool {
		i := slices.IndexFunc(op.Candidates, func(c *Operation) bool { return c.Provider == provider })
		return i >= 0 && op.Candidates[i].Unnamed && (i > 0 || !op.Unnamed) // of newcomers alone the first takes all
	})
}

// Shown is the operation as a provider serves it, or as all do where that one does so no
// more: what it made is still told.
func (op *Operation) Shown(provider string) *Operation {
	if of, ok := op.Of(provider); ok {
		return of
	}
	return op
}

// Contract is the contract that the operation is of, "" for none.
func (op *Operation) Contract() string {
	if _, is := manifest.ContractOperation(op.Manifest.Implements, op.Path); !is {
		return ""
	}
	return op.Manifest.Implements
}

// OfProvider is an operation that a provider serves, whichever; false for none.
func (s *Snapshot) OfProvider(provider string) (*Operation, bool) {
	for _, op := range s.operations {
		if of, ok := op.Of(provider); ok {
			return of, true
		}
	}
	return nil, false
}

// share adds the operations of a contract that several manifests implement: each path
// once, as the contract has it, with the providers that serve it in their order.
func (s *Snapshot) share(implementers []*manifest.Manifest) []error {
	var faults []error
	for _, declared := range ofContract(implementers[0]) {
		whole, _ := manifest.ContractOperation(implementers[0].Implements, declared.Path)
		shared, err := compileShared(whole, implementers)
		if err == nil && s.byPath[whole.Path] != nil {
			err = fmt.Errorf("operation %s: provider %s offers it, too", whole.Path, s.byPath[whole.Path].Provider)
		}
		if err != nil {
			faults = append(faults, err)
			continue
		}
		s.byPath[whole.Path] = shared
		s.operations = append(s.operations, shared)
	}
	return faults
}

// compileShared is a contract's operation with its candidates. It waits as long as the
// slowest of them, and shows what any of them adds.
func compileShared(whole manifest.Operation, implementers []*manifest.Manifest) (*Operation, error) {
	var candidates []*Operation
	for _, m := range implementers {
		declared, _ := m.Operation(whole.Path) // a manifest that implements a contract has all of it
		candidate, err := compile(m.Name, m, declared)
		if err != nil {
			return nil, fmt.Errorf("provider %s: operation %s: %w", m.Name, whole.Path, err)
		}
		whole.Timeout = max(whole.Timeout, declared.Timeout)
		if whole.Response, err = joinProperties(whole.Response, declared.Response); err != nil {
			return nil, fmt.Errorf("provider %s: operation %s: response: %w", m.Name, whole.Path, err)
		}
		candidates = append(candidates, candidate)
	}
	first := implementers[0]
	shared, err := compile(first.Name, first, whole)
	if err != nil {
		return nil, fmt.Errorf("contract %s: operation %s: %w", first.Implements, whole.Path, err)
	}
	shared.Candidates = candidates
	return shared, nil
}

// joinProperties is a schema with the properties of another that it lacks.
func joinProperties(schema, other json.RawMessage) (json.RawMessage, error) {
	var keywords map[string]json.RawMessage
	if err := json.Unmarshal(schema, &keywords); err != nil {
		return nil, err
	}
	var ours map[string]json.RawMessage
	if given := keywords["properties"]; given != nil {
		if err := json.Unmarshal(given, &ours); err != nil {
			return nil, err
		}
	}
	var theirs struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(other, &theirs); err != nil {
		return nil, err
	}
	maps.Copy(theirs.Properties, ours)
	if len(theirs.Properties) == len(ours) {
		return schema, nil
	}
	joined, err := json.Marshal(theirs.Properties)
	if err != nil {
		return nil, err
	}
	keywords["properties"] = joined
	return json.Marshal(keywords)
}

// ofContract are the manifest's operations that are of the contract that it implements.
func ofContract(m *manifest.Manifest) []manifest.Operation {
	return slices.DeleteFunc(slices.Clone(m.Operations), func(op manifest.Operation) bool {
		_, is := manifest.ContractOperation(m.Implements, op.Path)
		return !is
	})
}

// routable reports whether several providers may serve the paths of the manifest's
// contract: where all that it makes is routed.
func routable(m *manifest.Manifest) bool {
	makes := false
	for _, op := range ofContract(m) {
		rules, moves := movement.RulesOf(op.Kind)
		if op.Quote || moves && !rules.Routed || !moves && op.Kind != "" {
			return false
		}
		makes = makes || moves
	}
	return makes
}

// implementersOf are the manifests that share a contract's paths with one, itself
// among them; none where it has the paths alone and takes all that the contract does.
func implementersOf(m *manifest.Manifest, all []*manifest.Manifest) []*manifest.Manifest {
	if m.Implements == "" || !routable(m) {
		return nil
	}
	sharing := slices.DeleteFunc(slices.Clone(all), func(other *manifest.Manifest) bool {
		return other.Implements != m.Implements || slices.ContainsFunc(ofContract(m), func(op manifest.Operation) bool {
			_, has := other.Operation(op.Path)
			return !has
		})
	})
	if len(sharing) == 0 || len(sharing) == 1 && !tightens(m) || !slices.Contains(sharing, m) {
		return nil
	}
	return sharing
}

// tightens reports whether a manifest takes less than its contract. Then the contract's
// paths are shared also where it has them alone: what another has made before is found by
// a repetition that this one would refuse.
func tightens(m *manifest.Manifest) bool {
	return slices.ContainsFunc(ofContract(m), func(op manifest.Operation) bool {
		whole, _ := manifest.ContractOperation(m.Implements, op.Path)
		ours, theirs := jsontext.Value(slices.Clone(op.Request)), jsontext.Value(slices.Clone(whole.Request))
		return ours.Canonicalize() != nil || theirs.Canonicalize() != nil || !bytes.Equal(ours, theirs)
	})
}

// described is the operation as merchants read of it: where one provider alone serves a
// contract's path, its bounds are all that there are.
func (op *Operation) described() *Operation {
	if len(op.Candidates) == 1 {
		return op.Candidates[0]
	}
	return op
}
