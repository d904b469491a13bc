package simulator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// upstream is what is behind all plugins: it knows what has really happened.
type upstream struct {
	w       *world
	things  map[thingKey]*thing
	made    []*thing                // the same, in their order
	called  map[string]int          // our references, and the attempt that was called last
	polled  map[[2]string]time.Time // by provider and our reference
	rows    map[string][]row        // of the statements of accounts
	notices []sdk.StatusUpdate
	names   int
	away    map[string]time.Time // by provider: until then it does not answer
}

// transferFee is what a transfer costs beside its amount.
const transferFee money.Amount = 2500

// soon is how long after its creation a merchant waits for an order to be bought.
const soon = time.Hour + time.Minute

// thingKey is a name of ours at an account.
type thingKey struct{ provider, account, reference string }

func keyOf(provider string, c sdk.Connection, reference string) thingKey {
	return thingKey{provider, accountOf(c), reference}
}

// thing is what one of our references has made.
type thing struct {
	account, reference string
	number             int
	kind               manifest.Kind
	provider           string
	mode               string
	owner              tenants.MerchantID
	amount             money.Amount // as status updates tell it
	made               time.Time
	heard              time.Time // when a notification of it was last taken
	lost               bool      // it was made after the backup that was restored since
	unheard            bool      // as what was heard
	asked              time.Time // when its purchase was last asked for
	seen               time.Time // from when on lookups find it
	status             sdk.Status
	event              string
	was                bool         // it has succeeded once
	lapsed             bool         // it had expired before it was paid
	arrived            money.Amount // what a payer has paid, 0 for none
	returns            []sdk.Return // what of it went back
	late               bool         // lookups did not find it for longer than the provider declares
	expires            time.Time
	touched            bool // its payer has chosen how to pay
	refunds            []*thing
	of                 *thing // of a refund: the payment
}

// row is a line of a statement, and when it is told.
type row struct {
	sdk.StatementLine
	told time.Time
}

func newUpstream(w *world) *upstream {
	return &upstream{
		w: w, things: map[thingKey]*thing{}, called: map[string]int{}, polled: map[[2]string]time.Time{}, rows: map[string][]row{},
		away: map[string]time.Time{},
	}
}

// The providers of the shipped manifests.
var (
	kindOf = map[string]manifest.Kind{
		"payments": manifest.Payment, "midtrans": manifest.Payment, "wallet1": manifest.Transfer, "wallet2": manifest.Collection, "ppob": manifest.Order,
	}
	settles = map[string]time.Duration{"payments": 30 * time.Second, "midtrans": 30 * time.Second, "wallet1": time.Minute, "wallet2": 30 * time.Second, "ppob": time.Minute}
)

func accountOf(c sdk.Connection) string {
	var named struct {
		Account string `json:"account"`
	}
	_ = json.Unmarshal(c.Credentials, &named) // the simulator's own
	return named.Account
}

// plugins are the providers as a replica has them.
type plugins struct {
	w  *world
	of *replica
}

// run asks the upstream as one step, and waits for the answer as another. An answer
// that takes longer than the caller waits is none.
func run[T any](ctx context.Context, p *plugins, what string, timeout time.Duration, ask func() (T, time.Duration), none T) (answer T) {
	var slow time.Duration
	p.w.step(ctx, p.of, what, func() {
		t, _ := ctx.Value(taskKey{}).(*task)
		if p.w.faults && p.w.chance(1) {
			p.w.crash(p.of)
			return
		}
		answer, slow = ask()
		if deadline, set := ctx.Deadline(); set {
			timeout = min(timeout, max(0, time.Until(deadline)))
		}
		if slow >= timeout {
			slow, answer = timeout, none
		}
		p.w.log("%s: %s -> %s after %v", t.name, what, p.w.books.show(answer), slow.Truncate(time.Millisecond))
		if p.w.faults && p.w.chance(1) {
			p.w.crash(p.of)
		}
	})
	if slow > 0 {
		p.w.hold(ctx, p.of, "answer of "+what, slow)
	}
	return answer
}

// slowness is how long an answer takes.
func (w *world) slowness() time.Duration {
	switch {
	case !w.faults, w.chance(60):
		return 0
	case w.chance(85):
		return w.between(10*time.Millisecond, 3*time.Second)
	}
	return w.between(3*time.Second, 20*time.Second)
}

var lost = sdk.DontKnow(sdk.BlameUpstream, "no answer")

