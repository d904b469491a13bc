package simulator

import (
	"cmp"
	"encoding/json"
	"strconv"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

const refundPath, refundStatusPath = "/payments/refund", "/payments/refund/status"

// willRefund has a merchant give a payment back, all of it or parts, whether it is paid or
// not, and perhaps ask for too much.
func (w *world) willRefund(of *intent, begins time.Duration) {
	for n := range 1 + w.rand.IntN(3) {
		in := &intent{of: of.of, kind: manifest.Refund, reference: "f" + strconv.Itoa(n) + of.reference}
		in.body = catalog.Document{"external_id": of.reference, "refund_id": in.reference}
		if w.chance(70) {
			in.body["amount"] = json.Number(strconv.Itoa(500 * (1 + w.rand.IntN(20))))
		}
		in.changed = catalog.Document{"external_id": of.reference, "refund_id": in.reference, "amount": json.Number("77")}
		w.intents = append(w.intents, in)
		first := begins + w.between(10*time.Minute, 20*time.Hour)
		w.later(first, func() { w.create(in, false) })
		for w.chance(45) {
			w.later(first+w.pause(), func() { w.create(in, false) })
		}
		for range w.rand.IntN(3) {
			w.later(first+w.pause(), func() { w.ask(in, refundStatusPath, "status") })
		}
		if w.chance(10) {
			w.later(first+w.pause(), func() { w.create(in, true) })
		}
	}
}

// refund makes a refund, which ends at once or later. None is made of more than is left.
func (u *upstream) refund(provider string, call sdk.Call, status sdk.Status) *thing {
	if !u.refunds(provider, call) {
		return nil
	}
	w, of := u.w, u.things[keyOf(provider, call.Connection, call.Payment.Reference)]
	t := u.makes(manifest.Refund, provider, call.Connection, call.Reference, call.Amount, sdk.StatusPending)
	if t.of != nil { // it was there
		return t
	}
	t.of = of
	of.refunds = append(of.refunds, t)
	ends := sdk.StatusDone
	if w.chance(20) {
		ends = sdk.StatusFailed
	}
	if status == sdk.StatusDone {
		u.endRefund(t, sdk.StatusDone)
		return t
	}
	after := w.between(0, 2*time.Minute)
	if w.chance(25) {
		after = w.between(0, 40*time.Hour)
	}
	w.later(after, func() { u.endRefund(t, ends) })
	return t
}

// refunds tells whether a refund is made, or was.
func (u *upstream) refunds(provider string, call sdk.Call) bool {
	of := u.things[keyOf(provider, call.Connection, call.Payment.Reference)]
	u.asksBack(of, call)
	if u.things[keyOf(provider, call.Connection, call.Reference)] != nil {
		return true
	}
	return of != nil && of.status == sdk.StatusDone && call.Amount <= of.left()
}

// endRefund ends a refund. It is told by itself, and as a return of its payment. Money that
// went may come again.
func (u *upstream) endRefund(t *thing, status sdk.Status) {
	w := u.w
	u.turn(t, status)
	if status != sdk.StatusDone {
		return
	}
	i := len(t.of.returns)
	t.of.returns = append(t.of.returns, sdk.Return{
		ID: "up-" + strconv.Itoa(t.number), Sort: sdk.ReturnRefund, Amount: t.amount, At: w.now.Truncate(time.Second), Reference: t.reference,
	})
	if w.chance(60) {
		u.tellReturn(t.of, t.of.returns[i])
	}
	if w.chance(12) {
		w.later(w.between(time.Minute, 20*time.Hour), func() {
			t.of.returns[i].Undone, t.of.returns[i].UndoneAt = true, w.now.Truncate(time.Second)
			u.turn(t, sdk.StatusFailed)
			u.tellReturn(t.of, t.of.returns[i])
		})
	}
}

// left is what of a payment can go back.
func (t *thing) left() money.Amount {
	left := cmp.Or(t.arrived, t.amount)
	for _, r := range t.returns {
		if !r.Undone {
			left -= r.Amount
		}
	}
	for _, refund := range t.refunds {
		if refund.status == sdk.StatusPending {
			left -= refund.amount
		}
	}
	return left
}

// asksBack checks that no more is asked to go back than has come. What somebody else took
// meanwhile the gateway need not know.
func (u *upstream) asksBack(of *thing, call sdk.Call) {
	id, _ := movement.ParseUpstreamReference(call.Reference)
	if of == nil || u.w.books.overridden[id] || u.w.restores > 0 {
		return
	}
	asked := call.Amount
	for _, refund := range of.refunds {
		id, _ := movement.ParseUpstreamReference(refund.reference)
		if u.w.books.overridden[id] {
			return
		}
		if refund.status != sdk.StatusFailed && refund.reference != call.Reference {
			asked += refund.amount
		}
	}
	came := cmp.Or(of.arrived, of.amount)
	if u.w.books.overstated[of.reference] { // nobody but the provider knows better
		came++
	}
	if asked > came {
		u.w.violate("no more is given back than has come", "of %s %v came, and %v are to go back", u.w.books.upstreamName(of.reference), came, asked)
	}
}

// knowsRefunds tells whether nobody but providers has said how the refunds of a payment
// ended.
func (w *world) knowsRefunds(r record) bool {
	for _, id := range w.books.ids {
		m, err := w.store.MovementByID(w.ctx, id)
		of := err == nil && m.Kind == manifest.Refund && m.Owner == r.Owner && string(m.Field("external_id")) == strconv.Quote(r.Reference)
		if of && (w.books.overridden[id] || w.recordOf(id).doubted(movement.ReasonContradiction, movement.ReasonCurrency, movement.ReasonAmount)) {
			return false
		}
	}
	return true
}
