package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

var (
	nameForm = regexp.MustCompile(`^[a-z][a-z0-9-]{0,39}$`)
	pathForm = regexp.MustCompile(`^(/[a-z0-9][a-z0-9_-]*)+$`)
)

// maxTimeout is the longest that a merchant may have to wait for one call.
const maxTimeout = Duration(30 * time.Second)

// maxSettles is the longest that something may be under way at an upstream. A gateway
// whose clock was set waits for as long before it takes anything for never made.
const maxSettles = Duration(10 * time.Minute)

// check collects every fault instead of stopping at the first, because an
// author mends them in one go.
func (m *Manifest) check() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }

	if m.Format != 1 {
		fault("manifest: is %d, this gateway reads 1", m.Format)
	}
	if !nameForm.MatchString(m.Name) {
		fault("name: %q must be lower-case letters, digits and hyphens, at most 40", m.Name)
	}
	if m.Version == "" || m.Title == "" {
		fault("version and title must be given")
	}
	if _, err := CompileSchema("connection", m.Connection); err != nil {
		faults = append(faults, err)
	}
	if m.Owner != "" && m.Owner != OwnerMerchant && m.Owner != OwnerPlatform {
		fault("owner: %q is neither merchant nor platform", m.Owner)
	}
	switch {
	case m.Lookup == LookupResubmit:
		faults = append(faults, m.checkResubmit()...)
	case m.Account != "":
		faults = append(faults, m.checkAccount("what another account does not know proves nothing")...)
	}
	if m.SettlesWithin > maxSettles || m.ErrorSettlesWithin > maxSettles {
		fault("settles_within and error_settles_within: must be at most %v", time.Duration(maxSettles))
	}
	if m.Statements != (m.ReportsLate > 0) {
		fault("reports_late: must be given with statements, and only with them")
	}
	if m.Mutations {
		faults = append(faults, m.checkAccount("the mutations of another account prove nothing")...)
	}
	if m.ReportsLateOf != "" {
		faults = append(faults, m.checkReportsLateOf()...)
	}
	if len(m.Operations) == 0 {
		fault("operations: there are none")
	}
	if why := m.References.check(); why != "" && slices.ContainsFunc(m.Operations, Operation.Money) {
		fault("references: %s", why)
	}
	seen := map[string]bool{}
	for _, op := range m.Operations {
		if seen[op.Path] {
			fault("operations: path %s stands twice", op.Path)
		}
		seen[op.Path] = true
		for _, err := range m.checkOperation(op) {
			fault("operation %s: %w", op.Path, err)
		}
	}
	return errors.Join(faults...)
}

func (m *Manifest) checkOperation(op Operation) []error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }

	if !pathForm.MatchString(op.Path) {
		fault("path: must look like /payments/create")
	}
	if op.Summary == "" {
		fault("summary: must be given")
	}
	if _, err := CompileSchema("request", op.Request); err != nil {
		faults = append(faults, err)
	}
	if _, err := CompileSchema("response", op.Response); err != nil {
		faults = append(faults, err)
	}
	if op.Kind != Query {
		faults = append(faults, checkUnasked(op)...)
	}
	switch roles := countSet(string(op.Kind), op.StatusOf, op.CancelOf); {
	case roles != 1:
		fault("exactly one of kind, status_of and cancel_of must be given")
	case op.Kind != "":
		faults = append(faults, m.checkKind(op)...)
	default:
		faults = append(faults, m.checkFollower(op)...)
	}
	return faults
}

