package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	jsonx "github.com/go-json-experiment/json"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// Examples is the document examples.json: calls with the outcomes that the
// simulator leads to, and what a suite must know of the upstream.
type Examples struct {
	// Simulator are arguments of the simulator beside those that every one has.
	Simulator []string `json:"simulator"`
	// Credentials replace members of the credentials that the simulator gives.
	Credentials map[string]json.RawMessage `json:"credentials"`
	// OwnErrors says that the plugin can tell the upstream's own error 500 from a
	// proxy's, and says so: [sdk.UpstreamError].
	OwnErrors bool `json:"own_errors"`
	// Signed is what proves that a notification is genuine: names of headers, "body" for
	// each member of the body, or JSON pointers to some of them. A header that holds a
	// token stands here alone. Unless given it is "body".
	Signed []string `json:"signed"`
	// VoidStates are the upstream's words for movements that moved nothing.
	VoidStates []string `json:"void_states"`
	// Returns are the sorts in which money of a paid payment goes back at the upstream, and
	// its simulator orders: refund, void, chargeback, reversal. Unless given it is refund.
	Returns  []ReturnSort `json:"returns"`
	Examples []Example    `json:"examples"`
}

// Example is a call with its expected outcome. One of a refund is no case of its own, and
// need not be there: the cases refunds and refunds under faults of the payments take its
// body, with an amount and names that fit.
type Example struct {
	Name      string          `json:"name"`
	Operation string          `json:"operation"` // the path
	Body      json.RawMessage `json:"body"`      // valid by the request schema, the amount in it, unless it is a refund's
	Outcome   Outcome         `json:"outcome"`
	// Code is of a refusal, by the call or by the quote before it.
	Code sdk.RefusalCode `json:"code"`
	// Ends is for operations that end a movement: the name of the example whose
	// movement this one ends. Leaves is its status in a lookup afterwards.
	Ends   string `json:"ends"`
	Leaves Status `json:"leaves"`
	// Unannounced says that the upstream sends no notification of it.
	Unannounced bool `json:"unannounced"`
	// PayerFirst says that the upstream knows nothing of it before the payer acts.
	PayerFirst bool `json:"payer_first"`
}

// Outcome is an [sdk.Outcome] by its name: done, pending, refused, not_sent.
type Outcome sdk.Outcome

// UnmarshalText reads a name; unknown is none, because nothing can be expected of it.
func (o *Outcome) UnmarshalText(text []byte) error {
	return named(string(text), o, sdk.Done, sdk.Pending, sdk.Refused, sdk.NotSent)
}

// Status is an [sdk.Status] by its name: pending, done, failed, expired.
type Status sdk.Status

// UnmarshalText reads a name.
func (s *Status) UnmarshalText(text []byte) error {
	return named(string(text), s, sdk.StatusPending, sdk.StatusDone, sdk.StatusFailed, sdk.StatusExpired)
}

// ReturnSort is an [sdk.ReturnSort] by its name: refund, void, chargeback, reversal.
type ReturnSort sdk.ReturnSort

// UnmarshalText reads a name.
func (r *ReturnSort) UnmarshalText(text []byte) error {
	return named(string(text), r, sdk.ReturnRefund, sdk.ReturnVoid, sdk.ReturnChargeback, sdk.ReturnReversal)
}

func named[N ~int, V interface {
	~int
	fmt.Stringer
}](text string, into *N, values ...V) error {
	names := make([]string, len(values))
	for i, v := range values {
		if names[i] = v.String(); names[i] == text {
			*into = N(v)
			return nil
		}
	}
	return fmt.Errorf("%q is none of %s", text, strings.Join(names, ", "))
}

// want is the outcome that the call must have.
func (e Example) want() sdk.Outcome { return sdk.Outcome(e.Outcome) }

// parseExamples reads the document strictly and checks it against the manifest: a
// suite that tests nothing must not pass.
func parseExamples(document []byte, m *manifest.Manifest) (Examples, error) {
	x := Examples{Signed: []string{signedBody}, Returns: []ReturnSort{ReturnSort(sdk.ReturnRefund)}}
	if err := jsonx.Unmarshal(document, &x, jsonx.RejectUnknownMembers(true)); err != nil {
		return x, fmt.Errorf("examples: %w", err)
	}
	if faults := x.faults(m); len(faults) > 0 {
		return x, fmt.Errorf("the examples are no test of this plugin:\n  %s", strings.Join(faults, "\n  "))
	}
	return x, nil
}

func (x Examples) faults(m *manifest.Manifest) (faults []string) {
	seen := map[string]bool{}
	for _, e := range x.Examples {
		op, ok := m.Operation(e.Operation)
		switch {
		case e.Name == "" || strings.Contains(e.Name, "/") || seen[e.Name]:
			faults = append(faults, fmt.Sprintf("%q: each example needs a name of its own, without a slash", e.Name))
		case !ok:
			faults = append(faults, e.Name+": the manifest has no operation "+e.Operation)
			continue
		case op.Kind == manifest.Refund && !accepted(e.want()):
			faults = append(faults, e.Name+": an example of a refund shows one that a paid payment allows: its outcome is done or pending")
			continue
		case e.Outcome == 0:
			faults = append(faults, e.Name+": outcome is missing: done, pending, refused or not_sent")
		case (op.CancelOf != "") != (e.Ends != ""):
			faults = append(faults, e.Name+`: "ends" is for operations that end a movement, and for all of these`)
		case e.Ends != "" && x.example(e.Ends).Operation != op.CancelOf:
			faults = append(faults, e.Name+": "+e.Ends+" is no example of "+op.CancelOf)
		}
		seen[e.Name] = true
		if err := validate("request", op.Request, e.Body); err != nil {
			faults = append(faults, e.Name+": "+err.Error())
		}
	}
	for _, op := range m.Operations {
		if op.Kind == manifest.Refund && !slices.Contains(x.Returns, ReturnSort(sdk.ReturnRefund)) {
			faults = append(faults, op.Path+`: "returns" must have refund, as the provider makes refunds`)
		}
		// A refund needs a payment that is paid: its case makes both.
		if needed := op.Kind != "" && op.Kind != manifest.Refund || op.CancelOf != ""; needed && !slices.ContainsFunc(x.Examples, func(e Example) bool {
			return e.Operation == op.Path && (accepted(e.want()) || !op.Money())
		}) {
			faults = append(faults, op.Path+": has no accepted example")
		}
	}
	return faults
}

func (x Examples) example(name string) Example {
	i := slices.IndexFunc(x.Examples, func(e Example) bool { return e.Name == name })
	if i < 0 {
		return Example{}
	}
	return x.Examples[i]
}

func accepted(o sdk.Outcome) bool { return o == sdk.Pending || o == sdk.Done }
