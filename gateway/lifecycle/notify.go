package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// notifyTimeout bounds a plugin's verification of a notification.
const notifyTimeout = 5 * time.Second

// Route is where a provider notifies one connection. It is looked up by its token
// before anything of a notification is read.
type Route struct{ connection tenants.Connection }

// RouteOf finds the route of a token; an unknown one is fault.NotFound.
func (l *Lifecycle) RouteOf(ctx context.Context, provider tenants.Provider, token tenants.NotifyToken) (Route, error) {
	_, c, err := l.Accounts.ByNotifyToken(ctx, l.Now(), provider, token)
	if errors.Is(err, tenants.ErrNotFound) {
		return Route{}, fault.New(fault.NotFound, "There is no such path.")
	}
	if err != nil {
		return Route{}, fault.From(err)
	}
	return Route{connection: c}, nil
}

// Notify has the plugin verify an inbound notification and applies what it says. The
// acknowledgement is to be sent only when the error is nil: then everything is
// committed.
func (l *Lifecycle) Notify(ctx context.Context, n Notification) (sdk.Acknowledgement, error) {
	c := n.Route.connection
	if err := l.barred(); err != nil {
		return sdk.Acknowledgement{}, err // it is sent again
	}
	connection, err := unseal(l.Vault, c)
	if err != nil {
		return sdk.Acknowledgement{}, err
	}
	ack, err := l.Providers.Notify(ctx, string(c.Provider), sdk.Notification{
		Connection: connection, RequestID: n.RequestID, Method: n.Method, Query: n.Query, Header: n.Header, Body: n.Body,
	}, notifyTimeout)
	if err != nil {
		return sdk.Acknowledgement{}, fault.New(fault.ProviderUnavailable, "The notification can't be taken now.").Because(err)
	}
	if ack.Status >= http.StatusInternalServerError { // the plugin can't tell now, and it is sent again
		l.Log.WarnContext(ctx, "a notification can't be read now", "merchant", string(c.MerchantID), "mode", string(c.Mode),
			"provider", string(c.Provider), "status", ack.Status, "detail", ack.Detail)
		return ack, nil
	}
	if ack.Status >= http.StatusBadRequest {
		// What could not be verified says nothing, whatever stands in it.
		l.Log.WarnContext(ctx, "a notification was not taken", "merchant", string(c.MerchantID), "mode", string(c.Mode),
			"provider", string(c.Provider), "status", ack.Status, "detail", ack.Detail)
		l.refusedNotification(ctx, c, ack)
		return ack, nil
	}
	for _, u := range ack.Updates {
		if err := l.notified(ctx, c, u); err != nil {
			return sdk.Acknowledgement{}, fault.From(err)
		}
	}
	l.acceptedNotification(ctx, c)
	return ack, nil
}

// refusedNotification counts a notification that a known connection's plugin refuses: a
// token was rotated, a signature is wrong. What it would have told is found by asking, later;
// nobody else learns that the provider has not been heard for hours. That it can't be
// written is logged, and changes no answer: the provider sends it again.
func (l *Lifecycle) refusedNotification(ctx context.Context, c tenants.Connection, ack sdk.Acknowledgement) {
	times, err := l.Store.CountException(ctx, movement.Exception{
		Owner: ownerOf(c), Subject: notificationsOf(c), Reason: movement.ReasonRefused, Provider: string(c.Provider), At: l.Now(),
		Detail: fmt.Sprintf("the plugin refuses notifications of this connection, the last one with %d: %s. Compare the token or key that the provider signs with, and where it sends them, with the connection",
			ack.Status, cmp.Or(Printable(ack.Detail), "no reason")),
	})
	if err != nil {
		l.Log.ErrorContext(ctx, "an exception can't be written", "reason", movement.ReasonRefused, "provider", string(c.Provider), "error", err)
	} else if times == 1 {
		l.Log.WarnContext(ctx, "needs an operator", "reason", movement.ReasonRefused, "merchant", string(c.MerchantID), "mode", string(c.Mode), "provider", string(c.Provider))
	}
}

