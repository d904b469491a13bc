package scenarios

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// memory keeps movements under the same guards as the store. The matrix runs on
// both, so that neither can drift from the other.
type memory struct {
	mu        sync.Mutex
	rows      map[movement.Key]*movement.Movement
	attention []movement.Exception
	callbacks []movement.Callback
	balances  map[movement.Owner]ledger.Balance
	postings  []ledger.Transaction
	usage     map[spent]int64
}

// spent names what counts against a limit of money out.
type spent struct {
	owner        movement.Owner
	name, period string
}

func newMemory() *memory {
	return &memory{rows: map[movement.Key]*movement.Movement{}, balances: map[movement.Owner]ledger.Balance{}, usage: map[spent]int64{}}
}

// count counts a transfer against its limits, or not at all.
func (s *memory) count(m movement.Movement) error {
	for _, spend := range m.Usage {
		if s.usage[spent{m.Owner, spend.Name, spend.Period}]+spend.Amount > spend.Ceiling {
			return &movement.LimitError{Name: spend.Name}
		}
	}
	for _, spend := range m.Usage {
		s.usage[spent{m.Owner, spend.Name, spend.Period}] += spend.Amount
	}
	return nil
}

// Usage is what counts in a period.
func (s *memory) Usage(_ context.Context, owner movement.Owner, period string) ([]store.Used, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var used []store.Used
	for of, units := range s.usage {
		if of.owner == owner && of.period == period {
			used = append(used, store.Used{Name: of.name, Units: units})
		}
	}
	return used, nil
}

// post changes a balance, or nothing where it is too small or was posted before.
func (s *memory) post(owner movement.Owner, tx *ledger.Transaction) error {
	if tx == nil {
		return nil
	}
	after, err := s.balances[owner].Apply(tx.Legs)
	if err != nil {
		return movement.ErrInsufficient
	}
	if slices.ContainsFunc(s.postings, func(p ledger.Transaction) bool {
		return p.Subject == tx.Subject && p.Attempt == tx.Attempt && p.Step == tx.Step
	}) {
		return errors.New("posted twice")
	}
	s.balances[owner], s.postings = after, append(s.postings, *tx)
	return nil
}

func (s *memory) Balance(_ context.Context, owner movement.Owner) (ledger.Balance, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.balances[owner], nil
}

func (s *memory) Reserve(_ context.Context, m movement.Movement) (movement.Movement, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.rows[m.Key]
	switch wanted := m.Attempt; {
	case row == nil:
		m.Attempt, m.Sequence = 1, 1
	case row.State == movement.NotSubmitted && (wanted == 0 || wanted > row.Attempt):
		m.ID, m.Attempt, m.Sequence = row.ID, max(row.Attempt+1, wanted), row.Sequence+1
	default:
		return *row, false, nil
	}
	m.CreatedAt, m.SendBy, m.DueAt = micro(m.CreatedAt), micro(m.SendBy), micro(m.DueAt)
	m.State, m.UpdatedAt = movement.Submitting, m.CreatedAt
	if err := cmp.Or(s.count(m), s.post(m.Owner, m.Begins())); err != nil { // nothing has both
		return movement.Movement{}, false, err
	}
	kept := m
	s.rows[m.Key] = &kept
	return m, true, nil
}

func (s *memory) Apply(_ context.Context, c movement.Change) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.byID(c.Movement.ID)
	switch c.Effect {
	case movement.Move:
		return s.moves(row, c)
	case movement.LateMoney:
		return s.paidLate(row, c)
	case movement.Reversal:
		return s.reverses(row, c)
	case movement.Supplement:
		return s.supplements(row, c)
	case movement.KeepAnswer:
		if row != nil && row.Attempt == c.Movement.Attempt && row.Answer == nil && !row.State.Unknown() && row.State != movement.NotSubmitted {
			fill(row, c)
		}
		return true, nil
	case movement.Nothing, movement.Contradiction:
	}
	return false, errors.New("nothing to commit")
}

