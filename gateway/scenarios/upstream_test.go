package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

const createPath, statusPath, cancelPath = "/payments/create", "/payments/status", "/payments/cancel"

// upstream is a plugin and what is behind it: it knows what really happened,
// whatever it says.
type upstream struct {
	now func() time.Time

	mu       sync.Mutex
	things   map[string]*thing // what exists, by our reference
	calls    map[string]int    // creations asked for, by our reference
	lookups  []time.Time
	cancels  int
	tooLate  int       // creations that came after their send_by
	again    int       // creations of what existed
	deadline time.Time // of the last lookup

	// The script of what comes next; the zero value is an upstream that works.
	outcome   outcome
	cancel    func(sdk.Call) sdk.Result
	find      func(sdk.Lookup) sdk.StatusUpdate
	before    func(sdk.Call) // hooks of a creation: nothing was done yet,
	after     func(sdk.Call) // it was done and not answered
	available error
	ack       sdk.Acknowledgement
	ackErr    error
}

type thing struct {
	standing sdk.Status
	seen     time.Time // from when lookups see it
	amount   money.Amount
	offer    json.RawMessage
	paid     string // the payment's id
}

// outcome is what a creation does and what it says of it.
type outcome struct {
	name  string
	makes bool
	slow  time.Duration                          // until what it made can be seen
	says  func(offer json.RawMessage) sdk.Result // nil: accepted
}

func newUpstream(now func() time.Time) *upstream {
	return &upstream{now: now, things: map[string]*thing{}, calls: map[string]int{}, outcome: works}
}

const life = time.Hour

var works = outcome{name: "pending", makes: true}

// outcomes are all that a plugin may answer to a creation, true or not.
var outcomes = []outcome{
	works,
	{"done", true, 0, func(offer json.RawMessage) sdk.Result { return sdk.Result{Outcome: sdk.Done, Data: offer} }},
	{"refused", false, 0, func(json.RawMessage) sdk.Result { return sdk.Refuse(sdk.RefuseDestination, "No such shop.") }},
	{"refused without words", false, 0, func(json.RawMessage) sdk.Result { return sdk.Result{Outcome: sdk.Refused} }},
	{"not sent", false, 0, func(json.RawMessage) sdk.Result { return sdk.DidNotSend(sdk.BlameUpstream, "no token") }},
	{"unknown, made", true, 0, func(json.RawMessage) sdk.Result { return sdk.DontKnow(sdk.BlameUpstream, "cut") }},
	{"unknown, made at last", true, 25 * time.Second, func(json.RawMessage) sdk.Result { return sdk.DontKnow(sdk.BlameUpstream, "cut") }},
	{"unknown, not made", false, 0, func(json.RawMessage) sdk.Result { return sdk.DontKnow(sdk.BlameUpstream, "cut") }},
	{"error, made", true, 0, func(json.RawMessage) sdk.Result { return sdk.UpstreamError("500") }},
	{"error, not made", false, 0, func(json.RawMessage) sdk.Result { return sdk.UpstreamError("500") }},
	{"garbage", true, 0, func(json.RawMessage) sdk.Result {
		return sdk.Result{Outcome: sdk.Pending, Data: json.RawMessage(`{"page":1}`)}
	}},
	{"no data", true, 0, func(json.RawMessage) sdk.Result { return sdk.Result{Outcome: sdk.Pending} }},
	{"not UTF-8", true, 0, func(json.RawMessage) sdk.Result {
		return sdk.Result{Outcome: sdk.Pending, Data: json.RawMessage("{\"payment_url\":\"https://pay.example/\xff\"}")}
	}},
	{"unheard of", true, 0, func(offer json.RawMessage) sdk.Result { return sdk.Result{Outcome: 99, Data: offer} }},
}

