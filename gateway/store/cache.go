package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
)

// CachedAnswer reads the answer that replicas share under a key, and when its
// fetch began. The body is nil when there is none, or only the one that was
// fetched at have. Refreshing tells that a lease was taken and not given back,
// run out or not.
func (s *Store) CachedAnswer(
	ctx context.Context, key string, have time.Time,
) (body json.RawMessage, fetchedAt time.Time, refreshing bool, err error) {
	row, err := s.queries.CachedAnswer(ctx, dbsqlc.CachedAnswerParams{Key: key, Have: micro(have)})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, time.Time{}, false, nil
	}
	if err != nil {
		return nil, time.Time{}, false, fmt.Errorf("store: cached answer: %w", err)
	}
	if row.Body != "" {
		body = json.RawMessage(row.Body)
	}
	return body, orZero(row.FetchedAt), row.RefreshingUntil != nil, nil
}

// LeaseAnswer makes the caller the one who refreshes a shared answer, until a
// time. It is false while another one is, while the answer is younger than
// maxAge, and for a pause after a fetch that failed.
func (s *Store) LeaseAnswer(ctx context.Context, key string, now, until time.Time, maxAge, pause time.Duration) (bool, error) {
	rows, err := s.queries.LeaseAnswer(ctx, dbsqlc.LeaseAnswerParams{
		Key: key, Until: optional(until),
		Now: micro(now), LeaseBefore: micro(until.Add(until.Sub(now))),
		FreshAfter: micro(now.Add(-maxAge)), FreshBefore: micro(now.Add(maxAge)),
		FailedAfter: micro(now.Add(-pause)), FailedBefore: micro(now.Add(pause)),
	})
	if err != nil {
		return false, fmt.Errorf("store: lease answer: %w", err)
	}
	return rows == 1, nil
}

// KeepAnswer ends the lease that runs until this time, with what was fetched;
// nil says that the fetch failed, and the old answer stays. At is when the fetch
// began, or failed. It is false when the lease was another's by then, and
// nothing was changed.
func (s *Store) KeepAnswer(ctx context.Context, key string, until time.Time, body json.RawMessage, at time.Time) (bool, error) {
	end := dbsqlc.KeepAnswerParams{Key: key, Until: optional(until), Body: text(body)}
	if body == nil {
		end.FailedAt = optional(at)
	} else {
		end.FetchedAt = optional(at)
	}
	rows, err := s.queries.KeepAnswer(ctx, end)
	if err != nil {
		return false, fmt.Errorf("store: keep answer: %w", err)
	}
	return rows == 1, nil
}

// DropAnswers removes the shared answers that nobody has touched since.
func (s *Store) DropAnswers(ctx context.Context, before time.Time) error {
	if err := s.queries.DropAnswers(ctx, optional(before)); err != nil {
		return fmt.Errorf("store: drop answers: %w", err)
	}
	return nil
}
