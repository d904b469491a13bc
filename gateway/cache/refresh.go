package cache

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"
	"unicode/utf8"
)

const (
	// fetchTime bounds one fetch, leaseTime how long the others take a replica
	// that fetches to be alive.
	fetchTime = 25 * time.Second
	leaseTime = 30 * time.Second
	// flightTime is enough to see a dead replica's lease run out and to fetch.
	flightTime = leaseTime + fetchTime + 5*time.Second

	// pauseTime lies after a fetch that failed, where answers live that long.
	// firstPause is shorter: there is nothing to give meanwhile.
	pauseTime  = time.Minute
	firstPause = 10 * time.Second

	// pollEvery is how often one who has nothing to give looks for what another
	// replica fetches.
	pollEvery = 250 * time.Millisecond
	// endTime bounds the statement that ends a lease.
	endTime = 5 * time.Second
	// sweepEvery is how often a replica removes the rows that nobody asks for.
	sweepEvery = time.Hour
)

// errElsewhere says that there is no answer because whoever fetched it failed.
var errElsewhere = unavailable(errors.New("cache: the fetch failed, and is left alone for a while"))

// refresh looks for a newer answer and, where that is this replica's turn,
// fetches one.
func (c *Cache) refresh(ctx context.Context, e *entry, q query) {
	err := c.renew(ctx, e, q)
	if err != nil && !errors.Is(err, errElsewhere) && c.life.Err() == nil {
		c.log.WarnContext(ctx, "a shared answer could not be refreshed",
			slog.String("provider", q.key.Provider), slog.String("mode", q.key.Mode), slog.String("operation", q.key.Path),
			slog.String("cause", err.Error()))
	}
	e.rest(c.now(), err)
	c.entries.Set(q.key, e) // weighed anew
}

func (c *Cache) renew(ctx context.Context, e *entry, q query) error {
	for round := 0; ; round++ {
		body, fetchedAt, refreshing, err := c.rows.CachedAnswer(ctx, e.row, e.current().FetchedAt)
		if err != nil {
			return err
		}
		if body != nil {
			e.adopt(c.now(), body, fetchedAt)
		}
		answer, now := e.current(), c.now()
		if answer.fresh(now, q.maxAge) {
			return nil
		}
		if round > 0 && !refreshing {
			return errElsewhere
		}
		until := now.Add(leaseTime)
		ours, err := c.rows.LeaseAnswer(ctx, e.row, now, until, q.maxAge, pause(answer, q.maxAge))
		if err != nil {
			return err
		}
		if ours {
			return c.fetch(ctx, e, q, now, until)
		}
		if answer.usable(now) {
			return nil
		}
		// The first refusal may be a lease, a pause, or an answer of just now: the
		// row tells.
		if err := sleep(ctx, min(round, 1)); err != nil {
			return err
		}
	}
}

// pause is how long a failed fetch is not tried again.
func pause(answer Answer, maxAge time.Duration) time.Duration {
	if answer.Version == "" {
		return min(maxAge, firstPause)
	}
	return min(maxAge, pauseTime)
}

func sleep(ctx context.Context, polls int) error {
	select {
	case <-ctx.Done():
		return unavailable(ctx.Err())
	case <-time.After(time.Duration(polls) * pollEvery):
		return nil
	}
}

// fetch gets the answer under a lease of ours, and ends the lease.
func (c *Cache) fetch(ctx context.Context, e *entry, q query, began, until time.Time) error {
	body, err := call(ctx, q.fetch)
	if err != nil && c.life.Err() != nil {
		return err // cut off, which says nothing about the provider
	}
	at := began
	if err != nil {
		body, at = nil, c.now()
	} else {
		e.adopt(at, body, began)
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	if _, kept := c.rows.KeepAnswer(ending, e.row, until, body, at); kept != nil {
		return errors.Join(err, kept)
	}
	if err != nil {
		return err
	}
	return c.sweep(ending)
}

// call fetches within its time. What is no JSON is an error, and so is a panic:
// no handler stands above to catch it.
func call(ctx context.Context, fetch Fetch) (body json.RawMessage, err error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	defer func() {
		if thrown := recover(); thrown != nil {
			err = fmt.Errorf("cache: panic: %v\n%s", thrown, debug.Stack())
		}
	}()
	if body, err = fetch(ctx); err != nil {
		return nil, err
	}
	if !json.Valid(body) || !utf8.Valid(body) {
		return nil, errors.New("cache: what was fetched is no JSON text")
	}
	return body, nil
}

// sweep removes the rows whose answers are too old to be given, now and then.
func (c *Cache) sweep(ctx context.Context) error {
	now := c.now()
	c.mu.Lock()
	due := now.Sub(c.swept) >= sweepEvery
	if due {
		c.swept = now
	}
	c.mu.Unlock()
	if !due {
		return nil
	}
	return c.rows.DropAnswers(ctx, now.Add(-maxStale))
}
