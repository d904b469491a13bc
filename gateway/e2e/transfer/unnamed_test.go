package transfer_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

// TestEqualTransfersInARow sends equal transfers without a reference, each as soon as
// the answer of the last one was read, to two replicas in turn: on connections that
// are closed at once, on one that stays, and 20 ms later. All are transfers of their
// own.
func TestEqualTransfersInARow(t *testing.T) {
	t.Parallel()
	const each = 60
	database := dbtest.New(t, "", nil)
	d := harness.NewDeploymentOf(t, "wallet1")
	replicas := d.Start(t, database, database)
	for name, sends := range map[string]struct {
		headers []string
		apart   time.Duration
		route   route
	}{
		"closed connections": {headers: []string{"Connection", "close"}, route: toWallet},
		"open connections":   {route: toBank},
		"20 ms apart":        {headers: []string{"Connection", "close"}, apart: 20 * time.Millisecond, route: toBank},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := d.NewShop(t, replicas[0], "scale")
			m := sends.route.newTransfer()
			ids, beat := map[string]bool{}, time.NewTicker(max(sends.apart, time.Nanosecond))
			defer beat.Stop()
			for i := range each {
				a := s.At(replicas[i%2]).Ask(t, m.path, m.body(""), sends.headers...)
				if a.HTTP != http.StatusOK || a.Replayed() || ids[transferOf(a).id()] {
					t.Fatalf("the %d. is answered %s, replayed: %t", i+1, a, a.Replayed())
				}
				ids[transferOf(a).id()] = true
				<-beat.C
			}
			m.wantMoved(t, replicas[0], each)
		})
	}
}
