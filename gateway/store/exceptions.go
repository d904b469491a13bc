package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
)

// AddException adds an exception to the list. It is false when the same fact was
// there before, or, of a lasting fact, when it is there and not resolved.
func (s *Store) AddException(ctx context.Context, a movement.Exception) (bool, error) {
	fresh, err := except(ctx, s.pool, oneException, a)
	if err == nil && !fresh && a.Lasting {
		fresh, err = except(ctx, s.pool, exceptionAgain, a)
	}
	return fresh, wrap("exceptions", err)
}

func except(ctx context.Context, db dbsqlc.DBTX, head parts, a movement.Exception) (bool, error) {
	w := &write{
		owner: a.Owner, subject: a.Subject, reason: a.Reason, factID: a.FactID, provider: a.Provider, detail: a.Detail, now: micro(a.At),
	}
	var subject string
	err := only(ctx, db, head|addException, w, &subject)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// CountException lists an exception that is counted, with its last detail, and says how
// often it has come since it was listed. One that was resolved begins anew.
func (s *Store) CountException(ctx context.Context, a movement.Exception) (int64, error) {
	for {
		times, err := s.queries.CountException(ctx, dbsqlc.CountExceptionParams{
			MerchantID: a.Owner.MerchantID, Mode: a.Owner.Mode, Subject: a.Subject, Reason: a.Reason, FactID: a.FactID,
			Detail: a.Detail, At: micro(a.At),
		})
		if !errors.Is(err, pgx.ErrNoRows) {
			return times, wrap("count exception", err)
		}
		if fresh, err := except(ctx, s.pool, oneException, a); fresh || err != nil {
			return 1, wrap("count exception", err)
		} // another replica was faster
	}
}

// CountExceptions is how many exceptions are open, by reason.
func (s *Store) CountExceptions(ctx context.Context) (map[string]int64, error) {
	rows, err := s.queries.CountExceptions(ctx)
	if err != nil {
		return nil, fmt.Errorf("store: exceptions: %w", err)
	}
	open := make(map[string]int64, len(rows))
	for _, row := range rows {
		open[row.Reason] = row.Entries
	}
	return open, nil
}

// exceptionShards are the digits that begin the digest of a merchant's id.
var exceptionShards = strings.Split("0123456789abcdef", "")

// OpenExceptions lists the exceptions that no operator has resolved, the newest first.
func (s *Store) OpenExceptions(ctx context.Context, most int) ([]movement.Exception, error) {
	rows, err := s.queries.OpenExceptions(ctx, dbsqlc.OpenExceptionsParams{Shards: exceptionShards, Most: int32(most)}) //nolint:gosec // a page
	if err != nil {
		return nil, fmt.Errorf("store: exceptions: %w", err)
	}
	list := make([]movement.Exception, len(rows))
	for i, row := range rows {
		list[i] = movement.Exception{
			Owner:   movement.Owner{MerchantID: row.MerchantID, Mode: row.Mode},
			Subject: row.Subject, Reason: row.Reason, FactID: row.FactID,
			Provider: row.Provider, Detail: row.Detail, At: row.At.UTC(), Times: row.Times,
		}
	}
	return list, nil
}

// ResolveException takes an exception off the list, with who did it and why, and writes
// the audit. It is ErrNotFound when no such exception is open.
func (s *Store) ResolveException(ctx context.Context, now time.Time, a movement.Exception, operator, resolution string) error {
	w := s.auditing(ctx, Audit{
		Operator: operator, Action: "exception.resolve", At: now,
		Detail: fmt.Sprintf("%s of %s, mode %s: %s", a.Reason, a.Subject, a.Owner.Mode, resolution),
	}, a.Owner)
	w.subject, w.reason, w.factID, w.resolution = a.Subject, a.Reason, a.FactID, resolution
	var entry uuid.UUID
	if err := s.writer.run(ctx, resolveException|writeAudit, w, &entry); err != nil {
		return fmt.Errorf("store: resolve exception: %w", notFound(err))
	}
	return nil
}

// ExceptionsOf reads all exceptions about a subject, the resolved ones too, the
// oldest first.
func (s *Store) ExceptionsOf(ctx context.Context, owner movement.Owner, subject string) ([]movement.Exception, error) {
	rows, err := s.queries.ExceptionsOf(ctx, dbsqlc.ExceptionsOfParams{MerchantID: owner.MerchantID, Mode: owner.Mode, Subject: subject})
	entries := make([]movement.Exception, len(rows))
	for i, row := range rows {
		entries[i] = movement.Exception{
			Owner: owner, Subject: row.Subject, Reason: row.Reason, FactID: row.FactID,
			Provider: row.Provider, Detail: row.Detail, At: row.At.UTC(), ResolvedAt: orZero(row.ResolvedAt), Times: row.Times,
		}
		if row.ResolvedBy != nil && row.Resolution != nil {
			entries[i].ResolvedBy, entries[i].Resolution = *row.ResolvedBy, *row.Resolution
		}
	}
	return entries, wrap("exceptions", err)
}

// ResolveExceptions takes the open exceptions of a subject for some reasons off the
// list.
func (s *Store) ResolveExceptions(ctx context.Context, now time.Time, owner movement.Owner, subject string, reasons []string, operator, resolution string) error {
	return wrap("resolve exceptions", s.queries.ResolveExceptions(ctx, dbsqlc.ResolveExceptionsParams{
		MerchantID: owner.MerchantID, Mode: owner.Mode, Subject: subject, Reasons: reasons,
		Now: micro(now), Operator: operator, Resolution: resolution,
	}))
}
