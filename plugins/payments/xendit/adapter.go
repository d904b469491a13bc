package xendit

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// adapter is the plugin: the accounts in use, what was tried, and the time.
type adapter struct {
	accounts sdk.Instances[*account]
	attempts attempts
	now      func() time.Time
}

// Handlers returns the handlers of the payments manifest.
func Handlers() sdk.Handlers {
	return (&adapter{now: time.Now}).handlers()
}

func (a *adapter) handlers() sdk.Handlers {
	return sdk.Handlers{
		Calls: map[string]func(context.Context, sdk.Call) sdk.Result{
			"/payments/create": a.create,
			"/payments/cancel": a.cancel,
			refundOperation:    a.refund,
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
	// ExpiresIn is in seconds. JSON Schema calls 60.0 an integer, too, so it is
	// not read as one here.
	ExpiresIn float64 `json:"expires_in"`
}

const (
	typeQRIS = "qris"

	linkLife = 24 * time.Hour
	qrisLife = 30 * time.Minute
)

func readOrder(body json.RawMessage) (order, error) {
	var o order
	if err := json.Unmarshal(body, &o); err != nil {
		return order{}, fmt.Errorf("read the request: %w", err)
	}
	return o, nil
}

// life is how long the payment stays open.
func (o order) life() time.Duration {
	switch {
	case o.ExpiresIn > 0:
		return time.Duration(o.ExpiresIn) * time.Second
	case o.Type == typeQRIS:
		return qrisLife
	}
	return linkLife
}

// payable is the result of a create: what the payer is given.
type payable struct {
	PaymentURL string `json:"payment_url,omitempty"`
	QRString   string `json:"qr_string,omitempty"`
}

func (p payable) json() json.RawMessage {
	encoded, err := json.Marshal(p)
	if err != nil {
		return nil // cannot be: two strings
	}
	return encoded
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
	if o.Type == typeQRIS || acc.linksAreQR {
		return acc.createQR(ctx, call, o, a.now())
	}
	return a.once(call.Reference, func() (sdk.Result, bool) {
		return acc.resumeInvoice(ctx, call)
	}, func(now time.Time) sdk.Result {
		return acc.createInvoice(ctx, call, o, now)
	})
}

// once makes what a reference names, unless this process has tried before: then resume
// tells what was made, and whether the upstream says that nothing was. While the attempt
// before may be under way nothing is made.
func (a *adapter) once(reference string, resume func() (result sdk.Result, missing bool), create func(now time.Time) sdk.Result) sdk.Result {
	now := a.now()
	if before := a.attempts.begin(reference, now); !before.IsZero() {
		found, missing := resume()
		if !missing || now.Sub(before) < attemptLasts {
			return found
		}
	}
	result := create(now)
	switch {
	case result.Outcome == sdk.Refused, result.Outcome == sdk.NotSent:
		a.attempts.forget(reference)
	case result.Errored:
		a.attempts.ended(reference, a.now())
	}
	return result
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
	switch {
	case l.Operation == refundOperation:
		return acc.findRefund(ctx, l)
	case isQR(l.ProviderReference):
		return acc.findQR(ctx, l.ProviderReference, l.ExpiresAt, a.now())
	case l.ProviderReference != "":
		return acc.addRefunds(ctx, acc.findInvoice(ctx, l.ProviderReference))
	}
	o, err := readOrder(l.Body)
	if err != nil {
		return sdk.NoStatus(sdk.BlameNone, err.Error())
	}
	if o.Type == typeQRIS {
		return acc.findQRByReference(ctx, l.Reference, l.ExpiresAt, a.now())
	}
	if acc.linksAreQR {
		found := acc.findQRByReference(ctx, l.Reference, l.ExpiresAt, a.now())
		if found.Status != sdk.StatusNotFound {
			return found
		}
	}
	// The setting may have changed since. An invoice can be paid although its
	// answer was lost, because the upstream may mail it; a QR code that nobody
	// was given can't.
	return acc.addRefunds(ctx, acc.findInvoiceByReference(ctx, l.Reference))
}
