package list

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/gateway/trouble"
	"github.com/seed-f006e74d/gerbang/policy"
)

// Store is where lists are kept.
type Store interface {
	ListVersion(ctx context.Context) (int64, error)
	// ListChanges are entries of versions up to one, after a change, in order.
	ListChanges(ctx context.Context, after store.ListChange, until int64, most int) ([]store.ListChange, error)
}

const (
	pollEvery   = 500 * time.Millisecond
	pollTimeout = 5 * time.Second
	pageSize    = 5000
	// freshFor is how long a replica may take money on the lists that it last learnt of.
	freshFor = 30 * time.Second
)

// Lists are all lists in memory. Any number of goroutines may use them.
type Lists struct {
	key     Key
	records Store
	now     func() time.Time
	log     *slog.Logger

	mu      sync.RWMutex
	names   []string
	of      map[Kind][]uint16 // lists, by their places in names
	entries map[entry]int64   // until when, in seconds since 1970; 0 for ever
	last    store.ListChange
	read    atomic.Pointer[time.Time] // when the store was read last
	reading trouble.Spell
}

type entry struct {
	digest store.ListDigest
	list   uint16
}

// New makes lists that are empty before the first Read.
func New(records Store, key Key, now func() time.Time, log *slog.Logger) *Lists {
	return &Lists{key: key, records: records, now: now, log: log, of: map[Kind][]uint16{}, entries: map[entry]int64{}}
}

// Run reads changes until the context ends.
func (l *Lists) Run(ctx context.Context) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		l.reading.Note(ctx, l.log, "changes of lists can't be read", l.Read(ctx))
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Fresh reports whether money may be taken on these lists.
func (l *Lists) Fresh(now time.Time) bool {
	read := l.read.Load()
	return read != nil && now.Sub(*read) <= freshFor
}

// Read reads what has changed. One goroutine calls it at a time.
func (l *Lists) Read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	begun := l.now()
	until, err := l.records.ListVersion(ctx)
	if err != nil {
		return err
	}
	for l.last.Version < until {
		page, err := l.records.ListChanges(ctx, l.last, until, pageSize)
		if err != nil {
			return err
		}
		l.take(page)
		if len(page) < pageSize {
			l.last = store.ListChange{Version: until, List: "\x7f"} // behind all of that version
			break
		}
		l.last = page[len(page)-1]
	}
	l.read.Store(&begun)
	return nil
}

func (l *Lists) take(changes []store.ListChange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range changes {
		kind, err := KindOf(c.List)
		if err != nil {
			continue // a later program's
		}
		place := slices.Index(l.names, c.List)
		if place < 0 {
			place = len(l.names)
			l.names = append(l.names, c.List)
			l.of[kind] = append(l.of[kind], uint16(place)) //nolint:gosec // an operator's act each
		}
		key := entry{c.Digest, uint16(place)} //nolint:gosec // see above
		switch {
		case c.Removed:
			delete(l.entries, key)
		case c.EndsAt.IsZero():
			l.entries[key] = 0
		default:
			l.entries[key] = c.EndsAt.Unix()
		}
	}
}

// Of are the names of the lists that hold something of a request, sorted.
func (l *Lists) Of(in policy.AdmitInput) []string {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if len(l.entries) == 0 {
		return nil
	}
	now := in.Now.Unix()
	var found []string
	look := func(kind Kind, plain string) {
		if plain == "" || len(l.of[kind]) == 0 {
			return
		}
		digest := l.key.Digest(kind, plain)
		for _, place := range l.of[kind] {
			if until, on := l.entries[entry{digest, place}]; on && (until == 0 || now < until) {
				found = append(found, l.names[place])
			}
		}
	}
	look(Destinations, in.Destination)
	look(Payers, in.Payer)
	look(Products, in.Product)
	look(Merchants, in.Merchant.ID)
	if len(l.of[Addresses]) > 0 && in.Address.IsValid() {
		look(Addresses, plainAddress(in.Address))
	}
	slices.Sort(found)
	return found
}
