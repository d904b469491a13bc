package order_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

// TestOrdersSurviveKills kills the plugin, the gateway and the database at random moments
// while many merchants order, and the gateway and the database together. Then every order
// is compared with the ledger, the provider and the callbacks. The provider may be asked at
// any time, so that no lookup is waited for. TestTortureOrders kills the provider, too.
func TestOrdersSurviveKills(t *testing.T) {
	t.Parallel()
	db, seed := harness.NewPostgreSQL(t), uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	d := harness.NewDeploymentOf(t, "ppob", "--poll-every=0s")
	launch := func() *harness.Program {
		p := d.Launch(t, db.Proxy.URL, d.Approved, "allow_http_callbacks: true")
		d.Join(t, p)
		return p
	}
	p := launch()
	d.Connect(t, p, "platform")
	m := newMarket(t, p, 8, 50_000_000)
	ctx, stop := context.WithCancel(t.Context())
	finished := make(chan struct{})
	go func() {
		m.run(ctx, 6, seed)
		close(finished)
	}()
	adjusted := make(chan struct{})
	go func() {
		m.adjust(ctx, seed)
		close(adjusted)
	}()
	for _, kill := range []func(){
		func() { p.KillProvider(t, "ppob", false) },
		func() { db.Kill(t, 0) },
		func() { p.Kill(t); p = launch(); m.move(p) },
		func() { p.Kill(t); db.Kill(t, 0); p = launch(); m.move(p) },
	} {
		m.awaitMore(t, 20+random.IntN(20))
		kill()
	}
	m.awaitMore(t, 20)
	stop()
	<-finished
	<-adjusted
	upstream(t, p, "clock", harness.Fields{"advance": "5m"}) // what the provider reports late, it reports now
	m.awaitEnds(t, lookedUpWithin, true)
	t.Logf("%d cut; %s", m.cut.Load(), m.check(t))
}
