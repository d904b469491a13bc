package order_test

import (
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// TestOrdersAcrossReplicas sends equal orders, and more orders than a balance
// pays for, to two replicas at once. They share the database and the provider
// only.
func TestOrdersAcrossReplicas(t *testing.T) {
	t.Parallel()
	databaseURL := harness.ServeDatabase(t)
	d := harness.NewDeploymentOf(t, "ppob")
	replicas := d.Start(t, databaseURL, databaseURL)
	d.Connect(t, replicas[0], "platform")
	across := func(s harness.Shop, count int) []harness.Shop {
		var shops []harness.Shop
		for i := range count {
			shops = append(shops, s.At(replicas[i%len(replicas)]))
		}
		return shops
	}
	for _, g := range []goods{airtime.to(harness.UnknownPhone()), bill} {
		s := newBuyer(t, replicas[0], 2*g.price)
		equally(t, g, across(s, 20))
		wantFunds(t, s, "after twenty equal orders", funds{Balance: g.price})
		wantBought(t, s.Program, g.target, 1)
	}
	exactly(t, across(newBuyer(t, replicas[1], 8*airtime.price+airtime.price-1), 20), 8)
	replicas[0].WantCleanLedger(t)
}

// exactly has shops of one merchant order something each at once, of which the
// balance pays for so many.
func exactly(t *testing.T, shops []harness.Shop, affordable int) {
	t.Helper()
	wanted, taken := make([]goods, len(shops)), 0
	answers := together(t, shops, func(i int) (goods, string) {
		wanted[i] = airtime.to(harness.UnknownPhone())
		return wanted[i], harness.NewReference()
	})
	for i, a := range answers {
		switch {
		case a.Success:
			taken++
			wantBought(t, shops[i].Program, wanted[i].target, 1)
		case a.Code != fault.InsufficientBalance:
			t.Errorf("order %d: %s", i, a)
		default:
			wantBought(t, shops[i].Program, wanted[i].target, 0)
		}
	}
	if taken != affordable {
		t.Errorf("%d orders were taken, and the balance paid for %d", taken, affordable)
	}
	wantFunds(t, shops[0], "after all that it pays for", funds{Balance: airtime.price - 1})
}
