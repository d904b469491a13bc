package store_test

import (
	"context"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/gateway/store/memory"
	"github.com/seed-f006e74d/gerbang/gateway/store/storetest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// conforming is a store with the credit that an operator gives.
type conforming struct{ *store.Store }

func (s conforming) Credit(ctx context.Context, owner movement.Owner, amount money.Amount) error {
	audit := store.Audit{Operator: "operator", Action: "test", At: epoch}
	merchant := tenants.Merchant{ID: tenants.MerchantID(owner.MerchantID), Name: "Toko", Tier: "scale", Status: tenants.Active}
	if err := s.CreateMerchant(ctx, audit, merchant, nil, nil); err != nil {
		return err
	}
	_, err := s.Adjust(ctx, audit, store.Adjustment{Owner: owner, Reference: "credit", Amount: amount, Reason: "credit"}, money.Max)
	return err
}

func TestConforms(t *testing.T) {
	t.Parallel()
	s := conforming{fresh(t)}
	storetest.Run(t, func(*testing.T) storetest.Store { return s })
}

func TestAnswersAsInMemory(t *testing.T) {
	t.Parallel()
	storetest.Compare(t, conforming{fresh(t)}, memory.New())
}
