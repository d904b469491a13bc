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
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// OpenSettlements reads payments of an account with which nobody is done, in the
// order of their names.
func (s *Store) OpenLines(ctx context.Context, account movement.AccountID, after string, most int) ([]movement.StatementLine, error) {
	rows, err := s.queries.OpenSettlements(ctx, dbsqlc.OpenSettlementsParams{
		AccountID: uuid.UUID(account), After: after, Most: int32(most), //nolint:gosec // a page
	})
	if err != nil {
		return nil, fmt.Errorf("store: settlements: %w", err)
	}
	open := make([]movement.StatementLine, len(rows))
	for i, row := range rows {
		open[i] = settlementOf(row)
	}
	return open, nil
}

// Settlement reads one payment, or ErrNotFound.
func (s *Store) Line(ctx context.Context, account movement.AccountID, payment string) (movement.StatementLine, error) {
	row, err := s.queries.SettlementByPayment(ctx, dbsqlc.SettlementByPaymentParams{AccountID: uuid.UUID(account), Payment: payment})
	if errors.Is(err, pgx.ErrNoRows) {
		return movement.StatementLine{}, ErrNotFound
	}
	if err != nil {
		return movement.StatementLine{}, fmt.Errorf("store: settlement: %w", err)
	}
	return settlementOf(row), nil
}

func settlementOf(row dbsqlc.Settlement) movement.StatementLine {
	made := movement.StatementLine{
		ImportedLine: movement.ImportedLine{
			Payment: row.Payment, ID: row.EntryID, Amount: money.Amount(row.Amount), Currency: row.Currency, At: row.At.UTC(),
			Paid: row.Paid, ReversedAt: orZero(row.ReversedAt), Differs: row.Differs, Data: row.Data,
		},
		Account: movement.AccountID(row.AccountID), State: movement.LineState(row.State), Operator: row.Operator, Reason: row.Reason,
	}
	if row.MovementID != nil {
		made.Movement = movement.ID(*row.MovementID)
	}
	return made
}

// Candidates reads the collections of an account that payments of some amounts may
// be for, in a span of time.
func (s *Store) Candidates(ctx context.Context, b movement.Statement, amounts []money.Amount, earliest, latest time.Time) ([]movement.Candidate, error) {
	p := dbsqlc.CollectionsOfParams{
		MerchantID: b.MerchantID, Mode: b.Mode, Provider: b.Provider, Account: b.Name, Amounts: make([]int64, len(amounts)),
		Earliest: micro(earliest), Latest: micro(latest),
	}
	for i, amount := range amounts {
		p.Amounts[i] = int64(amount)
	}
	rows, err := s.queries.CollectionsOf(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("store: candidates: %w", err)
	}
	found := make([]movement.Candidate, len(rows))
	for i, row := range rows {
		found[i] = movement.Candidate{
			ID: movement.ID(row.ID), Amount: money.Amount(row.Amount), State: movement.State(row.State),
			CreatedAt: row.CreatedAt.UTC(), ExpiresAt: orZero(row.ExpiresAt), Taken: row.Taken,
		}
	}
	return found, nil
}

// SettlementsNamed reads some payments, in any order.
func (s *Store) LinesNamed(ctx context.Context, account movement.AccountID, payments []string) ([]movement.StatementLine, error) {
	rows, err := s.queries.SettlementsNamed(ctx, dbsqlc.SettlementsNamedParams{AccountID: uuid.UUID(account), Payments: payments})
	if err != nil {
		return nil, fmt.Errorf("store: settlements: %w", err)
	}
	named := make([]movement.StatementLine, len(rows))
	for i, row := range rows {
		named[i] = settlementOf(row)
	}
	return named, nil
}

// Judge decides new payments, and returns those that it did: a matched one has its
// collection from then on, and the collection it, and what a person must see is
// listed in the same commit. Where somebody else has decided one, or given its
// collection to another payment, that one stays as it is.
func (s *Store) Match(ctx context.Context, now time.Time, b movement.Statement, verdicts []movement.Match) (decided []string, err error) {
	if len(verdicts) == 0 {
		return nil, nil
	}
	p := dbsqlc.JudgeSettlementsParams{
		AccountID: uuid.UUID(b.Account), MerchantID: b.MerchantID, Mode: b.Mode, Provider: b.Provider, Now: micro(now),
	}
	if p.Payments, p.Verdicts, err = documented(verdicts); err != nil {
		return nil, fmt.Errorf("store: judge: %w", err)
	}
	decided, err = s.queries.JudgeSettlements(ctx, p)
	switch {
	case err == nil:
		return decided, nil
	case !duplicate(err):
		return nil, fmt.Errorf("store: judge: %w", err)
	case len(verdicts) == 1:
		return nil, nil // its collection is paid by another payment, which the next look finds
	}
	for _, v := range verdicts {
		one, err := s.Match(ctx, now, b, []movement.Match{v})
		if err != nil {
			return nil, err
		}
		decided = append(decided, one...)
	}
	return decided, nil
}

