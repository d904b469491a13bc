package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
)

// claimCollection claims a collection with an amount that no other open one of its
// account has: what is asked for and a small code, or a larger one where all small
// ones are taken. It is a *NoAmountError where those are taken, too.
//
// Its statements share no commits: two batches that drew the same amounts in
// different orders would wait for each other.
func (s *Store) claimCollection(ctx context.Context, m movement.Movement, p dbsqlc.ClaimMovementParams) (dbsqlc.ClaimCollectionRow, error) {
	for _, codes := range [][2]int64{{1, movement.SmallCodes}, {movement.SmallCodes + 1, movement.MostCodes}} {
		row, err := s.drawn(ctx, m, p, codes[0], codes[1])
		if !errors.Is(err, pgx.ErrNoRows) {
			return row, err
		}
	}
	return dbsqlc.ClaimCollectionRow{}, pgx.ErrNoRows
}

// drawn runs the claim with the codes of a range in random order, until nobody
// else has taken the one that seemed free.
func (s *Store) drawn(ctx context.Context, m movement.Movement, p dbsqlc.ClaimMovementParams, least, most int64) (dbsqlc.ClaimCollectionRow, error) {
	draw := dbsqlc.ClaimCollectionParams{
		AccountID: uuid.UUID(m.Reserved.Account), FreeAt: micro(m.Reserved.FreeAt), ExpiresAt: micro(m.ExpiresAt),
		MerchantID: p.MerchantID, Mode: p.Mode, Kind: p.Kind, Reference: p.Reference,
		ID: p.ID, Attempt: p.Attempt, Operation: p.Operation, Provider: p.Provider, Request: p.Request,
		ConnectionOwner: p.ConnectionOwner, ConnectionVersion: p.ConnectionVersion, ConnectionAccount: p.ConnectionAccount,
		CallbackUrl: p.CallbackUrl, RequestID: p.RequestID, PolicyVersion: p.PolicyVersion, DecisionID: p.DecisionID,
		SendBy: p.SendBy, Now: p.Now, DueBucket: p.DueBucket, DueAt: p.DueAt, Beginning: time.Time{},
	}
	for {
		draw.Amounts, draw.Places = nil, nil
		for place, code := range rand.Perm(int(most - least + 1)) { //nolint:gosec // no secret: it keeps equal sales apart
			draw.Amounts, draw.Places = append(draw.Amounts, p.Amount+least+int64(code)), append(draw.Places, int32(place))
		}
		row, err := s.queries.ClaimCollection(ctx, draw)
		if (violates(err, "collection_slots_free") || conflicting(err)) && ctx.Err() == nil {
			continue // another has taken it at this very moment
		}
		if nobodys(err) {
			return row, movement.ErrForeignAccount
		}
		return row, err
	}
}

// nobodys tells whether a statement would have left an account without an owner:
// that of two merchants who claimed it for the first time at once.
func nobodys(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == "23502" && pgErr.ColumnName == "merchant_id"
}

// uncollected finds out why a collection was not claimed although its reference is
// free.
func (s *Store) uncollected(ctx context.Context, m movement.Movement) error {
	slot, err := s.queries.NextFreeSlot(ctx, dbsqlc.NextFreeSlotParams{
		AccountID: uuid.UUID(m.Reserved.Account), Least: int64(m.Amount) + 1, Most: int64(m.Amount) + movement.MostCodes, Now: m.CreatedAt,
	})
	switch {
	case err != nil:
		return fmt.Errorf("store: claim: %w", err)
	case slot.MerchantID != m.Owner.MerchantID:
		return movement.ErrForeignAccount
	}
	return &movement.NoAmountError{FreeAt: slot.FreeAt.UTC()}
}

