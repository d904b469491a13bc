package order_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

// TestOrdersSurviveKills kills the gateway, its plugin, the provider and the
// database at random moments while many merchants order. Then every order is
// compared with the ledger, the provider and the callbacks.
func TestOrdersSurviveKills(t *testing.T) {
	t.Parallel()
	db, seed := harness.NewPostgreSQL(t), uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	s := harness.Settings{Data: harness.DataDir(t), DatabaseURL: db.Proxy.URL}
	p := harness.Start(t, s)
	m := newMarket(t, p, 12, 50_000_000)
	ctx, stop := context.WithCancel(t.Context())
	finished := make(chan struct{})
	go func() {
		m.run(ctx, 12, seed)
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
		func() { p.Kill(t); p = harness.Start(t, s); m.move(p) },
		func() { p.KillProvider(t, "ppob", true) },
		func() { p.Kill(t); db.Kill(t, 0); p = harness.Start(t, s); m.move(p) },
	} {
		<-time.After(time.Second + time.Duration(random.Int64N(int64(time.Second))))
		kill()
	}
	<-time.After(time.Second)
	stop()
	<-finished
	<-adjusted
	// What the provider tells late it tells now, and it may be asked at any time.
	upstream(t, p, "clock", harness.Fields{"advance": "5m"})
	m.awaitEnds(t, lookedUpWithin, true)
	t.Logf("%d cut; %s", m.cut.Load(), m.check(t))
}
