package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// Snapshot is everything the gateway offers at one moment.
type Snapshot struct {
	operations []*Operation
	byPath     map[string]*Operation
	openAPI    []byte
}

// Build makes a snapshot of the gateway's own operations and the manifests'. Several
// manifests that implement one contract of payments share its paths, in their order. It
// refuses any other two operations with one path and kinds that this gateway does not
// serve, naming each.
func Build(manifests []*manifest.Manifest) (*Snapshot, error) {
	own, err := ownManifest()
	if err != nil {
		return nil, fmt.Errorf("catalog: %w", err)
	}
	s := &Snapshot{byPath: map[string]*Operation{}}
	faults := s.add("", own, "")
	for _, m := range manifests {
		sharing, shared := implementersOf(m, manifests), ""
		if len(sharing) > 0 {
			shared = m.Implements
		}
		if len(sharing) > 0 && sharing[0] == m {
			faults = append(faults, s.share(sharing)...)
		}
		faults = append(faults, s.add(m.Name, m, shared)...)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("catalog: %w", err)
	}
	for _, op := range s.operations {
		if !op.Routed() {
			s.linkOf(op) // a path of a provider's own is about what that one makes
			continue
		}
		op.link(func(path string) *Operation { return s.byPath[path] })
		for _, candidate := range op.Candidates {
			s.linkOf(candidate)
		}
	}
	if err := s.addLists(own); err != nil {
		return nil, fmt.Errorf("catalog: %w", err)
	}
	document, err := describe(s.operations)
	if err != nil {
		return nil, fmt.Errorf("catalog: OpenAPI: %w", err)
	}
	s.openAPI = document
	return s, nil
}

// linkOf links an operation to those of its provider.
func (s *Snapshot) linkOf(op *Operation) {
	op.link(func(path string) *Operation { return s.byPath[path].Shown(op.Provider) })
}

// link finds the operations that an operation names by their paths.
func (op *Operation) link(byPath func(path string) *Operation) {
	if op.Product != nil {
		op.Products = byPath(op.Product.List)
	}
	if target := op.StatusOf + op.CancelOf; target != "" {
		op.Target = byPath(target)
		op.echoes = op.echoing(op.Target.Echo)
		op.follow(byPath)
	}
	if op.StatusOf != "" {
		byPath(op.StatusOf).Status = op
		for _, path := range op.AlsoOf {
			byPath(path).Status = op
		}
	}
}

// add adds a manifest's operations to the snapshot, but for those of a contract that it
// shares, and returns the faults of those that it refuses.
func (s *Snapshot) add(provider string, m *manifest.Manifest, shared string) []error {
	var faults []error
	for _, declared := range m.Operations {
		if _, ofContract := manifest.ContractOperation(shared, declared.Path); ofContract {
			continue
		}
		op, err := compile(provider, m, declared)
		if err != nil {
			faults = append(faults, fmt.Errorf("provider %s: operation %s: %w", m.Name, declared.Path, err))
			continue
		}
		switch other, taken := s.byPath[op.Path]; {
		case taken && other.Own():
			faults = append(faults, fmt.Errorf("provider %s: operation %s: the path is the gateway's own", m.Name, op.Path))
			continue
		case taken:
			faults = append(faults, fmt.Errorf("providers %s and %s: both offer %s", other.Provider, m.Name, op.Path))
			continue
		}
		s.byPath[op.Path] = op
		s.operations = append(s.operations, op)
	}
	return faults
}

// MustBeNamed marks the money operations of a provider: each is refused until the policy
// names its path. Where others serve the path, too, it is none of those who may be
// chosen. It is for a snapshot that nobody uses yet.
func (s *Snapshot) MustBeNamed(provider string) {
	for _, op := range s.operations {
		if op.Kind == "" || op.Kind == manifest.Query {
			continue
		}
		if of, serves := op.Of(provider); serves {
			of.Unnamed = true
		}
		if op.Routed() {
			op.Unnamed = !slices.ContainsFunc(op.Candidates, func(c *Operation) bool { return !c.Unnamed })
		}
	}
}

// ByPath finds an operation.
func (s *Snapshot) ByPath(path string) (*Operation, bool) {
	op, ok := s.byPath[path]
	return op, ok
}

// Operations returns all operations: the gateway's own, then the others in the
// order of the manifests, then the lists of their movements.
func (s *Snapshot) Operations() []*Operation { return s.operations }

