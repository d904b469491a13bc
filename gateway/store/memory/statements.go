package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// lineKey names a line of a statement.
type lineKey struct {
	account movement.AccountID
	payment string
}

// Statement reads how far an account's statement was read, or movement.ErrNotFound
// for an account on which nothing was collected.
func (s *Store) Statement(_ context.Context, account movement.AccountID) (movement.Statement, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.statements[account]
	if row == nil {
		return movement.Statement{}, movement.ErrNotFound
	}
	return *row, nil
}

// PollStatement takes the right to read an account's statement, if nobody did since
// before, and has it due again at until.
func (s *Store) PollStatement(_ context.Context, account movement.AccountID, now, before, until time.Time) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.statements[account]
	if row == nil || polledSince(row.PolledAt, now, before) {
		return false, nil
	}
	row.PolledAt, row.DueAt = micro(now), micro(until)
	return true, nil
}

// RestStatement has a statement that is due at until due at next instead.
func (s *Store) RestStatement(_ context.Context, account movement.AccountID, until, next time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if row := s.statements[account]; row != nil && row.DueAt.Equal(micro(until)) {
		row.DueAt = micro(next)
	}
	return nil
}

// DueStatements reads the statements of some buckets that are due, the oldest first. Of
// each it tells whose it is and its times, and no more.
func (s *Store) DueStatements(_ context.Context, buckets []int, since, now time.Time, most int) ([]movement.Statement, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	due, read := []movement.Statement{}, map[int]int{}
	for _, row := range s.byDueTime() {
		bucket := row.Account.Bucket()
		if row.DueAt.Before(micro(since)) || row.DueAt.After(micro(now)) || !slices.Contains(buckets, bucket) || read[bucket] == most {
			continue
		}
		read[bucket]++
		due = append(due, movement.Statement{
			Account: row.Account, MerchantID: row.MerchantID, Mode: row.Mode, Provider: row.Provider,
			PolledAt: row.PolledAt, DueAt: row.DueAt,
		})
	}
	return due, nil
}

// byDueTime are all statements. The caller holds the lock.
func (s *Store) byDueTime() []*movement.Statement {
	return slices.SortedFunc(maps.Values(s.statements), func(a, b *movement.Statement) int {
		return cmp.Or(a.DueAt.Compare(b.DueAt), slices.Compare(a.Account[:], b.Account[:]))
	})
}

// OpenSales reads collections that are open on a statement's account, the oldest
// first, behind one of them.
func (s *Store) OpenSales(_ context.Context, of movement.Statement, behind movement.Candidate, most int) ([]movement.Candidate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pending := []movement.Candidate{}
	for id, row := range s.ids {
		c := movement.Candidate{ID: id, Amount: row.Amount, State: row.State, CreatedAt: row.CreatedAt, ExpiresAt: row.ExpiresAt}
		if s.collected(*row, of) && row.State.Open() && asMade(behind, c) < 0 {
			pending = append(pending, c)
		}
	}
	slices.SortFunc(pending, asMade)
	return pending[:min(most, len(pending))], nil
}

func asMade(a, b movement.Candidate) int {
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), slices.Compare(a.ID[:], b.ID[:]))
}

// collected tells whether a movement is collected on a statement's account.
func (s *Store) collected(row movement.Movement, of movement.Statement) bool {
	return rulesOf(row).EndedBy == movement.EndedByStatement && row.Owner == movement.Owner{MerchantID: of.MerchantID, Mode: of.Mode} &&
		row.Provider == of.Provider && movement.NewAccountID(of.Provider, of.Mode, row.ConnectionAccount) == of.Account
}

// Import imports what was read from a statement's cursor, and moves the cursor on. It
// is false, and nothing was imported, where somebody else has read from that cursor.
func (s *Store) Import(
	_ context.Context, _ time.Time, of movement.Statement, lines []movement.ImportedLine, next string, through time.Time,
) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.statements[of.Account]
	if row == nil || row.Cursor != of.Cursor {
		return false, nil
	}
	row.Cursor = next
	if through = micro(through); through.After(row.Through) {
		row.Through = through
	}
	for _, told := range lines {
		told.At, told.ReversedAt = micro(told.At), micro(told.ReversedAt)
		key := lineKey{of.Account, told.Payment}
		if line := s.lines[key]; told.Failed && (line == nil || !line.Paid) {
			continue
		}
		told.Failed = false // the store keeps what it leads to
		if line := s.lines[key]; line != nil {
			merge(line, told)
			continue
		}
		s.lines[key] = &movement.StatementLine{ImportedLine: told, Account: of.Account, State: movement.LineNew}
	}
	return true, nil
}