// Call is for package lifecycle.
func (p *plugins) Call(ctx context.Context, of host.Use, call sdk.Call, timeout time.Duration) sdk.Result {
	what := "call " + call.Operation + " of " + of.Provider + " for " + p.w.books.upstreamName(call.Reference)
	result := run(ctx, p, what, timeout, func() (sdk.Result, time.Duration) {
		if call.Operation == cancelPath {
			return p.w.up.cancel(of.Provider, call), p.w.slowness()
		}
		return p.w.up.create(p.of, of.Provider, call), p.w.slowness()
	}, lost)
	if p.w.options.Bug == ReroutedUnknown && result.Outcome == sdk.Unknown && kindOf[of.Provider] == manifest.Payment && call.Operation == createPath {
		return sdk.DidNotSend(sdk.BlameUpstream, "no answer")
	}
	if p.w.options.Bug == RetriedRefusal && result.Outcome == sdk.Refused && call.Operation != cancelPath && call.Operation != refundPath {
		p.w.step(ctx, p.of, what+" again", func() {
			p.w.up.make(of.Provider, call.Connection, call.Reference, toldAmount(of.Provider, call), sdk.StatusDone)
		})
	}
	return result
}

// toldAmount is what status updates of what a call makes tell.
func toldAmount(provider string, call sdk.Call) money.Amount {
	if kindOf[provider] == manifest.Order {
		return call.Cost
	}
	return call.Amount
}

// create does what a call asks for, or not, and answers, or not.
func (u *upstream) create(of *replica, provider string, call sdk.Call) sdk.Result {
	w := u.w
	if w.now.Add(of.skew).After(call.SendBy) {
		return sdk.DidNotSend(sdk.BlameNone, "send_by had passed") // as every plugin does
	}
	u.calls(call.Reference)
	u.mayMove(call.Reference)
	if kindOf[provider] != manifest.Order && u.things[keyOf(provider, call.Connection, call.Reference)] != nil {
		return sdk.DontKnow(sdk.BlameUpstream, "the reference was used before")
	}
	n := w.rand.IntN(100)
	if !w.faults {
		n = 0
	}
	make := func(status sdk.Status) *thing {
		return u.make(provider, call.Connection, call.Reference, toldAmount(provider, call), status)
	}
	if call.Operation == refundPath {
		if !u.refunds(provider, call) { // whatever else goes wrong
			return sdk.Refuse(sdk.RefuseOther, "No more is left.")
		}
		make = func(status sdk.Status) *thing { return u.refund(provider, call, status) }
	}
	switch {
	case w.now.Before(u.away[provider]):
		return lost
	case n < 50 || n < 58 && u.things[keyOf(provider, call.Connection, call.Reference)] != nil: // it refuses nothing that it has
		return u.accepted(provider, make(sdk.StatusPending))
	case n < 58:
		return sdk.Refuse(sdk.RefuseOther, "No.")
	case n < 66:
		return sdk.DidNotSend(sdk.BlameUpstream, "no token")
	case n < 69:
		return sdk.UpstreamError("500")
	case n < 73:
		return lost
	case n < 76: // what it has done in spite of its error is known a little later
		w.later(w.between(0, errorSettles), func() { make(sdk.StatusPending) })
		return sdk.UpstreamError("500")
	case n < 83:
		make(sdk.StatusPending)
		return lost
	case n < 88: // it is on its way for as long as the provider declares
		latest := max(0, sendWindow+settles[provider]-w.now.Sub(call.SendBy.Add(-sendWindow-of.skew)))
		w.later(w.between(0, latest), func() { make(sdk.StatusPending) })
		return lost
	case n < 89 && kindOf[provider] == manifest.Transfer: // it is known later than the provider declares
		t := make(sdk.StatusPending)
		t.seen, t.late = w.now.Add(w.between(2*time.Minute, 30*time.Minute)), true
		return lost
	case n < 91:
		make(sdk.StatusPending)
		return sdk.Result{Outcome: sdk.Pending, Data: json.RawMessage(`{"strange":1}`)}
	case n < 93:
		return sdk.DontKnow(sdk.BlameAccount, "the key is not accepted")
	case kindOf[provider] == manifest.Transfer || kindOf[provider] == manifest.Order || call.Operation == refundPath:
		return u.accepted(provider, make(sdk.StatusDone))
	}
	return u.accepted(provider, make(sdk.StatusPending))
}

