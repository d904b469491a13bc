package adapter

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

const (
	typeQRIS = "qris"

	linkLife = 24 * time.Hour
	qrisLife = 30 * time.Minute
)

// adapter is the plugin: the accounts in use, and the time.
type adapter struct {
	accounts sdk.Instances[*client]
	now      func() time.Time
}

// Handlers returns the handlers of the midtrans manifest.
func Handlers() sdk.Handlers { return (&adapter{now: time.Now}).handlers() }

func (a *adapter) handlers() sdk.Handlers {
	return sdk.Handlers{
		Calls: map[string]func(context.Context, sdk.Call) sdk.Result{
			"/payments/create": a.create,
			"/payments/cancel": a.cancel,
			opRefund:           a.refund,
		},
		Lookup: a.lookup,
		Notify: a.notify,
		Verify: verify,
	}
}

// order is the body of a create, as far as the upstream gets to see it.
type order struct {
	Type        string `json:"type"`
	PayerEmail  string `json:"payer_email"`
	Description string `json:"description"`
	SuccessURL  string `json:"success_url"`
	// ExpiresIn is in seconds. JSON Schema calls 300.0 an integer, too, so it is
	// not read as one here.
	ExpiresIn float64 `json:"expires_in"`
}

func readOrder(body json.RawMessage) (order, error) {
	var o order
	if err := json.Unmarshal(body, &o); err != nil {
		return order{}, fmt.Errorf("read the request: %w", err)
	}
	return o, nil
}

func (o order) isLink() bool { return o.Type != typeQRIS }

// life is how long the payment stays open, in whole minutes: the upstream counts no
// seconds.
func (o order) life() time.Duration {
	switch {
	case o.ExpiresIn > 0:
		life := time.Duration(o.ExpiresIn) * time.Second
		return (life + time.Minute - 1).Truncate(time.Minute)
	case o.isLink():
		return linkLife
	}
	return qrisLife
}

// payable is the result of a create: what the payer is given.
type payable struct {
	PaymentURL string `json:"payment_url,omitempty"`
	QRString   string `json:"qr_string,omitempty"`
}

func (a *adapter) create(ctx context.Context, call sdk.Call) sdk.Result {
	acc, err := a.account(call.Connection)
	if err != nil {
		return sdk.DidNotSend(sdk.BlameAccount, err.Error())
	}
	o, err := readOrder(call.Body)
	if err != nil {
		return sdk.DidNotSend(sdk.BlameNone, err.Error())
	}
	if o.isLink() {
		return acc.createLink(ctx, call, o, a.now())
	}
	return acc.charge(ctx, call, o, a.now())
}

// tooLate tells that the moment has passed until which a call may be sent.
func tooLate(call sdk.Call) bool {
	return !call.SendBy.IsZero() && time.Now().After(call.SendBy)
}

func sendByPassed() sdk.Result {
	return sdk.DidNotSend(sdk.BlameNone, "send_by had passed before the request was sent")
}

func (a *adapter) lookup(ctx context.Context, l sdk.Lookup) sdk.StatusUpdate {
	acc, err := a.account(l.Connection)
	if err != nil {
		return sdk.NoStatus(sdk.BlameAccount, err.Error())
	}
	if l.Operation == opRefund {
		return acc.lookupRefund(ctx, l)
	}
	o, err := readOrder(l.Body)
	if err != nil {
		return sdk.NoStatus(sdk.BlameNone, err.Error())
	}
	now := a.now() // before it is asked, so that nothing is missed at the last moment
	t, p := acc.status(ctx, l.Reference)
	switch {
	case p != nil && p.missing() && o.isLink():
		return untouched(l, o, now)
	case p != nil:
		return p.statusUpdate()
	case o.isLink() && t.failedTry() && !over(l, o, now):
		return t.open()
	case o.isLink() && t.Status == "expire" && !t.settled() && now.Before(end(l, o)):
		return t.open() // a try whose time is over before the link's
	case o.isLink() && t.failedTry():
		return t.ended(sdk.StatusExpired)
	}
	return t.statusUpdate()
}
