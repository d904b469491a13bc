package memory

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// Apply commits a transition with its history, posting, callback and mail. It is
// false, and nothing has changed, when the movement no longer stands where it was
// seen.
func (s *Store) Apply(_ context.Context, c movement.Change) (bool, error) {
	if err := c.Check(); err != nil {
		return false, err
	}
	c.At = micro(c.At)
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.ids[c.Movement.ID]
	if c.Callback != nil && !s.written[c.Callback.ID].IsZero() && row.Sequence == c.Movement.Sequence { // the key of callbacks; a change that is made already meets its guard
		return false, constraint("callbacks_pkey")
	}
	switch c.Effect {
	case movement.Move:
		return s.move(row, c)
	case movement.LateMoney, movement.MoneyBack, movement.OtherAmount:
		return s.record(row, c)
	case movement.Supplement:
		return s.supplement(row, c), nil
	case movement.KeepAnswer:
		s.complete(row, c)
		return true, nil
	case movement.Renewal:
		return s.sendAgain(row, c), nil
	case movement.Errored:
		return s.errored(row, c), nil
	case movement.Nothing, movement.Contradiction: // refused above
	}
	return false, nil
}

func (s *Store) move(row *movement.Movement, c movement.Change) (bool, error) {
	if row == nil || row.Attempt != c.Movement.Attempt || !slices.Contains(c.From, row.State) || !asSeen(*row, c) {
		return false, nil
	}
	if c.To.Ends() && (row.Charge != movement.Unpaid) != (c.Posting != nil) {
		return false, nil
	}
	if err := s.postFor(row, c); err != nil {
		return false, err
	}
	s.giveBack(row.Owner, c)
	row.UpdatedAt, row.Polled = c.At, pollsOf(*row, c)
	row.State = c.To
	row.PaidAmount = cmp.Or(c.PaidAmount, row.PaidAmount)
	row.Cost, row.FactID, row.Channel = cmp.Or(c.Cost, row.Cost), cmp.Or(c.FactID, row.FactID), cmp.Or(c.Channel, row.Channel)
	if c.Refusal != nil {
		kept := *c.Refusal
		kept.Fields = slices.Clone(kept.Fields)
		row.Refusal = &kept
	}
	if !c.PaidAt.IsZero() {
		row.PaidAt = micro(c.PaidAt)
	}
	keep(row, c)
	s.log(row, c.Event, c.At, c.Detail)
	s.queue(row, c)
	if c.Mail != nil && c.Mail.To != "" {
		s.mails = append(s.mails, movement.QueuedMail{Mail: *c.Mail, Owner: row.Owner, MovementID: row.ID, CreatedAt: c.At})
	}
	return true, nil
}

// asSeen tells whether what is known of asking about a movement is what the caller saw:
// of what was freed nothing is.
func asSeen(row movement.Movement, c movement.Change) bool {
	return row.State == movement.NotSubmitted || row.Version == c.Movement.Version
}

// pollsOf is what a change leaves of asking about a movement.
func pollsOf(row movement.Movement, c movement.Change) movement.Polled {
	c.Movement = row
	polled := c.After().Polled
	polled.DueAt = micro(polled.DueAt)
	return polled
}

// postFor posts what a change does to the ledger, as the row's.
func (s *Store) postFor(row *movement.Movement, c movement.Change) error {
	if c.Posting == nil {
		return nil
	}
	tx := *c.Posting
	tx.Subject, tx.Attempt, tx.Provider, tx.At = uuid.UUID(row.ID), row.Attempt, row.Provider, c.At
	return s.post(row.Owner, &tx)
}

// giveBack changes what the movement, as it was seen, counts against payout limits.
func (s *Store) giveBack(owner movement.Owner, c movement.Change) {
	if c.GivesBack == 0 {
		return
	}
	for _, u := range c.Movement.Usage {
		key := usageKey{owner, u.Name, u.Period}
		before, counted := s.usage[key]
		if !counted {
			continue
		}
		left := before.used - u.Amount*int64(c.GivesBack)
		s.usage[key] = usage{used: max(left, 0), ceiling: max(before.ceiling, left)}
	}
}

// keep keeps what a change gives and leaves what it does not.
func keep(row *movement.Movement, c movement.Change) {
	if c.Result != nil {
		row.Result = slices.Clone(c.Result)
	}
	if c.Answer != nil {
		row.Answer = slices.Clone(c.Answer)
	}
	row.ProviderReference = cmp.Or(c.ProviderReference, row.ProviderReference)
	if !c.ExpiresAt.IsZero() {
		row.ExpiresAt = micro(c.ExpiresAt)
	}
}

// log writes the next entry of a movement's history.
func (s *Store) log(row *movement.Movement, event string, at time.Time, detail string) {
	row.Sequence++
	s.history[row.ID] = append(s.history[row.ID], movement.HistoryEntry{Sequence: row.Sequence, Event: event, At: at, Detail: detail})
}

