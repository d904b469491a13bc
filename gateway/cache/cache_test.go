package cache_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/cache"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

var errDown = fault.New(fault.ProviderUnavailable, "Down.")

func TestAFreshAnswerComesFromMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rows, u := newTable(), &upstream{}
		c := replica(t, rows, time.Now, nil)
		first := want(t, c, u, "[1]")
		synctest.Wait()
		statements := rows.statements()
		time.Sleep(maxAge - 1)
		second := want(t, c, u, "[1]")
		if rows.statements() != statements {
			t.Errorf("%d statements for a fresh answer", rows.statements()-statements)
		}
		if first.Version == "" || first.Version != second.Version || &first.Body[0] != &second.Body[0] {
			t.Error("one answer has two identities")
		}
		other := key
		other.Body = `{"type":"Pasca"}`
		if answer, err := c.Get(t.Context(), other, maxAge, u.fetch); err != nil || string(answer.Body) != "[2]" {
			t.Errorf("another question got %s, %v", answer.Body, err)
		}
	})
}

func TestAnOldAnswerIsGivenWhileItIsRefreshed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := &upstream{takes: 3 * time.Second}
		c := replica(t, newTable(), time.Now, nil)
		old := want(t, c, u, "[1]")
		time.Sleep(maxAge)
		for range 3 {
			before := time.Now()
			if got := want(t, c, u, "[1]"); got.FetchedAt != old.FetchedAt || time.Since(before) != 0 {
				t.Errorf("waited %v for what was there", time.Since(before))
			}
		}
		time.Sleep(u.takes + 1)
		if got := want(t, c, u, "[2]"); got.Version == old.Version {
			t.Error("another answer has the same version")
		}
		u.wantFetched(t, 2)
	})
}

func TestReplicasFetchOnceAPeriod(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rows, u := newTable(), &upstream{takes: time.Second}
		replicas := make([]*cache.Cache, 5)
		for i := range replicas {
			replicas[i] = replica(t, rows, time.Now, nil)
		}
		const period = 10
		for range period {
			for range int(maxAge / time.Second) {
				for _, c := range replicas {
					if _, err := c.Get(t.Context(), key, maxAge, u.fetch); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(time.Second)
			}
		}
		if got := u.fetched.Load(); got < period-1 || got > period+1 {
			t.Errorf("%d fetches in %d periods", got, period)
		}
	})
}

func TestAReplicaThatBeginsGivesTheOldAnswerAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rows, u := newTable(), &upstream{takes: 3 * time.Second}
		want(t, replica(t, rows, time.Now, nil), u, "[1]")
		time.Sleep(maxAge)
		before := time.Now()
		want(t, replica(t, rows, time.Now, nil), u, "[1]")
		if waited := time.Since(before); waited != 0 {
			t.Errorf("waited %v for what was there", waited)
		}
	})
}

func TestAFailedRefreshKeepsTheOldAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		rows, u := newTable(), &upstream{}
		one := replica(t, rows, time.Now, slog.New(slog.NewTextHandler(&log, nil)))
		two := replica(t, rows, time.Now, nil)
		want(t, one, u, "[1]")
		want(t, two, u, "[1]")
		u.fail(errDown)
		time.Sleep(maxAge)
		for range 59 { // both ask all the time, and the provider is left alone
			want(t, one, u, "[1]")
			synctest.Wait()
			want(t, two, u, "[1]")
			time.Sleep(time.Second)
		}
		u.wantFetched(t, 2)
		if !strings.Contains(log.String(), "Down.") || !strings.Contains(log.String(), "/ppob/products") {
			t.Errorf("the log says %q", &log)
		}
		u.fail(nil)
		time.Sleep(3 * time.Second)
		want(t, two, u, "[1]")
		synctest.Wait()
		want(t, two, u, "[3]")
	})
}

func TestNoAnswerIsGivenForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := &upstream{}
		c := replica(t, newTable(), time.Now, nil)
		want(t, c, u, "[1]")
		u.fail(errDown)
		time.Sleep(24*time.Hour - 1)
		want(t, c, u, "[1]")
		synctest.Wait()
		time.Sleep(time.Minute)
		wantFault(t, c, u, fault.ProviderUnavailable)
		u.fail(nil)
		time.Sleep(time.Minute)
		want(t, c, u, "[4]")
	})
}

