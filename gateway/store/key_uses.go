package store

import (
	"context"

	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// PutKeyUse keeps a key's last use, unless a later one is known.
func (s *Store) PutKeyUse(ctx context.Context, u tenants.KeyUse) error {
	return wrap("put key use", s.queries.PutKeyUse(ctx, dbsqlc.PutKeyUseParams{
		MerchantID: string(u.MerchantID), KeyID: string(u.KeyID), UsedAt: micro(u.At), Address: u.Address,
	}))
}

// KeyUses lists when and from where a merchant's keys were used last.
func (s *Store) KeyUses(ctx context.Context, id tenants.MerchantID) ([]tenants.KeyUse, error) {
	rows, err := s.queries.KeyUses(ctx, string(id))
	uses := make([]tenants.KeyUse, len(rows))
	for i, row := range rows {
		uses[i] = tenants.KeyUse{MerchantID: id, KeyID: tenants.KeyID(row.KeyID), At: row.UsedAt.UTC(), Address: row.Address}
	}
	return uses, wrap("key uses", err)
}
