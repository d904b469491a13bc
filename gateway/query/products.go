package query

import (
	"context"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// ProductNames are the names of what an operation sells, from the list that merchants share, which is asked for where it is
// too old. The operation has a list of products.
func (q *Queries) ProductNames(ctx context.Context, op *catalog.Operation, account *tenants.Account, mode tenants.Mode) ([]string, error) {
	c, err := q.lifecycle.Connected(ctx, op, account, string(mode))
	if err != nil {
		return nil, err
	}
	r := lifecycle.Request{Identity: tenants.Identity{Account: account, Mode: mode}, Operation: op, RequestID: uuid.NewString()}
	list, err := q.listing(ctx, r, op.Products, nil, c)
	if err != nil {
		return nil, err
	}
	return list.Keys(op.Product.KeyField()), nil
}
