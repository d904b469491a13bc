package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// Claim writes an operator's claim on money, and returns the claim that then stands: made
// alone where it fits into what its operator may claim alone, else waiting for another
// operator, whose same claim confirms it. What is made stays.
func (s *Store) Claim(ctx context.Context, c movement.Claim) (movement.Claim, error) {
	if err := c.Check(); err != nil {
		return movement.Claim{}, fmt.Errorf("store: claim: %w", err)
	}
	c.At = micro(c.At)
	var stands movement.Claim
	err := s.within(ctx, serializable, func(tx pgx.Tx) error {
		q := dbsqlc.New(tx)
		row, err := q.Claim(ctx, dbsqlc.ClaimParams{MerchantID: c.Owner.MerchantID, Mode: c.Owner.Mode, Subject: c.Subject})
		before := claimFromRow(row)
		switch {
		case err != nil && !errors.Is(err, pgx.ErrNoRows):
			return err
		case err == nil && before.Made():
			stands = before
			return nil
		case err == nil && before.Operator != c.Operator && before.Amount == c.Amount:
			stands, stands.ConfirmedBy, stands.ConfirmedAt = before, c.Operator, c.At
			return s.confirmClaim(ctx, tx, c)
		}
		stands = c
		stands.AloneUpTo = 0
		if stands.Alone, err = claimAlone(ctx, tx, c); err != nil || stands.Alone {
			return err
		}
		if err := writeClaim(ctx, tx, roomForAny, stands, 0); err != nil {
			return err
		}
		return s.auditClaim(ctx, tx, c, "claim.propose")
	})
	return stands, wrap("claim", err)
}

// claimAlone writes a claim that its operator makes alone. It is false, and nothing was
// written, where that would be more than an operator may claim alone. Every claim of an
// operator on a merchant changes the one row that counts them, so of two at once one sees
// the other.
func claimAlone(ctx context.Context, tx pgx.Tx, c movement.Claim) (bool, error) {
	q := dbsqlc.New(tx)
	alone, err := q.ClaimedAlone(ctx, dbsqlc.ClaimedAloneParams{
		Operator: c.Operator, MerchantID: c.Owner.MerchantID, Mode: c.Owner.Mode, Since: c.At.Add(-aloneWithin),
	})
	if err != nil || !c.Fits(money.Amount(alone.Amount)) {
		return false, err
	}
	c.Alone = true
	return true, writeClaim(ctx, tx, roomForAlone, c, alone.Times)
}

func writeClaim(ctx context.Context, tx pgx.Tx, room parts, c movement.Claim, aloneBefore int64) error {
	var subject string
	return notFound(only(ctx, tx, room|putClaim, &write{
		owner: c.Owner, subject: c.Subject, id: uuid.UUID(c.Movement), operator: c.Operator, amount: c.Amount, reason: c.Reason, now: micro(c.At),
		claim: &c, aloneBefore: aloneBefore,
	}, &subject))
}

func (s *Store) confirmClaim(ctx context.Context, tx pgx.Tx, c movement.Claim) error {
	err := found(dbsqlc.New(tx).ConfirmClaim(ctx, dbsqlc.ConfirmClaimParams{
		MerchantID: c.Owner.MerchantID, Mode: c.Owner.Mode, Subject: c.Subject, Operator: c.Operator, At: micro(c.At), Amount: int64(c.Amount),
	}))
	if err != nil {
		return err
	}
	return s.auditClaim(ctx, tx, c, "claim.confirm")
}

func (s *Store) auditClaim(ctx context.Context, tx pgx.Tx, c movement.Claim, action string) error {
	return audited(ctx, tx, s.auditing(ctx, Audit{
		Operator: c.Operator, Action: action, At: c.At, Detail: fmt.Sprintf("%s of %s, mode %s: %s", c.Subject, c.Amount.Format(), c.Owner.Mode, c.Reason),
	}, c.Owner))
}

// WaitingClaims lists the assignments that wait for another operator, the newest first.
func (s *Store) WaitingClaims(ctx context.Context, most int) ([]movement.Claim, error) {
	rows, err := s.queries.WaitingClaims(ctx, int32(most)) //nolint:gosec // a page
	list := make([]movement.Claim, len(rows))
	for i, row := range rows {
		list[i] = claimFromRow(dbsqlc.Claim{
			MerchantID: row.MerchantID, Mode: row.Mode, Subject: row.Subject, MovementID: row.MovementID, Payment: row.Payment,
			Operator: row.Operator, Amount: row.Amount, Reason: row.Reason, At: row.At,
		})
	}
	return list, wrap("waiting claims", err)
}

func claimFromRow(row dbsqlc.Claim) movement.Claim {
	c := movement.Claim{
		Owner: movement.Owner{MerchantID: row.MerchantID, Mode: row.Mode}, Subject: row.Subject, Movement: movement.ID(row.MovementID), Payment: row.Payment,
		Operator: row.Operator, Amount: money.Amount(row.Amount), Reason: row.Reason, At: row.At.UTC(), Alone: row.Alone, ConfirmedAt: orZero(row.ConfirmedAt),
	}
	if row.ConfirmedBy != nil {
		c.ConfirmedBy = *row.ConfirmedBy
	}
	return c
}
