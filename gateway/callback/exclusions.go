package callback

import (
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// exclusions are what a dispatcher does not read as due: the callbacks that are
// under way, and those whose receivers can take no more for now. Otherwise a page
// would fill with them, and the others would wait.
type exclusions struct {
	mu      *sync.Mutex
	sending map[movement.CallbackKey]bool
	// holds are, by merchant, the receivers that are held and until when. The
	// merchant's own key holds all of it.
	holds map[string]map[string]time.Time
}

const (
	// mostHeld is how many receivers of one merchant are held by themselves. One
	// more and the merchant is held as a whole, for a moment: receivers cost a
	// merchant nothing, and each could bring a page.
	mostHeld = 8
	heldFor  = dispatchEvery
)

func newExclusions() exclusions {
	return exclusions{mu: &sync.Mutex{}, sending: map[movement.CallbackKey]bool{}, holds: map[string]map[string]time.Time{}}
}

// begin notes that a callback is under way.
func (e exclusions) begin(c movement.Callback) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sending[c.CallbackKey] = true
}

// end undoes begin, and tells whether its receiver was held, which it is no
// longer.
func (e exclusions) end(c movement.Callback) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.sending, c.CallbackKey)
	merchant := c.MerchantKey()
	holds := e.holds[merchant]
	before := len(holds)
	delete(holds, c.ReceiverKey())
	delete(holds, merchant)
	if len(holds) == 0 {
		delete(e.holds, merchant)
	}
	return len(holds) < before
}

// hold leaves a receiver out of the next pages, until one of its deliveries
// ends or the time comes.
func (e exclusions) hold(c movement.Callback, now, until time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	merchant, receiver := c.MerchantKey(), c.ReceiverKey()
	holds := e.holds[merchant]
	if holds == nil {
		holds = map[string]time.Time{}
		e.holds[merchant] = holds
	}
	if _, held := holds[receiver]; !held && len(holds) >= mostHeld {
		receiver, until = merchant, now.Add(heldFor)
	}
	holds[receiver] = until
}

// held are the keys of what is held now.
func (e exclusions) held(now time.Time) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var keys []string
	for merchant, holds := range e.holds {
		for key, until := range holds {
			if now.Before(until) {
				keys = append(keys, key)
			} else {
				delete(holds, key)
			}
		}
		if len(holds) == 0 {
			delete(e.holds, merchant)
		}
	}
	slices.Sort(keys)
	return keys
}

// underWay are the events that are.
func (e exclusions) underWay() []uuid.UUID {
	e.mu.Lock()
	defer e.mu.Unlock()
	events := make([]uuid.UUID, 0, len(e.sending))
	for key := range e.sending {
		events = append(events, key.EventID)
	}
	return events
}

// uses tells whether something of a bucket is under way.
func (e exclusions) uses(bucket int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for key := range e.sending {
		if movement.ID(key.EventID).Bucket() == bucket {
			return true
		}
	}
	return false
}