// mayMove checks that no money is moved before a restored database is opened.
func (u *upstream) mayMove(reference string) {
	if u.w.now.Before(u.w.opened) {
		u.w.violate("no money is moved before a restored database is opened", "%s is asked for", u.w.books.upstreamName(reference))
	}
}

// calls checks that each attempt is called once. A later attempt has the same name, and
// may be called only because the earlier one was proven never sent.
func (u *upstream) calls(reference string) {
	id, _ := movement.ParseUpstreamReference(reference)
	m, err := u.w.store.MovementByID(u.w.ctx, id) // a skipped reservation has none
	if last, before := u.called[reference]; before && (err != nil || last >= m.Attempt) {
		u.w.violate("one call an attempt", "%s was called twice", u.w.books.upstreamName(reference))
	}
	u.called[reference] = m.Attempt
}

const (
	// sendWindow is how long a request may be on its way to the provider.
	sendWindow = 5 * time.Second
	// errorSettles is how long after its own error the provider may still be doing what it
	// was asked for: what holds where a manifest declares nothing.
	errorSettles = 5 * time.Second
)

func (u *upstream) accepted(provider string, t *thing) sdk.Result {
	result := sdk.Result{Outcome: sdk.Pending, Data: t.data(), ProviderReference: "up-" + strconv.Itoa(t.number), Amount: t.amount}
	if t.status == sdk.StatusDone {
		result.Outcome = sdk.Done
	}
	if t.kind == manifest.Payment {
		result.ExpiresAt = t.expires
	}
	return result
}

// data is what the provider gives of a thing, as the result schema of its kind has it.
func (t *thing) data() json.RawMessage {
	switch t.kind {
	case manifest.Payment:
		return json.RawMessage(`{"payment_url":"https://pay.example/x","qr_string":"QR"}`)
	case manifest.Collection:
		return json.RawMessage(`{"qr_string":"QR"}`)
	case manifest.Transfer:
		return json.RawMessage(`{"referenceNo":"R"}`)
	case manifest.Refund:
		return json.RawMessage(`{}`)
	case manifest.Order, manifest.Query:
	}
	if t.status == sdk.StatusDone {
		return json.RawMessage(`{"sn":"SN","message":"Sukses"}`)
	}
	return json.RawMessage(`{"sn":"","message":"Menunggu"}`)
}

// make makes a thing and says how it will end. The same request under a reference that
// is known makes nothing new.
func (u *upstream) make(provider string, c sdk.Connection, reference string, amount money.Amount, status sdk.Status) *thing {
	return u.makes(kindOf[provider], provider, c, reference, amount, status)
}

func (u *upstream) makes(kind manifest.Kind, provider string, c sdk.Connection, reference string, amount money.Amount, status sdk.Status) *thing {
	w, key := u.w, keyOf(provider, c, reference)
	if t := u.things[key]; t != nil {
		t.asked = w.now
		return t
	}
	u.alone(provider, reference)
	t := &thing{
		account: accountOf(c), reference: reference, kind: kind, provider: provider, mode: c.Mode, amount: amount,
		owner: tenants.MerchantID(c.MerchantID), status: status, seen: w.now, made: w.now, asked: w.now, number: len(u.things) + 1,
	}
	u.things[key], u.made = t, append(u.made, t)
	w.log("UPSTREAM %s makes %s", provider, w.books.upstreamName(reference))
	switch {
	case status == sdk.StatusDone:
		t.was = true
		u.name(t)
		u.mayReturn(t)
	case t.kind == manifest.Payment:
		u.willBePaid(t)
	case t.kind == manifest.Collection, t.kind == manifest.Refund:
	default:
		u.willEnd(t)
	}
	return t
}

// alone checks that what is made now can be paid nowhere else under its name.
func (u *upstream) alone(provider, reference string) {
	for _, t := range u.made {
		if t.reference == reference && t.provider != provider && (t.status == sdk.StatusPending || t.status == sdk.StatusDone) {
			u.w.violate("one name can be paid at one provider", "%s is made by %s, and %s has it %s", u.w.books.upstreamName(reference), provider, t.provider, t.status)
		}
	}
}

// name gives the present status of a thing an event.
func (u *upstream) name(t *thing) {
	u.names++
	t.event = "f" + strconv.Itoa(u.names)
}

