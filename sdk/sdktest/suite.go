package sdktest

import (
	"context"
	"encoding/json"
	"os/exec"
	"slices"
	"testing"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// Suite describes a plugin to the suite.
type Suite struct {
	// Manifest is the document as the plugin serves it.
	Manifest []byte
	// Command gives a command that runs the plugin, for each process a new one.
	// Nil runs the test binary itself as the plugin, for which its TestMain calls
	// [Main]. Nothing of the test's environment reaches the plugin unless the
	// command's Env has it.
	Command func() *exec.Cmd
	// Open makes a fresh upstream for one subtest and cleans it up with it.
	// Subtests run in parallel.
	Open func(t *testing.T) Upstream
	// OwnErrors says that the error that Fail makes of [ErrorBefore] is in the upstream's
	// own format, so that the plugin can tell it from a proxy's: [sdk.UpstreamError].
	OwnErrors bool
	// Examples are calls with their expected outcomes. Each money operation needs
	// one that is accepted.
	Examples []Example
}

// Example is a call with its expected outcome.
type Example struct {
	Name      string
	Operation string          // the path
	Body      json.RawMessage // valid by the request schema, the amount in it
	Want      sdk.Outcome     // Pending or Done, Refused, or NotSent
	Code      sdk.RefusalCode // of a refusal, by the call or by the quote before it
	// Ends is for operations that end a movement: the name of the example whose
	// movement this one ends. Leaves is its status in a lookup afterwards.
	Ends   string
	Leaves sdk.Status
	// Unannounced says that the upstream sends no notification of it.
	Unannounced bool
}

// Upstream is the plugin's upstream as seen from inside. Its methods may be
// called from any goroutine.
type Upstream interface {
	// Connect gives a merchant's account in a mode: for the same names the same,
	// for others another. Its version is at least 1.
	Connect(merchant, mode string) sdk.Connection
	// Movements lists what was done under one of our references, in any account.
	Movements(reference string) []Movement
	// Requests counts what has reached the upstream so far, of any kind.
	Requests() int
	// Fail lets the next call that would move money go wrong.
	Fail(fault Fault)
	// Hang lets the next call that would move money have no answer for 10 s, or
	// until the client is gone, and leaves nothing behind. What it returns is
	// closed once such a call has come. [Hanger] has it for an upstream over HTTP.
	Hang() <-chan struct{}
}

// Settler is an [Upstream] that calls back. It is required where the manifest
// has notifications.
type Settler interface {
	// Settle lets a movement happen, as a payer would, and gives the genuine
	// notification that the upstream sends of it, without a connection.
	Settle(ctx context.Context, reference string) (sdk.Notification, error)
}

// Earner is an [Upstream] that has a statement. It is required where the manifest
// has statements.
type Earner interface {
	// Earn lets a payer pay what an accepted call of an account was answered with,
	// and returns once the upstream's statement has it.
	Earn(ctx context.Context, c sdk.Connection, result json.RawMessage) error
}

// Rotator is an [Upstream] whose accounts can get new credentials.
type Rotator interface {
	// Rotate gives an account with new credentials and a higher version. What
	// still comes with the old ones is refused.
	Rotate(merchant, mode string) sdk.Connection
}

// Movement is what the upstream did, and with whose credentials it was asked to.
type Movement struct {
	Reference      string
	Amount         money.Amount // of an order, what it cost
	Merchant, Mode string
}

// Fault is a way in which one call goes wrong.
type Fault int

// The faults. A "before" leaves nothing behind, an "after" does what was asked.
const (
	ErrorBefore  Fault = iota // answers a 5xx
	CutBefore                 // cuts the connection
	CutAfter                  // cuts the connection
	GarbageAfter              // answers a success that is no answer
)

// check is one property. It gets a plugin process and an upstream of its own.
type check struct {
	name string
	run  func(*trial)
}

// exampleCheck is a property of each accepted money example.
type exampleCheck struct {
	name string
	run  func(*trial, Example)
}

var everywhere = []check{
	{"manifest", checkManifest},
	{"unknown operation", checkUnknownOperation},
	{"unknown reference", checkUnknownReference},
	{"accounts", checkAccounts},
	{"rotation", checkRotation},
	{"verify", checkVerify},
	{"statements", checkStatements},
	{"a statement read twice", checkReadTwice},
	{"a foreign cursor", checkForeignCursor},
}

// ofCollections is for what no upstream knows before it is paid: there is
// nothing to go wrong there.
var ofCollections = []exampleCheck{
	{"code", checkCode},
	{"send_by", checkSendBy},
}

var ofAccepted = []exampleCheck{
	{"quote", checkQuote},
	{"outcome", checkAccepted},
	{"twice", checkTwice},
	{"send_by", checkSendBy},
	{"hang", checkHang},
	{"error before", func(tr *trial, e Example) { checkFault(tr, e, ErrorBefore) }},
	{"cut before", func(tr *trial, e Example) { checkFault(tr, e, CutBefore) }},
	{"cut after", func(tr *trial, e Example) { checkFault(tr, e, CutAfter) }},
	{"garbage after", func(tr *trial, e Example) { checkFault(tr, e, GarbageAfter) }},
	{"crash", checkCrash},
	{"mutations", checkMutations},
	{"genuine notification", checkGenuine},
	{"forged notification", checkForged},
}

// Run runs the suite as subtests of t.
func Run(t *testing.T, s Suite) {
	t.Helper()
	m, err := manifest.Parse(s.Manifest)
	if err != nil {
		t.Fatalf("the manifest: %v", err)
	}
	if faults := s.faults(m); len(faults) > 0 {
		t.Fatalf("the suite's examples are no test of this plugin: %q", faults)
	}
	for _, c := range everywhere {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(newTrial(t, s, m))
		})
	}
	for _, e := range s.Examples {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			s.runExample(t, m, e)
		})
	}
}

