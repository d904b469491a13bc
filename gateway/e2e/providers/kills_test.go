package providers_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/tier"
)

// seedVariable names the seed by which victims are chosen, to choose the same ones again.
const seedVariable = "GERBANG_KILLS_SEED"

// TestKilledPlugins kills plugins at random for some seconds. Nobody but the merchants of
// the very provider on the very replica notices.
func TestKilledPlugins(t *testing.T) {
	t.Parallel()
	tier.Long(t, "kills at random, each of which is proven")
	killPlugins(t, newFleet(t), 1, 8*time.Second)
}

// killPlugins kills one plugin after the other, of any provider on any replica, and wants
// no call to fail but those of the one that was just killed.
func killPlugins(t *testing.T, f *fleet, seed uint64, lasts time.Duration) {
	t.Helper()
	if given, err := strconv.ParseUint(os.Getenv(seedVariable), 10, 64); err == nil {
		seed = given
	}
	t.Logf("%s=%d chooses the victims", seedVariable, seed)
	chance := rand.New(rand.NewPCG(seed, 0))
	stop := f.load(2)
	defer stop()
	next := time.Now()
	for deadline := time.Now().Add(lasts); time.Now().Before(deadline); <-time.After(50 * time.Millisecond) {
		f.noteReturns()
		if time.Now().Before(next) {
			continue
		}
		next = time.Now().Add(time.Duration(chance.Int64N(int64(time.Second))))
		f.killPlugin(f.replicas[chance.IntN(len(f.replicas))], providers[chance.IntN(len(providers))])
	}
	harness.Await(t, time.Minute, "all plugins that were killed", func() bool { return f.noteReturns() == 0 })
	stop()
	if kills := len(f.outages); kills < int(lasts/(4*time.Second)) {
		t.Errorf("in %v plugins were there to be killed %d times: they are not restarted", lasts, kills)
	}
	f.wantNoFailure()
	f.resolve(harness.EndsWithin) // on a busy machine an attempt may be made again
	f.check()
}

// killPlugin kills a provider's process on a replica, unless it is down already.
func (f *fleet) killPlugin(of *harness.Program, provider string) {
	f.Helper()
	if slices.ContainsFunc(f.outages, func(o *outage) bool { return o.of == of && o.provider == provider && o.to.IsZero() }) {
		return
	}
	now, err := of.Plugin(f.T, provider)
	if err != nil {
		f.Fatal(err)
	}
	if !now.Running {
		f.Errorf("%s does not run, and nobody has killed it: %s", provider, now.LastFault)
		return
	}
	f.outages = append(f.outages, &outage{of: of, provider: provider, pid: now.PID, from: time.Now()})
	f.tallies[provider].killed++
	if err := syscall.Kill(now.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		f.Fatal(err)
	}
}

// noteReturns notes which plugins are there again, and counts those that are not.
func (f *fleet) noteReturns() (down int) {
	f.Helper()
	for _, o := range f.outages {
		if !o.to.IsZero() {
			continue
		}
		now, err := o.of.Plugin(f.T, o.provider)
		if err != nil {
			f.Fatal(err)
		}
		open := slices.ContainsFunc(now.Breakers, func(b host.BreakerStatus) bool { return b.Calls != "closed" || b.AccountsOpen > 0 })
		if !now.Running || now.PID == o.pid || open {
			down++
			continue
		}
		o.to = time.Now()
	}
	return down
}
