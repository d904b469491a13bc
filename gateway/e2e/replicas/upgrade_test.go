package replicas_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/version"
)

// TestUpgrade brings a deployment of the last release to this version, one replica after the other under load, and back: each reference is
// answered, once, by whichever is asked, and the ledger balances.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	all := version.Releases()
	if len(all) == 0 {
		t.Skip("nothing is released yet")
	}
	bin := harness.Released(t, all[len(all)-1].Commit)
	databaseURL, d := dbtest.New(t, "", nil), harness.NewDeployment(t)
	before := harness.ApproveAt(t, filepath.Join(bin, "plugins", "payments"))
	before.Ports, before.Read = d.Approved.Ports, d.Approved.Read
	start := func(binary string, plugin harness.Approval) *harness.Program {
		d.Binary = binary
		p := d.Launch(t, databaseURL, plugin)
		d.Join(t, p)
		return p
	}
	old := func() *harness.Program { return start(filepath.Join(bin, "gerbang"), before) }
	fresh := func() *harness.Program { return start("", d.Approved) }

	first, second := old(), old()
	s := d.NewShop(t, first, "scale")
	l := harness.NewLoad(d.InFront(s))
	loading, end := context.WithCancel(t.Context())
	defer end()
	ended := make(chan struct{})
	go func() { defer close(ended); l.CreateUntilDone(loading, 1) }()
	third := fresh()
	first.Stop(t)
	fourth := fresh()
	second.Stop(t)
	back := old() // somebody thinks better of it
	third.Stop(t)
	end()
	<-ended
	for _, p := range []*harness.Program{fourth, back} {
		l.Shop = s.At(p)
		l.Resolve(t)
		p.WantCleanLedger(t)
	}
	if len(l.Attempts) < 20 {
		t.Errorf("only %d payments were made", len(l.Attempts))
	}
}