func TestAllWhoAskFirstWaitForOneFetch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rows, u := newTable(), &upstream{takes: time.Second}
		one, two := replica(t, rows, time.Now, nil), replica(t, rows, time.Now, nil)
		var group sync.WaitGroup
		for range 20 {
			for _, c := range []*cache.Cache{one, two} {
				group.Go(func() {
					if answer, err := c.Get(t.Context(), key, maxAge, u.fetch); err != nil || string(answer.Body) != "[1]" {
						t.Errorf("got %s, %v", answer.Body, err)
					}
				})
			}
		}
		group.Wait()
		u.wantFetched(t, 1)
	})
}

func TestAllWhoWaitAreToldTheError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rows, u := newTable(), &upstream{takes: time.Second}
		u.fail(errDown)
		one, two := replica(t, rows, time.Now, nil), replica(t, rows, time.Now, nil)
		var group sync.WaitGroup
		var mu sync.Mutex
		told := map[*fault.Error]bool{}
		for range 10 {
			for _, c := range []*cache.Cache{one, two} {
				group.Go(func() {
					_, err := c.Get(t.Context(), key, maxAge, u.fetch)
					f, _ := errors.AsType[*fault.Error](err)
					if f == nil || f.Code != fault.ProviderUnavailable {
						t.Errorf("got %v", err)
					}
					mu.Lock()
					told[f] = true
					mu.Unlock()
				})
			}
		}
		group.Wait()
		if u.wantFetched(t, 1); len(told) != 20 {
			t.Errorf("20 callers share %d errors, which they may add to", len(told))
		}
		u.fail(nil)
		time.Sleep(9 * time.Second)
		wantFault(t, one, u, fault.ProviderUnavailable)
		u.wantFetched(t, 1)
		time.Sleep(2 * time.Second)
		want(t, two, u, "[2]")
	})
}

func TestAFetchOutlivesWhoBeganIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := &upstream{takes: time.Second}
		c := replica(t, newTable(), time.Now, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		if _, err := c.Get(ctx, key, maxAge, u.fetch); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		want(t, c, u, "[1]")
		u.wantFetched(t, 1)
	})
}

func TestAFetchHasADeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := replica(t, newTable(), time.Now, nil)
		before := time.Now()
		_, err := c.Get(t.Context(), key, maxAge, (&upstream{takes: time.Hour}).fetch)
		if took := time.Since(before); !errors.Is(err, context.DeadlineExceeded) || took > 30*time.Second {
			t.Errorf("got %v after %v", err, took)
		}
	})
}

// TestADeadReplicasLeaseRunsOut: somebody took the lease and is never heard of
// again.
func TestADeadReplicasLeaseRunsOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rows, u := newTable(), &upstream{}
		die := func() {
			if ours, err := rows.LeaseAnswer(t.Context(), key.Row(), time.Now(), time.Now().Add(30*time.Second), maxAge, 0); err != nil || !ours {
				t.Fatal(ours, err)
			}
		}
		die()
		c, before := replica(t, rows, time.Now, nil), time.Now()
		want(t, c, u, "[1]")
		if took := time.Since(before); took < 30*time.Second || took > 31*time.Second {
			t.Errorf("the lease was waited for %v", took)
		}
		time.Sleep(maxAge)
		die()
		for range 29 {
			want(t, c, u, "[1]")
			time.Sleep(time.Second)
		}
		u.wantFetched(t, 1)
		time.Sleep(3 * time.Second)
		want(t, c, u, "[1]")
		synctest.Wait()
		want(t, c, u, "[2]")
	})
}

func TestTheSameBodyKeepsItsVersion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := replica(t, newTable(), time.Now, nil)
		fetch := func(context.Context) (json.RawMessage, error) { return json.RawMessage(`["same"]`), nil }
		get := func() cache.Answer {
			answer, err := c.Get(t.Context(), key, maxAge, fetch)
			if err != nil {
				t.Fatal(err)
			}
			return answer
		}
		first := get()
		time.Sleep(maxAge)
		get()
		synctest.Wait()
		if again := get(); again.Version != first.Version || &again.Body[0] != &first.Body[0] || !again.FetchedAt.After(first.FetchedAt) {
			t.Errorf("the refreshed answer %+v is not the first, %+v", again, first)
		}
	})
}

