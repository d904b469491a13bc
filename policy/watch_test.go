package policy

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// logged collects what a watcher logs.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

// take is what was logged since the last take.
func (l *logged) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.buf.Reset()
	return l.buf.String()
}

// watched is a directory with a watcher on it.
type watched struct {
	dir    string
	active *Active
	log    *logged
	swaps  chan *Set
	fails  atomic.Int64 // how often publishing fails for another reason than the set's
	w      *watcher
}

// watch makes a directory with the fixture and a watcher that is not running yet.
func watch(t *testing.T) *watched {
	dir := t.TempDir()
	write(t, dir, fixture())
	w := &watched{dir: dir, active: NewActive(must(t, fixture())), log: &logged{}, swaps: make(chan *Set, 10)}
	w.w = &watcher{dir: dir, active: w.active, log: slog.New(slog.NewTextHandler(w.log, nil)), publish: w.publish}
	return w
}

// publish puts what compiles in force.
func (w *watched) publish(ctx context.Context, source Source) error {
	if w.fails.Add(-1) >= 0 {
		return errors.New("somebody else is publishing")
	}
	set, err := Compile(ctx, source)
	if err != nil {
		return err
	}
	w.active.Swap(set)
	w.swaps <- set
	return nil
}

// run runs the watcher until the test ends.
func (w *watched) run(t *testing.T, events <-chan struct{}) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.w.run(ctx, events, pollEvery)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// burst is what the active set allows a starter, asked under a new version each time.
func (w *watched) burst(t *testing.T) int {
	t.Helper()
	limits, err := w.active.Set().Limits(t.Context(), starter(noon))
	if err != nil {
		t.Fatal(err)
	}
	return limits.Rates[0].Burst
}

// edited is the fixture's data with another burst for starters.
func edited(burst string) []byte {
	return []byte(strings.Replace(fixtureData, `"burst": 10,`, `"burst": `+burst+`,`, 1))
}

func TestAnEditIsLiveWithinTwoSecondsWithoutEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := watch(t)
		w.run(t, nil)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if len(w.swaps) != 0 || w.log.take() != "" {
			t.Fatal("nothing was edited and something happened")
		}
		write(t, w.dir, Source{dataFile: edited("33")})
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := w.burst(t); got != 33 || len(w.swaps) != 1 {
			t.Errorf("burst is %d after %d swaps, want 33 after one", got, len(w.swaps))
		}
	})
}

func TestAnEventIsFasterThanTheNextLook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := watch(t)
		events := make(chan struct{})
		w.run(t, events)
		write(t, w.dir, Source{dataFile: edited("34")})
		events <- struct{}{}
		time.Sleep(2 * settleFor)
		synctest.Wait()
		if got := w.burst(t); got != 34 {
			t.Errorf("burst is %d, want 34", got)
		}
	})
}

func TestAnEditInStepsIsTakenAsAWhole(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := watch(t)
		events := make(chan struct{})
		w.run(t, events)
		for _, step := range []string{"35, \"", "35, \"brust\": 1", "35"} {
			write(t, w.dir, Source{dataFile: edited(step)})
			events <- struct{}{}
			time.Sleep(settleFor / 2)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := w.burst(t); got != 35 || len(w.swaps) != 1 || strings.Contains(w.log.take(), "refused") {
			t.Errorf("burst is %d after %d swaps, want 35 after one, without a refusal", got, len(w.swaps))
		}
	})
}

func TestABrokenEditChangesNothingAndIsLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := watch(t)
		w.run(t, nil)
		before := w.active.Set()
		step := func(files Source) string {
			write(t, w.dir, files)
			time.Sleep(5 * time.Second)
			synctest.Wait()
			return w.log.take()
		}
		for _, c := range []struct {
			files Source
			want  []string
		}{
			{Source{dataFile: []byte("{\n  \"tires\": {}}")}, []string{"file=data.json line=2 col=3", "tires"}},
			{Source{dataFile: edited("36"), "limits.rego": []byte("package gerbang\n\nlimits := \n")}, []string{"file=limits.rego line=4"}},
			{Source{"limits.rego": limitsRules, "own_test.rego": []byte("package own_test\n\ntest_it if 1 > 2\n")},
				[]string{"file=own_test.rego line=3 col=1", "test_it fails"}},
		} {
			got := step(c.files)
			for _, want := range append(c.want, "level=ERROR", "the old one stays in force") {
				if !strings.Contains(got, want) {
					t.Errorf("the log says %q, want %q in it", got, want)
				}
			}
			if w.active.Set() != before || len(w.swaps) != 0 {
				t.Error("a broken edit came into force")
			}
		}
		if err := os.Rename(w.dir, w.dir+".away"); err != nil {
			t.Fatal(err)
		}
		if got := step(nil); strings.Count(got, "level=ERROR") != 1 || !strings.Contains(got, "does not exist") {
			t.Errorf("a directory that is gone is logged as %q, want once", got)
		}
		if err := os.Rename(w.dir+".away", w.dir); err != nil {
			t.Fatal(err)
		}
		if got := step(Source{"own_test.rego": nil}); !strings.Contains(got, "own_test.rego") || w.active.Set() != before {
			t.Errorf("an empty file is logged as %q", got)
		}
		if err := os.Remove(filepath.Join(w.dir, "own_test.rego")); err != nil {
			t.Fatal(err)
		}
		if got := step(nil); got != "" || w.burst(t) != 36 {
			t.Errorf("the mended set gives %q and burst %d, want 36", got, w.burst(t))
		}
	})
}

func TestWhatCouldNotBePublishedIsTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := watch(t)
		w.fails.Store(2)
		w.run(t, nil)
		write(t, w.dir, Source{dataFile: edited("38")})
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := w.burst(t); got != 38 || len(w.swaps) != 1 || strings.Count(w.log.take(), "somebody else") != 2 {
			t.Errorf("burst is %d after %d swaps, want 38 after one and two failures", got, len(w.swaps))
		}
	})
}

func TestGoingBackToTheActiveSetIsNoSwap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := watch(t)
		w.run(t, nil)
		before := w.active.Set()
		for _, data := range []string{"{}", fixtureData} {
			write(t, w.dir, Source{dataFile: []byte(data)})
			time.Sleep(5 * time.Second)
			synctest.Wait()
		}
		if w.active.Set() != before || len(w.swaps) != 0 {
			t.Error("undoing a broken edit swapped the set")
		}
	})
}

// TestWatchHearsTheFileSystem runs over the real events of the system; the fallback that looks once a second would
// bring the same edits in, so what it proves is that the whole works outside of a bubble.
func TestWatchHearsTheFileSystem(t *testing.T) {
	t.Parallel()
	w := watch(t)
	events, stop := notify(w.dir, slog.New(slog.DiscardHandler))
	write(t, w.dir, Source{dataFile: edited("37")})
	select {
	case <-events:
	case <-time.After(10 * time.Second):
		t.Fatal("no event came")
	}
	stop()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		Watch(ctx, w.dir, w.active, slog.New(slog.DiscardHandler), w.publish)
	}()
	select {
	case set := <-w.swaps:
		if set != w.active.Set() || w.burst(t) != 37 {
			t.Errorf("the set in force allows %d, want 37", w.burst(t))
		}
	case <-time.After(20 * time.Second):
		t.Error("the edit never came into force")
	}
	cancel()
	<-done
}

func TestADirectoryThatCantBeWatchedIsLookedAt(t *testing.T) {
	t.Parallel()
	w := watch(t)
	events, stop := notify(filepath.Join(w.dir, "nowhere"), w.w.log)
	defer stop()
	if got := w.log.take(); events != nil || !strings.Contains(got, "looked at every second") {
		t.Errorf("it gives %v and logs %q", events, got)
	}
}
