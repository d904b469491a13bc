package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Notify has the plugin verify an inbound notification and settles what it
// says. The acknowledgement is to be sent only when the error is nil: then
// everything is committed. An unknown route is fault.NotFound.
func (e *Engine) Notify(ctx context.Context, n Notification) (sdk.Acknowledgement, error) {
	_, c, err := e.Accounts.ByNotifyToken(ctx, e.Now(), n.Provider, n.Token)
	if errors.Is(err, tenants.ErrNotFound) {
		return sdk.Acknowledgement{}, fault.New(fault.NotFound, "There is no such path.")
	}
	if err != nil {
		return sdk.Acknowledgement{}, fault.From(err)
	}
	connection, err := e.unseal(c)
	if err != nil {
		return sdk.Acknowledgement{}, err
	}
	ack, err := e.Providers.Notify(ctx, string(n.Provider), sdk.Notification{
		Connection: connection, RequestID: n.RequestID, Method: n.Method, Query: n.Query, Header: n.Header, Body: n.Body,
	}, notifyTimeout)
	if err != nil {
		return sdk.Acknowledgement{}, fault.New(fault.ProviderUnavailable, "The notification can't be taken now.").Because(err)
	}
	if ack.Status >= http.StatusBadRequest {
		// What could not be verified says nothing, whatever stands in it.
		e.Log.WarnContext(ctx, "a notification was not taken", "merchant", string(c.MerchantID), "mode", string(c.Mode),
			"provider", string(c.Provider), "status", ack.Status, "detail", ack.Detail)
		return ack, nil
	}
	for _, f := range ack.Updates {
		if err := e.heard(ctx, c, f); err != nil {
			return sdk.Acknowledgement{}, fault.From(err)
		}
	}
	return ack, nil
}

// heard settles one verified finding of a notification, after making sure that
// it is about a movement of the very connection it came in on.
func (e *Engine) heard(ctx context.Context, c tenants.Connection, f sdk.StatusUpdate) error {
	owner := movement.Owner{MerchantID: string(c.MerchantID), Mode: string(c.Mode)}
	m, err := e.named(ctx, f.Reference)
	if err == nil && !sentOn(c, m) {
		err = store.ErrNotFound
	}
	if errors.Is(err, store.ErrNotFound) {
		_, err := e.Records.AddException(ctx, movement.Exception{
			Owner: owner, Subject: printable(f.Reference), Reason: reasonUnknown, FactID: printable(f.EventID), Provider: string(c.Provider),
			Detail: "a notification names a movement that this connection does not have", At: e.Now(),
		})
		return err
	}
	if err != nil {
		return err
	}
	op, err := e.operationOf(m)
	if err != nil {
		return err
	}
	_, err = e.hear(ctx, op, m, f, "notification")
	return err
}

// sentOn tells whether a movement was sent on a connection: a merchant's own
// speaks of that merchant alone, the platform's of all that used it.
func sentOn(c tenants.Connection, m movement.Movement) bool {
	if m.Provider != string(c.Provider) || m.Owner.Mode != string(c.Mode) {
		return false
	}
	if c.MerchantID == tenants.Platform {
		return m.ConnectionOwner == manifest.OwnerPlatform
	}
	return m.ConnectionOwner != manifest.OwnerPlatform && m.Owner.MerchantID == string(c.MerchantID)
}

// named finds the movement behind an upstream reference, of whatever attempt.
func (e *Engine) named(ctx context.Context, reference string) (movement.Movement, error) {
	id, _, ok := movement.ParseUpstreamReference(reference)
	if !ok {
		return movement.Movement{}, store.ErrNotFound
	}
	return e.Movements.MovementByID(ctx, id)
}

const (
	// unresolvable is when a movement whose connection or operation is gone is
	// tried again.
	unresolvable = 10 * time.Minute
	// unresolvedFor is how long nobody may know of a movement whether it was sent,
	// or of a transfer or order how it ended, before the operators hear of it.
	unresolvedFor = 24 * time.Hour
)

// Resolve is the worker's look at a movement that is due.
func (e *Engine) Resolve(ctx context.Context, m movement.Movement) error {
	var listed error
	if text := unresolved(m); text != "" && e.Now().Sub(m.CreatedAt) >= unresolvedFor {
		listed = e.list(ctx, m, reasonUnresolved, m.UpstreamReference()+" after a day", text)
	}
	op, c, err := e.context(ctx, m)
	if err != nil {
		// It can't be looked up now; it must not stay due and be tried in a loop.
		now := e.Now()
		_, askErr := e.Inquiries.Poll(ctx, m, now, now, now.Add(unresolvable))
		return errors.Join(listed, err, askErr)
	}
	if readable(op, m) {
		return errors.Join(listed, e.resolveByBooks(ctx, op, m, c))
	}
	_, err = e.look(ctx, op, m, c)
	return errors.Join(listed, err)
}

// unresolved says what is open about a movement that should be known after
// unresolvedFor, "" for nothing. A payment may wait for its payer that long.
func unresolved(m movement.Movement) string {
	switch {
	case m.State == movement.Submitting:
		return "nobody knows yet whether it was sent"
	case m.State == movement.Pending && m.Kind != manifest.Payment:
		return "the provider has it and does not tell its end"
	}
	return ""
}

func (e *Engine) context(ctx context.Context, m movement.Movement) (*catalog.Operation, connection, error) {
	op, err := e.operationOf(m)
	if err != nil {
		return nil, connection{}, err
	}
	c, err := e.reconnect(ctx, op, m)
	return op, c, err
}

func (e *Engine) operationOf(m movement.Movement) (*catalog.Operation, error) {
	op, ok := e.Catalog.Current().ByPath(m.Operation)
	if !ok {
		return nil, fmt.Errorf("engine: movement %s: nobody offers %s now", m.ID, m.Operation)
	}
	return op, nil
}

// Checkout tells the hosted page what to show of a payment, or fault.NotFound.
func (e *Engine) Checkout(ctx context.Context, id string) (Checkout, error) {
	parsed, err := movement.ParseID(id)
	if err != nil {
		return Checkout{}, fault.New(fault.NotFound, "There is no such payment.")
	}
	m, err := e.Movements.MovementByID(ctx, parsed)
	if errors.Is(err, store.ErrNotFound) || err == nil && m.State == movement.NotSubmitted {
		return Checkout{}, fault.New(fault.NotFound, "There is no such payment.")
	}
	if err != nil {
		return Checkout{}, fault.From(err)
	}
	op, err := e.operationOf(m)
	if err != nil {
		return Checkout{}, fault.From(err)
	}
	if op.Kind != manifest.Payment { // nobody pays for it on a page
		return Checkout{}, fault.New(fault.NotFound, "There is no such payment.")
	}
	account, err := e.accountOf(ctx, m)
	if err != nil {
		return Checkout{}, fault.From(err)
	}
	asked := m.Fields()
	page := Checkout{
		Merchant: account.Merchant().Name, Reference: m.Reference, Description: textOf(asked["description"]),
		Amount: int64(m.Amount), Status: op.Rules.Word(m.State), SuccessURL: textOf(asked["success_url"]),
		ExpiresAt: stampOrNone(m.ExpiresAt), Test: m.Owner.Mode == string(tenants.Test),
	}
	if m.State == movement.Pending {
		o := offerOf(m.Result)
		page.QR, page.PaymentURL = o.QR, o.PaymentURL
	}
	return page, nil
}