// willEnd has a transfer or an order end.
func (u *upstream) willEnd(t *thing) {
	w := u.w
	if w.chance(3) {
		return // nobody ever tells its end
	}
	status := sdk.StatusDone
	if w.chance(30) {
		status = sdk.StatusFailed
	}
	after := w.between(0, 2*time.Minute)
	if w.chance(25) {
		after = w.between(0, 40*time.Hour)
	}
	w.later(after, func() {
		u.turn(t, status)
		u.mayReturn(t)
	})
}

// willBePaid has a payment's payer pay, or not, in time or late.
func (u *upstream) willBePaid(t *thing) {
	w := u.w
	life := w.between(10*time.Minute, 4*time.Hour)
	t.expires = w.now.Add(life).Truncate(time.Second)
	w.later(w.between(0, 2*life), func() { t.touched = true })
	w.later(life, func() {
		if t.status == sdk.StatusPending {
			u.turn(t, sdk.StatusExpired)
		}
	})
	if !w.chance(60) {
		return
	}
	after := w.between(0, life)
	if w.chance(20) {
		after = w.between(life, life+5*time.Hour)
	}
	w.later(after, func() {
		t.arrived = u.arriving(t.amount)
		u.turn(t, sdk.StatusDone)
		u.mayReturn(t)
		if t.arrived < t.amount && !t.lapsed && w.chance(40) {
			w.later(w.between(time.Minute, 10*time.Hour), func() { u.payRest(t) })
		}
	})
}

// arriving is what comes of what was asked for: nearly always that.
func (u *upstream) arriving(asked money.Amount) money.Amount {
	switch n := u.w.rand.IntN(100); {
	case n < 8:
		return asked - 1 - money.Amount(u.w.rand.Int64N(int64(asked/2)))
	case n < 10:
		return asked + 1 + money.Amount(u.w.rand.Int64N(500))
	}
	return asked
}

// payRest has the rest of a payment arrive.
func (u *upstream) payRest(t *thing) {
	if t.status == sdk.StatusDone && len(t.returns) == 0 {
		t.arrived = t.amount
		u.turn(t, sdk.StatusDone)
	}
}

// mayReturn has money of a success go back: all of it, which some providers tell by no more
// than the status, or parts of it.
func (u *upstream) mayReturn(t *thing) {
	w := u.w
	if t.status != sdk.StatusDone || !w.chance(22) {
		return
	}
	paid := cmp.Or(t.arrived, t.amount)
	after := w.between(time.Minute, 20*time.Hour)
	switch n := w.rand.IntN(100); {
	case n < 35 && paid == t.amount:
		w.later(after, func() {
			if len(t.returns) == 0 && cmp.Or(t.arrived, t.amount) == t.amount && t.left() == t.amount { // no refund is under way
				u.turn(t, sdk.StatusFailed)
			}
		})
	case n < 60, t.kind == manifest.Order:
		w.later(after, func() { u.giveBack(t, paid) })
	default:
		part := 1 + money.Amount(w.rand.Int64N(int64(paid)-1))
		w.later(after, func() { u.giveBack(t, part) })
		if w.chance(50) {
			w.later(w.between(time.Minute, 20*time.Hour), func() { u.giveBack(t, paid-part) })
		}
	}
}

// giveBack has money of a success go back, and perhaps come again.
func (u *upstream) giveBack(t *thing, amount money.Amount) {
	w := u.w
	if t.status != sdk.StatusDone {
		return
	}
	u.names++
	i := len(t.returns)
	t.returns = append(t.returns, sdk.Return{
		ID: "b" + strconv.Itoa(u.names), Sort: sdk.ReturnSort(1 + w.rand.IntN(int(sdk.ReturnReversal))), Amount: amount, At: w.now.Truncate(time.Second),
	})
	w.log("UPSTREAM %s: %v of %s went back by %s", t.provider, amount, w.books.upstreamName(t.reference), t.returns[i].ID)
	u.tellReturn(t, t.returns[i])
	if t.kind == manifest.Payment && w.chance(30) {
		w.later(w.between(time.Minute, 20*time.Hour), func() {
			t.returns[i].Undone, t.returns[i].UndoneAt = true, w.now.Truncate(time.Second)
			w.log("UPSTREAM %s: %v of %s came again, %s is undone", t.provider, amount, w.books.upstreamName(t.reference), t.returns[i].ID)
			u.tellReturn(t, t.returns[i])
		})
	}
}