// acceptedNotification ends what [Lifecycle.refusedNotification] has listed, on whichever
// replica: one statement by the key, which changes nothing where nothing is listed.
func (l *Lifecycle) acceptedNotification(ctx context.Context, c tenants.Connection) {
	err := l.Store.ResolveExceptions(ctx, l.Now(), ownerOf(c), notificationsOf(c), []string{movement.ReasonRefused}, "gateway", "a notification was accepted again")
	if err != nil {
		l.Log.ErrorContext(ctx, "an exception can't be resolved", "reason", movement.ReasonRefused, "provider", string(c.Provider), "error", err)
	}
}

func ownerOf(c tenants.Connection) movement.Owner {
	return movement.Owner{MerchantID: string(c.MerchantID), Mode: string(c.Mode)}
}

func notificationsOf(c tenants.Connection) string { return "notifications of " + string(c.Provider) }

// notified applies one verified update of a notification, after making sure that it
// is about a movement of the very connection it came in on. One that names none of
// ours is of what others have made on that account, and no matter of ours. One that the
// plugin does not understand, and that has the upstream's own name alone, is for a person.
func (l *Lifecycle) notified(ctx context.Context, c tenants.Connection, u sdk.StatusUpdate) error {
	id, ours := movement.ParseUpstreamReference(u.Reference)
	if u.Reference == "" && u.ProviderReference != "" && u.Status == sdk.StatusUnknown {
		_, err := l.Store.AddException(ctx, movement.Exception{
			Owner: ownerOf(c), Subject: notificationsOf(c), Reason: movement.ReasonNotUnderstood, FactID: Printable(u.ProviderReference + " " + cmp.Or(u.EventID, u.Detail)), Provider: string(c.Provider), At: l.Now(),
			Detail: "the provider has notified of something that it calls " + Printable(u.ProviderReference) + " and that may be a movement of ours: " + Printable(u.Detail),
		})
		return err
	}
	if !ours {
		if l.ForeignNotified != nil {
			l.ForeignNotified(string(c.Provider))
		}
		return nil
	}
	m, err := l.Store.MovementByID(ctx, id)
	detail := "a notification names a movement as the gateway does, and this connection has none of that name: " +
		"it was made before the database was restored, or by another gateway"
	if err == nil && !sentOn(c, m) {
		if movedOn(c, m) {
			detail = "a notification tells " + u.Status.String() + " of a movement that is with provider " + m.Provider + " now: " +
				string(c.Provider) + " has it all the same, or an earlier attempt of it, or had it before the database was restored; see that it is not paid at both"
		}
		err = movement.ErrNotFound
	}
	if errors.Is(err, movement.ErrNotFound) {
		_, err := l.Store.AddException(ctx, movement.Exception{
			Owner:   movement.Owner{MerchantID: string(c.MerchantID), Mode: string(c.Mode)},
			Subject: u.Reference, Reason: movement.ReasonUnknown, FactID: Printable(u.Status.String() + " " + u.EventID), Provider: string(c.Provider),
			Detail: detail, At: l.Now(),
		})
		return err
	}
	if err != nil {
		return err
	}
	op, err := l.Operation(m)
	if err != nil {
		return err
	}
	f := l.factOfUpdate(op, m, u, movement.FromNotification)
	switch now, err := l.Reconnect(ctx, op, m); {
	case f.Says == movement.SaysNotFound:
		return nil // only who asked can be told that
	case f.Says == movement.SaysNothing && len(f.Returns) == 0:
		return l.List(ctx, m, movement.Cause{
			Reason: movement.ReasonNotUnderstood, FactID: cmp.Or(f.EventID, Printable(u.Detail)),
			Detail: "the provider has notified of something that its plugin does not understand: " + Printable(u.Detail),
		})
	case err != nil: // whose account it is decides who may say so
		return err
	case now.anotherAccount(m):
		return l.ofAnother(ctx, m, now, f, u.Status)
	case !op.Rules.Signed && f.NamesAnother(m) != "": // a lookup is about the one that we know
		return l.List(ctx, m, movement.Cause{Reason: movement.ReasonContradiction, FactID: f.EventID, Detail: f.NamesAnother(m)})
	case !op.Rules.Signed, len(f.Returns) > 0 && m.State.Open():
		return l.hinted(ctx, op, m, now, f)
	}
	_, err = l.takeIn(ctx, op, m, f, u.Returns)
	return err
}

