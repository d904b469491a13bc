package memory

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// Reserve takes the reference of a draft and what its kind takes besides. It returns
// the movement as reserved, and true; or the movement that has the reference, and
// false.
func (s *Store) Reserve(_ context.Context, m movement.Movement) (movement.Movement, bool, error) {
	m = clone(m)
	m.CreatedAt, m.SendBy, m.DueAt, m.ExpiresAt = micro(m.CreatedAt), micro(m.SendBy), micro(m.DueAt), micro(m.ExpiresAt)
	takes, err := m.Takes()
	if err != nil {
		return movement.Movement{}, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.movements[m.Key]
	if before != nil && (before.State != movement.NotSubmitted || m.Attempt != 0 && m.Attempt <= before.Attempt) {
		return clone(*before), false, nil
	}
	if before != nil {
		m.ID, m.Attempt, m.Sequence = before.ID, max(before.Attempt+1, m.Attempt), before.Sequence+1
	} else {
		m.Attempt, m.Sequence = 1, 1
	}
	if err := s.take(&m, takes); err != nil {
		return movement.Movement{}, false, err
	}
	m.State, m.UpdatedAt, m.Reserved = movement.Submitting, m.CreatedAt, movement.ReservedAmount{}
	m.Polled = movement.Polled{DueAt: m.DueAt, Version: movement.FirstVersion(m.Sequence)}
	row := rowOf(m, takes, before)
	s.movements[m.Key], s.ids[m.ID] = &row, &row
	return m, true, nil
}

// rowOf is a reservation as it is kept: with what the database has columns for, and
// of an earlier attempt nothing but its fingerprint.
func rowOf(m movement.Movement, takes movement.Reserves, before *movement.Movement) movement.Movement {
	row := clone(m)
	row.Result, row.Answer, row.Refusal, row.ProviderReference, row.FactID = nil, nil, nil, "", ""
	row.Polled, row.ErroredAt = m.Polled, time.Time{}
	row.Collected = movement.Collected{}
	if takes != movement.ReserveAmount {
		row.ExpiresAt = time.Time{}
	}
	if takes != movement.ReserveLimits {
		row.Usage = nil
	}
	if row.RepeatWithin = 0; before != nil {
		row.Fingerprint = before.Fingerprint
	}
	for i := range row.Usage {
		row.Usage[i].Ceiling = 0
	}
	return row
}

// take takes what a movement reserves, all or nothing. The caller holds the lock.
func (s *Store) take(m *movement.Movement, takes movement.Reserves) error {
	switch takes {
	case movement.ReserveBalance:
		return s.takeBalance(*m)
	case movement.ReserveLimits:
		return s.takeLimits(*m)
	case movement.ReserveAmount:
		return s.takeAmount(m)
	case movement.ReserveNothing:
	}
	return nil
}

func (s *Store) takeBalance(m movement.Movement) error {
	if s.balances[m.Owner].Available < m.Amount {
		return movement.ErrInsufficient
	}
	return s.post(m.Owner, m.Begins())
}

// post changes a balance, or nothing where that would break a constraint. The caller
// holds the lock.
func (s *Store) post(owner movement.Owner, tx *ledger.Transaction) error {
	if tx == nil {
		return nil
	}
	after, err := s.balances[owner].Apply(tx.Legs)
	if err != nil {
		return constraint("ledger_balances_available")
	}
	if slices.ContainsFunc(s.postings, func(p posting) bool {
		return p.owner == owner && p.Subject == tx.Subject && p.Attempt == tx.Attempt && p.Step == tx.Step
	}) {
		return constraint("ledger_transactions_pkey")
	}
	made := *tx
	made.At = micro(made.At)
	s.balances[owner], s.postings = after, append(s.postings, posting{owner, made})
	return nil
}

func (s *Store) takeLimits(m movement.Movement) error {
	for _, u := range m.Usage {
		if used := s.usage[usageKey{m.Owner, u.Name, u.Period}].used; used+u.Amount > u.Ceiling {
			return &movement.LimitError{Name: u.Name, Used: used, Most: u.Ceiling}
		}
	}
	for _, u := range m.Usage {
		key := usageKey{m.Owner, u.Name, u.Period}
		s.usage[key] = usage{used: s.usage[key].used + u.Amount, ceiling: u.Ceiling}
	}
	return nil
}

// takeAmount reserves the least recently used amount that is free on the account: its
// time is over, and so is the collection that had it. Which of those that were used in
// the same minute is drawn.
func (s *Store) takeAmount(m *movement.Movement) error {
	account := m.Reserved.Account
	if of := s.statements[account]; of != nil && of.MerchantID != m.Owner.MerchantID {
		return movement.ErrForeignAccount
	}
	for _, codes := range [][2]int{{1, movement.SmallCodes}, {movement.SmallCodes + 1, movement.MostCodes}} {
		least, found := amount{}, amountKey{}
		for _, code := range s.shuffled(codes[0], codes[1]) {
			key := amountKey{account, m.Amount + money.Amount(code)}
			taken, is := s.amounts[key]
			if is && (taken.freeAt.After(m.CreatedAt) || s.opens(taken, key.amount)) {
				continue
			}
			if found == (amountKey{}) || taken.takenAt.Truncate(time.Minute).Before(least.takenAt.Truncate(time.Minute)) {
				least, found = taken, key
			}
		}
		if found != (amountKey{}) {
			m.Amount = found.amount
			s.amounts[found] = amount{movement: m.ID, takenAt: micro(m.CreatedAt), freeAt: micro(m.Reserved.FreeAt)}
			due := micro(m.CreatedAt.Add(movement.ReadEvery))
			if of := s.statements[account]; of == nil {
				s.statements[account] = &movement.Statement{
					Account: account, MerchantID: m.Owner.MerchantID, Mode: m.Owner.Mode, Provider: m.Provider, DueAt: due,
				}
			} else if due.Before(of.DueAt) {
				of.DueAt = due
			}
			return nil
		}
	}
	full := &movement.NoAmountError{}
	for key, taken := range s.amounts {
		ours := key.account == account && key.amount > m.Amount && key.amount <= m.Amount+movement.MostCodes
		if ours && (full.FreeAt.IsZero() || taken.freeAt.Before(full.FreeAt)) {
			full.FreeAt = taken.freeAt
		}
	}
	return full
}

// opens tells whether the collection that has an amount is still open.
func (s *Store) opens(taken amount, of money.Amount) bool {
	row := s.ids[taken.movement]
	return row != nil && row.Amount == of && row.State.Open()
}

// shuffled are the numbers of a range in the order that is drawn.
func (s *Store) shuffled(least, most int) []int {
	numbers := make([]int, 0, most-least+1)
	for n := least; n <= most; n++ {
		numbers = append(numbers, n)
	}
	for i := len(numbers) - 1; i > 0; i-- {
		j := s.Draw(i + 1)
		numbers[i], numbers[j] = numbers[j], numbers[i]
	}
	return numbers
}

// ReleaseAmount gives back the reserved amount of a collection that nobody was told
// of. It changes nothing where the amount was taken again since.
func (s *Store) ReleaseAmount(_ context.Context, m movement.Movement) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := amountKey{m.Account(), m.Amount}
	if taken := s.amounts[key]; taken.movement == m.ID && taken.takenAt.Equal(micro(m.CreatedAt)) {
		delete(s.amounts, key)
	}
	return nil
}

// Acknowledge keeps that a merchant is about to read pending while nobody knows yet
// whether the provider has the movement, with its creation's answer, and returns the
// movement as it then stands.
func (s *Store) Acknowledge(_ context.Context, m movement.Movement, answer json.RawMessage) (movement.Movement, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.ids[m.ID]
	if row != nil && row.Attempt == m.Attempt && row.State == movement.Submitting {
		row.State, row.Answer = movement.Acknowledged, slices.Clone(answer)
		row.Version++
	}
	return found(row)
}
