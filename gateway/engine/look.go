package engine

import (
	"context"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk"
)

const (
	// missGap is how far apart two lookups lie that prove together that nothing
	// was sent.
	missGap = 10 * time.Second
	// lateEvery and lateFor say how a last look for late money is tried again
	// where the provider could not be asked.
	lateEvery, lateFor = time.Hour, 24 * time.Hour
)

// look asks the provider about a movement, if nobody did within its pace, and
// settles what it says. It returns the movement as it stands then.
func (e *Engine) look(ctx context.Context, op *catalog.Operation, m movement.Movement, c connection) (movement.Movement, error) {
	now := e.Now()
	next, last := nextLook(op, m, now)
	if op.Resubmits() && (e.clockFault() != nil || m.State == movement.Submitting && now.Before(m.SendBy.Add(time.Duration(op.Timeout)))) {
		return m, nil //nolint:nilerr // the first request may be on its way, and a wrong clock does not tell
	}
	ours, err := e.Inquiries.Poll(ctx, m, now, now.Add(-op.Pace.Every), next)
	if err != nil {
		return m, err
	}
	if !ours {
		return e.reread(ctx, m.ID)
	}
	m.PolledAt = now
	if why := unaskable(op, m, c, now); why != "" {
		return m, e.list(ctx, m, reasonUnresolved, m.UpstreamReference()+" can't be asked", why)
	}
	seen, err := toTheEnd(ctx, e.Log, func(ctx context.Context) (movement.Movement, error) {
		finding := e.lookup(ctx, op, m, c, now)
		seen, err := e.weigh(ctx, op, m, c, finding, now)
		if last && err == nil && finding.Status != sdk.StatusUnknown {
			_, err = e.Inquiries.Poll(ctx, m, now, now, time.Time{})
		}
		return seen, err
	})
	if err != nil {
		return m, err
	}
	return seen, nil
}

func (e *Engine) lookup(ctx context.Context, op *catalog.Operation, m movement.Movement, c connection, now time.Time) sdk.StatusUpdate {
	finding := e.Providers.Lookup(ctx, m.Provider, sdk.Lookup{
		Operation: m.Operation, RequestID: m.RequestID, Connection: c.Connection,
		Reference: m.UpstreamReference(), ProviderReference: m.ProviderReference,
		Amount: m.Amount, Body: m.Body(), SentAt: m.CreatedAt, ExpiresAt: m.ExpiresAt,
		Cost: m.Cost, Quote: m.Quote, SendBy: resendBy(op, now),
	}, lookupTimeout)
	e.note(ctx, op, m, "looked", finding.Status.String(), finding.Detail)
	return finding
}

// weigh settles what a lookup has told.
func (e *Engine) weigh(ctx context.Context, op *catalog.Operation, m movement.Movement, c connection, f sdk.StatusUpdate, now time.Time) (movement.Movement, error) {
	switch f.Status {
	case sdk.StatusNotFound:
		return e.notFound(ctx, op, m, c, now)
	case sdk.StatusPending, sdk.StatusDone, sdk.StatusFailed, sdk.StatusExpired:
		return e.hear(ctx, op, m, f, "lookup")
	case sdk.StatusUnknown:
		e.Log.WarnContext(ctx, "lookup told nothing", "movement", m.ID.String(), "provider", m.Provider, "detail", f.Detail)
		if f.Blame == sdk.BlameAccount {
			e.alert(ctx, m.Provider, c, f.Detail)
		}
	}
	return m, nil
}

// unaskable says why a movement can't be asked for where that means to send the
// same request again: when the provider may no longer take it for the same, or
// on another account, it would be a second movement.
func unaskable(op *catalog.Operation, m movement.Movement, c connection, now time.Time) string {
	within := time.Duration(op.Manifest.ResubmitWithin)
	switch {
	case !op.Resubmits():
		return ""
	case !now.Before(m.CreatedAt.Add(within)):
		return "it is too old to be sent again: the provider could take it for a new one"
	case !c.sameAccount(op, m):
		return "the connection is another account at the provider now, which does not know it"
	}
	return ""
}

// resendBy is when a lookup that is the same request again must have left.
func resendBy(op *catalog.Operation, now time.Time) time.Time {
	if !op.Resubmits() {
		return time.Time{}
	}
	return now.Add(sendWindow)
}

// nextLook is when the worker looks again if this look tells nothing, and
// whether it is the last one if it tells something.
func nextLook(op *catalog.Operation, m movement.Movement, now time.Time) (next time.Time, last bool) {
	next = m.NextPoll(now, op.Pace)
	switch {
	case m.State == movement.Submitting && m.Misses > 0 && now.Before(m.DueAt):
		return m.DueAt, false // notFound goes by it
	case m.State == movement.Submitting && m.Misses > 0:
		// One more "not found" ends it: a look that tells nothing puts that off for
		// no longer than the provider has been silent in proportion.
		silent := now.Sub(m.ProvenAfter(op.Pace.SettlesWithin))
		return now.Add(min(max(missGap, op.Pace.Every, silent/4), lateFor)), false
	case m.State == movement.Expired && next.IsZero() && now.Before(m.UpdatedAt.Add(lateFor)):
		return now.Add(lateEvery), true
	}
	return next, false
}

// notFound weighs a lookup that answered "there is no such thing": proof that
// nothing was sent only when it comes twice, missGap apart, after nothing can
// be under way any more. The first sets the time that the second waits for. And
// it proves nothing on another account, which would not know it either, nor by a
// clock that is wrong.
func (e *Engine) notFound(ctx context.Context, op *catalog.Operation, m movement.Movement, c connection, now time.Time) (movement.Movement, error) {
	switch {
	case m.State == movement.Pending:
		return m, e.list(ctx, m, reasonVanished, "", "the provider no longer knows a movement that it had accepted")
	case m.State != movement.Submitting, now.Before(m.ProvenAfter(op.Pace.SettlesWithin)), m.Misses > 0 && now.Before(m.DueAt),
		!c.sameAccount(op, m), e.clockFault() != nil:
		return m, nil //nolint:nilerr // a wrong clock is complained of where it is found
	}
	misses, err := e.Inquiries.Miss(ctx, m, now.Add(max(missGap, op.Pace.Every)))
	if err != nil || misses > 0 && m.Misses == 0 {
		return m, err
	}
	if misses > 0 {
		move := neverSent(store.Move{Movement: m, Detail: detail("source", "lookup"), AskedBefore: m.PolledAt})
		if _, err := e.move(ctx, move); err != nil {
			return m, err
		}
	}
	return e.reread(ctx, m.ID)
}
