package cache

import (
	"bytes"
	"encoding/json"
	"errors"
	"sync"
	"time"
)

// entry is what a replica knows of one key.
type entry struct {
	row string

	mu      sync.Mutex
	answer  Answer
	busy    bool      // this replica reads, fetches or waits for another replica
	checked time.Time // when that ended last
	failure error     // how it ended, nil for well
	changed chan struct{}
}

// fresh reports whether the answer needs no refreshing. One that lies far ahead
// was fetched by a clock that is wrong, which must put nothing off.
func (a Answer) fresh(now time.Time, maxAge time.Duration) bool {
	age := now.Sub(a.FetchedAt)
	return a.Version != "" && age < maxAge && age > -maxAge
}

// usable reports whether the answer may be given at all.
func (a Answer) usable(now time.Time) bool {
	return a.Version != "" && now.Sub(a.FetchedAt) < maxStale
}

// current is the answer as it is now.
func (e *entry) current() Answer {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.answer
}

// weight is what the entry costs in memory.
func (e *entry) weight() uint32 {
	const own = 512 // the entry itself and its key
	return uint32(min(len(e.current().Body), maxMemory/2)) + own
}

// adopt keeps an answer and wakes the callers that wait. It ignores an answer that is
// older than the present one, unless that was fetched by a clock that is ahead.
func (e *entry) adopt(now time.Time, body json.RawMessage, fetchedAt time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.answer.Version != "" && !fetchedAt.After(e.answer.FetchedAt) && !e.answer.FetchedAt.After(now) {
		return
	}
	e.answer.FetchedAt = fetchedAt
	// The same body keeps its version, and all that was made of it stays good.
	if e.answer.Version == "" || !bytes.Equal(e.answer.Body, body) {
		e.answer.Body, e.answer.Version = body, VersionOf(body)
	}
	e.failure = nil
	e.wake()
}

// rest ends what the entry was busy with. A failure that this replica saw itself
// says more than that there was one.
func (e *entry) rest(now time.Time, failure error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.busy, e.checked = false, now
	if e.failure == nil || !errors.Is(failure, errElsewhere) {
		e.failure = failure
	}
	e.wake()
}

func (e *entry) wake() {
	close(e.changed)
	e.changed = make(chan struct{})
}
