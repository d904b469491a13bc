package store

import (
	"context"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
	"github.com/seed-f006e74d/gerbang/tenants"
)

const (
	// useKept is how long an address is kept from which a key was used, and usesKept how many of a key are.
	useKept  = 30 * 24 * time.Hour
	usesKept = 20
)

// PutKeyUses keeps the last use of a key from each of some addresses, unless a later one from there is known, and forgets
// those that are too old or too many.
func (s *Store) PutKeyUses(ctx context.Context, uses []tenants.KeyUse) error {
	for _, u := range uses {
		if err := s.queries.PutKeyUse(ctx, dbsqlc.PutKeyUseParams{
			MerchantID: string(u.MerchantID), KeyID: string(u.KeyID), UsedAt: micro(u.At), Address: u.Address,
		}); err != nil {
			return wrap("put key use", err)
		}
	}
	last := uses[len(uses)-1]
	return wrap("forget key uses", s.queries.ForgetKeyUses(ctx, dbsqlc.ForgetKeyUsesParams{
		MerchantID: string(last.MerchantID), KeyID: string(last.KeyID), Since: micro(last.At.Add(-useKept)), Most: usesKept,
	}))
}

// KeyUses lists when and from where a merchant's keys were used last: of each key the last one first.
func (s *Store) KeyUses(ctx context.Context, id tenants.MerchantID) ([]tenants.KeyUse, error) {
	rows, err := s.queries.KeyUses(ctx, string(id))
	uses := make([]tenants.KeyUse, len(rows))
	for i, row := range rows {
		uses[i] = tenants.KeyUse{MerchantID: id, KeyID: tenants.KeyID(row.KeyID), At: row.UsedAt.UTC(), Address: row.Address}
	}
	return uses, wrap("key uses", err)
}
