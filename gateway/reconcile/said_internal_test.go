package reconcile

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// TestAccountsWithoutAPluginAreUnread: an operator must not read that nothing has left an
// account which nobody could ask about.
func TestAccountsWithoutAPluginAreUnread(t *testing.T) {
	t.Parallel()
	nothing, err := catalog.Build(nil)
	if err != nil {
		t.Fatal(err)
	}
	account, err := tenants.NewAccount(
		tenants.Merchant{ID: "mer_1", Status: tenants.Active, Tier: "growth"}, nil,
		[]tenants.Connection{{MerchantID: "mer_1", Provider: "bank", Mode: tenants.Live, Owner: tenants.OwnerMerchant, Version: 1}}, nil,
	)
	if err != nil {
		t.Fatal(err)
	}
	l := &lifecycle.Lifecycle{}
	l.Catalog = catalog.New(nothing)
	said, err := NewAbsences(l, nil, nil).Said(t.Context(), account, time.Now())
	if err != nil || len(said) != 1 || said[0].Connection.Provider != "bank" || !strings.Contains(said[0].Unread, "has not come up") {
		t.Errorf("said %+v, %v", said, err)
	}
}
