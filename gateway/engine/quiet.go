package engine

import (
	"context"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// ReadBooks looks at the books of an account, if nobody did since before: rows may
// come at any time, also when nothing was sold for long. An account that is
// connected no more has no books.
func (e *Engine) ReadBooks(ctx context.Context, b movement.Statement, before time.Time) error {
	op, ok := e.collector(b.Provider)
	if !ok {
		return nil
	}
	account, err := e.Accounts.Account(ctx, tenants.MerchantID(b.MerchantID))
	if err != nil {
		return err
	}
	if _, connected := account.Connection(tenants.Mode(b.Mode), tenants.Provider(b.Provider)); !connected {
		return nil
	}
	c, err := e.connect(ctx, op, account, b.Mode)
	if err != nil || movement.NewAccountID(b.Provider, b.Mode, c.account) != b.Account {
		return err
	}
	_, err = e.reconcile(ctx, op, c, before)
	return err
}

// collector is an operation of a provider that collects.
func (e *Engine) collector(provider string) (*catalog.Operation, bool) {
	for _, op := range e.Catalog.Current().Operations() {
		if op.Provider == provider && op.Kind == manifest.Collection {
			return op, true
		}
	}
	return nil, false
}
