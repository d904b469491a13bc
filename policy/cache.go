package policy

import (
	"hash/maphash"
	"sync"
)

// shards is how many parts a cache has, so that cores seldom wait for one another.
const shards = 16

// cache keeps what was used lately, at most about twice its size. A full generation becomes the old one, and what is asked
// for again moves over to the new one; so it needs no order of use and forgets only what nobody asked for.
type cache[K comparable, V any] struct {
	seed  maphash.Seed
	limit int // entries of one generation of one shard
	parts [shards]struct {
		sync.RWMutex
		young, old map[K]V
	}
}

// newCache makes a cache for about size entries.
func newCache[K comparable, V any](size int) *cache[K, V] {
	c := &cache[K, V]{seed: maphash.MakeSeed(), limit: max(1, size/shards)}
	for i := range c.parts {
		c.parts[i].young = map[K]V{}
	}
	return c
}

// get finds an entry.
func (c *cache[K, V]) get(key K) (V, bool) {
	part := &c.parts[maphash.Comparable(c.seed, key)%shards]
	part.RLock()
	value, ok := part.young[key]
	if ok {
		part.RUnlock()
		return value, true
	}
	value, ok = part.old[key]
	part.RUnlock()
	if ok {
		c.put(key, value)
	}
	return value, ok
}

// put keeps an entry.
func (c *cache[K, V]) put(key K, value V) {
	part := &c.parts[maphash.Comparable(c.seed, key)%shards]
	part.Lock()
	defer part.Unlock()
	if _, there := part.young[key]; !there && len(part.young) >= c.limit {
		part.old, part.young = part.young, make(map[K]V, c.limit)
	}
	part.young[key] = value
}
