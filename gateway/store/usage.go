package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
)

// errOvertaken says that a later batch of the same replica was counted before.
var errOvertaken = errors.New("a later batch was counted already")

// marksFor is how many seconds the mark of a replica's last batch is kept at least.
// Nobody may send a batch again that is older than this.
const marksFor = 60 * 60

// TakeUsage takes up to want units of what a merchant may use in a period, as many
// as are left below the limit, and tells how many it took and how many are used
// then. A replica numbers its batches, rising: each is counted once at most, however
// often it is sent within an hour, and the last one is answered again as it was. With
// an error it may have been counted; GiveUsage of the same batch finds out.
func (s *Store) TakeUsage(
	ctx context.Context, owner movement.Owner, name, period, replica string, batch, want, limit int64,
) (taken, used int64, err error) {
	p := dbsqlc.TakeUsageParams{
		MerchantID: owner.MerchantID, Mode: owner.Mode, Name: name, Period: period,
		Replica: replica, Batch: batch, Want: want, Most: limit,
	}
	key := usageKey(owner, name, period, replica)
	counted, err := s.count(ctx, key, batch, limit, func(ctx context.Context) (dbsqlc.CountedUsageRow, error) {
		row, err := s.queries.TakeUsage(ctx, p)
		s.thin(ctx, key, row.Many)
		return dbsqlc.CountedUsageRow{Used: row.Used, Taken: row.Taken}, err
	})
	if err != nil {
		return 0, 0, fmt.Errorf("store: take usage: %w", err)
	}
	return counted.Taken, counted.Used, nil
}

// GiveUsage gives units back, once for each batch as TakeUsage has it. Where the
// batch was counted before as one that took, nothing is given back, and it tells
// how many that were. Either way the batch is never counted any more.
func (s *Store) GiveUsage(ctx context.Context, owner movement.Owner, name, period, replica string, batch, back int64) (taken int64, err error) {
	p := dbsqlc.GiveUsageParams{
		MerchantID: owner.MerchantID, Mode: owner.Mode, Name: name, Period: period,
		Replica: replica, Batch: batch, Back: back,
	}
	key := usageKey(owner, name, period, replica)
	counted, err := s.count(ctx, key, batch, math.MaxInt64, func(ctx context.Context) (dbsqlc.CountedUsageRow, error) {
		row, err := s.queries.GiveUsage(ctx, p)
		s.thin(ctx, key, row.Many)
		return dbsqlc.CountedUsageRow{Used: row.Used}, err
	})
	if err != nil {
		return 0, fmt.Errorf("store: give usage back: %w", err)
	}
	return counted.Taken, nil
}

func usageKey(owner movement.Owner, name, period, replica string) dbsqlc.CountedUsageParams {
	return dbsqlc.CountedUsageParams{MerchantID: owner.MerchantID, Mode: owner.Mode, Name: name, Period: period, Replica: replica}
}

// thin drops the oldest of many marks, where it is too old to matter. One for each
// batch is enough, since none adds more than one. The batch is counted already, so
// a failure here changes nothing.
func (s *Store) thin(ctx context.Context, key dbsqlc.CountedUsageParams, many []byte) {
	var marks map[string][]int64 // batch, taken, when; none where they are few
	if json.Unmarshal(many, &marks) != nil || len(marks) == 0 {
		return
	}
	when := func(replica string) int64 {
		if mark := marks[replica]; len(mark) > 2 {
			return mark[2]
		}
		return 0 // a mark without a time is old
	}
	oldest := key.Replica
	for replica := range marks {
		if when(replica) < when(oldest) {
			oldest = replica
		}
	}
	before := when(key.Replica) - marksFor
	if when(oldest) >= before {
		return
	}
	_ = s.queries.DropMark(ctx, dbsqlc.DropMarkParams{ // the next batch tries again
		Replica: oldest, MerchantID: key.MerchantID, Mode: key.Mode, Name: key.Name, Period: key.Period, Before: before,
	})
}

// UsedOf is how much of one thing a merchant has used in a period.
func (s *Store) UsedOf(ctx context.Context, owner movement.Owner, name, period string) (int64, error) {
	row, err := s.queries.CountedUsage(ctx, usageKey(owner, name, period, ""))
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return 0, fmt.Errorf("store: used: %w", err)
	}
	return row.Used, nil
}