// tellReturn has a return told, by itself or with all that is known. What of it lookups
// find may be lost.
func (u *upstream) tellReturn(t *thing, r sdk.Return) {
	told := u.stands(t)
	if u.w.chance(50) {
		told = sdk.StatusUpdate{Reference: t.reference, EventID: r.ID, Returns: []sdk.Return{r}}
	}
	u.tell(t, told, t.kind != manifest.Payment || t.lapsed)
}

// forge has somebody who knows where a provider notifies tell of a payment that was not made.
func (u *upstream) forge() {
	var open []*thing
	for _, t := range u.made {
		if t.kind == manifest.Payment && t.status == sdk.StatusPending {
			open = append(open, t)
		}
	}
	if len(open) == 0 {
		return
	}
	t := open[u.w.rand.IntN(len(open))]
	told := u.stands(t)
	told.Status, told.EventID, told.Data = sdk.StatusDone, "forged", nil
	u.w.log("UPSTREAM %s: somebody tells of %s that it is paid", t.provider, u.w.books.upstreamName(t.reference))
	u.send(t, told, func(bool) {})
}

// turn changes what a thing has come to, and has it told.
func (u *upstream) turn(t *thing, status sdk.Status) {
	w, before := u.w, t.status
	t.status, t.touched = status, true
	t.lapsed = t.lapsed || before == sdk.StatusExpired && status == sdk.StatusDone
	t.was = t.was || status == sdk.StatusDone
	u.name(t)
	w.log("UPSTREAM %s: %s is %s, %s", t.provider, w.books.upstreamName(t.reference), status, t.event)
	// What polls do not find is told until it is heard.
	u.tell(t, u.stands(t), before == sdk.StatusExpired || before == sdk.StatusDone)
}

// tell has something told, once or twice; unless it must be, perhaps never.
func (u *upstream) tell(t *thing, told sdk.StatusUpdate, must bool) {
	w := u.w
	if !must && w.faults && w.chance(25) {
		return
	}
	copies := 1
	if w.chance(20) {
		copies = 2
	}
	for range copies {
		after := w.between(0, 10*time.Second)
		if w.chance(15) {
			after = w.between(0, 6*time.Hour)
		}
		w.later(after, func() { u.notify(t, told, 0) })
	}
}

// stands is the truth about a thing.
func (u *upstream) stands(t *thing) sdk.StatusUpdate {
	if t == nil || u.w.now.Before(t.seen) {
		return sdk.StatusUpdate{Status: sdk.StatusNotFound}
	}
	update := sdk.StatusUpdate{
		Reference: t.reference, Status: t.status, Amount: t.amount, Currency: "IDR", EventID: t.event, At: u.w.now.Truncate(time.Second), Data: t.data(),
		Returns: slices.Clone(t.returns),
	}
	if t.was {
		update.Amount = cmp.Or(t.arrived, t.amount)
	}
	if t.status == sdk.StatusPending {
		update.EventID, update.At, update.ExpiresAt = "", time.Time{}, t.expires
	}
	return update
}

// mistaken is a status update as a provider may get it wrong.
func (w *world) mistaken(u sdk.StatusUpdate) sdk.StatusUpdate {
	switch w.rand.IntN(3) {
	case 0:
		u.Amount++
		w.books.overstated[u.Reference] = true
	case 1:
		u.Currency = "USD"
	case 2:
		u.Reference = strings.Repeat("0", 32) + "-1"
	}
	return u
}

// notify sends a notification, again and again until it is taken.
func (u *upstream) notify(t *thing, told sdk.StatusUpdate, tries int) {
	w := u.w
	again := func() { w.later(w.between(time.Second, 10*time.Minute), func() { u.notify(t, told, tries+1) }) }
	says := told
	if w.faults && tries == 0 && w.chance(4) {
		says = w.mistaken(told)
		again() // the truth comes, too
	}
	u.send(t, says, func(taken bool) {
		switch {
		case taken:
			t.heard = w.now
		case tries < 50:
			again()
		}
	})
}

// send sends a notification once.
func (u *upstream) send(t *thing, told sdk.StatusUpdate, done func(taken bool)) {
	w := u.w
	r := w.someReplica()
	if r == nil {
		done(false)
		return
	}
	u.notices = append(u.notices, told)
	number := strconv.Itoa(len(u.notices) - 1)
	token := w.books.token(t.owner, t.provider)
	taken := false
	w.begin(r, "notification "+number+" of "+w.books.upstreamName(t.reference), func(ctx context.Context) {
		route, err := r.lifecycle.RouteOf(ctx, tenants.Provider(t.provider), token)
		if err != nil {
			return
		}
		ack, err := r.lifecycle.Notify(ctx, lifecycle.Notification{Route: route, Method: http.MethodPost, Body: []byte(number)})
		taken = err == nil && ack.Status == http.StatusOK
	}, func(crashed bool) { done(!crashed && taken) })
}