// merge adds what is told of a payment once more. A payment that was closed opens
// again when it is reversed or differs.
func merge(line *movement.StatementLine, told movement.ImportedLine) {
	pays, reversed := told.Paid && !line.Paid, !told.ReversedAt.IsZero()
	otherMoney := line.Amount != told.Amount || line.Currency != told.Currency
	differs := told.Differs || otherMoney || line.Paid && told.Paid && !line.At.Equal(told.At)
	if !pays && !(reversed && line.ReversedAt.IsZero()) && (line.Differs || !differs) {
		return
	}
	line.State = reopened(*line, told, otherMoney)
	if pays {
		line.ID, line.At, line.Amount, line.Currency, line.Data = told.ID, told.At, told.Amount, told.Currency, told.Data
	}
	line.Paid, line.Differs = line.Paid || told.Paid, line.Differs || differs
	if line.ReversedAt.IsZero() {
		line.ReversedAt = told.ReversedAt
	}
}

func reopened(line movement.StatementLine, told movement.ImportedLine, otherMoney bool) movement.LineState {
	forOperators := []movement.LineState{movement.LineUnmatched, movement.LineAmbiguous, movement.LineAgain}
	switch {
	case line.State == movement.LinePaid:
		return movement.LineMatched
	case line.State == movement.LineReversed && (told.Differs || otherMoney):
		if line.Movement == (movement.ID{}) {
			return movement.LineNew
		}
		return movement.LineMatched
	case slices.Contains(forOperators, line.State) && !told.ReversedAt.IsZero() && !line.Differs && !told.Differs && !otherMoney:
		return movement.LineReversed
	}
	return line.State
}

// OpenLines reads lines of an account with which nobody is done, in the order of their
// payments.
func (s *Store) OpenLines(_ context.Context, account movement.AccountID, after string, most int) ([]movement.StatementLine, error) {
	open := s.linesOf(account, func(line movement.StatementLine) bool {
		return (line.State == movement.LineNew || line.State == movement.LineMatched) && line.Payment > after
	})
	return open[:min(most, len(open))], nil
}

// Line reads one line, or movement.ErrNotFound.
func (s *Store) Line(_ context.Context, account movement.AccountID, payment string) (movement.StatementLine, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := s.lines[lineKey{account, payment}]
	if line == nil {
		return movement.StatementLine{}, movement.ErrNotFound
	}
	return *line, nil
}

// LinesNamed reads the lines of some payments.
func (s *Store) LinesNamed(_ context.Context, account movement.AccountID, payments []string) ([]movement.StatementLine, error) {
	return s.linesOf(account, func(line movement.StatementLine) bool { return slices.Contains(payments, line.Payment) }), nil
}

// linesOf are some lines of an account in the order of their payments.
func (s *Store) linesOf(account movement.AccountID, wanted func(movement.StatementLine) bool) []movement.StatementLine {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := []movement.StatementLine{}
	for key, line := range s.lines {
		if key.account == account && wanted(*line) {
			lines = append(lines, *line)
		}
	}
	slices.SortFunc(lines, func(a, b movement.StatementLine) int { return strings.Compare(a.Payment, b.Payment) })
	return lines
}

// ListLines reads lines of a merchant that wait for an operator, the newest first.
func (s *Store) ListLines(_ context.Context, r movement.LineRange) ([]movement.ListedLine, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	listed := []movement.ListedLine{}
	for key, line := range s.lines {
		of := s.statements[key.account]
		if of.MerchantID != r.MerchantID || line.State != movement.LineUnmatched && line.State != movement.LineAmbiguous && line.State != movement.LineAgain {
			continue
		}
		told := movement.StatementLine{ImportedLine: line.ImportedLine, Account: key.account, State: line.State}
		told.Paid, told.Differs, told.ReversedAt = true, false, time.Time{}
		listed = append(listed, movement.ListedLine{
			StatementLine: told, Owner: movement.Owner{MerchantID: of.MerchantID, Mode: of.Mode}, Provider: of.Provider,
		})
	}
	newest := func(a, b movement.ListedLine) int {
		return cmp.Or(b.At.Compare(a.At), strings.Compare(b.Account.String(), a.Account.String()), strings.Compare(b.Payment, a.Payment))
	}
	slices.SortFunc(listed, newest)
	if !r.Until.IsZero() {
		last := movement.ListedLine{StatementLine: movement.StatementLine{Account: r.Account, ImportedLine: movement.ImportedLine{Payment: r.Payment, At: micro(r.Until)}}}
		listed = slices.DeleteFunc(listed, func(l movement.ListedLine) bool { return newest(l, last) <= 0 })
	}
	return listed[:min(r.Most, len(listed))], nil
}

