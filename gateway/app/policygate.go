package app

import (
	"context"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/admission"
	"github.com/seed-f006e74d/gerbang/policy"
)

// judgeWithin bounds the work on one set: its tests, and every operation of every tier.
const judgeWithin = 30 * time.Second

// judgePolicy holds a set against the merchants there are, the operations on offer and the set in force. While the gateway
// starts, nothing is on offer yet.
func (a *App) judgePolicy(ctx context.Context, source policy.Source) ([]policy.Finding, error) {
	ctx, cancel := context.WithTimeout(ctx, judgeWithin)
	defer cancel()
	facts := policy.Facts{Active: a.policy.Set(), Now: a.clock.Now}
	var err error
	if facts.Merchants, err = a.store.MerchantsByTier(ctx); err != nil {
		return nil, err
	}
	if facts.KnownMerchants, err = a.store.MerchantsThere(ctx, policy.Mentioned(source)); err != nil {
		return nil, err
	}
	if a.operations != nil {
		snapshot := a.operations.Current()
		facts.Operations = admission.Offered(snapshot)
		if facts.Recorded, err = a.recorded(ctx, snapshot); err != nil {
			return nil, err
		}
	}
	_, findings, err := policy.Gate(ctx, source, facts)
	return findings, err
}
