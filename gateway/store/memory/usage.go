package memory

import (
	"context"
	"errors"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// mark is the last batch of a replica that was counted, and how many units it took.
type mark struct{ batch, taken int64 }

type markKey struct {
	usageKey
	replica string
}

var errOvertaken = errors.New("memory: a later batch was counted already")

// TakeUsage takes up to want units of what a merchant may use in a period, as many as are
// left below the limit, once for each batch of a replica.
func (s *Store) TakeUsage(
	_ context.Context, owner movement.Owner, name, period, replica string, batch, want, limit int64,
) (taken, used int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := markKey{usageKey{owner, name, period}, replica}
	used = s.usage[of.usageKey].used
	switch last := s.marks[of]; {
	case last.batch > batch:
		return 0, 0, errOvertaken
	case last.batch == batch:
		return last.taken, used, nil
	case used >= limit:
		return 0, used, nil
	}
	taken = min(want, limit-used)
	s.usage[of.usageKey], s.marks[of] = usage{used + taken, limit}, mark{batch, taken}
	return taken, used + taken, nil
}

// GiveUsage gives units back, once for each batch. Where the batch has taken units
// before, it gives nothing back and tells how many those were.
func (s *Store) GiveUsage(_ context.Context, owner movement.Owner, name, period, replica string, batch, back int64) (taken int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := markKey{usageKey{owner, name, period}, replica}
	switch last := s.marks[of]; {
	case last.batch > batch:
		return 0, errOvertaken
	case last.batch == batch:
		return last.taken, nil
	}
	row := s.usage[of.usageKey]
	row.used = max(row.used-back, 0)
	s.usage[of.usageKey], s.marks[of] = row, mark{batch, 0}
	return 0, nil
}