// queue keeps the callback of a change.
func (s *Store) queue(row *movement.Movement, c movement.Change) {
	if c.Callback == nil || c.Callback.Event == "" {
		return
	}
	made := movement.Callback{
		CallbackKey: movement.CallbackKey{Owner: row.Owner, EventID: c.Callback.ID}, MovementID: row.ID, Sequence: row.Sequence,
		Event: c.Callback.Event, Reference: row.Reference, URL: c.Callback.URL, Body: slices.Clone(c.Callback.Body),
		State: c.Callback.State(), CreatedAt: c.At,
	}
	if due := c.Callback.DueAt(c.At); due != nil {
		made.DueAt = *due
	}
	s.callbacks = append(s.callbacks, made)
	s.written[made.EventID] = time.Now()
}

// record records a fact beside the state, as it was seen.
func (s *Store) record(row *movement.Movement, c movement.Change) (bool, error) {
	if row == nil || row.Attempt != c.Movement.Attempt || row.Sequence != c.Movement.Sequence {
		return false, nil
	}
	if c.Effect == movement.MoneyBack && (row.Charge != movement.Unpaid) != (c.Posting != nil) {
		return false, nil
	}
	if err := s.postFor(row, c); err != nil {
		return false, err
	}
	s.giveBack(row.Owner, c)
	c.HappenedAt = cmp.Or(c.HappenedAt, c.At)
	then := c.After()
	row.PaidLateAt, row.ReturnedAt, row.PaidAmount = micro(then.PaidLateAt), micro(then.ReturnedAt), then.PaidAmount
	row.Returns = slices.Clone(then.Returns)
	row.UpdatedAt = c.At
	if c.Effect == movement.LateMoney {
		row.Polled = pollsOf(*row, c)
	}
	s.log(row, c.Event, c.At, c.Detail)
	s.queue(row, c)
	return true, nil
}

func rulesOf(m movement.Movement) movement.Rules {
	rules, _ := movement.RulesOf(m.Kind)
	return rules
}

// supplement replaces the result that a movement succeeded with by a fuller one.
func (s *Store) supplement(row *movement.Movement, c movement.Change) bool {
	if row == nil || row.Attempt != c.Movement.Attempt || row.State != movement.Succeeded || !row.ReturnedAt.IsZero() ||
		!bytes.Equal(row.Result, c.Movement.Result) {
		return false
	}
	row.Result = slices.Clone(c.Result)
	s.log(row, c.Event, c.At, c.Detail)
	return true
}

// sendAgain lets a movement be sent again that no provider has confirmed.
func (s *Store) sendAgain(row *movement.Movement, c movement.Change) bool {
	by := micro(c.SendBy)
	if row == nil || row.Attempt != c.Movement.Attempt || !row.State.Unknown() || !row.SendBy.Before(by) || !asSeen(*row, c) {
		return false
	}
	row.SendBy, row.Polled = by, pollsOf(*row, c)
	s.log(row, c.Event, c.At, c.Detail)
	return true
}

// errored keeps that the provider has ended this attempt's call with an error of its own.
func (s *Store) errored(row *movement.Movement, c movement.Change) bool {
	if row == nil || row.Attempt != c.Movement.Attempt || !row.State.Unknown() || row.Errored() || !asSeen(*row, c) {
		return false
	}
	row.ErroredAt, row.Polled = c.At, pollsOf(*row, c)
	s.log(row, c.Event, c.At, c.Detail)
	return true
}

// complete adds a call's answer to a movement that another fact has moved on.
func (s *Store) complete(row *movement.Movement, c movement.Change) {
	if row == nil || row.Attempt != c.Movement.Attempt || row.Answer != nil || row.State.Unknown() || row.State == movement.NotSubmitted {
		return
	}
	keep(row, c)
}

// Poll takes the right to ask the provider about a movement as the caller saw it, if
// nobody did since before. A time that no right clock tells keeps nobody from it.
func (s *Store) Poll(_ context.Context, m movement.Movement, now, before, next time.Time) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.asked(m)
	if row == nil || polledSince(micro(m.PolledAt), now, before) {
		return false, nil
	}
	if next.IsZero() && !m.State.Open() {
		row.Polled = movement.Polled{}
		return true, nil
	}
	row.PolledAt, row.DueAt = micro(now), micro(next)
	row.Version++
	return true, nil
}

// asked is the row of a movement about which there is something to ask, nil where that
// is not as the caller saw it. The caller holds the lock.
func (s *Store) asked(m movement.Movement) *movement.Movement {
	row := s.ids[m.ID]
	if row == nil || row.Attempt != m.Attempt || row.Version == 0 || row.Version != m.Version {
		return nil
	}
	return row
}

func polledSince(polled, now, before time.Time) bool {
	return !polled.IsZero() && polled.After(micro(before)) && !polled.After(micro(now.Add(2*movement.ClockSkew)))
}

// Miss counts a lookup that proved an unknown movement is not at the provider, and
// returns how many came in a row; 0 where it was polled or changed since.
func (s *Store) Miss(_ context.Context, m movement.Movement, next time.Time) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.asked(m)
	if row == nil || !m.State.Unknown() {
		return 0, nil
	}
	row.Misses++
	row.DueAt = micro(next)
	return row.Misses, nil
}