func (s Suite) runExample(t *testing.T, m *manifest.Manifest, e Example) {
	t.Helper()
	op, _ := m.Operation(e.Operation)
	switch {
	case e.Ends != "":
		checkEnd(newTrial(t, s, m), e)
	case !op.Money():
		checkQuery(newTrial(t, s, m), e)
	case !accepted(e.Want):
		checkDeclined(newTrial(t, s, m), e)
	default:
		checks := ofAccepted
		if op.Kind == manifest.Collection {
			checks = ofCollections
		}
		for _, c := range checks {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.run(newTrial(t, s, m), e)
			})
		}
	}
}

// faults checks the examples against the manifest: a suite that tests nothing
// must not pass.
func (s Suite) faults(m *manifest.Manifest) (faults []string) {
	for _, e := range s.Examples {
		op, ok := m.Operation(e.Operation)
		switch {
		case !ok:
			faults = append(faults, e.Name+": the manifest has no operation "+e.Operation)
			continue
		case (op.CancelOf != "") != (e.Ends != ""):
			faults = append(faults, e.Name+": Ends is for operations that end a movement, and for all of these")
		case e.Ends != "" && s.example(e.Ends).Operation != op.CancelOf:
			faults = append(faults, e.Name+": "+e.Ends+" is no example of "+op.CancelOf)
		}
		if err := validate("request", op.Request, e.Body); err != nil {
			faults = append(faults, e.Name+": "+err.Error())
		}
	}
	for _, op := range m.Operations {
		if needed := op.Kind != "" || op.CancelOf != ""; needed && !slices.ContainsFunc(s.Examples, func(e Example) bool {
			return e.Operation == op.Path && (accepted(e.Want) || !op.Money())
		}) {
			faults = append(faults, op.Path+": has no accepted example")
		}
	}
	return faults
}

func (s Suite) example(name string) Example {
	i := slices.IndexFunc(s.Examples, func(e Example) bool { return e.Name == name })
	if i < 0 {
		return Example{}
	}
	return s.Examples[i]
}

func accepted(o sdk.Outcome) bool { return o == sdk.Pending || o == sdk.Done }