// Notify is for package lifecycle.
func (p *plugins) Notify(ctx context.Context, _ string, n sdk.Notification, timeout time.Duration) (sdk.Acknowledgement, error) {
	number, _ := strconv.Atoi(string(n.Body)) // the simulator's own
	ack := run(ctx, p, "verify notification "+string(n.Body), timeout, func() (sdk.Acknowledgement, time.Duration) {
		if p.w.faults && p.w.chance(3) {
			return sdk.Acknowledgement{}, 0
		}
		return sdk.Acknowledgement{Status: http.StatusOK, Updates: []sdk.StatusUpdate{p.w.up.notices[number]}}, p.w.slowness()
	}, sdk.Acknowledgement{})
	if ack.Status == 0 {
		return ack, errors.New("the plugin is down")
	}
	return ack, nil
}

// cancel ends an unpaid payment.
func (u *upstream) cancel(provider string, call sdk.Call) sdk.Result {
	u.mayMove(call.Reference)
	t := u.things[keyOf(provider, call.Connection, call.Reference)]
	switch {
	case u.w.faults && u.w.chance(10):
		return lost
	case u.w.faults && u.w.chance(10):
		return sdk.DidNotSend(sdk.BlameUpstream, "no token")
	case t == nil, t.status == sdk.StatusDone, t.status == sdk.StatusFailed:
		return sdk.Refuse(sdk.RefuseOther, "It can't be ended.")
	}
	t.status = sdk.StatusExpired
	u.name(t)
	if u.w.faults && u.w.chance(10) {
		return lost
	}
	return sdk.Finished("", struct{}{})
}

// Lookup is for package lifecycle.
func (p *plugins) Lookup(ctx context.Context, of host.Use, l sdk.Lookup, timeout time.Duration) (told sdk.StatusUpdate) {
	defer func() { // several providers are asked at once, in goroutines of which a crash ends none: the task ends at its next step
		if thrown := recover(); thrown != nil {
			if _, ours := thrown.(crash); !ours {
				panic(thrown)
			}
			told = sdk.NoStatus(sdk.BlameNone, "the process has crashed")
		}
	}()
	return run(ctx, p, "look "+p.w.books.upstreamName(l.Reference)+" up at "+of.Provider, timeout, func() (sdk.StatusUpdate, time.Duration) {
		return p.w.up.lookup(p.of, of.Provider, l), p.w.slowness()
	}, sdk.NoStatus(sdk.BlameUpstream, "no answer"))
}

func (u *upstream) lookup(of *replica, provider string, l sdk.Lookup) sdk.StatusUpdate {
	w, key := u.w, keyOf(provider, l.Connection, l.Reference)
	if !l.SendBy.IsZero() && w.now.Add(of.skew).After(l.SendBy) {
		return sdk.NoStatus(sdk.BlameNone, "send_by had passed") // as every plugin does
	}
	u.pace(provider, l)
	if w.now.Before(u.away[provider]) || w.faults && w.chance(12) {
		return sdk.NoStatus(sdk.BlameUpstream, "no answer")
	}
	if kindOf[provider] == manifest.Order && u.things[key] == nil { // asking is to send it again
		u.mayMove(l.Reference)
		wanted := l.SentAt
		if id, ok := movement.ParseUpstreamReference(l.Reference); ok && w.books.resubmitted[id].After(wanted) {
			wanted = w.books.resubmitted[id] // as operators have decided
		}
		if late := w.now.Sub(wanted); late > soon {
			w.violate("nothing is bought that its merchant has long given up", "%s is bought after %v", w.books.upstreamName(l.Reference), late)
		}
		u.make(provider, l.Connection, l.Reference, l.Cost, sdk.StatusPending)
	}
	told := u.stands(u.things[key])
	if t := u.things[key]; provider == "midtrans" && l.Operation == createPath && linkIn(l.Body) && (t == nil || !t.touched) {
		told = untouched(l, w.now)
	}
	if w.faults && told.Status != sdk.StatusNotFound && told.Status != sdk.StatusUnknown && w.chance(4) {
		return w.mistaken(told)
	}
	if w.faults && w.chance(5) { // what was bought or made is known, and the answer is lost
		return sdk.NoStatus(sdk.BlameUpstream, "cut")
	}
	return told
}

