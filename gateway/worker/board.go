package worker

import (
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// board is what a courier must not read as due: the callbacks that are under
// way, and those whose receivers can take no more for now. Without it a page
// would fill with them, and the others would wait.
type board struct {
	mu     *sync.Mutex
	flying map[movement.CallbackKey]bool
	// holds are, by merchant, the receivers that are held and until when. The
	// merchant's own key holds all of it.
	holds map[string]map[string]time.Time
}

const (
	// mostHeld is how many receivers of one merchant are held by themselves. One
	// more and the merchant is held as a whole, for a moment: receivers cost a
	// merchant nothing, and each could bring a page.
	mostHeld = 8
	heldFor  = courierEvery
)

func newBoard() board {
	return board{mu: &sync.Mutex{}, flying: map[movement.CallbackKey]bool{}, holds: map[string]map[string]time.Time{}}
}

// begin notes that a callback is under way.
func (b board) begin(c movement.Callback) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flying[c.CallbackKey] = true
}

// end undoes begin, and tells whether its receiver was held, which it is no
// longer.
func (b board) end(c movement.Callback) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.flying, c.CallbackKey)
	merchant := c.MerchantKey()
	holds := b.holds[merchant]
	before := len(holds)
	delete(holds, c.ReceiverKey())
	delete(holds, merchant)
	if len(holds) == 0 {
		delete(b.holds, merchant)
	}
	return len(holds) < before
}

// hold leaves a receiver out of the next pages, until one of its deliveries
// ends or the time comes.
func (b board) hold(c movement.Callback, now, until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	merchant, receiver := c.MerchantKey(), c.ReceiverKey()
	holds := b.holds[merchant]
	if holds == nil {
		holds = map[string]time.Time{}
		b.holds[merchant] = holds
	}
	if _, held := holds[receiver]; !held && len(holds) >= mostHeld {
		receiver, until = merchant, now.Add(heldFor)
	}
	holds[receiver] = until
}

// held are the keys of what is held now.
func (b board) held(now time.Time) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var keys []string
	for merchant, holds := range b.holds {
		for key, until := range holds {
			if now.Before(until) {
				keys = append(keys, key)
			} else {
				delete(holds, key)
			}
		}
		if len(holds) == 0 {
			delete(b.holds, merchant)
		}
	}
	slices.Sort(keys)
	return keys
}

// underWay are the events that are.
func (b board) underWay() []uuid.UUID {
	b.mu.Lock()
	defer b.mu.Unlock()
	events := make([]uuid.UUID, 0, len(b.flying))
	for key := range b.flying {
		events = append(events, key.EventID)
	}
	return events
}

// uses tells whether something of a bucket is under way.
func (b board) uses(bucket int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key := range b.flying {
		if movement.ID(key.EventID).Bucket() == bucket {
			return true
		}
	}
	return false
}
