package app_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"
)

// TestOrdersAndKills kills the gateway, its plugin, the provider and the
// database while many merchants order, at moments that nobody chose. Then every
// order is held against the ledger, the provider and the callbacks.
func TestOrdersAndKills(t *testing.T) {
	t.Parallel()
	db, seed := newMortal(t), uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	s := settings{data: dataDir(t), databaseURL: db.wire.url}
	p := start(t, s)
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
		func() { p.killOne(t, "ppob", false) },
		func() { db.kill(t, 0) },
		func() { p.kill(t); p = start(t, s); m.move(p) },
		func() { p.killOne(t, "ppob", true) },
		func() { p.kill(t); db.kill(t, 0); p = start(t, s); m.move(p) },
	} {
		<-time.After(time.Second + time.Duration(random.Int64N(int64(time.Second))))
		kill()
	}
	<-time.After(time.Second)
	stop()
	<-finished
	<-adjusted
	// What the provider tells late it tells now, and it may be asked at any time.
	p.upstream(t, "clock", fields{"advance": "5m"})
	m.settle(t, lookedUpWithin, true)
	t.Logf("%d cut; %s", m.cut.Load(), m.check(t))
}

// killOne kills a provider's plugin or simulator, unless it has ended just now.
func (p *program) killOne(t *testing.T, provider string, simulator bool) bool {
	t.Helper()
	for _, one := range p.family(t) {
		if one.plays(provider, simulator) {
			killProcess(t, one)
			return true
		}
	}
	return false
}