// FreeSlot gives back the amount of a collection of which nobody was told. It
// changes nothing where the amount was taken again since.
func (s *Store) ReleaseAmount(ctx context.Context, m movement.Movement) error {
	err := s.queries.FreeSlot(ctx, dbsqlc.FreeSlotParams{
		AccountID: uuid.UUID(m.Reserved.Account), Amount: int64(m.Amount), MovementID: uuid.UUID(m.ID), FreeAt: micro(m.Reserved.FreeAt),
	})
	if err != nil {
		return fmt.Errorf("store: free slot: %w", err)
	}
	return nil
}

// Book reads how far an account's reports were read, or ErrNotFound where nothing
// was ever collected on it.
func (s *Store) Statement(ctx context.Context, account movement.AccountID) (movement.Statement, error) {
	row, err := s.queries.StatementOf(ctx, uuid.UUID(account))
	if errors.Is(err, pgx.ErrNoRows) {
		return movement.Statement{}, ErrNotFound
	}
	if err != nil {
		return movement.Statement{}, fmt.Errorf("store: book: %w", err)
	}
	return movement.Statement{
		Account: account, MerchantID: row.MerchantID, Mode: row.Mode, Provider: row.Provider, Cursor: row.Cursor, Through: row.Through.UTC(),
	}, nil
}

// AskBook takes the right to read an account's reports, if nobody did since
// before. Who did in a future that no right clock tells takes nobody's right away.
func (s *Store) PollStatement(ctx context.Context, account movement.AccountID, now, before time.Time) (bool, error) {
	_, err := s.queries.AskStatement(ctx, dbsqlc.AskStatementParams{
		AccountID: uuid.UUID(account), Now: optional(now), Before: optional(before), Ahead: new(tooFar(now)),
	})
	return recorded("ask book", err)
}

// QuietBooks reads accounts whose reports nobody has read since before, as AskBook
// has it, in the order of their ids after one. Of each it tells whose it is, and no
// more.
func (s *Store) UnreadStatements(ctx context.Context, after movement.AccountID, now, before time.Time, most int) ([]movement.Statement, error) {
	rows, err := s.queries.QuietStatements(ctx, dbsqlc.QuietStatementsParams{
		After: uuid.UUID(after), Before: optional(before), Ahead: new(tooFar(now)), Most: int32(most), //nolint:gosec // a page
	})
	if err != nil {
		return nil, fmt.Errorf("store: quiet books: %w", err)
	}
	books := make([]movement.Statement, len(rows))
	for i, row := range rows {
		books[i] = movement.Statement{Account: movement.AccountID(row.AccountID), MerchantID: row.MerchantID, Mode: row.Mode, Provider: row.Provider}
	}
	return books, nil
}

// Enter enters what was read from a book's cursor, and moves the cursor on, in one
// commit. It is false, and nothing was entered, where somebody else has read from
// that cursor already. Each payment may stand in it once.
func (s *Store) Import(ctx context.Context, now time.Time, b movement.Statement, entries []movement.ImportedLine, next string, through time.Time) (bool, error) {
	p := dbsqlc.EnterStatementParams{
		AccountID: uuid.UUID(b.Account), Cursor: b.Cursor, Next: next, Through: micro(through), Now: micro(now),
		Payments: []string{}, EntryIds: []string{}, Amounts: []int64{}, Currencies: []string{}, Ats: []time.Time{}, Paids: []bool{},
		Reverseds: []bool{}, ReversedAts: []time.Time{}, Differents: []bool{}, Datas: []string{},
	}
	for _, e := range entries {
		p.Payments, p.EntryIds, p.Amounts = append(p.Payments, e.Payment), append(p.EntryIds, e.ID), append(p.Amounts, int64(e.Amount))
		p.Currencies, p.Ats, p.Paids = append(p.Currencies, e.Currency), append(p.Ats, micro(e.At)), append(p.Paids, e.Paid)
		p.Reverseds, p.ReversedAts = append(p.Reverseds, !e.ReversedAt.IsZero()), append(p.ReversedAts, micro(e.ReversedAt))
		p.Differents, p.Datas = append(p.Differents, e.Differs), append(p.Datas, e.Data)
	}
	_, err := s.queries.EnterStatement(ctx, p)
	return recorded("enter", err)
}
