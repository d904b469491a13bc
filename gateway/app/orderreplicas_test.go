package app_test

import (
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// TestOrderReplicas sends equal orders, and more than a balance pays for, to two
// replicas at once: they share the database and the provider, and nothing else.
func TestOrderReplicas(t *testing.T) {
	t.Parallel()
	databaseURL := dbtest.New(t, "", nil)
	d := newDeploymentOf(t, "ppob")
	replicas := d.start(t, databaseURL, databaseURL)
	d.connect(t, replicas[0], "platform")
	across := func(s shop, count int) []shop {
		var shops []shop
		for i := range count {
			shops = append(shops, s.at(replicas[i%len(replicas)]))
		}
		return shops
	}
	for _, g := range []goods{airtime.to(anybody()), bill} {
		s := replicas[0].newBuyer(t, 2*g.price)
		equally(t, g, across(s, 50))
		s.wantFunds(t, "after fifty equal orders", funds{Balance: g.price})
		s.wantBought(t, g.target, 1)
	}
	exactly(t, across(replicas[1].newBuyer(t, 20*airtime.price+airtime.price-1), 50), 20)
	replicas[0].wantCleanLedger(t)
}

// exactly has shops of one merchant order something each at once, of which the
// balance pays for so many.
func exactly(t *testing.T, shops []shop, affordable int) {
	t.Helper()
	wanted, taken := make([]goods, len(shops)), 0
	answers := together(t, shops, func(i int) (goods, string) {
		wanted[i] = airtime.to(anybody())
		return wanted[i], newReference()
	})
	for i, a := range answers {
		switch {
		case a.Success:
			taken++
			shops[i].wantBought(t, wanted[i].target, 1)
		case a.Code != fault.InsufficientBalance:
			t.Errorf("order %d: %s", i, a)
		default:
			shops[i].wantBought(t, wanted[i].target, 0)
		}
	}
	if taken != affordable {
		t.Errorf("%d orders were taken, and the balance paid for %d", taken, affordable)
	}
	shops[0].wantFunds(t, "after all that it pays for", funds{Balance: airtime.price - 1})
}
