package policy

import "sync/atomic"

// Active holds the set that is in force. Whoever handles a request reads it once, so that one request never sees two sets.
type Active struct {
	set atomic.Pointer[Set]
}

// NewActive makes a holder; set must not be nil.
func NewActive(set *Set) *Active {
	a := &Active{}
	a.set.Store(set)
	return a
}

// Set is the set in force.
func (a *Active) Set() *Set { return a.set.Load() }

// Swap puts a set into force, whole and at once, and answers the one it replaces.
func (a *Active) Swap(set *Set) *Set { return a.set.Swap(set) }
