package manifest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	jsonx "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Kind decides the money rules of an operation. The set is closed.
type Kind string

// The kinds. All but Query move money.
const (
	Query      Kind = "query"
	Payment    Kind = "payment"
	Collection Kind = "collection"
	Transfer   Kind = "transfer"
	Order      Kind = "order"
	Refund     Kind = "refund"
)

// Money reports whether operations of the kind move money.
func (k Kind) Money() bool {
	switch k {
	case Payment, Collection, Transfer, Order, Refund:
		return true
	case Query:
		return false
	}
	return false
}

func (k Kind) known() bool { return k == Query || k.Money() }

// LookupMode says how the upstream is asked about a movement.
type LookupMode string

// How an upstream is asked: by a read, or by the same request again under the
// same reference, where that is its only status call.
const (
	LookupNone     LookupMode = ""
	LookupRead     LookupMode = "read"
	LookupResubmit LookupMode = "resubmit"
)

// NotificationProof says what makes a notification genuine.
type NotificationProof string

// What makes a notification genuine: a signature over all that it says, or a token that
// whoever has it may send with anything.
const (
	Signed NotificationProof = "signed"
	Token  NotificationProof = "token"
)

// Owner says whose account at the upstream a provider's operations use.
type Owner string

// The owners: each merchant's own account (the default), or the platform's,
// whose merchants pay from the balance that they have with it.
const (
	OwnerMerchant Owner = "merchant"
	OwnerPlatform Owner = "platform"
)

// Manifest is what a plugin declares. [Parse] is the only way to get one.
type Manifest struct {
	Format  int    `json:"manifest"` // of this document: 1
	Name    string `json:"name"`     // of the provider: lower case, digits, hyphens
	Version string `json:"version"`
	Title   string `json:"title"`

	// Needs is the [Interface] that a gateway must have at least, where an older one would
	// not do what this plugin relies on.
	Needs int `json:"needs,omitempty"`

	// Implements names the shipped contract that gives paths, schemas, references,
	// amounts and results, such as payments@1: then Operations hold only what differs,
	// and operations of the provider's own.
	Implements string `json:"implements,omitempty"`

	// Lookup and SettlesWithin are how unknown outcomes are resolved: a movement
	// that the upstream does not know once send_by plus SettlesWithin has passed
	// was never made. Both times are ten minutes at most.
	Lookup        LookupMode `json:"lookup,omitempty"`
	SettlesWithin Duration   `json:"settles_within,omitzero"`
	// ErrorSettlesWithin is the same after a call that the upstream ended itself, with an
	// error in its own format that does not say what it has done; 5s unless given.
	ErrorSettlesWithin Duration `json:"error_settles_within,omitzero"`

	// LookupEvery is how long the upstream wants to be left alone about one
	// movement between two lookups, and before the first; 5s unless given.
	LookupEvery Duration `json:"lookup_every,omitzero"`

	// ResubmitWithin is how long after its reservation a movement may be sent again, by
	// an upstream that is asked so: shorter than the time in which it takes the
	// same reference for the same movement. Account is a JSON pointer to the
	// top-level property of Connection that names the account at the upstream, or
	// several with spaces between: under another account the same request would be a
	// second movement, and what that one does not know proves nothing.
	ResubmitWithin Duration `json:"resubmit_within,omitzero"`
	Account        string   `json:"account,omitempty"`
	// ResubmitBuysWithin is how long after the first request's deadline the same
	// request may still be what buys: later it is sent only for a movement that the
	// upstream has confirmed. One hour unless given.
	ResubmitBuysWithin Duration `json:"resubmit_buys_within,omitzero"`

	// References are the names that the upstream takes of a movement.
	References References `json:"references,omitzero"`

	// Owner says whose account at the upstream is used by default.
	Owner Owner `json:"owner,omitempty"`

	// Notifications says that the upstream calls us back.
	Notifications bool `json:"notifications,omitempty"`

	// NotificationProof says what makes a notification genuine: signed, where all that it
	// says is signed, or token, where a token says no more than that somebody has it. Of
	// the latter the gateway believes nothing, and looks the movement up. It is token
	// unless given.
	NotificationProof NotificationProof `json:"notification_proof,omitempty"`

	// LookupsAfterSuccess are how long after a success the upstream is asked once more
	// whether its money went back, at most ten times in a year. None where its statement
	// tells that.
	LookupsAfterSuccess []Duration `json:"lookups_after_success,omitempty"`

	// Verifies says that the upstream can be asked whether it takes an account's
	// credentials, before they are stored.
	Verifies bool `json:"verifies,omitempty"`

	// Statements says that the upstream's statement can be read, ReportsLate how long
	// after a payment its row may appear there at most. ReportsLateOf is a JSON pointer
	// to the top-level property of Connection in which an account may say less.
	Statements    bool     `json:"statements,omitempty"`
	ReportsLate   Duration `json:"reports_late,omitzero"`
	ReportsLateOf string   `json:"reports_late_of,omitempty"`

	// Mutations says that the account's own mutations since a moment can be read, and
	// show what was moved within SettlesWithin. Without them a transfer that the
	// upstream does not find is never taken for one that was not made: operators
	// decide it after a day. Account must say whose mutations they are.
	Mutations bool `json:"mutations,omitempty"`

	// Connection is the JSON Schema of an account's credentials and settings.
	Connection json.RawMessage `json:"connection"`

	Operations []Operation `json:"operations"`

	document []byte // canonical, expanded
	digest   string
	declared map[string]string // by path, the digest of the operation
	written  map[string]int    // where in the document each path's operation stands
}

