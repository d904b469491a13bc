package queue

import (
	"slices"
	"sync"
)

// Places bound what is under way by what it is about, such as an upstream and an account
// there: one that hangs takes its own places and no more. It is safe for concurrent use.
type Places[ID comparable] struct {
	most func(key string) int // how many places there are under a key

	mu       sync.Mutex
	taken    map[string]int // only those that have any
	underWay map[ID][]string
}

// NewPlaces makes places, so many under each key.
func NewPlaces[ID comparable](most func(key string) int) *Places[ID] {
	return &Places[ID]{most: most, taken: map[string]int{}, underWay: map[ID][]string{}}
}

// Take takes a place under each key. It is false where one is not there, or the work is
// under way.
func (p *Places[ID]) Take(id ID, keys ...string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, is := p.underWay[id]; is || slices.ContainsFunc(keys, func(key string) bool { return p.taken[key] >= p.most(key) }) {
		return false
	}
	for _, key := range keys {
		p.taken[key]++
	}
	p.underWay[id] = keys
	return true
}

// Free gives the places of work back, and tells whether one was the last.
func (p *Places[ID]) Free(id ID) (last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, key := range p.underWay[id] {
		last = last || p.taken[key] == p.most(key)
		if p.taken[key]--; p.taken[key] == 0 {
			delete(p.taken, key)
		}
	}
	delete(p.underWay, id)
	return last
}

// Any tells whether work is under way of which something is true.
func (p *Places[ID]) Any(is func(ID) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id := range p.underWay {
		if is(id) {
			return true
		}
	}
	return false
}
