package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
)

// Statement reads how far an account's statement was read, or ErrNotFound where no
// amount was ever reserved on the account.
func (s *Store) Statement(ctx context.Context, account movement.AccountID) (movement.Statement, error) {
	row, err := s.queries.StatementOf(ctx, uuid.UUID(account))
	if errors.Is(err, pgx.ErrNoRows) {
		return movement.Statement{}, ErrNotFound
	}
	if err != nil {
		return movement.Statement{}, fmt.Errorf("store: statement: %w", err)
	}
	return movement.Statement{
		Account: account, MerchantID: row.MerchantID, Mode: row.Mode, Provider: row.Provider, Cursor: row.Cursor, Through: row.Through.UTC(),
	}, nil
}

// PollStatement takes the right to read an account's statement, if nobody has read it
// since before. A poll at a time that no right clock can show yet does not count.
func (s *Store) PollStatement(ctx context.Context, account movement.AccountID, now, before time.Time) (bool, error) {
	_, err := s.queries.PollStatement(ctx, dbsqlc.PollStatementParams{
		AccountID: uuid.UUID(account), Now: optional(now), Before: optional(before), Ahead: new(tooFar(now)),
	})
	return recorded("poll statement", err)
}

// UnreadStatements reads accounts whose statement nobody has read since before, as
// PollStatement has it, in the order of their ids after one. Of each it tells only
// whose it is.
func (s *Store) UnreadStatements(ctx context.Context, after movement.AccountID, now, before time.Time, most int) ([]movement.Statement, error) {
	rows, err := s.queries.UnreadStatements(ctx, dbsqlc.UnreadStatementsParams{
		After: uuid.UUID(after), Before: optional(before), Ahead: new(tooFar(now)), Most: int32(most), //nolint:gosec // a page
	})
	if err != nil {
		return nil, fmt.Errorf("store: unread statements: %w", err)
	}
	unread := make([]movement.Statement, len(rows))
	for i, row := range rows {
		unread[i] = movement.Statement{Account: movement.AccountID(row.AccountID), MerchantID: row.MerchantID, Mode: row.Mode, Provider: row.Provider}
	}
	return unread, nil
}

// Import stores the lines that were read from a statement's cursor, and moves the
// cursor on, in one commit. It is false, and nothing was stored, where another has
// read from that cursor already. Each payment may be in the lines once.
func (s *Store) Import(ctx context.Context, now time.Time, b movement.Statement, lines []movement.ImportedLine, next string, through time.Time) (bool, error) {
	p := dbsqlc.ImportLinesParams{
		AccountID: uuid.UUID(b.Account), Cursor: b.Cursor, Next: next, Through: micro(through), Now: micro(now),
		Payments: []string{}, LineIds: []string{}, Amounts: []int64{}, Currencies: []string{}, Ats: []time.Time{}, Paids: []bool{},
		Reverseds: []bool{}, ReversedAts: []time.Time{}, Differents: []bool{}, Datas: []string{},
	}
	for _, l := range lines {
		p.Payments, p.LineIds, p.Amounts = append(p.Payments, l.Payment), append(p.LineIds, l.ID), append(p.Amounts, int64(l.Amount))
		p.Currencies, p.Ats, p.Paids = append(p.Currencies, l.Currency), append(p.Ats, micro(l.At)), append(p.Paids, l.Paid)
		p.Reverseds, p.ReversedAts = append(p.Reverseds, !l.ReversedAt.IsZero()), append(p.ReversedAts, micro(l.ReversedAt))
		p.Differents, p.Datas = append(p.Differents, l.Differs), append(p.Datas, l.Data)
	}
	_, err := s.queries.ImportLines(ctx, p)
	return recorded("import", err)
}
