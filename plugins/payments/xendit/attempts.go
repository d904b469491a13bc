package xendit

import "sync"

// attempts remembers the references under which this process may have made an
// invoice, because the upstream does not promise that external_id is unique.
// The gateway never sends a reference twice; should it ever, the second is
// looked up and not made. It is a second lock, so a bounded memory will do.
type attempts struct {
	mu            sync.Mutex
	recent, older map[string]struct{}
}

// rememberedAttempts bounds each of the two generations.
const rememberedAttempts = 16384

// begin notes an attempt, and reports whether it is the first one known.
func (a *attempts) begin(reference string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, isRecent := a.recent[reference]
	_, isOlder := a.older[reference]
	if isRecent || isOlder {
		return false
	}
	if a.recent == nil || len(a.recent) == rememberedAttempts {
		a.recent, a.older = make(map[string]struct{}), a.recent
	}
	a.recent[reference] = struct{}{}
	return true
}

// forget is for an attempt that surely made nothing.
func (a *attempts) forget(reference string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.recent, reference)
	delete(a.older, reference)
}
