package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// decisionShards is over how many ranges the log of decisions spreads.
const decisionShards = 8

// DecisionPart is what a replica wrote of a minute: counts, and sealed inputs or none.
type DecisionPart struct {
	Minute  time.Time
	Replica uuid.UUID
	Part    int64 // tells the parts of a minute apart
	Counts  []byte
	Inputs  []byte
}

func shardOf(minute time.Time) int32 {
	return int32(minute.Unix() / 60 % decisionShards)
}

func allShards() []int32 {
	shards := make([]int32, decisionShards)
	for i := range shards {
		shards[i] = int32(i)
	}
	return shards
}

// AddDecisions keeps a part of the log. One that is there already stays.
func (s *Store) AddDecisions(ctx context.Context, p DecisionPart) error {
	return wrap("add decisions", s.queries.InsertDecisions(ctx, dbsqlc.InsertDecisionsParams{
		Shard: shardOf(p.Minute), Minute: micro(p.Minute), ReplicaID: p.Replica, Part: p.Part, Counts: p.Counts, Inputs: p.Inputs,
	}))
}

// Decisions reads the parts of the minutes from since on that begin before another time, in
// the order of time, replica and part.
func (s *Store) Decisions(ctx context.Context, since, before time.Time) ([]DecisionPart, error) {
	rows, err := s.queries.DecisionsBetween(ctx, dbsqlc.DecisionsBetweenParams{Shards: allShards(), Since: micro(since), Before: micro(before)})
	if err != nil {
		return nil, wrap("decisions", err)
	}
	parts := make([]DecisionPart, len(rows))
	for i, row := range rows {
		parts[i] = DecisionPart{Minute: row.Minute.UTC(), Replica: row.ReplicaID, Part: row.Part, Counts: row.Counts, Inputs: row.Inputs}
	}
	return parts, nil
}

// CountDecisions gives add the counts of each part, in the order of the minutes: those that
// Decisions reads, without inputs.
func (s *Store) CountDecisions(ctx context.Context, since, before time.Time, add func(minute time.Time, counts []byte) error) error {
	rows, err := s.queries.DecisionCountsBetween(ctx, dbsqlc.DecisionCountsBetweenParams{Shards: allShards(), Since: micro(since), Before: micro(before)})
	if err != nil {
		return wrap("count decisions", err)
	}
	for _, row := range rows {
		if err := add(row.Minute.UTC(), row.Counts); err != nil {
			return err
		}
	}
	return nil
}

// ForgetDecisions removes the log before a time, that of requests, and the records of merchants
// that were replaced before it, each also where another can't be removed.
func (s *Store) ForgetDecisions(ctx context.Context, before time.Time) error {
	return errors.Join(
		wrap("forget decisions", s.queries.ForgetDecisions(ctx, dbsqlc.ForgetDecisionsParams{Shards: allShards(), Before: micro(before)})),
		s.forgetRequests(ctx, before),
		wrap("forget merchant records", s.queries.ForgetMerchantRecords(ctx, micro(before))),
	)
}

// MerchantRecord reads a merchant's record as it was at a version that was replaced, or
// is ErrNotFound: where it is the present one, where it is too long ago, or where a gateway
// of the version before has replaced it.
func (s *Store) MerchantRecord(ctx context.Context, id tenants.MerchantID, version int64) (m tenants.Merchant, err error) {
	record, err := s.queries.MerchantRecord(ctx, dbsqlc.MerchantRecordParams{MerchantID: string(id), Version: version})
	if err == nil {
		err = json.Unmarshal([]byte(record), &m)
	}
	if err != nil {
		return tenants.Merchant{}, fmt.Errorf("store: merchant record: %w", notFound(err))
	}
	return m, nil
}

// keepRecord keeps the record that a change is about to replace.
func keepRecord(ctx context.Context, q *dbsqlc.Queries, id tenants.MerchantID, now time.Time) error {
	there, err := recordsOf(ctx, q, []string{string(id)})
	if err != nil || len(there) == 0 {
		return err
	}
	record, err := json.Marshal(there[0])
	if err != nil {
		return err
	}
	return q.KeepMerchantRecord(ctx, dbsqlc.KeepMerchantRecordParams{
		MerchantID: string(id), Version: there[0].Version, Record: string(record), ReplacedAt: micro(now),
	})
}

// DecidedRange is which movements MovementsDecided reads: those reserved from a time on
// and before another, after one of them, of one merchant and kind
// unless these are "".
type DecidedRange struct {
	Since, Before time.Time
	AfterAt       time.Time
	After         movement.ID
	Merchant      string
	Kind          string
	Most          int
}

// MovementsDecided reads movements in the order of their reservation.
func (s *Store) MovementsDecided(ctx context.Context, r DecidedRange) ([]movement.Movement, error) {
	buckets := make([]int32, movement.Buckets)
	for i := range buckets {
		buckets[i] = int32(i)
	}
	rows, err := s.queries.MovementsDecided(ctx, dbsqlc.MovementsDecidedParams{
		Buckets: buckets, Since: micro(r.Since), Before: micro(r.Before), AfterAt: micro(r.AfterAt), After: uuid.UUID(r.After),
		MerchantID: r.Merchant, Kind: r.Kind, Most: int32(r.Most), //nolint:gosec // a page
	})
	return movementsFromRows(rows, err)
}
