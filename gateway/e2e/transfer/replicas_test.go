package transfer_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/tier"
)

// TestTransfersAcrossReplicas has two replicas share transfers, a third of which
// meet a fault, and kills one replica midway: no transfer is doubled or lost.
func TestTransfersAcrossReplicas(t *testing.T) {
	t.Parallel()
	tier.Long(t, "a thousand transfers; TestTransfersSurviveKills shares sixty")
	random, seed := seeded()
	x := newMatrix(t)
	x.revive(t)
	x.open(t, 3)
	all := x.draw(random, 1000, quick)
	began := time.Now()
	x.share(t, all[:len(all)/2])
	x.killSharing(t, all[len(all)/2:], false)
	t.Logf("seed %d: %d transfers shared in %v", seed, len(all), time.Since(began).Round(time.Millisecond))
	x.awaitEnds(t, heardWithin, false)
	x.check(t)
}

// seeded is a source of random numbers with its seed.
func seeded() (random *rand.Rand, seed uint64) {
	seed = uint64(time.Now().UnixNano())
	return rand.New(rand.NewPCG(seed, 0)), seed
}

// TestTortureTransfers combines all faults with every kill, and then kills a
// gateway or its plugin again and again under a load of transfers, for minutes.
// It waits for every end.
func TestTortureTransfers(t *testing.T) {
	t.Parallel()
	minutes := harness.TortureMinutes(t)
	random, seed := seeded()
	x := newMatrix(t)
	x.cross(t, slices.Concat(quick, others))
	x.complete(t, slices.Concat(quick, others))
	x.revive(t)
	x.open(t, 7)
	shared, kills := 0, 0
	for began := time.Now(); time.Since(began).Minutes() < minutes; kills++ {
		all := x.draw(random, 300, slices.Concat(quick, others))
		x.killSharing(t, all, random.IntN(2) == 0)
		shared += len(all)
		<-time.After(time.Duration(random.Int64N(int64(3 * time.Second))))
	}
	t.Logf("%g minutes, seed %d: %d transfers shared, %d kills", minutes, seed, shared, kills)
	x.awaitEnds(t, harness.EndsWithin, true)
	x.check(t)
}

// open gives the matrix more merchants.
func (x *matrix) open(t *testing.T, merchants int) {
	t.Helper()
	x.senders = []harness.Shop{x.shop}
	for range merchants {
		s, _ := x.newSender(t)
		x.senders = append(x.senders, s)
	}
}

// draw makes transfers, of which a third meets a fault, if not one that takes all
// the time that a caller has.
func (x *matrix) draw(random *rand.Rand, many int, faults []upstreamFault) []*transferCase {
	first := len(x.cases)
	faults = slices.DeleteFunc(slices.Clone(faults), upstreamFault.silent)
	for i := range many {
		m := upstreamFault{name: "nothing"}
		if random.IntN(3) == 0 {
			m = faults[random.IntN(len(faults))]
		}
		c := x.add(routes[i%2], m, point{name: "two replicas"})
		if m.act != actToken {
			c.shop = x.senders[random.IntN(len(x.senders))]
		}
	}
	return x.cases[first:]
}

// share posts transfers to both replicas in turn, each tenth of them from five
// clients at once.
func (x *matrix) share(t *testing.T, cases []*transferCase) {
	t.Helper()
	next := make(chan int)
	var clients sync.WaitGroup
	for range 24 {
		clients.Go(func() {
			for i := range next {
				var same sync.WaitGroup
				for n := range 1 + 4*(max(0, 1-i%10)) {
					same.Go(func() {
						cases[i].post(context.WithoutCancel(t.Context()), []*harness.Program{x.stays, x.dies}[(i+n)%2])
					})
				}
				same.Wait()
			}
		})
	}
	for i := range cases {
		next <- i
	}
	close(next)
	clients.Wait()
}

// killSharing is share, during which one replica or its plugin is killed and
// comes back.
func (x *matrix) killSharing(t *testing.T, cases []*transferCase, plugin bool) {
	t.Helper()
	third := len(cases) / 3
	shared := make(chan struct{})
	go func() {
		x.share(t, cases[:third])
		close(shared)
	}()
	harness.Await(t, heardWithin, "some calls", func() bool {
		return slices.ContainsFunc(cases[third/2:third], func(c *transferCase) bool { return c.script.called() > 0 })
	})
	x.strike(t, plugin)
	<-shared
	if !plugin {
		x.revive(t)
	}
	x.share(t, cases[third:])
}