// counting sends a batch once.
type counting func(ctx context.Context) (dbsqlc.CountedUsageRow, error)

// count sends a batch until its fate is known, or nobody can tell it.
func (s *Store) count(ctx context.Context, key dbsqlc.CountedUsageParams, batch, limit int64, send counting) (dbsqlc.CountedUsageRow, error) {
	counted, err := s.countOnce(ctx, key, batch, limit, send)
	if !conflicting(err) && !ambiguous(err) {
		return counted, err
	}
	return readBack(ctx, func(ctx context.Context) (dbsqlc.CountedUsageRow, error) {
		return s.countOnce(ctx, key, batch, limit, send)
	})
}

// countOnce sends a batch. Where it changed nothing, the row may be missing, be
// full, or have this batch already.
func (s *Store) countOnce(ctx context.Context, key dbsqlc.CountedUsageParams, batch, limit int64, send counting) (dbsqlc.CountedUsageRow, error) {
	for {
		counted, err := send(ctx)
		if !errors.Is(err, pgx.ErrNoRows) {
			return counted, sent(err)
		}
		counted, err = s.queries.CountedUsage(ctx, key)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			if err := s.openUsage(ctx, key); err != nil {
				return counted, sent(err)
			}
		case err != nil, counted.Batch == batch:
			return counted, sent(err)
		case counted.Batch > batch:
			return counted, errOvertaken
		case counted.Used >= limit:
			return dbsqlc.CountedUsageRow{Used: counted.Used}, nil
		}
		// It is there now, or something was given back at this very moment.
	}
}

// openUsage makes the row that something is counted in.
func (s *Store) openUsage(ctx context.Context, key dbsqlc.CountedUsageParams) error {
	var merchant string
	return only(ctx, s.pool, ofOwner|countUsage, &write{
		owner: movement.Owner{MerchantID: key.MerchantID, Mode: key.Mode},
		usage: usage{names: []string{key.Name}, periods: []string{key.Period}, amounts: []int64{0}, ceilings: []int64{0}},
	}, &merchant)
}

// DropUsage removes up to most counts of periods that are named before one, and
// tells how many. Names of months and days sort as they follow one another.
func (s *Store) DropUsage(ctx context.Context, before string, most int) (int64, error) {
	rows, err := s.queries.DropUsage(ctx, dbsqlc.DropUsageParams{Before: before, Most: int64(most)})
	if err != nil {
		return 0, fmt.Errorf("store: drop usage: %w", err)
	}
	return rows, nil
}

// Used is how much of something a merchant has used in a period.
type Used struct {
	Name  string
	Units int64
}

// Usage reads all that a merchant has used of what is counted by a period, in the
// order of the names.
func (s *Store) Usage(ctx context.Context, owner movement.Owner, period string) ([]Used, error) {
	rows, err := s.queries.UsageOf(ctx, dbsqlc.UsageOfParams{MerchantID: owner.MerchantID, Mode: owner.Mode, Period: period})
	if err != nil {
		return nil, fmt.Errorf("store: usage: %w", err)
	}
	used := make([]Used, len(rows))
	for i, row := range rows {
		used[i] = Used{Name: row.Name, Units: row.Used}
	}
	return used, nil
}

// UsedBy is how much of one thing a merchant has used in a period.
type UsedBy struct {
	Owner movement.Owner
	Used
}

// UsageIn is what one merchant, or every one where it is "", has used in a period, all at the same moment.
func (s *Store) UsageIn(ctx context.Context, merchant, period string) ([]UsedBy, error) {
	rows, err := s.queries.UsageIn(ctx, dbsqlc.UsageInParams{MerchantID: merchant, Period: period})
	if err != nil {
		return nil, fmt.Errorf("store: usage of a period: %w", err)
	}
	used := make([]UsedBy, len(rows))
	for i, row := range rows {
		used[i] = UsedBy{movement.Owner{MerchantID: row.MerchantID, Mode: row.Mode}, Used{Name: row.Name, Units: row.Used}}
	}
	return used, nil
}
