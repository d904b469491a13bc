package cache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

const (
	// maxStale is how old an answer may be that is given while nobody can get
	// another.
	maxStale = 24 * time.Hour
	// recheckEvery is how often a replica reads a row whose answer is old.
	recheckEvery = 2 * time.Second
	// maxMemory bounds the bodies that are kept in memory. What falls out is read
	// from its row again.
	maxMemory = 256 << 20
)

// Rows holds a row for each key, shared by all replicas. Times are the caller's.
type Rows interface {
	// CachedAnswer reads the answer and when its fetch began. The body is nil when
	// there is none, or only the one of this time, which the caller has already.
	// Refreshing says that a replica holds the lease.
	CachedAnswer(ctx context.Context, key string, have time.Time) (body json.RawMessage, fetchedAt time.Time, refreshing bool, err error)
	// LeaseAnswer leases the refresh to the caller until a time. It is false while
	// another replica holds the lease, while the answer is younger than maxAge, and
	// for a pause after a failed fetch.
	LeaseAnswer(ctx context.Context, key string, now, until time.Time, maxAge, pause time.Duration) (bool, error)
	// KeepAnswer ends the lease that runs until this time, with what was fetched;
	// nil says that the fetch failed, and the old answer stays. It is false when
	// the lease was another's by then, and nothing was changed.
	KeepAnswer(ctx context.Context, key string, until time.Time, body json.RawMessage, at time.Time) (bool, error)
	// DropAnswers removes the rows that were not touched since.
	DropAnswers(ctx context.Context, before time.Time) error
}

// Fetch gets an answer from the provider. Its context does not end with the request
// that started it.
type Fetch = func(context.Context) (json.RawMessage, error)

// Key is all that an answer depends on. Manifest is the digest of the one that is
// answered by, Connection says whose account is asked, as it is connected now, Body what. What was kept for an earlier one is asked for
// by nobody, and is removed as every old row is.
type Key struct {
	Provider   string
	Manifest   string
	Mode       string
	Connection string
	Path       string
	Body       string
}

// row is the name of the key's row: what people look for, then a digest of all.
func (k Key) row() string {
	h := sha256.New()
	for _, part := range []string{k.Provider, k.Manifest, k.Mode, k.Connection, k.Path, k.Body} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return k.Provider + " " + k.Mode + " " + k.Path + " " + hex.EncodeToString(h.Sum(nil))
}

// Answer is what a query was answered. It is shared: do not change its body.
type Answer struct {
	Body      json.RawMessage
	FetchedAt time.Time // when the fetch began
	// Version names the body: two answers with one version have the same, also
	// when they were fetched at different times.
	Version string
}

// VersionOf is the version of an answer with this body.
func VersionOf(body json.RawMessage) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// Cache shares answers. Any number of goroutines may use it.
type Cache struct {
	rows    Rows
	now     func() time.Time
	log     *slog.Logger
	entries *otter.Cache[Key, *entry]

	life context.Context // ends what runs in the background
	end  context.CancelFunc

	mu      sync.Mutex
	closed  bool
	swept   time.Time
	flights sync.WaitGroup
}

// New makes a cache over rows. Now tells the time; log may be nil.
func New(rows Rows, now func() time.Time, log *slog.Logger) *Cache {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &Cache{rows: rows, now: now, log: log}
	c.life, c.end = context.WithCancel(context.Background())
	c.entries = otter.Must(&otter.Options[Key, *entry]{
		MaximumWeight: maxMemory,
		Weigher:       func(_ Key, e *entry) uint32 { return e.weight() },
	})
	return c
}

// Close ends what runs in the background and waits for it. A fetch that is cut
// off leaves its lease to run out.
func (c *Cache) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.end()
	c.flights.Wait()
}

// Get answers from memory while the answer is younger than maxAge. An older one
// is given as well, up to a day, while one replica calls fetch in the
// background; with none at all the caller waits for whoever fetches. Then the
// error is the fetch's own, the context's, the rows', or PROVIDER_UNAVAILABLE
// where a fetch failed elsewhere.
func (c *Cache) Get(ctx context.Context, key Key, maxAge time.Duration, fetch Fetch) (Answer, error) {
	e := c.entry(key)
	for {
		answer, changed, err := c.current(ctx, e, query{key: key, maxAge: maxAge, fetch: fetch})
		if changed == nil {
			return answer, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Answer{}, ctx.Err()
		}
	}
}

func (c *Cache) entry(key Key) *entry {
	if e, ok := c.entries.GetIfPresent(key); ok {
		return e
	}
	e, _ := c.entries.SetIfAbsent(key, &entry{row: key.row(), changed: make(chan struct{})})
	return e
}

// query is one caller's request.
type query struct {
	key    Key
	maxAge time.Duration
	fetch  Fetch
}

// current answers without waiting, and starts the refresh of an old answer. A
// channel, where there is one, is closed when it is time to ask again.
func (c *Cache) current(ctx context.Context, e *entry, q query) (Answer, <-chan struct{}, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := c.now()
	if e.answer.fresh(now, q.maxAge) {
		return e.answer, nil, nil
	}
	if !e.busy && now.Sub(e.checked) >= recheckEvery {
		e.busy = c.background(ctx, func(ctx context.Context) { c.refresh(ctx, e, q) })
	}
	switch {
	case e.answer.usable(now):
		return e.answer, nil, nil
	case e.busy:
		return Answer{}, e.changed, nil
	}
	return Answer{}, nil, ownError(e.failure)
}

// background runs work that outlives its request, unless the cache is closed.
func (c *Cache) background(ctx context.Context, work func(context.Context)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.flights.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flightTime)
		defer cancel()
		defer context.AfterFunc(c.life, cancel)()
		work(ctx)
	})
	return true
}

// ownError is a copy for one caller, who may add to it.
func ownError(err error) error {
	if err == nil {
		return unavailable(errors.New("cache: closed"))
	}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		one := *f
		return &one
	}
	return err
}

func unavailable(cause error) *fault.Error {
	return fault.New(fault.ProviderUnavailable, "The provider's answer is not available at the moment. Try again later.").Because(cause)
}
