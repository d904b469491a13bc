package catalog

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// Document is a request's body, parsed once: the policy, the schema and the kind
// all see this one value. Numbers are json.Number; absent optional fields are left
// out.
type Document map[string]any

// Operation is one path of a snapshot.
type Operation struct {
	manifest.Operation
	Provider string             // "" for the gateway's own, the first where several serve it
	Manifest *manifest.Manifest // that declares it
	Rules    movement.Rules     // of the kind and the manifest; zero for a query
	Target   *Operation         // the money operation that a status or cancel is about
	Status   *Operation         // the status operation of a money operation, nil for none
	Products *Operation         // the query that lists what can be bought, nil for none
	// Unnamed says that nobody but an approval has brought its plugin here, so that no
	// merchant may move money by it before the policy names its path.
	Unnamed bool
	Lists   *Operation // the status operation whose movements the gateway's own list tells, nil for none
	// Candidates are a contract's operation as each of its providers serves it, in their
	// order; none where one provider has the path alone, and takes all that there is. Where
	// there are some, the operation itself is the contract's: it says what merchants may send
	// and what makes two requests the same.
	Candidates []*Operation

	request    *jsonschema.Schema
	result     *jsonschema.Schema
	properties []property
	nothing    json.RawMessage     // what a query asks that has no fields but those the gateway filters by
	answers    map[string]bool     // the properties of the response schema
	echoes     []string            // what its response repeats of a request
	results    []string            // what its response shows of the provider's result
	follows    map[string][]string // the same of a status or cancel, by the path of what made the movement
	shown      map[string]bool     // those of a query's answer or its items that merchants are shown, nil for all
}

type property struct {
	name     string
	fallback any // the default, nil for none
}

// Check validates a body against the request schema. It returns what is wrong
// with each field, or nothing.
func (op *Operation) Check(body Document) []fault.Field {
	err := op.request.Validate(map[string]any(body))
	if err == nil {
		return nil
	}
	return explain(err, op.names())
}

// WithDefaults returns the body with the schema's defaults filled in. The given
// body stays as it is.
func (op *Operation) WithDefaults(body Document) Document {
	filled := maps.Clone(body)
	if filled == nil {
		filled = Document{}
	}
	for _, p := range op.properties {
		if _, given := filled[p.name]; !given && p.fallback != nil {
			filled[p.name] = p.fallback
		}
	}
	return filled
}

// Question returns the body of a query as the provider gets it: with defaults, and
// without the fields that the schema does not declare or the gateway filters by.
func (op *Operation) Question(body Document) Document {
	question := op.WithDefaults(body)
	maps.DeleteFunc(question, func(name string, _ any) bool {
		return slices.Contains(op.Filter, name) || !slices.ContainsFunc(op.properties, func(p property) bool { return p.name == name })
	})
	return question
}

// Asked returns what a query asks in its canonical form, which is kept where it asks
// nothing.
func (op *Operation) Asked(body Document) (json.RawMessage, error) {
	if op.nothing != nil {
		return op.nothing, nil
	}
	return op.Canonical(op.Question(body))
}

// Declared names what the operation's manifest says of it, "" where there is none.
func (op *Operation) Declared() string {
	if op.Manifest == nil {
		return ""
	}
	return op.Manifest.Declared(op.Path)
}

// DeclaredAs tells whether the operation of another snapshot is served by the same
// providers, each of which declares the same of it and of what it buys from.
func (op *Operation) DeclaredAs(other *Operation) bool {
	same := func(a, b *Operation) bool { return a.Provider == b.Provider && a.Declared() == b.Declared() }
	if op.Products != nil && other.Products != nil && !same(op.Products, other.Products) {
		return false
	}
	return slices.EqualFunc(op.Serving(), other.Serving(), same)
}

// ReferenceOf returns the reference that the body carries, or "".
func (op *Operation) ReferenceOf(body Document) string {
	field := op.ReferenceField()
	if field == "" {
		return ""
	}
	reference, _ := body[field].(string)
	return reference
}

