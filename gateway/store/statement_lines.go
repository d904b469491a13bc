package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// OpenLines reads the payments of an account that are not closed, in the order of
// their names.
func (s *Store) OpenLines(ctx context.Context, account movement.AccountID, after string, most int) ([]movement.StatementLine, error) {
	rows, err := s.queries.OpenLines(ctx, dbsqlc.OpenLinesParams{
		AccountID: uuid.UUID(account), After: after, Most: int32(most), //nolint:gosec // a page
	})
	if err != nil {
		return nil, fmt.Errorf("store: statement lines: %w", err)
	}
	open := make([]movement.StatementLine, len(rows))
	for i, row := range rows {
		open[i] = lineOf(row)
	}
	return open, nil
}

// Line reads one payment, or ErrNotFound.
func (s *Store) Line(ctx context.Context, account movement.AccountID, payment string) (movement.StatementLine, error) {
	row, err := s.queries.LineByPayment(ctx, dbsqlc.LineByPaymentParams{AccountID: uuid.UUID(account), Payment: payment})
	if errors.Is(err, pgx.ErrNoRows) {
		return movement.StatementLine{}, ErrNotFound
	}
	if err != nil {
		return movement.StatementLine{}, fmt.Errorf("store: statement line: %w", err)
	}
	return lineOf(row), nil
}

func lineOf(row dbsqlc.StatementLine) movement.StatementLine {
	line := movement.StatementLine{
		ImportedLine: movement.ImportedLine{
			Payment: row.Payment, ID: row.LineID, Amount: money.Amount(row.Amount), Currency: row.Currency, At: row.At.UTC(),
			Paid: row.Paid, ReversedAt: orZero(row.ReversedAt), Differs: row.Differs, Data: row.Data,
		},
		Account: movement.AccountID(row.AccountID), State: movement.LineState(row.State), Operator: row.Operator, Reason: row.Reason,
	}
	if row.MovementID != nil {
		line.Movement = movement.ID(*row.MovementID)
	}
	return line
}

// Candidates reads the collections of an account that payments of some amounts may be
// for, made in a span of time.
func (s *Store) Candidates(ctx context.Context, b movement.Statement, amounts []money.Amount, earliest, latest time.Time) ([]movement.Candidate, error) {
	p := dbsqlc.CandidatesParams{
		MerchantID: b.MerchantID, Mode: b.Mode, Provider: b.Provider, Amounts: make([]int64, len(amounts)),
		Earliest: micro(earliest), Latest: micro(latest),
	}
	for i, amount := range amounts {
		p.Amounts[i] = int64(amount)
	}
	rows, err := s.queries.Candidates(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("store: candidates: %w", err)
	}
	found := make([]movement.Candidate, 0, len(rows))
	for _, row := range rows {
		if movement.NewAccountID(b.Provider, b.Mode, row.ConnectionAccount) != b.Account {
			continue // an account that the merchant had before, or has since
		}
		found = append(found, movement.Candidate{
			ID: movement.ID(row.ID), Amount: money.Amount(row.Amount), State: movement.State(row.State),
			CreatedAt: row.CreatedAt.UTC(), ExpiresAt: orZero(row.ExpiresAt), Taken: row.Taken,
		})
	}
	return found, nil
}

// LinesNamed reads some payments, in any order.
func (s *Store) LinesNamed(ctx context.Context, account movement.AccountID, payments []string) ([]movement.StatementLine, error) {
	rows, err := s.queries.LinesNamed(ctx, dbsqlc.LinesNamedParams{AccountID: uuid.UUID(account), Payments: payments})
	if err != nil {
		return nil, fmt.Errorf("store: statement lines: %w", err)
	}
	named := make([]movement.StatementLine, len(rows))
	for i, row := range rows {
		named[i] = lineOf(row)
	}
	return named, nil
}

// Match stores matches of new payments, and returns the payments that it stored one
// for. From then on a matched payment and its collection belong to each other.
// Exceptions are written in the same commit. A payment that was matched meanwhile, or
// whose collection another payment has, stays as it is.
func (s *Store) Match(ctx context.Context, now time.Time, b movement.Statement, matches []movement.Match) (decided []string, err error) {
	if len(matches) == 0 {
		return nil, nil
	}
	w := &write{owner: movement.Owner{MerchantID: b.MerchantID, Mode: b.Mode}, provider: b.Provider, account: b.Account, now: micro(now)}
	if w.payments, w.matches, err = documented(matches); err != nil {
		return nil, fmt.Errorf("store: match: %w", err)
	}
	decided, err = s.matchLines(ctx, w)
	switch {
	case err == nil:
		return decided, nil
	case !duplicate(err):
		return nil, fmt.Errorf("store: match: %w", err)
	case len(matches) == 1:
		return nil, nil // another payment has its collection, which the next matching finds
	}
	for _, m := range matches {
		one, err := s.Match(ctx, now, b, []movement.Match{m})
		if err != nil {
			return nil, err
		}
		decided = append(decided, one...)
	}
	return decided, nil
}