// documented are verdicts as one document by the names of their payments.
func documented(verdicts []movement.Match) (payments []string, document []byte, err error) {
	type told struct {
		State    movement.LineState `json:"state"`
		Movement string             `json:"movement,omitempty"`
		Reason   string             `json:"reason"`
		Detail   string             `json:"detail"`
	}
	all := make(map[string]told, len(verdicts))
	for _, v := range verdicts {
		t := told{State: v.State, Reason: v.Reason, Detail: v.Detail}
		if v.Movement != (movement.ID{}) {
			t.Movement = v.Movement.String()
		}
		all[v.Payment], payments = t, append(payments, v.Payment)
	}
	document, err = json.Marshal(all)
	return payments, document, err
}

func duplicate(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == uniqueViolation
}

const uniqueViolation = "23505"

// Settled notes that matched payments have done to their collections what they
// mean. One of which the reports have told more meanwhile stays open.
func (s *Store) CloseLines(ctx context.Context, account movement.AccountID, done []movement.StatementLine) error {
	if len(done) == 0 {
		return nil
	}
	p, seen := dbsqlc.CloseSettlementsParams{AccountID: uuid.UUID(account)}, make(map[string]string, len(done))
	for _, d := range done {
		p.Payments, seen[d.Payment] = append(p.Payments, d.Payment), standing(d)
	}
	slices.Sort(p.Payments) // in one order everywhere, since many looks at an account close the same ones
	var err error
	if p.Seen, err = json.Marshal(seen); err != nil {
		return fmt.Errorf("store: settled: %w", err)
	}
	for {
		_, err := s.queries.CloseSettlements(ctx, p)
		switch {
		case err == nil:
			return nil
		case !conflicting(err) || ctx.Err() != nil:
			return fmt.Errorf("store: settled: %w", err)
		}
	}
}

// standing is how a payment stands in the books, in the words of the statement that
// closes it.
func standing(s movement.StatementLine) string {
	words := s.Movement.String() + " stays"
	if !s.ReversedAt.IsZero() {
		words = s.Movement.String() + " reversed"
	}
	if s.Differs {
		words += ", differs"
	}
	return words
}

// Assign gives a payment to a collection by an operator's word. It is false where
// the payment no longer stands as the caller saw it, or the collection is paid by
// another.
func (s *Store) Assign(ctx context.Context, now time.Time, seen movement.StatementLine, to movement.ID, operator, reason string) (bool, error) {
	told, err := json.Marshal(map[string]string{"operator": operator, "payment": seen.Payment, "to": to.String(), "reason": reason})
	if err != nil {
		return false, fmt.Errorf("store: assign: %w", err)
	}
	p := dbsqlc.AssignSettlementParams{
		AccountID: uuid.UUID(seen.Account), Payment: seen.Payment, FromState: string(seen.State),
		MovementID: uuid.UUID(to), Operator: operator, Reason: reason, Now: micro(now), Detail: string(told),
	}
	if seen.Movement != (movement.ID{}) {
		p.FromMovement = new(uuid.UUID(seen.Movement))
	}
	_, err = s.queries.AssignSettlement(ctx, p)
	if duplicate(err) {
		return false, nil
	}
	return recorded("assign", err)
}

// ListSettlements reads a merchant's payments that wait for an operator, the
// newest first.
func (s *Store) ListLines(ctx context.Context, merchant string, most int) ([]movement.ListedLine, error) {
	rows, err := s.queries.ListSettlements(ctx, dbsqlc.ListSettlementsParams{MerchantID: merchant, Most: int32(most)}) //nolint:gosec // a page
	if err != nil {
		return nil, fmt.Errorf("store: settlements: %w", err)
	}
	listed := make([]movement.ListedLine, len(rows))
	for i, row := range rows {
		listed[i] = movement.ListedLine{
			StatementLine: movement.StatementLine{
				ImportedLine: movement.ImportedLine{
					Payment: row.Payment, ID: row.EntryID, Amount: money.Amount(row.Amount), Currency: row.Currency, At: row.At.UTC(),
					Paid: true, Data: row.Data,
				},
				Account: movement.AccountID(row.AccountID), State: movement.LineState(row.State),
			},
			Owner: movement.Owner{MerchantID: row.MerchantID, Mode: row.Mode}, Provider: row.Provider,
		}
	}
	return listed, nil
}