func (u *upstream) Call(ctx context.Context, _ host.Use, call sdk.Call, _ time.Duration) sdk.Result {
	if ctx.Err() != nil {
		return sdk.DidNotSend(sdk.BlameNone, "the caller has gone")
	}
	if call.Operation == cancelPath {
		return u.end(call)
	}
	u.mu.Lock()
	before, after, outcome := u.before, u.after, u.outcome
	u.mu.Unlock()
	if before != nil {
		before(call)
	}
	offer := offerFor(call)
	u.mu.Lock()
	u.calls[call.Reference]++
	if u.things[call.Reference] != nil {
		u.again++
	}
	if u.now().After(call.SendBy) {
		u.tooLate++
	}
	if outcome.makes {
		u.things[call.Reference] = &thing{
			standing: sdk.StatusPending, seen: u.now().Add(outcome.slow), amount: call.Amount, offer: offer,
		}
	}
	u.mu.Unlock()
	if after != nil {
		after(call)
	}
	if outcome.says != nil {
		return outcome.says(offer)
	}
	return sdk.Result{Outcome: sdk.Pending, Data: offer, ProviderReference: "up-" + call.Reference, ExpiresAt: u.now().Add(life)}
}

func (u *upstream) Quote(context.Context, host.Use, sdk.Quote, time.Duration) sdk.Quoted {
	return sdk.NoQuote(sdk.DontKnow(sdk.BlameNone, "payments have no quote"))
}

func offerFor(call sdk.Call) json.RawMessage {
	var body struct{ Type string }
	_ = json.Unmarshal(call.Body, &body)
	if body.Type == "qris" {
		return json.RawMessage(`{"qr_string":"QR-` + call.Reference + `"}`)
	}
	return json.RawMessage(`{"payment_url":"https://pay.example/` + call.Reference + `"}`)
}

func (u *upstream) end(call sdk.Call) sdk.Result {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.cancels++
	if u.cancel != nil {
		return u.cancel(call)
	}
	t := u.things[call.Reference]
	switch {
	case t == nil:
		return sdk.DidNotSend(sdk.BlameNone, "nothing there")
	case t.standing == sdk.StatusDone:
		return sdk.Refuse(sdk.RefuseOther, "It has been paid.")
	}
	t.standing = sdk.StatusExpired
	return sdk.Finished("", struct{}{})
}

func (u *upstream) Lookup(ctx context.Context, _ host.Use, l sdk.Lookup, _ time.Duration) sdk.StatusUpdate {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.deadline, _ = ctx.Deadline()
	if ctx.Err() != nil {
		return sdk.NoStatus(sdk.BlameNone, "the caller has gone")
	}
	u.lookups = append(u.lookups, u.now())
	if u.find != nil {
		return u.find(l)
	}
	return u.stands(l.Reference)
}

// stands is the truth about a reference. The caller holds the lock.
func (u *upstream) stands(reference string) sdk.StatusUpdate {
	t := u.things[reference]
	if t == nil || u.now().Before(t.seen) {
		return sdk.StatusUpdate{Status: sdk.StatusNotFound}
	}
	f := sdk.StatusUpdate{
		Reference: reference, ProviderReference: "up-" + reference, Status: t.standing, Amount: t.amount,
		Currency: "IDR", EventID: t.paid,
	}
	if t.standing == sdk.StatusPending {
		f.Data = t.offer
	}
	return f
}

// pay is a payer's doing. It returns what the notification of it says.
func (u *upstream) pay(reference, payment string) sdk.StatusUpdate {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.things[reference].standing, u.things[reference].paid = sdk.StatusDone, payment
	return u.stands(reference)
}

// set changes the script while calls may be under way.
func (u *upstream) set(change func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	change()
}

func (u *upstream) asked() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.lookups)
}

// made is how much exists, and the most often that one reference was called.
func (u *upstream) made() (things, calls int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, n := range u.calls {
		calls = max(calls, n)
	}
	return len(u.things), calls
}

var errNoPlugin = errors.New("its process is down")

func (u *upstream) Notify(context.Context, string, sdk.Notification, time.Duration) (sdk.Acknowledgement, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.ack, u.ackErr
}

func (u *upstream) Available(host.Use, sdk.Connection) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.available
}

func blind(sdk.Lookup) sdk.StatusUpdate { return sdk.NoStatus(sdk.BlameUpstream, "no answer") }
