// Package trouble writes failures of work that is done again and again to the log. A
// database that is away for a minute fails hundreds of times, and says the same each time:
// the log has the first failure, one a minute while it lasts, and the end. It is for work
// that is tried again by itself; what fails once and for all is logged where it fails.
package trouble

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const repeat = time.Minute

// Spell is a run of failures of one piece of work. The zero value is ready.
type Spell struct {
	mu          sync.Mutex
	began, told time.Time
	failures    int
}

// Note takes how the work has ended this time. What says what fails, as a log message. Errors of work that is being ended are none.
func (s *Spell) Note(ctx context.Context, log *slog.Logger, what string, err error) {
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if err == nil {
		if s.failures > 0 {
			log.InfoContext(ctx, what+": it works again", "failures", s.failures, "lasted", now.Sub(s.began).Round(time.Millisecond).String())
		}
		s.failures = 0
		return
	}
	if s.failures++; s.failures == 1 {
		s.began = now
	} else if now.Sub(s.told) < repeat {
		return
	}
	s.told = now
	log.WarnContext(ctx, what, "failures", s.failures, "error", err)
}
