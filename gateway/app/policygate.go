package app

import (
	"context"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/admission"
	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// judgePolicy holds a set against the merchants there are, the operations on offer and the set in force. While the gateway
// starts, nothing is on offer yet.
func (a *App) judgePolicy(ctx context.Context, source policy.Source) ([]policy.Finding, error) {
	facts, err := a.facts(ctx)
	if err != nil {
		return nil, err
	}
	if facts.KnownMerchants, err = a.store.MerchantsThere(ctx, policy.Mentioned(source)); err != nil {
		return nil, err
	}
	if a.operations != nil {
		snapshot := a.operations.Current()
		if policy.NamesProducts(source) {
			facts.SKUs = a.products(ctx, snapshot)
		}
		if facts.Recorded, err = a.recorded(ctx, snapshot); err != nil {
			return nil, err
		}
	}
	return a.judge.Gate(ctx, source, facts)
}

// meaningOfPolicy says whether a version that was pushed fits the merchants there are now and the operations on offer.
func (a *App) meaningOfPolicy(ctx context.Context, source policy.Source) ([]policy.Finding, error) {
	facts, err := a.facts(ctx)
	if err != nil {
		return nil, err
	}
	return a.judge.Meaning(ctx, source, facts)
}

// facts are what a policy's meaning is held against.
func (a *App) facts(ctx context.Context) (facts policy.Facts, err error) {
	facts.Active = a.policy.Set()
	if a.operations != nil {
		facts.Operations = admission.Offered(a.operations.Current())
	}
	facts.Merchants, err = a.store.MerchantsByTier(ctx)
	return facts, err
}

// productsWithin bounds the wait for a provider's list.
const productsWithin = 3 * time.Second

// products are the names of everything that is sold on the platform's accounts, nil where a list can't be read: then no name
// is called unknown.
func (a *App) products(ctx context.Context, snapshot *catalog.Snapshot) map[string]bool {
	ctx, cancel := context.WithTimeout(ctx, productsWithin)
	defer cancel()
	platform, err := a.store.AccountByID(ctx, tenants.Platform)
	if err != nil {
		return nil // nothing is connected
	}
	names := map[string]bool{}
	for _, op := range snapshot.Operations() {
		if op.Product == nil {
			continue
		}
		listed, err := a.queries.ProductNames(ctx, op, platform, tenants.Live)
		if err != nil {
			a.log.WarnContext(ctx, "a push is judged without the names of products", "operation", op.Path, "error", err)
			return nil
		}
		for _, name := range listed {
			names[name] = true
		}
	}
	return names
}