// Operation is one path. Exactly one of Kind, StatusOf and CancelOf is set.
type Operation struct {
	Path     string   `json:"path"`
	Kind     Kind     `json:"kind,omitempty"`
	StatusOf string   `json:"status_of,omitempty"` // path of the money operation whose status it answers
	AlsoOf   []string `json:"also_of,omitempty"`   // other operations of that kind whose status it answers, too
	CancelOf string   `json:"cancel_of,omitempty"` // path of the payment operation that it ends
	// Optional says of a contract's operation that a provider has it where its manifest
	// names the path, and its status with it.
	Optional bool `json:"optional,omitempty"`

	Summary     string `json:"summary"`
	Description string `json:"description,omitempty"`

	// Reference and Amount are JSON pointers to top-level properties of Request.
	Reference string `json:"reference,omitempty"`
	Amount    string `json:"amount,omitempty"`

	// RefundOf is, of a refund, the path of the payment operation whose payments it gives
	// back, and Payment a JSON pointer to the request's property that names one of them.
	RefundOf string `json:"refund_of,omitempty"`
	Payment  string `json:"payment,omitempty"`

	// Holder is a JSON pointer to the request's property in which a caller names the
	// holder of a transfer's destination, Destination pointers to those that
	// together name the destination.
	Holder      string   `json:"holder,omitempty"`
	Destination []string `json:"destination,omitempty"`

	// Fields are the request's properties that policies may see, Echo those that
	// status answers repeat from the request.
	Fields []string `json:"fields,omitempty"`
	Echo   []string `json:"echo,omitempty"`

	// Scope is the scope of API keys that a query needs, where it is not to read:
	// transfer, for those that have a name.
	Scope string `json:"scope,omitempty"`

	// Quote says that price and cost are asked for before the reservation. Product names
	// the query whose answer lists what can be bought; of a query it is the product
	// that is asked about, which is judged first and given with the call.
	Quote   bool     `json:"quote,omitempty"`
	Product *Product `json:"product,omitempty"`

	// Of a query: Cache is how old an answer may be that is shared by all who ask
	// the same, at least 1s; none is kept when it is not given. Filter names
	// request properties that the gateway itself applies to the items of a cached
	// answer, each to the property of the same name, ignoring case: the plugin is
	// always asked without them. Markup names the prices in the answer, or in its
	// items. Get says that it may be asked by GET too, with query parameters. Common
	// says that a cached answer is the same for every account, so that it is asked for
	// once for all of them: nothing of the account that is asked may be in it.
	Cache  Duration `json:"cache,omitzero"`
	Common bool     `json:"common,omitempty"`
	Filter []string `json:"filter,omitempty"`
	Markup []Markup `json:"markup,omitempty"`
	Get    bool     `json:"get,omitempty"`

	// Timeout bounds one call at the upstream.
	Timeout Duration `json:"timeout,omitzero"`

	// Request is the schema of the body without its credentials, Result of what
	// the plugin answers, Response of what the merchant gets as data.
	Request  json.RawMessage `json:"request"`
	Result   json.RawMessage `json:"result,omitempty"`
	Response json.RawMessage `json:"response"`

	// Of a contract's operation: Narrow are the provider's bounds, by property of the
	// request, and Adds the result fields of its own, by name. They stand in Request,
	// Result and Response of a parsed manifest already, and in the responses of the
	// operation's status and cancel.
	Narrow map[string]Bounds          `json:"narrow,omitempty"`
	Adds   map[string]json.RawMessage `json:"adds,omitempty"`
}

