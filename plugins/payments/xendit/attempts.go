package xendit

import (
	"sync"
	"time"
)

// attempts remembers the references under which this process may have made an
// invoice or a refund, and when, because the upstream does not promise that external_id
// and reference_id are unique, nor how long it knows an idempotency-key. The gateway sends a reference again only once it is proven that nothing was
// made of it; so the second is looked up first, and while the first may be under way
// it is not made. It is a second lock, so a bounded memory will do.
type attempts struct {
	mu            sync.Mutex
	recent, older map[string]time.Time
}

const (
	// rememberedAttempts bounds each of the two generations.
	rememberedAttempts = 16384
	// attemptLasts is how long after its beginning nothing of an attempt can be under
	// way any more: settles_within of the manifest, and the longest call.
	attemptLasts = 40 * time.Second
	// errorLasts is the same after an error of the upstream's own: error_settles_within.
	errorLasts = 5 * time.Second
)

// begin notes an attempt. It tells when the one before it was begun, zero where none
// is known.
func (a *attempts) begin(reference string, now time.Time) (before time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before, is := a.recent[reference]
	if !is {
		before = a.older[reference]
	}
	if a.recent == nil || len(a.recent) == rememberedAttempts {
		a.recent, a.older = make(map[string]time.Time), a.recent
	}
	a.recent[reference] = now
	return before
}

// ended notes that the upstream has ended an attempt with an error of its own.
func (a *attempts) ended(reference string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.recent[reference] = now.Add(errorLasts - attemptLasts)
}

// forget is for an attempt that surely made nothing.
func (a *attempts) forget(reference string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.recent, reference)
	delete(a.older, reference)
}
