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

// look asks the provider about a movement, if nobody did within askEvery, and
// settles what it says. It returns the movement as it stands then.
func (e *Engine) look(ctx context.Context, op *catalog.Operation, m movement.Movement, connection sdk.Connection) (movement.Movement, error) {
	now := e.Now()
	next, last := nextLook(op, m, now)
	ours, err := e.Inquiries.Ask(ctx, m.ID, now, now.Add(-askEvery), next)
	if err != nil {
		return m, err
	}
	if !ours {
		return e.reread(ctx, m.ID)
	}
	m.AskedAt = now
	finding := e.Providers.Lookup(ctx, m.Provider, sdk.Lookup{
		Operation: m.Operation, RequestID: m.RequestID, Connection: connection,
		Reference: m.UpstreamReference(), ProviderReference: m.ProviderReference,
		Amount: m.Amount, Body: m.Body(), SentAt: m.CreatedAt, ExpiresAt: m.ExpiresAt,
	}, lookupTimeout)
	switch finding.Standing {
	case sdk.StandingNotFound:
		m, err = e.notFound(ctx, op, m, connection, now)
	case sdk.StandingPending, sdk.StandingDone, sdk.StandingFailed, sdk.StandingExpired:
		m, err = e.settle(ctx, op, m, finding, "lookup")
	case sdk.StandingUnknown:
		e.Log.WarnContext(ctx, "lookup told nothing", "movement", m.ID.String(), "provider", m.Provider, "detail", finding.Detail)
		return m, nil
	}
	if last && err == nil {
		_, err = e.Inquiries.Ask(ctx, m.ID, now, now, time.Time{})
	}
	return m, err
}

// nextLook is when the worker looks again if this look tells nothing, and
// whether it is the last one if it tells something.
func nextLook(op *catalog.Operation, m movement.Movement, now time.Time) (next time.Time, last bool) {
	next = m.NextLook(now, op.SettlesWithin)
	switch {
	case m.State == movement.Sending && m.Misses > 0 && now.Before(m.DueAt):
		return m.DueAt, false // notFound goes by it
	case m.State == movement.Expired && next.IsZero() && now.Before(m.UpdatedAt.Add(lateFor)):
		return now.Add(lateEvery), true
	}
	return next, false
}

// notFound weighs a lookup that answered "there is no such thing": proof that
// nothing was sent only when it comes twice, missGap apart, after nothing can
// be under way any more. The first sets the time that the second waits for. And
// it proves nothing where the credentials have changed since: another account
// would not know it either.
func (e *Engine) notFound(ctx context.Context, op *catalog.Operation, m movement.Movement, connection sdk.Connection, now time.Time) (movement.Movement, error) {
	switch {
	case m.State == movement.Pending:
		return m, e.list(ctx, m, reasonVanished, "", "the provider no longer knows a movement that it had accepted")
	case m.State != movement.Sending, now.Before(m.ProvenAfter(op.SettlesWithin)), m.Misses > 0 && now.Before(m.DueAt),
		connection.Version != m.ConnectionVersion:
		return m, nil
	}
	misses, err := e.Inquiries.Miss(ctx, m, now.Add(missGap))
	if err != nil || misses > 0 && m.Misses == 0 {
		return m, err
	}
	if misses > 0 {
		move := store.Move{Movement: m, To: movement.Unsent, Event: "not_sent", Detail: detail("source", "lookup")}
		if _, err := e.move(ctx, move); err != nil {
			return m, err
		}
	}
	return e.reread(ctx, m.ID)
}