// Candidates reads the collections of an account that payments of some amounts may be
// for, in a span of time.
func (s *Store) Candidates(
	_ context.Context, of movement.Statement, amounts []money.Amount, earliest, latest time.Time,
) ([]movement.Candidate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	candidates := []movement.Candidate{}
	for id, row := range s.ids {
		if !s.collected(*row, of) || !slices.Contains(amounts, row.Amount) || row.State == movement.NotSubmitted || row.CreatedAt.Before(micro(earliest)) || row.CreatedAt.After(micro(latest)) {
			continue
		}
		candidates = append(candidates, movement.Candidate{
			ID: id, Amount: row.Amount, State: row.State, CreatedAt: row.CreatedAt, ExpiresAt: row.ExpiresAt,
			Taken: !row.PaidLateAt.IsZero() || s.paid(id),
		})
	}
	slices.SortFunc(candidates, func(a, b movement.Candidate) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), byKey(s.ids[a.ID].Key, s.ids[b.ID].Key))
	})
	return candidates, nil
}

// paid tells whether a line pays a movement. The caller holds the lock.
func (s *Store) paid(id movement.ID) bool {
	for _, line := range s.lines {
		if line.Movement == id {
			return true
		}
	}
	return false
}

// Match gives new lines to their collections, once for both, and returns those that it
// decided. What a person must see is listed.
func (s *Store) Match(_ context.Context, now time.Time, of movement.Statement, matches []movement.Match) (decided []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range matches {
		line := s.lines[lineKey{of.Account, m.Payment}]
		if line == nil || line.State != movement.LineNew || m.Movement != (movement.ID{}) && s.paid(m.Movement) {
			continue
		}
		line.State, line.Movement = m.State, m.Movement
		decided = append(decided, m.Payment)
		if m.Reason != "" {
			s.list(movement.Exception{
				Owner: movement.Owner{MerchantID: of.MerchantID, Mode: of.Mode}, Subject: "payment " + m.Payment, Reason: m.Reason,
				FactID: line.ID, Provider: of.Provider, Detail: m.Detail, At: micro(now),
			})
		}
	}
	return decided, nil
}

// CloseLines closes matched lines whose collections have learned of them, and has their
// amounts free from a time on. One that has changed since it was seen stays open.
func (s *Store) CloseLines(_ context.Context, account movement.AccountID, done []movement.StatementLine, freeAt time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, seen := range done {
		line := s.lines[lineKey{account, seen.Payment}]
		if line == nil || line.State != movement.LineMatched || line.Movement != seen.Movement ||
			line.ReversedAt.IsZero() != seen.ReversedAt.IsZero() || line.Differs != seen.Differs {
			continue
		}
		line.State = movement.LinePaid
		if !line.ReversedAt.IsZero() && !line.Differs {
			line.State = movement.LineReversed
		}
		key := amountKey{account, line.Amount}
		if taken := s.amounts[key]; taken.movement == line.Movement && taken.takenAt.Before(micro(freeAt)) && taken.freeAt.After(micro(freeAt)) {
			taken.freeAt = micro(freeAt)
			s.amounts[key] = taken
		}
	}
	return nil
}

// Assign gives a line to a collection by an operator's word. It is false where the
// line no longer stands as it was seen, or the collection has another.
func (s *Store) Assign(_ context.Context, now time.Time, seen movement.StatementLine, to movement.ID, operator, reason string) (bool, error) {
	detail, err := json.Marshal(map[string]string{"operator": operator, "payment": seen.Payment, "to": to.String(), "reason": reason})
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	line := s.lines[lineKey{seen.Account, seen.Payment}]
	if line == nil || line.State != seen.State || !line.ReversedAt.IsZero() || !line.Paid || line.Movement != seen.Movement {
		return false, nil
	}
	if line.Movement != to && s.paid(to) {
		return false, nil
	}
	line.State, line.Movement, line.Operator, line.Reason = movement.LineMatched, to, operator, reason
	if lost := s.ids[seen.Movement]; lost != nil {
		s.log(lost, "given_away", micro(now), string(detail))
	}
	return true, nil
}