// Product says how the request of an operation names an item of a list of
// products. Key and Available are top-level properties of the list's items,
// Field of the request.
type Product struct {
	List      string `json:"list"` // path of a cached query of this manifest whose result is an array
	Key       string `json:"key"`
	Field     string `json:"field"`
	Available string `json:"available"` // a boolean
}

// Markup names a price to which the gateway adds what it earns: a top-level
// property of a query's answer or of its items, beside the property that names
// the product. Where When is given, only objects with these values have it.
type Markup struct {
	Price   string            `json:"price"`
	Product string            `json:"product"`
	When    map[string]string `json:"when,omitempty"`
}

// Money reports whether the operation itself moves money.
func (o Operation) Money() bool { return o.Kind.Money() }

// ReferenceField is the request property that names the movement, or "".
func (o Operation) ReferenceField() string { return property(o.Reference) }

// PaymentField is the request property that names the payment of a refund, or "".
func (o Operation) PaymentField() string { return property(o.Payment) }

// HolderField is the request property that names a destination's holder, or "".
func (o Operation) HolderField() string { return property(o.Holder) }

// DestinationFields are the request properties that name a destination.
func (o Operation) DestinationFields() []string {
	names := make([]string, len(o.Destination))
	for i, pointer := range o.Destination {
		names[i] = property(pointer)
	}
	return names
}

// AccountFields are the properties of a connection that together name the account.
func (m *Manifest) AccountFields() []string {
	names := strings.Fields(m.Account)
	for i, pointer := range names {
		names[i] = property(pointer)
	}
	return names
}