// AmountOf returns the body's amount. The schema has already checked that it is a
// whole number in range, so an error is a fault of the manifest.
func (op *Operation) AmountOf(body Document) (money.Amount, error) {
	number, ok := body[op.AmountField()].(json.Number)
	if !ok {
		return 0, fmt.Errorf("operation %s: the body has no amount at %s", op.Path, op.Amount)
	}
	return money.Parse(number.String())
}

// HasAmount reports whether the body has an amount.
func (op *Operation) HasAmount(body Document) bool {
	_, given := body[op.AmountField()]
	return op.AmountField() != "" && given
}

// DestinationOf names where a transfer goes, by the request's own words.
func (op *Operation) DestinationOf(body Document) string {
	names := op.DestinationFields()
	words := make([]string, len(names))
	for i, name := range names {
		words[i], _ = body[name].(string)
	}
	return strings.Join(words, "/")
}

// PolicyFields returns the properties of the body that policies may see.
func (op *Operation) PolicyFields(body Document) map[string]any {
	fields := make(map[string]any, len(op.Fields))
	for _, name := range op.Fields {
		if value, given := body[name]; given {
			fields[name] = value
		}
	}
	return fields
}

// Echoes returns the request's properties that this operation's answer repeats. For
// a status or cancel they are those of the operation that it is about.
func (op *Operation) Echoes() []string { return op.echoes }

// echoing are those of a request's properties that the answer has, too.
func (op *Operation) echoing(properties []string) []string {
	return slices.DeleteFunc(slices.Clone(properties), func(name string) bool { return !op.answers[name] })
}

// Results are the properties of the provider's result that an answer about a movement of
// the operation shows: that of the operation itself, of its status or of its cancel.
func (op *Operation) Results(asked *Operation) []string {
	if asked == op {
		return op.results
	}
	return asked.follows[op.Path]
}

// Answers reports whether the response schema has a property.
func (op *Operation) Answers(name string) bool { return op.answers[name] }

// CheckResult validates a provider's answer against the result schema. The error names
// the first things that are wrong: an answer may have as many as it likes.
func (op *Operation) CheckResult(result json.RawMessage) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(result))
	if err != nil {
		return fmt.Errorf("result of %s: %w", op.Path, err)
	}
	if err := op.result.Validate(value); err != nil {
		return fmt.Errorf("result of %s: %w", op.Path, brief(err))
	}
	return nil
}

func (op *Operation) names() []string {
	names := make([]string, len(op.properties))
	for i, p := range op.properties {
		names[i] = p.name
	}
	return names
}

func readProperties(schema json.RawMessage) ([]property, error) {
	var object struct {
		Properties map[string]struct {
			Default any `json:"default"`
		} `json:"properties"`
	}
	decoder := json.NewDecoder(bytes.NewReader(schema))
	decoder.UseNumber()
	if err := decoder.Decode(&object); err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	properties := make([]property, 0, len(object.Properties))
	for name, p := range object.Properties {
		properties = append(properties, property{name: name, fallback: p.Default})
	}
	return properties, nil
}

// EventsPath is where a merchant reads its events. The operation is the gateway's
// own and has no provider.
const EventsPath = "/events"

// BalancePath is where a merchant reads its balance. It too has no provider.
const BalancePath = "/balance"

//go:embed own.json
var ownDocument []byte

// Own reports whether the gateway answers an operation by itself.
func (op *Operation) Own() bool { return op.Provider == "" }

// ownManifest declares the gateway's own operations as a plugin declares its own,
// so that they pass the same checks and stand in the same document.
func ownManifest() (*manifest.Manifest, error) { return manifest.Parse(ownDocument) }

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
	for _, whole := range manifest.ContractOperations(implementers[0].Implements) {
		serving := slices.DeleteFunc(slices.Clone(implementers), func(m *manifest.Manifest) bool {
			_, has := m.Operation(whole.Path)
			return !has
		})
		if len(serving) == 0 { // nobody has what is optional
			continue
		}
		shared, err := compileShared(whole, serving)
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
		declared, _ := m.Operation(whole.Path) // these are those that have it
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
		if op.Quote || moves && !rules.Routed && !rules.Follows || !moves && op.Kind != "" {
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
			return !has && !op.Optional
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