func (m *Manifest) checkKind(op Operation) []error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }

	if !op.Kind.known() {
		fault("kind: %q is none of query, payment, collection, transfer, order", op.Kind)
		return faults
	}
	if op.Timeout <= 0 || op.Timeout > maxTimeout {
		fault("timeout: must be given, it bounds every call; at most %v", time.Duration(maxTimeout))
	}
	if _, err := CompileSchema("result", op.Result); err != nil {
		faults = append(faults, err)
	}
	if !op.Money() {
		return append(faults, m.checkQuery(op)...)
	}
	if m.Owner == OwnerPlatform && op.Kind != Order {
		fault("kind: only orders can be made on the platform's account")
	}
	if op.Kind == Collection && (!m.Statements || m.Lookup != LookupRead) {
		fault("statements: a collection is paid by a row of a statement, so there must be some, and lookup must be read")
	}
	if op.Kind == Collection {
		faults = append(faults, m.checkAccount("the payable amounts of one account must differ")...)
	}
	if m.Lookup != LookupRead && m.Lookup != LookupResubmit {
		fault("lookup: a provider with money operations must say read or resubmit")
	}
	if m.SettlesWithin < op.Timeout {
		fault("settles_within: must be at least the timeout of %v: a call under way is no proof of anything", time.Duration(op.Timeout))
	}
	shape, err := objectShape(op.Request)
	if err != nil {
		return append(faults, err)
	}
	if !shape.closed {
		fault("request: must have additionalProperties false, because unknown fields are refused where money moves")
	}
	if t := shape.types[op.ReferenceField()]; t != "string" {
		fault("reference: %q must point to a string property of the request", op.Reference)
	}
	if t := shape.types[op.AmountField()]; t != "integer" && (op.Amount != "" || op.Kind != Order) {
		fault("amount: %q must point to an integer property of the request", op.Amount)
	}
	for _, name := range append(op.DestinationFields(), op.HolderField()) {
		if t := shape.types[name]; t != "string" && (name != "" || op.Holder != "") {
			fault("holder and destination: %q is no string property of the request", name)
		}
	}
	if len(op.Destination) == 0 && op.Kind == Transfer {
		fault("destination: a transfer must say which properties of the request name where it goes")
	}
	faults = append(faults, m.checkQuote(op, shape)...)
	for _, name := range append(append([]string{}, op.Fields...), op.Echo...) {
		if _, ok := shape.types[name]; !ok {
			fault("fields and echo: %q is no property of the request", name)
		}
	}
	return faults
}

// checkFollower checks an operation that answers the status of, or ends, the movement of another.
func (m *Manifest) checkFollower(op Operation) []error {
	target, ok := m.Operation(op.StatusOf + op.CancelOf)
	if !ok || !target.Money() {
		return []error{fmt.Errorf("status_of, cancel_of: %q is no money operation of this manifest", op.StatusOf+op.CancelOf)}
	}
	for _, path := range op.AlsoOf {
		if also, ok := m.Operation(path); !ok || also.Kind != target.Kind || op.StatusOf == "" {
			return []error{fmt.Errorf("also_of: %q is no operation of the kind of status_of", path)}
		}
	}
	if op.CancelOf != "" && target.Kind != Payment {
		return []error{fmt.Errorf("cancel_of: only payments can be ended, %s is a %s", target.Path, target.Kind)}
	}
	if op.CancelOf != "" && op.Timeout <= 0 {
		return []error{errors.New("timeout: must be given, it bounds every call")}
	}
	shape, err := objectShape(op.Request)
	if err != nil {
		return []error{err}
	}
	if t := shape.types[op.ReferenceField()]; t != "string" {
		return []error{fmt.Errorf("reference: %q must point to a string property of the request", op.Reference)}
	}
	return nil
}

// CompileSchema compiles one JSON Schema (draft 2020-12, formats asserted).
// Name is used in errors.
func CompileSchema(name string, schema json.RawMessage) (*jsonschema.Schema, error) {
	if len(schema) == 0 {
		return nil, fmt.Errorf("%s: the schema is missing", name)
	}
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(schema)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	compiler.UseLoader(jsonschema.SchemeURLLoader{}) // a schema refers to itself alone
	location := "schema://" + name
	if err := compiler.AddResource(location, document); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	compiled, err := compiler.Compile(location)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return compiled, nil
}

type shape struct {
	closed bool
	types  map[string]string
}

// objectShape reads the part of a request schema that the gateway relies on:
// its top-level properties with their types, and whether it is closed.
func objectShape(schema json.RawMessage) (shape, error) {
	var object struct {
		Properties map[string]struct {
			Type any `json:"type"`
		} `json:"properties"`
		AdditionalProperties *bool `json:"additionalProperties"`
	}
	if err := json.Unmarshal(schema, &object); err != nil {
		return shape{}, fmt.Errorf("request: %w", err)
	}
	s := shape{
		closed: object.AdditionalProperties != nil && !*object.AdditionalProperties,
		types:  make(map[string]string, len(object.Properties)),
	}
	for name, p := range object.Properties {
		s.types[name], _ = p.Type.(string)
	}
	return s, nil
}

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// property is the name that a JSON pointer to a top-level property has.
func property(pointer string) string {
	name, ok := strings.CutPrefix(pointer, "/")
	if !ok || strings.Contains(name, "/") {
		return ""
	}
	if !strings.Contains(name, "~") {
		return name // as nearly all are: it is asked for on every request
	}
	return unescape.Replace(name)
}

func countSet(values ...string) int {
	n := 0
	for _, v := range values {
		if v != "" {
			n++
		}
	}
	return n
}