// AccountIn is the name of the account that a connection's credentials are for,
// "" where the manifest does not say which properties name it, or one is not there.
func (m *Manifest) AccountIn(credentials []byte) string {
	if len(m.AccountFields()) == 0 {
		return ""
	}
	var given map[string]any
	if err := json.Unmarshal(credentials, &given); err != nil {
		return ""
	}
	var names []string
	for _, field := range m.AccountFields() {
		name, _ := given[field].(string)
		if name == "" {
			return ""
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// ReportsLateIn is how late rows of the account are at most that a connection's
// credentials are for: what they say, and never more than the manifest does.
func (m *Manifest) ReportsLateIn(credentials []byte) time.Duration {
	most := time.Duration(m.ReportsLate)
	if m.ReportsLateOf == "" {
		return most
	}
	var given map[string]any
	if err := json.Unmarshal(credentials, &given); err != nil {
		return most
	}
	text, _ := given[property(m.ReportsLateOf)].(string)
	if late, err := time.ParseDuration(text); err == nil && late > 0 {
		return min(late, most)
	}
	return most
}

// AmountField is the request property that holds the amount, or "".
func (o Operation) AmountField() string { return property(o.Amount) }

// KeyField is the property of a list's items that Field names.
func (p Product) KeyField() string { return property(p.Key) }

// RequestField is the request property that names an item.
func (p Product) RequestField() string { return property(p.Field) }

// AvailableField is the property of an item that says whether it can be bought.
func (p Product) AvailableField() string { return property(p.Available) }

// PriceField is the property that holds the price.
func (m Markup) PriceField() string { return property(m.Price) }

// ProductField is the property that names the product.
func (m Markup) ProductField() string { return property(m.Product) }

// Duration is a time.Duration written as "15s" in JSON.
type Duration time.Duration

// String writes the duration as Go does.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText writes the duration as Go does, "1m0s".
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads a positive duration such as "15s".
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("duration %q: write it like \"15s\"", text)
	}
	if v <= 0 {
		return fmt.Errorf("duration %q: must be positive", text)
	}
	*d = Duration(v)
	return nil
}

// mostDocument bounds a manifest, in bytes.
const mostDocument = 1 << 20

// Parse decodes a manifest strictly, completes what implements a contract, and checks
// it as a whole. The error has a line for each fault, with its place: [Faults].
func Parse(document []byte) (*Manifest, error) {
	m, faults := read(document)
	if len(faults) == 0 {
		return m, nil
	}
	if m == nil {
		return nil, fmt.Errorf("manifest: %w", faults)
	}
	return nil, fmt.Errorf("manifest %q: %w", m.Name, faults)
}

func read(document []byte) (*Manifest, Faults) {
	var faults Faults
	if len(document) > mostDocument {
		faults.add("", "the document has %d bytes, at most are %d: shorten its schemas", len(document), mostDocument)
		return nil, faults
	}
	if name, newer := newerThanThis(document); newer != nil {
		return &Manifest{Name: name}, Faults{*newer}
	}
	var m Manifest
	if err := jsonx.Unmarshal(document, &m, jsonx.RejectUnknownMembers(true)); err != nil {
		faults.addDecoding(err)
		return nil, faults
	}
	canonical := jsontext.Value(bytes.Clone(document))
	if m.expand(&faults) {
		m.check(&faults)
	}
	if m.Implements != "" && len(faults) == 0 {
		expanded, err := json.Marshal(&m)
		if err != nil {
			faults.add("", "%s", flat(err))
		}
		canonical = expanded
	}
	if len(faults) > 0 {
		slices.SortStableFunc(faults, func(a, b Fault) int { return strings.Compare(a.Place, b.Place) })
		return &m, slices.Compact(faults)
	}
	if err := canonical.Canonicalize(); err != nil {
		faults.add("", "%s", flat(err))
		return &m, faults
	}
	sum := sha256.Sum256(canonical)
	m.document, m.digest = canonical, hex.EncodeToString(sum[:])
	m.declared = make(map[string]string, len(m.Operations))
	for _, op := range m.Operations {
		m.declared[op.Path] = digestOf(op)
	}
	return &m, nil
}

// digestOf is the digest of an operation in its canonical form.
func digestOf(op Operation) string {
	h := sha256.New()
	all := members(op)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(h, "%d:%s%d:%s", len(name), name, len(all[name]), all[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Declared names what the manifest says of a path, "" where it says nothing: two versions
// with the same take and answer the same there.
func (m *Manifest) Declared(path string) string { return m.declared[path] }

// Digest names the manifest: the SHA-256, in hex, of its expanded canonical JSON. Two
// manifests that differ only in spacing or order of keys have the same.
func (m *Manifest) Digest() string { return m.digest }

// Document is the manifest as JSON, expanded and in its canonical form: [Parse] reads
// it, with the same digest.
func (m *Manifest) Document() []byte { return bytes.Clone(m.document) }

// Operation finds an operation by its path.
func (m *Manifest) Operation(path string) (Operation, bool) {
	for _, op := range m.Operations {
		if op.Path == path {
			return op, true
		}
	}
	return Operation{}, false
}