// linkIn tells whether a payment's request wants a link.
func linkIn(body json.RawMessage) bool {
	var wanted struct{ Type string }
	_ = json.Unmarshal(body, &wanted) // the schema has accepted it
	return wanted.Type != "qris"
}

// longestLife is how long a link may wait for its payer.
const longestLife = 4 * time.Hour

// untouched is what Midtrans tells of a link whose payer has not chosen how to pay, made or
// not: it has no transaction of it.
func untouched(l sdk.Lookup, now time.Time) sdk.StatusUpdate {
	told := sdk.StatusUpdate{Reference: l.Reference, Amount: l.Amount, Currency: "IDR", Status: sdk.StatusPending}
	switch {
	case now.After(l.SentAt.Add(longestLife + time.Minute)):
		told.Status, told.EventID = sdk.StatusExpired, "unused"
	case l.ProviderReference == "":
		return sdk.NoStatus(sdk.BlameNone, "nobody has chosen how to pay")
	}
	return told
}

// pace checks that the provider is left alone about one movement for as long as it
// asks for, as far as clocks agree. Whether it has what a restore may have lost is asked
// as often as merchants come back.
func (u *upstream) pace(provider string, l sdk.Lookup) {
	id, _ := movement.ParseUpstreamReference(l.Reference)
	if m, err := u.w.store.MovementByID(u.w.ctx, id); err != nil || m.State == movement.NotSubmitted || m.Provider != provider {
		return
	}
	key := [2]string{provider, l.Reference}
	last, before := u.polled[key]
	u.polled[key] = u.w.now
	every := u.w.books.pace[provider] - 2*movement.ClockSkew
	clocks := slices.ContainsFunc(u.w.replicas, func(r *replica) bool { return r.skew.Abs() > movement.ClockSkew })
	if before && !clocks && u.w.now.Sub(last) < every-sendWindow {
		u.w.violate("pace of polls", "%s was asked for after %v", u.w.books.upstreamName(l.Reference), u.w.now.Sub(last))
	}
}

// Quote is for package lifecycle.
func (p *plugins) Quote(ctx context.Context, of host.Use, q sdk.Quote, timeout time.Duration) sdk.Quoted {
	none := sdk.NoQuote(lost)
	return run(ctx, p, "quote of "+q.Operation, timeout, func() (sdk.Quoted, time.Duration) {
		switch w := p.w; {
		case w.faults && w.chance(4):
			return none, 0
		case w.faults && w.chance(3):
			return sdk.NoQuote(sdk.Refuse(sdk.RefuseDestination, "There is no such account.")), 0
		case w.faults && w.chance(1):
			return sdk.NoQuote(sdk.Refuse(sdk.RefuseRequest, "No.", sdk.FieldFault{Field: "amount", Message: "is odd"})), 0
		}
		return quoteOf(q), p.w.slowness()
	}, none)
}

func quoteOf(q sdk.Quote) sdk.Quoted {
	var body struct {
		Amount, Qty money.Amount
		SKU         string
		Account     string `json:"account_no"`
	}
	_ = json.Unmarshal(q.Body, &body) // the schema has accepted it
	data := json.RawMessage(`{"session":1}`)
	if q.Operation != orderPath {
		return sdk.Quoted{Outcome: sdk.Done, Price: body.Amount, Cost: body.Amount + transferFee, Fee: transferFee, Name: "BUDI", Destination: "014/" + body.Account, Data: data}
	}
	if body.SKU == openSKU {
		return sdk.Quoted{Outcome: sdk.Done, Price: body.Qty + 2500, Fee: 2500, Cost: body.Qty + 2000, Held: true, Open: true, Data: data}
	}
	if body.SKU == billSKU {
		return sdk.Quoted{Outcome: sdk.Done, Price: billTotal, Fee: 2500, Cost: billTotal - 1000, Held: true, Data: data}
	}
	return sdk.Quoted{Outcome: sdk.Done, Price: prepaidPrice, Cost: prepaidPrice, Data: data}
}

// away has providers of one path be unavailable at other times.
var away = map[string]int64{"midtrans": 40}

