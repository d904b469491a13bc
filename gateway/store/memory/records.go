package memory

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// AddException lists an exception. It is false when the same one was listed before,
// or, if it is lasting, when it is open still.
func (s *Store) AddException(_ context.Context, x movement.Exception) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x.At = micro(x.At)
	if fresh := s.list(x); fresh || !x.Lasting {
		return fresh, nil
	}
	return s.renew(x), nil
}

// CountException lists an exception that is counted. One that was resolved begins anew.
func (s *Store) CountException(_ context.Context, x movement.Exception) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x.At = micro(x.At)
	if s.list(x) {
		return 1, nil
	}
	i := slices.IndexFunc(s.exceptions, func(y movement.Exception) bool { return sameException(x, y) })
	if y := s.exceptions[i]; y.ResolvedAt.IsZero() {
		x.At, x.Times = y.At, y.Times
	}
	x.Lasting, x.Times = false, x.Times+1
	s.exceptions[i] = x
	return x.Times, nil
}

func sameException(a, b movement.Exception) bool {
	return a.Owner == b.Owner && a.Subject == b.Subject && a.Reason == b.Reason && a.FactID == b.FactID
}

// list adds an exception that is not listed. The caller holds the lock.
func (s *Store) list(x movement.Exception) bool {
	if slices.ContainsFunc(s.exceptions, func(y movement.Exception) bool { return sameException(x, y) }) {
		return false
	}
	x.Lasting, x.Times = false, 1 // of the request, not of what is kept
	s.exceptions = append(s.exceptions, x)
	return true
}

// renew lists a lasting exception again where it was resolved before, numbered behind
// its fact.
func (s *Store) renew(x movement.Exception) bool {
	count := 0
	for _, y := range s.exceptions {
		of := y
		of.FactID = x.FactID
		if !sameException(x, of) || y.FactID != x.FactID && !strings.HasPrefix(y.FactID, x.FactID+" #") {
			continue
		}
		if y.ResolvedAt.IsZero() || !y.ResolvedAt.Before(x.At) {
			return false
		}
		count++
	}
	x.FactID += " #" + strconv.Itoa(count+1)
	return s.list(x)
}

// OpenExceptions lists the exceptions that nobody has resolved, the newest first.
func (s *Store) OpenExceptions(_ context.Context, most int) ([]movement.Exception, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	open := slices.DeleteFunc(slices.Clone(s.exceptions), func(x movement.Exception) bool { return !x.ResolvedAt.IsZero() })
	slices.SortStableFunc(open, func(a, b movement.Exception) int { return b.At.Compare(a.At) })
	return open[:min(most, len(open))], nil
}

// ExceptionsOf reads all exceptions of a subject, the oldest first.
func (s *Store) ExceptionsOf(_ context.Context, owner movement.Owner, subject string) ([]movement.Exception, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := slices.DeleteFunc(slices.Clone(s.exceptions), func(x movement.Exception) bool { return x.Owner != owner || x.Subject != subject })
	slices.SortStableFunc(of, func(a, b movement.Exception) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.FactID, b.FactID))
	})
	return of, nil
}

// ResolveException resolves one open exception, or it is movement.ErrNotFound.
func (s *Store) ResolveException(_ context.Context, now time.Time, x movement.Exception, operator, resolution string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, y := range s.exceptions {
		if sameException(x, y) && y.ResolvedAt.IsZero() {
			s.exceptions[i] = resolved(y, now, operator, resolution)
			return nil
		}
	}
	return movement.ErrNotFound
}

// ResolveExceptions resolves the open exceptions of a subject for some reasons.
func (s *Store) ResolveExceptions(_ context.Context, now time.Time, owner movement.Owner, subject string, reasons []string, operator, resolution string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, y := range s.exceptions {
		if y.Owner == owner && y.Subject == subject && slices.Contains(reasons, y.Reason) && y.ResolvedAt.IsZero() {
			s.exceptions[i] = resolved(y, now, operator, resolution)
		}
	}
	return nil
}

func resolved(x movement.Exception, now time.Time, operator, resolution string) movement.Exception {
	x.ResolvedAt, x.ResolvedBy, x.Resolution = micro(now), operator, resolution
	return x
}

// mostNotes bounds what is noted of one movement.
const mostNotes = 200

// Note keeps a note, or counts it where the same was said before.
func (s *Store) Note(_ context.Context, now time.Time, m movement.Movement, event, detail string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	notes := s.notes[m.ID]
	if len(notes) >= mostNotes {
		return nil
	}
	for i, n := range notes {
		if n.Attempt == m.Attempt && n.Event == event && n.Detail == detail {
			notes[i].LastAt, notes[i].Times = micro(now), n.Times+1
			return nil
		}
	}
	s.notes[m.ID] = append(notes, movement.Note{Attempt: m.Attempt, Event: event, Detail: detail, At: micro(now), LastAt: micro(now), Times: 1})
	return nil
}

// NotesOf reads what was noted of a movement, the oldest first.
func (s *Store) NotesOf(_ context.Context, id movement.ID) ([]movement.Note, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	notes := append([]movement.Note{}, s.notes[id]...)
	slices.SortStableFunc(notes, func(a, b movement.Note) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Event, b.Event), cmp.Compare(a.Detail, b.Detail))
	})
	return notes, nil
}

// Override writes what an operator says of a movement and returns what stands then,
// with movement.ErrOverridden where that is another outcome.
func (s *Store) Override(_ context.Context, m movement.Movement, o movement.Override, review movement.Exception) (movement.Override, error) {
	if err := o.Check(); err != nil {
		return movement.Override{}, err
	}
	o.MovementID, o.Attempt, o.At = m.ID, m.Attempt, micro(o.At)
	s.mu.Lock()
	defer s.mu.Unlock()
	of := attempt{m.ID, m.Attempt}
	stands, said := s.overrides[of]
	if o.Alone && (!said || o.Replaces(stands)) {
		o.Alone = s.claimAlone(o.Claim(m))
	}
	o.AloneUpTo = 0
	switch {
	case !said, o.Replaces(stands):
		if o.Alone {
			review.At = micro(review.At)
			s.list(review)
		}
		stands = o
		stands.Supersedes = time.Time{}
	case stands.Outcome != o.Outcome:
		return stands, movement.ErrOverridden
	case stands.Made(), stands.Operator == o.Operator:
		return stands, nil
	default:
		stands.ConfirmedBy, stands.ConfirmedReason, stands.ConfirmedAt = o.Operator, o.Reason, o.At
	}
	s.overrides[of] = stands
	if stands.Made() {
		s.pollDecided(stands)
	}
	return stands, nil
}

// pollDecided has a movement polled soon that operators have decided. The caller holds the
// lock.
func (s *Store) pollDecided(o movement.Override) {
	row := s.ids[o.MovementID]
	if row == nil || row.Attempt != o.Attempt || row.Version == 0 {
		return
	}
	row.Version++
	if due := micro(o.AppliedBy()); row.DueAt.IsZero() || due.Before(row.DueAt) {
		row.DueAt = due
	}
}

// OverrideOf reads what operators have said of an attempt of a movement, or
// movement.ErrNotFound.
func (s *Store) OverrideOf(_ context.Context, id movement.ID, number int) (movement.Override, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, said := s.overrides[attempt{id, number}]
	if !said {
		return movement.Override{}, movement.ErrNotFound
	}
	return o, nil
}
