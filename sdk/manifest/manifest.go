package manifest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
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
)

// Money tells whether operations of the kind move money.
func (k Kind) Money() bool {
	switch k {
	case Payment, Collection, Transfer, Order:
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

// Manifest is what a plugin declares. [Parse] is the only way to get one.
type Manifest struct {
	Format  int    `json:"manifest"` // of this document: 1
	Name    string `json:"name"`     // of the provider: lower case, digits, hyphens
	Version string `json:"version"`
	Title   string `json:"title"`

	// Lookup and SettlesWithin are how unknown outcomes are resolved: a movement
	// that the upstream does not know once send_by plus SettlesWithin has passed
	// was never made.
	Lookup        LookupMode `json:"lookup,omitempty"`
	SettlesWithin Duration   `json:"settles_within,omitzero"`

	// Notifications says that the upstream calls us back.
	Notifications bool `json:"notifications,omitempty"`

	// Connection is the JSON Schema of an account's credentials and settings.
	Connection json.RawMessage `json:"connection"`

	Operations []Operation `json:"operations"`

	digest string
}

// Operation is one path. Exactly one of Kind, StatusOf and CancelOf is set.
type Operation struct {
	Path        string `json:"path"`
	Kind        Kind   `json:"kind,omitempty"`
	StatusOf    string `json:"status_of,omitempty"` // path of the money operation whose state it tells
	CancelOf    string `json:"cancel_of,omitempty"` // path of the payment operation that it ends
	Summary     string `json:"summary"`
	Description string `json:"description,omitempty"`

	// Reference and Amount are JSON pointers to top-level properties of Request.
	Reference string `json:"reference,omitempty"`
	Amount    string `json:"amount,omitempty"`

	// Fields are the request's properties that policies may see, Echo those that
	// status answers repeat from the request.
	Fields []string `json:"fields,omitempty"`
	Echo   []string `json:"echo,omitempty"`

	// Timeout bounds one call at the upstream.
	Timeout Duration `json:"timeout,omitzero"`

	// Request is the schema of the body without its credentials, Result of what
	// the plugin answers, Response of what the merchant gets as data.
	Request  json.RawMessage `json:"request"`
	Result   json.RawMessage `json:"result,omitempty"`
	Response json.RawMessage `json:"response"`
}

// Money tells whether the operation itself moves money.
func (o Operation) Money() bool { return o.Kind.Money() }

// ReferenceField is the request property that names the movement, or "".
func (o Operation) ReferenceField() string { return property(o.Reference) }

// AmountField is the request property that holds the amount, or "".
func (o Operation) AmountField() string { return property(o.Amount) }

// Duration is a time.Duration written as "15s" in JSON.
type Duration time.Duration

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

// Parse decodes a manifest strictly and checks it as a whole. The error names
// every fault found, each with its place.
func Parse(document []byte) (*Manifest, error) {
	var m Manifest
	if err := jsonx.Unmarshal(document, &m, jsonx.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("manifest %q: %w", m.Name, err)
	}
	canonical := jsontext.Value(bytes.Clone(document))
	if err := canonical.Canonicalize(); err != nil {
		return nil, fmt.Errorf("manifest %q: %w", m.Name, err)
	}
	sum := sha256.Sum256(canonical)
	m.digest = hex.EncodeToString(sum[:])
	return &m, nil
}

// Digest names the manifest: the SHA-256, in hex, of its canonical JSON. Two
// manifests that differ only in spacing or order of keys have the same.
func (m *Manifest) Digest() string { return m.digest }

// Operation finds an operation by its path.
func (m *Manifest) Operation(path string) (Operation, bool) {
	for _, op := range m.Operations {
		if op.Path == path {
			return op, true
		}
	}
	return Operation{}, false
}