func (s *memory) moves(row *movement.Movement, move movement.Change) (bool, error) {
	now := move.At
	if row == nil || row.Attempt != move.Movement.Attempt || !slices.Contains(move.From, row.State) {
		return false, nil
	}
	if move.Unpolled && !row.PolledAt.IsZero() || !move.PolledBefore.IsZero() && row.PolledAt.After(move.PolledBefore) {
		return false, nil
	}
	if ends := move.To != movement.Pending; ends && row.Charge != movement.Unpaid && move.Posting == nil {
		return false, broken{errors.New("the end of what was charged without a posting")}
	}
	if err := s.post(row.Owner, move.Posting); err != nil {
		return false, err
	}
	counted := func(state movement.State) bool { return state != movement.Failed && state != movement.NotSubmitted }
	for _, spend := range row.Usage {
		switch used := (spent{row.Owner, spend.Name, spend.Period}); {
		case counted(row.State) && !counted(move.To):
			s.usage[used] -= spend.Amount
		case !counted(row.State) && counted(move.To):
			s.usage[used] += spend.Amount
		}
	}
	row.State, row.UpdatedAt, row.DueAt, row.Misses = move.To, micro(now), micro(move.NextPoll), 0
	row.Cost = cmp.Or(move.Cost, row.Cost)
	row.Sequence++
	fill(row, move)
	row.FactID = cmp.Or(move.FactID, row.FactID)
	if move.Refusal != nil {
		row.Refusal = move.Refusal
	}
	s.tell(row, now, move.Callback)
	return true, nil
}

func (s *memory) Acknowledge(_ context.Context, m movement.Movement, answer json.RawMessage) (movement.Movement, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.byID(m.ID)
	if row != nil && row.Attempt == m.Attempt && row.State == movement.Submitting {
		row.State, row.Answer = movement.Acknowledged, answer
	}
	return found(row)
}

func (s *memory) LastEqual(_ context.Context, owner movement.Owner, kind manifest.Kind, stem string) (movement.Movement, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var last *movement.Movement
	for _, row := range s.rows {
		if row.Owner == owner && row.Kind == kind && row.Fingerprint == stem && (last == nil || row.Reference > last.Reference) {
			last = row
		}
	}
	return found(last)
}

func (s *memory) Deliver(_ context.Context, id movement.ID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if row := s.byID(id); row != nil {
		row.Delivered = true
	}
	return nil
}

func (s *memory) supplements(row *movement.Movement, c movement.Change) (bool, error) {
	m := c.Movement
	if row == nil || row.Attempt != m.Attempt || row.State != movement.Succeeded || !row.ReversedAt.IsZero() || !bytes.Equal(row.Result, m.Result) {
		return false, nil
	}
	row.Result = c.Result
	row.Sequence++
	return true, nil
}

// ReleaseAmount is nothing here: no movement in memory reserves an amount.
func (s *memory) ReleaseAmount(context.Context, movement.Movement) error { return nil }

func (s *memory) MovementByKey(_ context.Context, key movement.Key) (movement.Movement, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return found(s.rows[key])
}

func (s *memory) MovementByID(_ context.Context, id movement.ID) (movement.Movement, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return found(s.byID(id))
}

func (s *memory) Poll(_ context.Context, m movement.Movement, now, before, next time.Time) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.byID(m.ID)
	if row != nil && (row.Attempt != m.Attempt || row.State != m.State && !(row.State.Unknown() && m.State.Unknown())) {
		return false, nil
	}
	asked := []movement.State{movement.Submitting, movement.Acknowledged, movement.Pending, movement.Expired}
	if row == nil || !slices.Contains(asked, row.State) || !row.PolledAt.IsZero() && row.PolledAt.After(micro(before)) && !row.PolledAt.After(micro(now.Add(2*movement.ClockSkew))) {
		return false, nil
	}
	row.PolledAt, row.DueAt = micro(now), micro(next)
	return true, nil
}

func (s *memory) Miss(_ context.Context, m movement.Movement, next time.Time) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.byID(m.ID)
	if row == nil || row.Attempt != m.Attempt || !row.State.Unknown() {
		return 0, nil
	}
	row.Misses++
	row.DueAt = micro(next)
	return row.Misses, nil
}

func (s *memory) paidLate(row *movement.Movement, c movement.Change) (bool, error) {
	if row == nil || row.State != movement.Expired && row.State != movement.Failed || !row.PaidLateAt.IsZero() {
		return false, nil
	}
	row.PaidLateAt, row.UpdatedAt, row.DueAt = micro(c.HappenedAt), micro(c.At), time.Time{}
	row.Sequence++
	s.tell(row, c.At, c.Callback)
	return true, nil
}

