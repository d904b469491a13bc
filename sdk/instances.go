package sdk

import (
	"errors"
	"sync"
	"time"
)

// Instances caches what is costly to make for an account (an HTTP client, a
// token), one instance per merchant, mode and credential version. Accounts never
// share one. A newer version replaces the older. An instance that was not used for
// an hour is dropped. Credentials that are only verified (version 0) get a new
// instance each time: no two need be the same.
type Instances[T any] struct {
	mu      sync.Mutex
	entries map[instanceKey]*instance[T]
	swept   time.Time
}

type instanceKey struct{ merchant, mode string }

type instance[T any] struct {
	version int64
	used    time.Time
	once    sync.Once
	value   T
	err     error
}

const instanceIdle = time.Hour

var errNotBuilt = errors.New("sdk: building the instance panicked")

// Get returns the instance of a connection, and builds it where there is none
// for this version of its credentials. Concurrent calls of one account wait for
// one build and never for another account's. An error is not kept.
func (i *Instances[T]) Get(c Connection, build func(Connection) (T, error)) (T, error) {
	if c.Version == 0 {
		return build(c)
	}
	entry := i.entry(c)
	if entry == nil {
		// A call that is under way with older credentials must not push the newer
		// instance out again.
		return build(c)
	}
	entry.once.Do(func() {
		entry.err = errNotBuilt
		entry.value, entry.err = build(c)
	})
	if entry.err != nil {
		i.drop(c, entry)
	}
	return entry.value, entry.err
}

// entry gives the entry of a connection, or nil where the cache has an instance for
// newer credentials.
func (i *Instances[T]) entry(c Connection) *instance[T] {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := time.Now()
	i.sweep(now)
	key := instanceKey{c.MerchantID, c.Mode}
	found, ok := i.entries[key]
	switch {
	case ok && found.version > c.Version:
		return nil
	case !ok || found.version < c.Version:
		found = &instance[T]{version: c.Version}
		if i.entries == nil {
			i.entries = map[instanceKey]*instance[T]{}
		}
		i.entries[key] = found
	}
	found.used = now
	return found
}

func (i *Instances[T]) drop(c Connection, failed *instance[T]) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if key := (instanceKey{c.MerchantID, c.Mode}); i.entries[key] == failed {
		delete(i.entries, key)
	}
}

func (i *Instances[T]) sweep(now time.Time) {
	if now.Sub(i.swept) < time.Minute {
		return
	}
	i.swept = now
	for key, entry := range i.entries {
		if now.Sub(entry.used) > instanceIdle {
			delete(i.entries, key)
		}
	}
}
