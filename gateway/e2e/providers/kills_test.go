package providers_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

// TestKilledPlugin kills the plugins of one provider for some seconds, as soon as they are
// there again. The others' merchants notice nothing.
func TestKilledPlugin(t *testing.T) {
	t.Parallel()
	killPlugins(t, "payments", 8*time.Second, harness.ResolvesWithin)
}

// TestTortureKilledPlugin does it for minutes to the provider that sends money out.
func TestTortureKilledPlugin(t *testing.T) {
	t.Parallel()
	minutes := harness.TortureMinutes(t)
	killPlugins(t, "wallet1", time.Duration(minutes*float64(time.Minute)), harness.EndsWithin)
}

func killPlugins(t *testing.T, provider string, lasts, resolves time.Duration) {
	t.Helper()
	f := newFleet(t)
	f.harmed = provider
	stop := f.load(2)
	defer stop()
	killed := map[*harness.Program][]int{}
	for deadline := time.Now().Add(lasts); time.Now().Before(deadline); <-time.After(rand.N(100 * time.Millisecond)) {
		for _, p := range f.replicas {
			now, err := p.Plugin(t, provider)
			if err != nil {
				t.Fatal(err)
			}
			if !now.Running || slices.Contains(killed[p], now.PID) {
				continue
			}
			if err := syscall.Kill(now.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				t.Fatal(err)
			}
			killed[p] = append(killed[p], now.PID)
		}
	}
	for _, p := range f.replicas {
		// Pauses double from a tenth of a second to half a minute, and are half as long by chance.
		if times := len(killed[p]); times < 3 || times > 14+int(lasts/(15*time.Second)) {
			t.Errorf("in %v a plugin was there to be killed %d times: it is not restarted, or without pauses", lasts, times)
		}
		p.AwaitClosedBreaker(t, provider)
	}
	stop()
	t.Logf("%s was killed %d and %d times: %s", provider, len(killed[f.replicas[0]]), len(killed[f.replicas[1]]), harness.Counted(f.answeredWith(provider)))
	f.wantNoFailure(slices.DeleteFunc(slices.Clone(providers), func(other string) bool { return other == provider })...)
	f.resolve(resolves)
	f.check()
}
