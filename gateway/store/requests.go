package store

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-f006e74d/gerbang/gateway/requestlog"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
)

// forgottenAtOnce is how many parts of the log of requests are removed at once.
const forgottenAtOnce = 1000

// spanShard is where a span of the log of requests stands in the index by age.
func spanShard(span time.Time) int32 {
	return int32(span.Unix() / int64(requestlog.Span/time.Second) % decisionShards)
}

// refused are the codes with which a database that is there takes no statement, however often: of what is in it, and of its size.
var refused = []string{"22", "54", "08P01"}

// AddRequests keeps parts of a replica's log of requests, all or none. One that is there already stays. [requestlog.ErrRefused] says that the
// database never takes them.
func (s *Store) AddRequests(ctx context.Context, replica uuid.UUID, parts []requestlog.Part) error {
	p := dbsqlc.InsertRequestsParams{ReplicaID: replica}
	for _, part := range parts {
		p.Merchants, p.Modes, p.Spans = append(p.Merchants, part.Owner.Merchant), append(p.Modes, part.Owner.Mode), append(p.Spans, micro(part.Span))
		p.Parts, p.Shards, p.Terms = append(p.Parts, part.Number), append(p.Shards, spanShard(part.Span)), append(p.Terms, part.Terms)
		p.Dropped, p.Calls = append(p.Dropped, int32(part.Dropped)), append(p.Calls, part.Calls) //nolint:gosec // of a second
	}
	err := s.queries.InsertRequests(ctx, p)
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok && hasClass(pgErr, refused) {
		err = errors.Join(requestlog.ErrRefused, err)
	}
	return wrap("add requests", err)
}

// Requests reads parts of a merchant's log that may hold what is looked for, the last first.
func (s *Store) Requests(ctx context.Context, r requestlog.Range) ([]requestlog.Part, error) {
	rows, err := s.queries.RequestsOf(ctx, dbsqlc.RequestsOfParams{
		MerchantID: r.Owner.Merchant, Mode: r.Owner.Mode, Since: micro(r.Since), BelowSpan: micro(r.Below.Span), BelowReplica: r.Below.Replica, BelowPart: r.Below.Number,
		Operation: requestlog.Term(r.Operation), Code: requestlog.Term(r.Code), State: requestlog.Term(r.State), Most: int32(r.Most), //nolint:gosec // a page
	})
	if err != nil {
		return nil, wrap("requests", err)
	}
	parts := make([]requestlog.Part, len(rows))
	for i, row := range rows {
		parts[i] = requestlog.Part{Owner: r.Owner, Span: row.Span.UTC(), Replica: row.ReplicaID, Number: row.Part, Calls: row.Calls}
	}
	return parts, nil
}

// RequestOwners are those in whose logs spans begin in a time.
func (s *Store) RequestOwners(ctx context.Context, since, until time.Time) ([]requestlog.Owner, error) {
	rows, err := s.queries.RequestOwners(ctx, dbsqlc.RequestOwnersParams{Shards: allShards(), Since: micro(since), Until: micro(until)})
	if err != nil {
		return nil, wrap("request owners", err)
	}
	owners := make([]requestlog.Owner, len(rows))
	for i, row := range rows {
		owners[i] = requestlog.Owner{Merchant: row.MerchantID, Mode: row.Mode}
	}
	return owners, nil
}

// RequestsDropped counts a merchant's calls since a time that were not kept.
func (s *Store) RequestsDropped(ctx context.Context, of requestlog.Owner, since time.Time) (int64, error) {
	n, err := s.queries.RequestsDropped(ctx, dbsqlc.RequestsDroppedParams{MerchantID: of.Merchant, Mode: of.Mode, Since: micro(since)})
	return n, wrap("requests dropped", err)
}

// forgetRequests removes the log of requests before a time, a few rows at once.
func (s *Store) forgetRequests(ctx context.Context, before time.Time) error {
	for {
		n, err := s.queries.ForgetRequests(ctx, dbsqlc.ForgetRequestsParams{Shards: allShards(), Before: micro(before), Most: forgottenAtOnce})
		if err != nil || n < forgottenAtOnce {
			return wrap("forget requests", err)
		}
	}
}
