package manifest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	jsonx "github.com/go-json-experiment/json"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/seed-f006e74d/gerbang/sdk/money"
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

// versionForm is of what stands in logs, metrics and lists.
var versionForm = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.+_-]{0,39}$`)

// The bounds of texts, in bytes.
const (
	mostTitle       = 120
	mostDescription = 4000
	mostPath        = 100
	mostOperations  = 100
)

// mostAfterwards and longestAfterwards bound the lookups after a success.
const (
	mostAfterwards    = 10
	longestAfterwards = Duration(365 * 24 * time.Hour)
)

// checkAfterwards checks how the gateway hears what the upstream says unasked, and of what
// comes after a success.
func (m *Manifest) checkAfterwards(faults *Faults) {
	switch proof := m.NotificationProof; {
	case proof == "":
	case !m.Notifications:
		faults.add("/notification_proof", "is about notifications, which this provider has none of: set notifications, or leave it out")
	case proof != Signed && proof != Token:
		faults.add("/notification_proof", "is %q: say signed, where the upstream signs all that a notification says, or token", proof)
	}
	if m.Notifications && m.Lookup == LookupResubmit && m.NotificationProof != Signed {
		faults.add("/notification_proof", "must be signed with lookup resubmit: what proves nothing is looked up, and that would be to send it again")
	}
	switch after := m.LookupsAfterSuccess; {
	case len(after) == 0:
	case m.Lookup == LookupResubmit, m.Lookup == LookupNone:
		faults.add("/lookups_after_success", "needs lookup read: any other lookup is the same request again")
	case len(after) > mostAfterwards, !slices.IsSorted(after), after[0] < Duration(time.Minute), after[len(after)-1] > longestAfterwards:
		faults.add("/lookups_after_success", "must be at most %d times after the success, each longer than the one before, from 1m to a year", mostAfterwards)
	}
}

// check collects every fault instead of stopping at the first, because an
// author mends them in one go.
func (m *Manifest) check(faults *Faults) {
	if m.Format != format {
		faults.add("/manifest", "is %d, this gateway reads %d", m.Format, format)
	}
	if m.Needs < 0 {
		faults.add("/needs", "is %d: say which interface a gateway must have at least, or leave it out", m.Needs)
	}
	if !nameForm.MatchString(m.Name) {
		faults.add("/name", "%q must be lower-case letters, digits and hyphens, at most 40", m.Name)
	}
	if !versionForm.MatchString(m.Version) {
		faults.add("/version", "%q must be letters, digits, dots, hyphens, plus signs and underscores, at most 40", m.Version)
	}
	checkText(faults, "/title", m.Title, mostTitle)
	m.checkAfterwards(faults)
	if _, err := CompileSchema("connection", m.Connection); err != nil {
		faults.addSchema("/connection", err)
	} else if _, err := objectShape(m.Connection); err != nil || typeOf(m.Connection) != "object" {
		faults.add("/connection", `must be the schema of an object: say "type": "object"`)
	}
	if m.Owner != "" && m.Owner != OwnerMerchant && m.Owner != OwnerPlatform {
		faults.add("/owner", "%q is neither merchant nor platform", m.Owner)
	}
	switch {
	case m.Lookup == LookupResubmit:
		m.checkResubmit(faults)
	case m.Account != "":
		m.checkAccount(faults, "what another account does not know proves nothing")
	}
	for place, time := range map[string]Duration{"/settles_within": m.SettlesWithin, "/error_settles_within": m.ErrorSettlesWithin} {
		if time > maxSettles {
			faults.add(place, "must be at most %v", maxSettles)
		}
	}
	if m.Statements != (m.ReportsLate > 0) {
		faults.add("/reports_late", "must be given with statements, and only with them")
	}
	if m.Mutations {
		m.checkAccount(faults, "the mutations of another account prove nothing")
	}
	if m.ReportsLateOf != "" {
		m.checkReportsLateOf(faults)
	}
	if why := m.References.check(); why != "" && slices.ContainsFunc(m.Operations, Operation.Money) {
		faults.add("/references", "%s", why)
	}
	m.checkOperations(faults)
}

func (m *Manifest) checkOperations(faults *Faults) {
	if len(m.Operations) == 0 || len(m.Operations) > mostOperations {
		faults.add("/operations", `there are %d: declare one to %d, or say which contract gives them with "implements"`, len(m.Operations), mostOperations)
	}
	seen := map[string]bool{}
	for i, op := range m.Operations {
		place := m.place(op.Path)
		if seen[op.Path] {
			faults.add(pointer("operations", strconv.Itoa(i), "path"), "path %s stands twice: join the two", op.Path)
			continue
		}
		seen[op.Path] = true
		m.checkOperation(faults, place, op)
	}
}

// checkText checks a text that people read in lists and documents.
func checkText(faults *Faults, place, text string, most int) {
	switch {
	case strings.TrimSpace(text) == "":
		faults.add(place, "must be given")
	case len(text) > most:
		faults.add(place, "has %d bytes, at most are %d", len(text), most)
	case strings.ContainsFunc(text, unicode.IsControl):
		faults.add(place, "has a control character: write one line of plain text")
	}
}

func (m *Manifest) checkOperation(faults *Faults, place string, op Operation) {
	if !pathForm.MatchString(op.Path) || len(op.Path) > mostPath {
		faults.add(place+"/path", "%q must look like /payments/create, at most %d long", op.Path, mostPath)
	}
	checkText(faults, place+"/summary", op.Summary, mostTitle)
	if op.Description != "" {
		checkText(faults, place+"/description", op.Description, mostDescription)
	}
	sound := true
	for name, schema := range map[string]json.RawMessage{"request": op.Request, "response": op.Response} {
		if _, err := CompileSchema(name, schema); err != nil {
			faults.addSchema(place+pointer(name), err)
			sound = false
		}
	}
	if _, ofContract := ContractOperation(m.Implements, op.Path); !ofContract && (len(op.Narrow) > 0 || len(op.Adds) > 0) {
		faults.add(place, "narrow and adds are for operations of the contract that the manifest implements: say it in request, result and response")
	}
	if _, ofContract := ContractOperation(m.Implements, op.Path); !ofContract && op.Optional {
		faults.add(place+"/optional", "is for operations of a contract: leave it out")
	}
	if op.Kind != Query {
		checkUnasked(faults, place, op)
	}
	switch roles := countSet(string(op.Kind), op.StatusOf, op.CancelOf); {
	case roles != 1:
		faults.add(place, "exactly one of kind, status_of and cancel_of must be given")
		return
	case !sound:
		return
	}
	m.checkCredentials(faults, place, op)
	if op.Kind == "" {
		m.checkFollower(faults, place, op)
		return
	}
	m.checkKind(faults, place, op)
}

// checkCredentials refuses names that the gateway takes out of every request.
func (m *Manifest) checkCredentials(faults *Faults, place string, op Operation) {
	shape, err := objectShape(op.Request)
	if err != nil || typeOf(op.Request) != "object" {
		faults.add(place+"/request", `must be the schema of an object: say "type": "object"`)
		return
	}
	for _, name := range []string{"secret_key", "merchant_id"} {
		if _, there := shape.types[name]; there {
			faults.add(place+"/request/properties/"+name, "is the gateway's own and never reaches a plugin: take another name")
		}
	}
}

func (m *Manifest) checkKind(faults *Faults, place string, op Operation) {
	if !op.Kind.known() {
		faults.add(place+"/kind", "%q is none of query, payment, collection, transfer, order, refund", op.Kind)
		return
	}
	if op.Timeout <= 0 || op.Timeout > maxTimeout {
		faults.add(place+"/timeout", "must be given, it bounds every call; at most %v", maxTimeout)
	}
	if _, err := CompileSchema("result", op.Result); err != nil {
		faults.addSchema(place+"/result", err)
		return
	}
	if op.Money() {
		m.checkMoney(faults, place, op)
	} else {
		m.checkQuery(faults, place, op)
	}
	m.checkPromises(faults, place, op)
}

// checkMoney checks what a money operation says, and its provider with it.
func (m *Manifest) checkMoney(faults *Faults, place string, op Operation) {
	if m.Owner == OwnerPlatform && op.Kind != Order {
		faults.add(place+"/kind", "only orders can be made on the platform's account: say owner merchant, or leave it out")
	}
	if op.Kind == Collection && (!m.Statements || m.Lookup != LookupRead) {
		faults.add("/statements", "a collection is paid by a row of a statement, so there must be some, and lookup must be read")
	}
	if op.Kind == Collection {
		m.checkAccount(faults, "the payable amounts of one account must differ")
	}
	if m.Lookup != LookupRead && m.Lookup != LookupResubmit {
		faults.add("/lookup", "a provider with money operations must say read or resubmit")
	}
	if m.SettlesWithin < op.Timeout {
		faults.add("/settles_within", "must be at least the timeout of %v of %s: a call under way is no proof of anything", op.Timeout, op.Path)
	}
	if followers := m.followers(op.Path); followers != 1 {
		faults.add(place, "%s has %d status operations and must have one: declare an operation with status_of %s", op.Path, followers, op.Path)
	}
	shape, err := objectShape(op.Request)
	if err != nil {
		faults.add(place+"/request", "%s", flat(err))
		return
	}
	if !shape.closed {
		faults.add(place+"/request", "must have additionalProperties false, because unknown fields are refused where money moves")
	}
	checkReference(faults, place, op, shape)
	checkAmount(faults, place, op, shape)
	checkNames(faults, place, op, shape)
	m.checkQuote(faults, place, op, shape)
	m.checkRefund(faults, place, op, shape)
}

// checkRefund checks that a refund says what it gives back, and nothing else does.
func (m *Manifest) checkRefund(faults *Faults, place string, op Operation, shape shape) {
	if op.Kind != Refund {
		if op.RefundOf != "" || op.Payment != "" {
			faults.add(place, "refund_of and payment are for refunds: leave them out of a %s", op.Kind)
		}
		return
	}
	if payment, ok := m.Operation(op.RefundOf); !ok || payment.Kind != Payment {
		faults.add(place+"/refund_of", "%q is no payment operation of this manifest", op.RefundOf)
	}
	name := op.PaymentField()
	if shape.types[name] != "string" || !slices.Contains(shape.required, name) || name == op.ReferenceField() {
		faults.add(place+"/payment", "%q must point to a required string property of the request, and not to its reference", op.Payment)
	}
	if !slices.Contains(shape.required, op.ReferenceField()) {
		faults.add(place+"/request/required", "must name %s: what goes out a second time under a name that was drawn can't be told from the first", op.ReferenceField())
	}
	if m.Lookup == LookupResubmit { // what is neither is told elsewhere
		faults.add("/lookup", "must be read for refunds: any other lookup is the same request again")
	}
}

// followers counts the operations that answer the status of a path.
func (m *Manifest) followers(path string) int {
	n := 0
	for _, op := range m.Operations {
		if op.StatusOf == path || slices.Contains(op.AlsoOf, path) {
			n++
		}
	}
	return n
}

func checkReference(faults *Faults, place string, op Operation, shape shape) {
	switch name := op.ReferenceField(); {
	case shape.types[name] != "string":
		faults.add(place+"/reference", "%q must point to a string property of the request", op.Reference)
	case shape.defaults[name]:
		faults.add(place+"/request/properties/"+name+"/default", "a reference has no default: all requests without one would be the same")
	}
}

// checkAmount checks that what is judged, reserved and sent as the amount is always
// there, and within what money can be.
func checkAmount(faults *Faults, place string, op Operation, shape shape) {
	name := op.AmountField()
	if op.Amount == "" && op.Kind == Order {
		return
	}
	if shape.types[name] != "integer" {
		faults.add(place+"/amount", "%q must point to an integer property of the request", op.Amount)
		return
	}
	if shape.defaults[name] {
		faults.add(place+"/request/properties/"+name+"/default", "an amount has no default: nobody pays what nobody has said")
	}
	least := 1
	switch {
	case op.Kind == Order: // whose price the quote tells
		least = 0
	case op.Kind == Refund: // all that is left, where none is given
	case !slices.Contains(shape.required, name):
		faults.add(place+"/request/required", "must name %s: there is no payment without an amount", name)
	}
	if low, high := shape.ranges[name][0], shape.ranges[name][1]; low == nil || *low < float64(least) || high == nil || *high > float64(money.Max) {
		faults.add(place+"/request/properties/"+name, "must have a minimum of at least %d and a maximum of at most %d", least, int64(money.Max))
	}
}

// checkNames checks the properties of the request that an operation points to.
func checkNames(faults *Faults, place string, op Operation, shape shape) {
	for i, name := range op.DestinationFields() {
		if shape.types[name] != "string" {
			faults.add(place+pointer("destination", strconv.Itoa(i)), "%q is no string property of the request", name)
		}
	}
	if op.Holder != "" && shape.types[op.HolderField()] != "string" {
		faults.add(place+"/holder", "%q is no string property of the request", op.HolderField())
	}
	if len(op.Destination) == 0 && op.Kind == Transfer {
		faults.add(place+"/destination", "a transfer must say which properties of the request name where it goes")
	}
	for member, names := range map[string][]string{"fields": op.Fields, "echo": op.Echo} {
		for i, name := range names {
			if _, ok := shape.types[name]; !ok {
				faults.add(place+pointer(member, strconv.Itoa(i)), "%q is no property of the request", name)
			}
		}
	}
}

// checkFollower checks an operation that answers the status of, or ends, the movement of another.
func (m *Manifest) checkFollower(faults *Faults, place string, op Operation) {
	of := "/status_of"
	if op.CancelOf != "" {
		of = "/cancel_of"
	}
	target, ok := m.Operation(op.StatusOf + op.CancelOf)
	if !ok || !target.Money() {
		faults.add(place+of, "%q is no money operation of this manifest", op.StatusOf+op.CancelOf)
		return
	}
	for i, path := range op.AlsoOf {
		if also, ok := m.Operation(path); !ok || also.Kind != target.Kind || op.StatusOf == "" {
			faults.add(place+pointer("also_of", strconv.Itoa(i)), "%q is no operation of the kind of status_of", path)
			return
		}
	}
	if op.CancelOf != "" && target.Kind != Payment {
		faults.add(place+of, "only payments can be ended, %s is a %s", target.Path, target.Kind)
		return
	}
	if op.CancelOf != "" && (op.Timeout <= 0 || op.Timeout > maxTimeout) {
		faults.add(place+"/timeout", "must be given, it bounds every call; at most %v", maxTimeout)
	}
	if shape, err := objectShape(op.Request); err != nil || shape.types[op.ReferenceField()] != "string" {
		faults.add(place+"/reference", "%q must point to a string property of the request", op.Reference)
	}
	m.checkPromises(faults, place, op)
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
	closed   bool
	types    map[string]string
	defaults map[string]bool
	ranges   map[string][2]*float64 // minimum and maximum
	required []string
}

// objectShape reads the part of a request schema that the gateway relies on:
// its top-level properties with their types, and whether it is closed.
func objectShape(schema json.RawMessage) (shape, error) {
	var object struct {
		Properties map[string]struct {
			Type    any             `json:"type"`
			Default json.RawMessage `json:"default"`
			Minimum *float64        `json:"minimum"`
			Maximum *float64        `json:"maximum"`
		} `json:"properties"`
		AdditionalProperties any      `json:"additionalProperties"`
		Required             []string `json:"required"`
	}
	if err := jsonx.Unmarshal(schema, &object); err != nil { // which knows maximum from Maximum, as schemas do
		return shape{}, err
	}
	s := shape{
		closed: object.AdditionalProperties == false, required: object.Required,
		types: make(map[string]string, len(object.Properties)), defaults: map[string]bool{}, ranges: map[string][2]*float64{},
	}
	for name, p := range object.Properties {
		s.types[name], _ = p.Type.(string)
		s.defaults[name] = p.Default != nil
		s.ranges[name] = [2]*float64{p.Minimum, p.Maximum}
	}
	return s, nil
}

// typeOf is the one type of a schema, "" where it has none or several.
func typeOf(schema json.RawMessage) string {
	var typed struct {
		Type any `json:"type"`
	}
	_ = jsonx.Unmarshal(schema, &typed) // a boolean schema has no type
	name, _ := typed.Type.(string)
	return name
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