func (s *Store) matchLines(ctx context.Context, w *write) ([]string, error) {
	statement, err := statementOf(matchLines | addException)
	if err != nil {
		return nil, err
	}
	rows, err := s.pool.Query(ctx, statement.sql, statement.args(w)...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// documented are matches as one document by the names of their payments.
func documented(matches []movement.Match) (payments []string, document []byte, err error) {
	type match struct {
		State    movement.LineState `json:"state"`
		Movement string             `json:"movement,omitempty"`
		Reason   string             `json:"reason"`
		Detail   string             `json:"detail"`
	}
	all := make(map[string]match, len(matches))
	for _, m := range matches {
		t := match{State: m.State, Reason: m.Reason, Detail: m.Detail}
		if m.Movement != (movement.ID{}) {
			t.Movement = m.Movement.String()
		}
		all[m.Payment], payments = t, append(payments, m.Payment)
	}
	document, err = json.Marshal(all)
	return payments, document, err
}

// CloseLines closes matched payments that were applied to their collections. A payment
// that later lines have changed meanwhile stays open. The amounts of the collections are
// free from a time on, once these have ended, or sooner where they were so anyway.
func (s *Store) CloseLines(ctx context.Context, account movement.AccountID, applied []movement.StatementLine, freeAt time.Time) error {
	if len(applied) == 0 {
		return nil
	}
	p, seen := dbsqlc.CloseLinesParams{AccountID: uuid.UUID(account), FreeAt: micro(freeAt)}, make(map[string]string, len(applied))
	for _, l := range applied {
		p.Payments, seen[l.Payment] = append(p.Payments, l.Payment), lineStatus(l)
	}
	slices.Sort(p.Payments) // in one order everywhere, since many readers of an account close the same ones
	var err error
	if p.Seen, err = json.Marshal(seen); err != nil {
		return fmt.Errorf("store: close lines: %w", err)
	}
	for {
		_, err := s.queries.CloseLines(ctx, p)
		switch {
		case err == nil:
			return nil
		case !conflicting(err) || ctx.Err() != nil:
			return fmt.Errorf("store: close lines: %w", err)
		}
	}
}

// lineStatus is the status of a payment, in the words of the SQL that closes it.
func lineStatus(s movement.StatementLine) string {
	words := s.Movement.String() + " stays"
	if !s.ReversedAt.IsZero() {
		words = s.Movement.String() + " reversed"
	}
	if s.Differs {
		words += ", differs"
	}
	return words
}

// Assign assigns a payment to a collection by an operator's word, with an audit entry. It
// is false, and nothing was written, where the payment no longer stands as the caller saw
// it, or another payment has the collection.
func (s *Store) Assign(ctx context.Context, now time.Time, seen movement.StatementLine, to movement.ID, operator, reason string) (bool, error) {
	detail, err := json.Marshal(map[string]string{"operator": operator, "payment": seen.Payment, "to": to.String(), "reason": reason})
	if err != nil {
		return false, fmt.Errorf("store: assign: %w", err)
	}
	w := &write{
		id: uuid.UUID(to), account: seen.Account, seen: &seen, operator: operator, reason: reason, now: micro(now),
		event: "given_away", detail: string(detail), transition: uuid.New(),
	}
	p := assignLine
	if seen.Movement != (movement.ID{}) {
		p |= loseLine | logHistory
	}
	err = s.within(ctx, serializable, func(tx pgx.Tx) error {
		var payment string
		if err := only(ctx, tx, p, w, &payment); err != nil {
			return err
		}
		of, err := dbsqlc.New(tx).MovementByID(ctx, w.id)
		if err != nil {
			return err
		}
		return audited(ctx, tx, s.auditing(ctx, Audit{
			Operator: operator, Action: "statement.assign", At: now,
			Detail: fmt.Sprintf("payment %s to movement %s: %s, mode %s", seen.Payment, to, reason, of.Movement.Mode),
		}, movement.Owner{MerchantID: of.Movement.MerchantID, Mode: of.Movement.Mode}))
	})
	if duplicate(err) {
		return false, nil
	}
	return recorded("assign", err)
}

// ListLines reads payments of a merchant that wait for an operator, the newest first.
func (s *Store) ListLines(ctx context.Context, r movement.LineRange) ([]movement.ListedLine, error) {
	if r.Until.IsZero() {
		r.Until = forever
	}
	rows, err := s.queries.ListLines(ctx, dbsqlc.ListLinesParams{
		MerchantID: r.MerchantID, Until: micro(r.Until), AccountID: uuid.UUID(r.Account), Payment: r.Payment, Most: int32(r.Most), //nolint:gosec // a page
	})
	if err != nil {
		return nil, fmt.Errorf("store: statement lines: %w", err)
	}
	listed := make([]movement.ListedLine, len(rows))
	for i, row := range rows {
		listed[i] = movement.ListedLine{
			StatementLine: movement.StatementLine{
				ImportedLine: movement.ImportedLine{
					Payment: row.Payment, ID: row.LineID, Amount: money.Amount(row.Amount), Currency: row.Currency, At: row.At.UTC(),
					Paid: true, Data: row.Data,
				},
				Account: movement.AccountID(row.AccountID), State: movement.LineState(row.State),
			},
			Owner: movement.Owner{MerchantID: row.MerchantID, Mode: row.Mode}, Provider: row.Provider,
		}
	}
	return listed, nil
}
