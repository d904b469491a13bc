package store

import (
	"context"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// SetLimits gives a merchant limits of its own, in place of those that it has
// under the same names. Who set them and when is the audit's.
func (s *Store) SetLimits(ctx context.Context, audit Audit, id tenants.MerchantID, limits []tenants.Limit) error {
	return s.ofMerchant(ctx, "set limits", audit, id, func(q *dbsqlc.Queries) error {
		for _, l := range limits {
			if err := q.PutLimit(ctx, dbsqlc.PutLimitParams{
				MerchantID: string(id), Name: l.Name, RatePerSecond: l.RatePerSecond, Burst: l.Burst, Quota: l.Quota,
				Reason: l.Reason, SetBy: audit.Operator, SetAt: micro(audit.At), ExpiresAt: optional(l.ExpiresAt),
				Markup: l.Markup, Amount: l.Amount, Transfers: l.Transfers, RepeatWithin: seconds(l.RepeatWithin),
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

// RemoveLimit takes a limit of its own from a merchant, or is ErrNotFound.
func (s *Store) RemoveLimit(ctx context.Context, audit Audit, id tenants.MerchantID, name string) error {
	return s.ofMerchant(ctx, "remove limit", audit, id, func(q *dbsqlc.Queries) error {
		return found(q.DeleteLimit(ctx, dbsqlc.DeleteLimitParams{MerchantID: string(id), Name: name}))
	})
}

func limitFromRow(row dbsqlc.MerchantLimit) tenants.Limit {
	l := tenants.Limit{
		Name: row.Name, RatePerSecond: row.RatePerSecond, Burst: row.Burst, Quota: row.Quota,
		Reason: row.Reason, SetBy: row.SetBy, SetAt: row.SetAt.UTC(), ExpiresAt: orZero(row.ExpiresAt),
		Markup: row.Markup, Amount: row.Amount, Transfers: row.Transfers,
	}
	if row.RepeatWithin != nil {
		l.RepeatWithin = new(time.Duration(*row.RepeatWithin) * time.Second)
	}
	return l
}

func seconds(d *time.Duration) *int64 {
	if d == nil {
		return nil
	}
	return new(int64(*d / time.Second))
}
