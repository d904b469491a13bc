package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
)

// reservedWithin is how soon a sale is committed once it has read when its account's
// statement is due.
const reservedWithin = 2 * time.Second

// reserveAmount reserves a movement with an amount that no other open one of its
// account has: its amount and a small code, or a larger code where all small ones are
// taken. It is pgx.ErrNoRows where those are taken, too.
func (s *Store) reserveAmount(ctx context.Context, m *movement.Movement, w *write) error {
	for _, codes := range [][2]int64{{1, movement.SmallCodes}, {movement.SmallCodes + 1, movement.MostCodes}} {
		if err := s.draw(ctx, m, w, codes[0], codes[1]); !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
	}
	return pgx.ErrNoRows
}

// draw runs the statement with the codes of a range in random order, by which it takes
// one of those that are equally long unused, until no other reservation has taken the
// one that seemed free.
func (s *Store) draw(ctx context.Context, m *movement.Movement, w *write, least, most int64) error {
	for {
		w.drawn = drawnAmounts{}
		for place, code := range rand.Perm(int(most - least + 1)) { //nolint:gosec // no secret: it keeps equal sales apart
			w.drawn.amounts = append(w.drawn.amounts, int64(w.amount)+least+int64(code))
			w.drawn.places = append(w.drawn.places, int32(place))
		}
		err := s.take(ctx, m, roomForAmount|openStatement|takeAmount, w)
		if (violates(err, "reserved_amounts_free") || conflicting(err)) && ctx.Err() == nil {
			continue // another has taken it at this very moment
		}
		if ownerless(err) {
			return movement.ErrForeignAccount
		}
		return err
	}
}

// noAmount finds out why no amount was reserved although the reference is free.
func (s *Store) noAmount(ctx context.Context, m movement.Movement) error {
	next, err := s.queries.NextFreeAmount(ctx, dbsqlc.NextFreeAmountParams{
		AccountID: uuid.UUID(m.Reserved.Account), Least: int64(m.Amount) + 1, Most: int64(m.Amount) + movement.MostCodes, Now: m.CreatedAt,
	})
	switch {
	case err != nil:
		return fmt.Errorf("store: reserve: %w", err)
	case next.MerchantID != m.Owner.MerchantID:
		return movement.ErrForeignAccount
	}
	return &movement.NoAmountError{FreeAt: next.FreeAt.UTC()}
}

// ReleaseAmount frees the amount of a movement of which no payer has read. It changes
// nothing where the amount was reserved again since.
func (s *Store) ReleaseAmount(ctx context.Context, m movement.Movement) error {
	err := s.queries.ReleaseAmount(ctx, dbsqlc.ReleaseAmountParams{
		AccountID: uuid.UUID(m.Account()), Amount: int64(m.Amount), MovementID: uuid.UUID(m.ID), TakenAt: micro(m.CreatedAt),
	})
	if err != nil {
		return fmt.Errorf("store: release amount: %w", err)
	}
	return nil
}
