package cache_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/cache"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

const maxAge = 5 * time.Minute

var key = cache.Key{Provider: "ppob", Mode: "test", Connection: "platform", Path: "/ppob/products", Body: "{}"}

// table is Rows in memory, as the database would have them.
type table struct {
	mu    sync.Mutex
	rows  map[string]*record
	asked int   // statements so far
	err   error // of every statement, when set
	swept time.Time
}

type record struct {
	body                    json.RawMessage
	fetched, leased, failed time.Time
}

func newTable() *table { return &table{rows: map[string]*record{}} }

func (t *table) begin() error {
	t.mu.Lock()
	t.asked++
	return t.err
}

func (t *table) statements() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.asked
}

func (t *table) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = err
}

func (t *table) CachedAnswer(_ context.Context, key string, have time.Time) (json.RawMessage, time.Time, bool, error) {
	err := t.begin()
	defer t.mu.Unlock()
	r := t.rows[key]
	if err != nil || r == nil {
		return nil, time.Time{}, false, err
	}
	body := r.body
	if r.fetched.Equal(have) {
		body = nil
	}
	return body, r.fetched, !r.leased.IsZero(), nil
}

func (t *table) LeaseAnswer(_ context.Context, key string, now, until time.Time, maxAge, pause time.Duration) (bool, error) {
	err := t.begin()
	defer t.mu.Unlock()
	if err != nil {
		return false, err
	}
	near := func(at time.Time, from, to time.Duration) bool {
		return at.After(now.Add(from)) && at.Before(now.Add(to))
	}
	r := t.rows[key]
	if r == nil {
		r = &record{}
		t.rows[key] = r
	} else if near(r.leased, 0, 2*until.Sub(now)) || near(r.fetched, -maxAge, maxAge) || near(r.failed, -pause, pause) {
		return false, nil
	}
	r.leased = until
	return true, nil
}

func (t *table) KeepAnswer(_ context.Context, key string, until time.Time, body json.RawMessage, at time.Time) (bool, error) {
	err := t.begin()
	defer t.mu.Unlock()
	r := t.rows[key]
	if err != nil || r == nil || !r.leased.Equal(until) {
		return false, err
	}
	r.leased, r.failed = time.Time{}, time.Time{}
	if body == nil {
		r.failed = at
		return true, nil
	}
	r.body, r.fetched = bytes.Clone(body), at
	return true, nil
}

func (t *table) DropAnswers(_ context.Context, before time.Time) error {
	err := t.begin()
	defer t.mu.Unlock()
	t.swept = before
	for key, r := range t.rows {
		if r.fetched.Before(before) && r.failed.Before(before) && r.leased.Before(before) {
			delete(t.rows, key)
		}
	}
	return err
}

// upstream answers fetches with a number that rises, after a while.
type upstream struct {
	fetched atomic.Int64
	takes   time.Duration
	err     atomic.Pointer[error]
}

func (u *upstream) fail(err error) { u.err.Store(&err) }

func (u *upstream) fetch(ctx context.Context) (json.RawMessage, error) {
	n := u.fetched.Add(1)
	if u.takes > 0 {
		select {
		case <-time.After(u.takes):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if err := u.err.Load(); err != nil && *err != nil {
		return nil, *err
	}
	return fmt.Appendf(nil, `[%d]`, n), nil
}

func (u *upstream) wantFetched(tb testing.TB, want int64) {
	tb.Helper()
	if got := u.fetched.Load(); got != want {
		tb.Fatalf("fetched %d times, want %d", got, want)
	}
}

// replica is a cache that ends with its test.
func replica(tb testing.TB, rows cache.Rows, now func() time.Time, log *slog.Logger) *cache.Cache {
	tb.Helper()
	c := cache.New(rows, now, log)
	tb.Cleanup(c.Close)
	return c
}

// want asks and fails the test unless the answer is this body.
func want(tb testing.TB, c *cache.Cache, u *upstream, body string) cache.Answer {
	tb.Helper()
	answer, err := c.Get(tb.Context(), key, maxAge, u.fetch)
	if err != nil || string(answer.Body) != body {
		tb.Fatalf("got %s, %v, want %s", answer.Body, err, body)
	}
	return answer
}

// wantFault asks and fails the test unless that is refused with the code.
func wantFault(tb testing.TB, c *cache.Cache, u *upstream, code fault.Code) {
	tb.Helper()
	answer, err := c.Get(tb.Context(), key, maxAge, u.fetch)
	if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != code {
		tb.Fatalf("got %s, %v, want %s", answer.Body, err, code)
	}
}