// ofAnother lists what is told of a movement by an account that it was not made on, and
// which says nothing of it.
func (l *Lifecycle) ofAnother(ctx context.Context, m movement.Movement, c Connection, f movement.Fact, told sdk.Status) error {
	return l.List(ctx, m, movement.Cause{
		Reason: movement.ReasonContradiction, FactID: f.EventID,
		Detail: "it was made on account " + m.ConnectionAccount + ", and a " + string(f.Source) + " of account " + c.Account + " tells " + told.String() + " of it",
	})
}

// hinted asks the provider about a movement of which a notification tells what it does not
// prove. One that the provider does not answer for is asked about again soon; of one that
// has ended nobody asks again, so that is an exception.
func (l *Lifecycle) hinted(ctx context.Context, op *catalog.Operation, m movement.Movement, c Connection, f movement.Fact) error {
	if m.Version != 0 { // there is something to ask
		if _, over, err := l.decided(ctx, op, m); over || err != nil {
			return err
		}
		seen, err := l.ask(ctx, op, m, c, true)
		told := seen.State != m.State || seen.Sequence != m.Sequence
		soon := l.Now().Add(op.Rules.Pace.Every)
		if err == nil && !told && seen.Version != 0 && seen.Misses == 0 && (seen.DueAt.IsZero() || seen.DueAt.After(soon)) {
			err = l.putOff(ctx, seen, op.Rules.Pace.Every) // its own books may be later than its notification
		}
		return err
	}
	if op.Rules.Resubmits {
		return nil // to ask is to send it again
	}
	update := l.lookup(ctx, op, m, c, l.Now())
	if update.Status == sdk.StatusUnknown {
		if err := l.List(ctx, m, movement.Cause{
			Reason: movement.ReasonContradiction, FactID: "not asked " + f.EventID,
			Detail: "it is " + string(m.State) + ", a notification tells otherwise, and the provider could not be asked: " + Printable(update.Detail),
		}); err != nil {
			return err
		}
		return fault.New(fault.ProviderUnavailable, "The notification can't be taken now.").Because(errors.New(update.Detail)) // it is sent again
	}
	_, err := l.weigh(ctx, op, m, c, update, time.Time{}, true)
	return err
}

// sentOn tells whether a movement was sent on a connection: a merchant's own speaks
// of that merchant alone, the platform's of all that used it.
func sentOn(c tenants.Connection, m movement.Movement) bool {
	if m.Provider != string(c.Provider) || m.Owner.Mode != string(c.Mode) {
		return false
	}
	if c.MerchantID == tenants.Platform {
		return m.ConnectionOwner == manifest.OwnerPlatform
	}
	return m.ConnectionOwner != manifest.OwnerPlatform && m.Owner.MerchantID == string(c.MerchantID)
}

// movedOn tells whether a movement of a connection's merchant is with another provider.
// It may have been with this one in an earlier attempt, or before a restore.
func movedOn(c tenants.Connection, m movement.Movement) bool {
	return m.Provider != string(c.Provider) && m.Owner.Mode == string(c.Mode) &&
		(c.MerchantID == tenants.Platform || m.Owner.MerchantID == string(c.MerchantID))
}