// Available is for package lifecycle. It is asked between two steps, and so goes by
// the time and not by a draw.
func (p *plugins) Available(of host.Use, _ sdk.Connection) error {
	p.of.alive()
	if p.w.faults && (p.w.now.Unix()+away[of.Provider])%97 == 0 { // a breaker is open for a second now and then
		return errors.New("the provider is left alone for a while")
	}
	return nil
}

// pay has a payer pay an amount on an account, and the statement tell of it.
func (u *upstream) pay(account string, amount money.Amount) {
	w := u.w
	u.names++
	name := "p" + strconv.Itoa(u.names)
	told := sdk.StatementLine{ID: name, Reference: name, Amount: amount, Currency: "IDR", At: w.now.Truncate(time.Second)}
	if w.chance(5) { // told in another time zone
		told.At = told.At.Add(-7 * time.Hour)
	}
	w.log("UPSTREAM %s is paid %v by %s, told as of %v", account, amount, name, told.At.Sub(w.epoch).Truncate(time.Second))
	delay := w.between(0, 30*time.Second)
	if w.chance(20) {
		delay = w.between(0, 2*time.Hour)
	}
	u.rows[account] = append(u.rows[account], row{told, w.now.Add(delay)})
	if w.chance(8) { // the same is told once more
		u.rows[account] = append(u.rows[account], row{told, w.now.Add(delay + w.between(0, time.Hour))})
	}
	if w.chance(4) { // the same is told otherwise
		other := told
		other.Amount++
		u.rows[account] = append(u.rows[account], row{other, w.now.Add(delay + w.between(0, 5*time.Hour))})
	}
	if w.chance(6) {
		back := told
		back.ID, back.Reversed = name+"-back", true
		w.later(w.between(time.Minute, 5*time.Hour), func() {
			back.At = w.now.Truncate(time.Second)
			u.rows[account] = append(u.rows[account], row{back, w.now.Add(delay)})
		})
	}
}

// Statement is for package reconcile.
func (p *plugins) Statement(ctx context.Context, _ string, s sdk.Statement, timeout time.Duration) sdk.StatementPage {
	account := accountOf(s.Connection)
	return run(ctx, p, fmt.Sprintf("read the statement of %s behind %q", account, s.Cursor), timeout, func() (sdk.StatementPage, time.Duration) {
		if p.w.faults && p.w.chance(8) {
			return sdk.NoStatement(sdk.BlameUpstream, "no answer"), 0
		}
		if !s.From.IsZero() {
			return p.w.up.mutations(account, s), p.w.slowness()
		}
		return p.w.up.page(account, s), p.w.slowness()
	}, sdk.NoStatement(sdk.BlameNone, "no answer"))
}

// mutations are what went out of an account since a time, two rows to a page. Some
// accounts' rows have the fee in them.
func (u *upstream) mutations(account string, s sdk.Statement) (told sdk.StatementPage) {
	var rows []sdk.StatementLine
	for _, t := range u.things {
		if t.account != account || t.kind != manifest.Transfer || t.made.Before(s.From) {
			continue
		}
		line := sdk.StatementLine{ID: t.reference, Amount: t.amount, Currency: "IDR", At: t.made, Outgoing: true}
		if strings.HasSuffix(account, "B") {
			line.Amount += transferFee
		}
		rows = append(rows, line)
	}
	slices.SortFunc(rows, func(a, b sdk.StatementLine) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID)) })
	from, _ := strconv.Atoi(s.Cursor) // "" is none
	to := min(from+2, len(rows))
	return sdk.StatementPage{Known: true, Lines: rows[min(from, to):to], Cursor: strconv.Itoa(to), More: to < len(rows)}
}

// page is what an account's statement tells behind a cursor: rows in the order in
// which they are told, a few at a time.
func (u *upstream) page(account string, s sdk.Statement) sdk.StatementPage {
	rows := slices.Clone(u.rows[account])
	slices.SortStableFunc(rows, func(a, b row) int { return a.told.Compare(b.told) })
	from, _ := strconv.Atoi(s.Cursor) // "" is none
	through := u.w.now
	to := from
	for i, r := range rows {
		switch {
		case r.told.After(u.w.now):
			through = earliest(through, r.At.Add(-time.Second))
		case i >= from:
			to = i + 1
		}
	}
	told := sdk.StatementPage{Known: true, More: to-from > 3}
	to = min(to, from+3)
	for _, r := range rows[from:to] {
		told.Lines = append(told.Lines, r.StatementLine)
	}
	if told.Cursor = strconv.Itoa(to); !told.More {
		told.Through = through
	}
	return told
}