func TestWhatCanNotBeSharedIsAnError(t *testing.T) {
	t.Parallel()
	for name, fetch := range map[string]cache.Fetch{
		"nothing":   func(context.Context) (json.RawMessage, error) { return nil, nil },
		"no JSON":   func(context.Context) (json.RawMessage, error) { return json.RawMessage(`{`), nil },
		"not UTF-8": func(context.Context) (json.RawMessage, error) { return json.RawMessage("\"\xff\""), nil },
		"a panic":   func(context.Context) (json.RawMessage, error) { panic("at the disco") },
	} {
		rows := newTable()
		c := replica(t, rows, time.Now, nil)
		if answer, err := c.Get(t.Context(), key, maxAge, fetch); err == nil {
			t.Errorf("%s: got %s", name, answer.Body)
		}
		if r := rows.rows[key.Row()]; r.body != nil || r.failed.IsZero() {
			t.Errorf("%s: the row is %+v", name, r)
		}
	}
}

func TestWithoutRowsTheOldAnswerIsGiven(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rows, u := newTable(), &upstream{}
		c := replica(t, rows, time.Now, nil)
		want(t, c, u, "[1]")
		synctest.Wait()
		away := errors.New("the database is away")
		rows.fail(away)
		time.Sleep(maxAge)
		for range 10 {
			want(t, c, u, "[1]")
			synctest.Wait()
		}
		if _, err := replica(t, rows, time.Now, nil).Get(t.Context(), key, maxAge, u.fetch); !errors.Is(err, away) {
			t.Errorf("who begins got %v", err)
		}
		u.wantFetched(t, 1)
		rows.fail(nil)
		time.Sleep(2 * time.Second)
		want(t, c, u, "[1]")
		synctest.Wait()
		want(t, c, u, "[2]")
	})
}

// TestAWrongClockPutsNothingOff: a replica a day ahead fetched, and took the
// lease again before it died.
func TestAWrongClockPutsNothingOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rows, u := newTable(), &upstream{takes: time.Second}
		ahead := func() time.Time { return time.Now().Add(25 * time.Hour) }
		want(t, replica(t, rows, ahead, nil), u, "[1]")
		synctest.Wait()
		rows.rows[key.Row()].leased = ahead()
		c := replica(t, rows, time.Now, nil)
		for n := range 2 {
			want(t, c, u, fmt.Sprintf("[%d]", n+1))
			time.Sleep(2 * time.Second)
			want(t, c, u, fmt.Sprintf("[%d]", n+2))
			time.Sleep(maxAge)
		}
	})
}

func TestRowsThatNobodyAsksForAreRemoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rows, u := newTable(), &upstream{}
		c := replica(t, rows, time.Now, nil)
		forgotten := key
		forgotten.Connection = "mer_gone"
		if _, err := c.Get(t.Context(), forgotten, maxAge, u.fetch); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			time.Sleep(24*time.Hour + 1)
			if _, err := c.Get(t.Context(), key, maxAge, u.fetch); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if rows.rows[forgotten.Row()] != nil || rows.rows[key.Row()] == nil {
			t.Errorf("the rows are %v", rows.rows)
		}
	})
}

func TestCloseCutsAFetchOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rows, u := newTable(), &upstream{takes: 20 * time.Second}
		c := cache.New(rows, time.Now, nil)
		failed := make(chan error)
		go func() {
			_, err := c.Get(t.Context(), key, maxAge, u.fetch)
			failed <- err
		}()
		synctest.Wait()
		before := time.Now()
		go c.Close()
		if err := <-failed; err == nil || time.Since(before) != 0 {
			t.Errorf("got %v after %v", err, time.Since(before))
		}
		if r := rows.rows[key.Row()]; !r.failed.IsZero() || r.leased.IsZero() {
			t.Errorf("the row is %+v, want a lease that runs out", r)
		}
		time.Sleep(time.Minute)
		if answer, err := c.Get(t.Context(), key, maxAge, u.fetch); err == nil {
			t.Errorf("a closed cache answers %s", answer.Body)
		}
		u.wantFetched(t, 1)
	})
}
