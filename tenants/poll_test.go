package tenants

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// revocationDeadline is the contract's.
const revocationDeadline = 2 * time.Second

// running starts Run and returns what ends it and waits for its end.
func running(t *testing.T, d *Directory) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v, want nil at the end", err)
		}
	}
}

// untilRefused waits until the key is refused and returns how long that took.
func untilRefused(t *testing.T, d *Directory, key string) time.Duration {
	begin := time.Now()
	for time.Since(begin) < 10*revocationDeadline {
		_, err := d.Authenticate(t.Context(), time.Now(), key, anywhere)
		if errors.Is(err, ErrAuthFailed) {
			return time.Since(begin)
		}
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(10 * time.Millisecond) // of the bubble's clock
	}
	t.Fatal("the revoked key is never refused")
	return 0
}

func TestRevocationReachesEveryReplicaInTime(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	synctest.Test(t, func(t *testing.T) {
		source := newSource(n.account(t))
		replicas := []*Directory{newTestDirectory(source), newTestDirectory(source)}
		for _, d := range replicas {
			defer running(t, d)()
			if _, err := d.Authenticate(t.Context(), time.Now(), n.plain[0], anywhere); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute + 300*time.Millisecond)
		n.keys[0] = RevokeKey(n.keys[0], time.Now())
		n.merchant.Version++
		source.put(n.account(t))
		var wg sync.WaitGroup
		for _, d := range replicas {
			wg.Go(func() {
				if took := untilRefused(t, d, n.plain[0]); took >= revocationDeadline {
					t.Errorf("refused after %v, want less than %v", took, revocationDeadline)
				}
			})
		}
		wg.Wait()
	})
}

// TestARevocationOvertakesASlowRead has a read that began before the revocation end after the poll that saw it.
func TestARevocationOvertakesASlowRead(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	synctest.Test(t, func(t *testing.T) {
		source := newSource(n.account(t))
		source.before = func(context.Context) error { time.Sleep(1200 * time.Millisecond); return nil }
		d := newTestDirectory(source)
		defer running(t, d)()
		read := make(chan error)
		go func() {
			_, err := d.Authenticate(t.Context(), time.Now(), n.plain[0], anywhere)
			read <- err
		}()
		synctest.Wait() // the read holds its snapshot now
		n.keys[0] = RevokeKey(n.keys[0], time.Now())
		n.merchant.Version++
		source.put(n.account(t))
		revoked := time.Now()
		if err := <-read; err != nil {
			t.Fatalf("the read that was under way: %v", err)
		}
		time.Sleep(time.Until(revoked.Add(revocationDeadline)))
		if _, err := d.Authenticate(t.Context(), time.Now(), n.plain[0], anywhere); !errors.Is(err, ErrAuthFailed) {
			t.Errorf("two seconds after the revocation: %v, want ErrAuthFailed", err)
		}
	})
}

func TestALateCommitIsStillSeen(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	synctest.Test(t, func(t *testing.T) {
		source := newSource(n.account(t))
		d := newTestDirectory(source)
		defer running(t, d)()
		if _, err := d.Authenticate(t.Context(), time.Now(), n.plain[0], anywhere); err != nil {
			t.Fatal(err)
		}
		stamped := time.Now()
		time.Sleep(50 * time.Second) // the transaction commits long after it stamped its change
		n.keys[0] = RevokeKey(n.keys[0], stamped)
		n.merchant.Version++
		source.put(n.account(t))
		source.mu.Lock()
		source.changed[n.merchant.ID] = stamped
		source.mu.Unlock()
		if took := untilRefused(t, d, n.plain[0]); took >= revocationDeadline {
			t.Errorf("refused after %v, want less than %v", took, revocationDeadline)
		}
	})
}

func TestRepeatedChangesCostNoReads(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	synctest.Test(t, func(t *testing.T) {
		source := newSource()
		source.put(n.account(t))
		d := newTestDirectory(source)
		defer running(t, d)()
		for range 40 {
			if _, err := d.Authenticate(t.Context(), time.Now(), n.plain[0], anywhere); err != nil {
				t.Fatal(err)
			}
			time.Sleep(pollEvery)
		}
		reads, polls := source.counts()
		if reads != 1 || polls < 40 {
			t.Errorf("%d reads in %d polls, want 1 in 40 or more", reads, polls)
		}
	})
}

func TestFreshness(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		source := newSource()
		d := newTestDirectory(source)
		if d.Fresh(time.Now()) {
			t.Error("fresh before it has ever learnt anything")
		}
		defer running(t, d)()
		synctest.Wait()
		if !d.Fresh(time.Now()) || d.staleFor(time.Now()) != 0 {
			t.Errorf("after the first poll: fresh = %v, stale for %v", d.Fresh(time.Now()), d.staleFor(time.Now()))
		}
		source.setFail(errors.New("down"))
		time.Sleep(freshFor)
		synctest.Wait()
		if got := d.staleFor(time.Now()); got != freshFor || !d.Fresh(time.Now()) {
			t.Errorf("30 s after: fresh = %v, stale for %v", d.Fresh(time.Now()), got)
		}
		time.Sleep(time.Millisecond)
		if d.Fresh(time.Now()) {
			t.Error("still fresh after 30 s without news")
		}
		source.setFail(nil)
		time.Sleep(pollEvery)
		synctest.Wait()
		if !d.Fresh(time.Now()) {
			t.Error("not fresh although the source answers again")
		}
	})
}

func TestNewsFromAnOutageAreNotMissed(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	synctest.Test(t, func(t *testing.T) {
		source := newSource(n.account(t))
		d := newTestDirectory(source)
		defer running(t, d)()
		if _, err := d.Authenticate(t.Context(), time.Now(), n.plain[0], anywhere); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		source.setFail(errors.New("down"))
		time.Sleep(time.Second)
		n.keys[0] = RevokeKey(n.keys[0], time.Now())
		n.merchant.Version++
		source.put(n.account(t))
		time.Sleep(10 * time.Minute)
		source.setFail(nil)
		if took := untilRefused(t, d, n.plain[0]); took >= revocationDeadline {
			t.Errorf("refused %v after the outage, want less than %v", took, revocationDeadline)
		}
	})
}

func TestPollingTellsTheLogOnceAChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		source := newSource()
		d := NewDirectory(source, time.Now, slog.New(slog.NewTextHandler(&log, nil)))
		stop := running(t, d)
		time.Sleep(time.Second)
		source.setFail(errors.New("connection refused"))
		time.Sleep(time.Minute)
		source.setFail(nil)
		time.Sleep(time.Minute)
		stop()
		if got := strings.Count(log.String(), "level="); got != 2 || !strings.Contains(log.String(), "connection refused") {
			t.Errorf("the log has %d lines, want one for the failure and one for its end:\n%s", got, &log)
		}
	})
}

func TestStaleForIsNeverNegative(t *testing.T) {
	t.Parallel()
	d := newTestDirectory(newSource())
	begin := time.Now()
	if err := d.poll(t.Context(), begin); err != nil {
		t.Fatal(err)
	}
	if got := d.staleFor(begin.Add(time.Hour)); got != time.Hour {
		t.Errorf("stale for %v, want 1h", got)
	}
	if got := d.staleFor(begin.Add(-time.Hour)); got != 0 {
		t.Errorf("stale for %v before the poll, want 0", got)
	}
}