// OpenAPI returns the document that describes the snapshot, as JSON.
func (s *Snapshot) OpenAPI() []byte { return s.openAPI }

// Catalog holds the snapshot that is current.
type Catalog struct{ current atomic.Pointer[Snapshot] }

// New makes a catalog with its first snapshot.
func New(s *Snapshot) *Catalog {
	c := &Catalog{}
	c.current.Store(s)
	return c
}

// Current is the snapshot to use for one whole request.
func (c *Catalog) Current() *Snapshot { return c.current.Load() }

// Swap makes another snapshot current.
func (c *Catalog) Swap(s *Snapshot) { c.current.Store(s) }

// defaultEvery is the least time between two polls of one movement, unless the
// manifest asks for more.
const defaultEvery = 5 * time.Second

// defaultErrorSettlesWithin is how long after an error of the upstream's own nothing of
// the call can be under way any more, unless the manifest says otherwise.
const defaultErrorSettlesWithin = 5 * time.Second

// defaultBuysWithin is how long after send_by a resubmission may buy, unless the
// manifest says otherwise.
const defaultBuysWithin = time.Hour

// declaredRules are a kind's rules with what the manifest decides.
func declaredRules(rules movement.Rules, m *manifest.Manifest, declared manifest.Operation) movement.Rules {
	rules.Pace = movement.Pace{
		SettlesWithin:      time.Duration(m.SettlesWithin),
		ErrorSettlesWithin: cmp.Or(time.Duration(m.ErrorSettlesWithin), defaultErrorSettlesWithin),
		Every:              cmp.Or(time.Duration(m.LookupEvery), defaultEvery),
	}
	if rules.Resubmits = m.Lookup == manifest.LookupResubmit; rules.Resubmits {
		rules.ResubmitWithin, rules.BuysWithin = time.Duration(m.ResubmitWithin), cmp.Or(time.Duration(m.ResubmitBuysWithin), defaultBuysWithin)
	}
	rules.Signed = m.NotificationProof == manifest.Signed
	if rules.Flow == movement.MoneyIn && rules.EndedBy == movement.EndedByProvider {
		for _, after := range m.LookupsAfterSuccess {
			rules.Polls.Succeeded = append(rules.Polls.Succeeded, time.Duration(after))
		}
	}
	rules.Quarantine = time.Duration(m.ReportsLate) + movement.QuarantineBeyond
	rules.Timeout = time.Duration(declared.Timeout)
	return rules
}

// follow finds what a status or cancel shows of the results of those that it is about.
func (op *Operation) follow(byPath func(path string) *Operation) {
	op.follows = map[string][]string{}
	for _, path := range append([]string{op.Target.Path}, op.AlsoOf...) {
		made := byPath(path)
		names := made.Operation.Results(op.Response, false)
		op.follows[path] = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(made.Rules.Reports, name) }) // which the kind tells
	}
}

func compile(provider string, m *manifest.Manifest, declared manifest.Operation) (*Operation, error) {
	op := &Operation{Operation: declared, Provider: provider, Manifest: m}
	if declared.Kind != "" && declared.Kind != manifest.Query { // a query has no rules
		rules, served := movement.RulesOf(declared.Kind)
		if !served {
			return nil, fmt.Errorf("kind %s is not served by this gateway", declared.Kind)
		}
		op.Rules = declaredRules(rules, m, declared)
		op.results = declared.Results(declared.Response, true)
	}
	var err error
	if op.request, err = manifest.CompileSchema("request", declared.Request); err != nil {
		return nil, err
	}
	if declared.Result != nil {
		if op.result, err = manifest.CompileSchema("result", declared.Result); err != nil {
			return nil, err
		}
	}
	if op.properties, err = readProperties(declared.Request); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(op.properties, func(p property) bool { return !slices.Contains(op.Filter, p.name) }) {
		if op.nothing, err = op.Canonical(Document{}); err != nil {
			return nil, err
		}
	}
	if op.shown, err = shownOf(declared.Response); err != nil {
		return nil, err
	}
	answers, err := readProperties(declared.Response)
	if err != nil {
		return nil, err
	}
	op.answers = map[string]bool{}
	for _, p := range answers {
		op.answers[p.name] = true
	}
	op.echoes = op.echoing(declared.Echo)
	return op, nil
}