func (s *memory) reverses(row *movement.Movement, c movement.Change) (bool, error) {
	if row == nil || row.State != movement.Succeeded || !row.ReversedAt.IsZero() {
		return false, nil
	}
	if row.Charge != movement.Unpaid && c.Posting == nil {
		return false, broken{errors.New("the reversal of what was charged without a posting")}
	}
	if err := s.post(row.Owner, c.Posting); err != nil {
		return false, err
	}
	row.ReversedAt, row.UpdatedAt, row.DueAt = micro(c.HappenedAt), micro(c.At), time.Time{}
	row.Sequence++
	s.tell(row, c.At, c.Callback)
	return true, nil
}

func (s *memory) AddException(_ context.Context, a movement.Exception) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	same, open := 0, false
	for _, b := range s.attention {
		fact, _, _ := strings.Cut(b.FactID, " #")
		if a.Owner == b.Owner && a.Subject == b.Subject && a.Reason == b.Reason && (a.FactID == b.FactID || a.Lasting && a.FactID == fact) {
			same, open = same+1, open || b.ResolvedAt.IsZero() || !b.ResolvedAt.Before(a.At)
		}
	}
	switch {
	case same > 0 && (open || !a.Lasting):
		return false, nil
	case same > 0:
		a.FactID += " #" + strconv.Itoa(same+1)
	}
	a.Lasting = false
	s.attention = append(s.attention, a)
	return true, nil
}

// Note is for operators alone; no test here reads it.
func (s *memory) Note(context.Context, time.Time, movement.Movement, string, string) error {
	return nil
}

func (s *memory) OpenExceptions(context.Context, int) ([]movement.Exception, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.attention), func(a movement.Exception) bool { return !a.ResolvedAt.IsZero() }), nil
}

func (s *memory) ResolveException(_ context.Context, now time.Time, a movement.Exception, operator, resolution string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, b := range s.attention {
		if a.Owner == b.Owner && a.Subject == b.Subject && a.Reason == b.Reason && a.FactID == b.FactID && b.ResolvedAt.IsZero() {
			s.attention[i].ResolvedAt, s.attention[i].ResolvedBy, s.attention[i].Resolution = now, operator, resolution
			return nil
		}
	}
	return store.ErrNotFound
}

// tell keeps the callback of a change. The caller holds the lock.
func (s *memory) tell(row *movement.Movement, now time.Time, told *movement.CallbackEvent) {
	if told == nil {
		return
	}
	s.callbacks = append(s.callbacks, movement.Callback{
		CallbackKey: movement.CallbackKey{Owner: row.Owner, EventID: told.ID}, MovementID: row.ID, Sequence: row.Sequence,
		Event: told.Event, Reference: row.Reference, URL: told.URL, Body: told.Body, CreatedAt: micro(now),
	})
}

func (s *memory) Events(_ context.Context, owner movement.Owner, after uuid.UUID, before time.Time, most int) ([]movement.ListedEvent, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortFunc(s.callbacks, func(a, b movement.Callback) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), bytes.Compare(a.EventID[:], b.EventID[:]))
	})
	var listed []movement.ListedEvent
	reached := after == uuid.Nil
	for _, c := range s.callbacks {
		if c.Owner != owner {
			continue
		}
		if reached && len(listed) < most && c.CreatedAt.Before(micro(before)) {
			listed = append(listed, movement.ListedEvent{ID: c.EventID, At: c.CreatedAt, Body: c.Body})
		}
		reached = reached || c.EventID == after
	}
	if !reached {
		return nil, store.ErrNotFound
	}
	return listed, nil
}

func (s *memory) Callback(_ context.Context, key movement.CallbackKey) (movement.Callback, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.callbacks, func(c movement.Callback) bool { return c.CallbackKey == key })
	if at < 0 {
		return movement.Callback{}, store.ErrNotFound
	}
	return s.callbacks[at], nil
}

func (s *memory) byID(id movement.ID) *movement.Movement {
	for _, row := range s.rows {
		if row.ID == id {
			return row
		}
	}
	return nil
}

func fill(row *movement.Movement, move movement.Change) {
	keep := func(old, given json.RawMessage) json.RawMessage {
		if given == nil {
			return old
		}
		return given
	}
	row.Result, row.Answer = keep(row.Result, move.Result), keep(row.Answer, move.Answer)
	row.ProviderReference = cmp.Or(move.ProviderReference, row.ProviderReference)
	row.ExpiresAt = cmp.Or(micro(move.ExpiresAt), row.ExpiresAt)
}

func found(row *movement.Movement) (movement.Movement, error) {
	if row == nil {
		return movement.Movement{}, store.ErrNotFound
	}
	return *row, nil
}

func micro(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Microsecond)
}
