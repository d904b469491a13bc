package sdk

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func account(merchant, mode string, version int64) Connection {
	return Connection{MerchantID: merchant, Mode: mode, Version: version}
}

// named builds what tells for whom it was built.
func named(c Connection) (string, error) {
	return fmt.Sprintf("%s/%s/%d", c.MerchantID, c.Mode, c.Version), nil
}

// TestInstancesNeverMix draws any order of calls: each must get what was built
// for its own account and version.
func TestInstancesNeverMix(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var kept Instances[string]
		for range rapid.IntRange(1, 50).Draw(rt, "calls") {
			c := account(rapid.SampledFrom([]string{"a", "b", "a/live"}).Draw(rt, "merchant"),
				rapid.SampledFrom([]string{"live", "test", ""}).Draw(rt, "mode"), rapid.Int64Range(1, 3).Draw(rt, "version"))
			want, _ := named(c)
			if got, err := kept.Get(c, named); err != nil || got != want {
				rt.Fatalf("got %q, %v for %q", got, err, want)
			}
		}
	})
}

func TestInstancesBuildOnce(t *testing.T) {
	t.Parallel()
	var kept Instances[int]
	built := 0
	build := func(Connection) (int, error) { built++; return built, nil }
	get := func(version int64, want int) {
		t.Helper()
		if got, err := kept.Get(account("m", "live", version), build); err != nil || got != want {
			t.Errorf("version %d: got %d, %v, want %d", version, got, err, want)
		}
	}
	get(1, 1)
	get(1, 1)
	get(2, 2) // newer replaces
	get(2, 2)
	get(1, 3) // older gets its own, which is not kept
	get(1, 4)
	get(2, 2) // and did not push out the newer
	get(0, 5) // what is only verified is never kept, nor anything else's
	get(0, 6)
	get(2, 2)
}

func TestInstancesKeepNoError(t *testing.T) {
	t.Parallel()
	var kept Instances[string]
	fault := errors.New("no token")
	c := account("m", "live", 1)
	if _, err := kept.Get(c, func(Connection) (string, error) { return "", fault }); !errors.Is(err, fault) {
		t.Errorf("got %v", err)
	}
	if got, err := kept.Get(c, named); err != nil || got != "m/live/1" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestInstancesSurviveAPanic(t *testing.T) {
	t.Parallel()
	var kept Instances[string]
	c := account("m", "live", 1)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_, _ = kept.Get(c, func(Connection) (string, error) { panic("no") })
	}()
	if got, err := kept.Get(c, named); err == nil {
		t.Errorf("got %q of a build that panicked", got)
	}
	if got, err := kept.Get(c, named); err != nil || got != "m/live/1" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestInstancesDoNotWaitForOthers: one account's slow token must not hold up
// the calls of all others, and is fetched once.
func TestInstancesDoNotWaitForOthers(t *testing.T) {
	t.Parallel()
	var kept Instances[string]
	var builds atomic.Int32
	building, release := make(chan struct{}), make(chan struct{})
	build := func(c Connection) (string, error) {
		builds.Add(1)
		close(building)
		<-release
		return named(c)
	}
	var waiting sync.WaitGroup
	for range 3 {
		waiting.Go(func() {
			if got, err := kept.Get(account("slow", "live", 1), build); err != nil || got != "slow/live/1" {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	<-building
	if got, err := kept.Get(account("other", "live", 1), named); err != nil || got != "other/live/1" {
		t.Errorf("got %q, %v", got, err)
	}
	close(release)
	waiting.Wait()
	if n := builds.Load(); n != 1 {
		t.Errorf("built %d times", n)
	}
}

func TestInstancesForgetTheIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var kept Instances[string]
		for _, merchant := range []string{"busy", "idle"} {
			_, _ = kept.Get(account(merchant, "live", 1), named)
		}
		for range 5 {
			time.Sleep(instanceIdle / 4) // synctest's clock
			_, _ = kept.Get(account("busy", "live", 1), named)
		}
		if _, ok := kept.entries[instanceKey{"idle", "live"}]; ok {
			t.Error("what was idle for an hour is still kept")
		}
		if _, ok := kept.entries[instanceKey{"busy", "live"}]; !ok {
			t.Error("what is in use was dropped")
		}
	})
}
