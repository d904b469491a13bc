package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// AdjustmentState is where an adjustment stands.
type AdjustmentState string

// The states of an adjustment. Posted and Rejected are final.
const (
	Posted   AdjustmentState = "posted"
	Waiting  AdjustmentState = "waiting" // for another operator
	Rejected AdjustmentState = "rejected"
)

var (
	// ErrAdjusted says that a reference names another adjustment, or one that was
	// decided otherwise.
	ErrAdjusted = errors.New("store: the reference names another adjustment, or it is decided")
	// ErrSameOperator says that an adjustment wants another operator than the one
	// who requested it.
	ErrSameOperator = errors.New("store: another operator must decide it")
)

// Adjustment is an operator's credit, or with a negative amount debit, of a
// merchant's balance. Owner and reference are its name.
type Adjustment struct {
	Owner       movement.Owner
	Reference   string
	ID          uuid.UUID    // the subject of its transaction
	Amount      money.Amount // negative: a debit
	Reason      string
	State       AdjustmentState
	RequestedBy string
	RequestedAt time.Time
	DecidedBy   string // "" where no second operator was needed, or none has decided yet
	DecidedAt   time.Time
}

// aloneWithin is the time over which is summed what an operator claims alone.
const aloneWithin = 24 * time.Hour

// Adjust credits or debits a merchant's balance, in the name and at the time of
// the audit entry; of the adjustment the owner, reference, amount and reason
// count. It only waits for another operator where the limit would be passed by it and
// what its operator has claimed of the merchant alone in the 24 hours before: credits,
// debits, overrides and assignments summed. The same again is what stands; ErrAdjusted where the reference
// names another amount or reason, ErrInsufficient where a debit exceeds what is
// available, ErrNotFound where there is no such merchant, ErrInvalid where it says
// nothing that can be done.
func (s *Store) Adjust(ctx context.Context, audit Audit, a Adjustment, limit money.Amount) (Adjustment, error) {
	if err := checkAdjustment(audit, a); err != nil {
		return Adjustment{}, err
	}
	if err := s.queries.OpenBalance(ctx, dbsqlc.OpenBalanceParams{MerchantID: a.Owner.MerchantID, Mode: a.Owner.Mode}); err != nil {
		return Adjustment{}, fmt.Errorf("store: adjust: %w", err)
	}
	a.ID = uuid.New()
	for seen := int64(-1); ; {
		alone, err := s.claimedAlone(ctx, audit, a.Owner)
		if err != nil {
			return Adjustment{}, err
		}
		if alone.Times == seen {
			return Adjustment{}, movement.ErrInsufficient
		}
		stands, err := s.adjustSeen(ctx, audit, a, limit, alone)
		if !errors.Is(err, movement.ErrInsufficient) {
			return stands, err
		}
		seen = alone.Times // if more has been posted since, that may be why
	}
}

// claimedAlone is what an operator has claimed alone of a merchant.
func (s *Store) claimedAlone(ctx context.Context, audit Audit, owner movement.Owner) (dbsqlc.ClaimedAloneRow, error) {
	alone, err := s.queries.ClaimedAlone(ctx, dbsqlc.ClaimedAloneParams{
		Operator: audit.Operator, MerchantID: owner.MerchantID, Mode: owner.Mode, Since: audit.At.Add(-aloneWithin),
	})
	if err != nil {
		return dbsqlc.ClaimedAloneRow{}, fmt.Errorf("store: adjust: %w", err)
	}
	return alone, nil
}

// adjustSeen makes an adjustment, if its operator has posted no more than was seen. If
// more, it is ErrInsufficient as well.
func (s *Store) adjustSeen(ctx context.Context, audit Audit, a Adjustment, limit money.Amount, alone dbsqlc.ClaimedAloneRow) (Adjustment, error) {
	head := roomForAlone | putAdjustment
	a.State = Posted
	claim := movement.Claim{Amount: max(a.Amount, -a.Amount), AloneUpTo: limit}
	if !claim.Fits(money.Amount(alone.Amount)) {
		head, a.State = roomForAny|putAdjustment, Waiting
		audit.Detail = "waits for another operator: " + audit.Detail
	}
	// One statement, because a serializable transaction would never get a row that
	// a busy merchant's orders change all the time.
	err := s.adjust(ctx, head, audit, a, alone.Times)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) && !violates(err, "ledger_balances_available") && !ambiguous(err) {
		return Adjustment{}, fmt.Errorf("store: adjust: %w", err)
	}
	stands, readErr := s.adjustment(ctx, a.Owner, a.Reference)
	switch {
	case errors.Is(readErr, ErrNotFound):
		return Adjustment{}, s.unadjusted(ctx, a.Owner, err)
	case readErr != nil:
		return Adjustment{}, fmt.Errorf("store: adjust: %w", errors.Join(err, readErr))
	case stands.Amount != a.Amount || stands.Reason != a.Reason:
		return Adjustment{}, ErrAdjusted
	}
	return stands, nil
}

// adjust writes an adjustment as it stands from now on, with its audit entry, and its
// posting unless it waits or is rejected.
func (s *Store) adjust(ctx context.Context, head parts, audit Audit, a Adjustment, aloneBefore int64) error {
	w := s.auditing(ctx, audit, a.Owner)
	w.aloneBefore = aloneBefore
	w.id, w.reference, w.amount, w.reason, w.to = a.ID, a.Reference, a.Amount, a.Reason, string(a.State)
	head |= writeAudit
	if a.State == Posted {
		w.posted = ledger.Adjust(a.Amount)
		head |= changeBalance | postTransaction
	}
	var id uuid.UUID
	return s.writer.run(ctx, head, w, &id)
}

// checkAdjustment refuses what can't be done, whoever's balance it is.
func checkAdjustment(audit Audit, a Adjustment) error {
	switch _, err := tenants.ParseMode(a.Owner.Mode); {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	case audit.At.IsZero() || audit.Operator == "" || audit.Action == "":
		return fmt.Errorf("%w: an audit entry needs an operator, an action and a time", ErrInvalid)
	case a.Reference == "" || a.Reason == "":
		return fmt.Errorf("%w: an adjustment needs a reference and a reason", ErrInvalid)
	case a.Amount == 0 || a.Amount > money.Max || a.Amount < -money.Max:
		return fmt.Errorf("%w: an adjustment is of 1 to %s rupiah", ErrInvalid, money.Max)
	}
	return nil
}

// unadjusted says why there is no adjustment after all: its commit was cut, the
// merchant is unknown, or its balance too small.
func (s *Store) unadjusted(ctx context.Context, owner movement.Owner, cause error) error {
	if ambiguous(cause) {
		return fmt.Errorf("store: adjust: %w", cause)
	}
	_, err := s.queries.Balance(ctx, dbsqlc.BalanceParams{MerchantID: owner.MerchantID, Mode: owner.Mode})
	if err != nil {
		return fmt.Errorf("store: adjust: %w", notFound(err))
	}
	return movement.ErrInsufficient
}

// adjustment reads one back, also after its commit was cut.
func (s *Store) adjustment(ctx context.Context, owner movement.Owner, reference string) (Adjustment, error) {
	row, err := readBack(ctx, func(ctx context.Context) (dbsqlc.LedgerAdjustment, error) {
		row, err := s.queries.Adjustment(ctx, dbsqlc.AdjustmentParams{MerchantID: owner.MerchantID, Mode: owner.Mode, Reference: reference})
		return row, notFound(err)
	})
	return adjustmentFromRow(row), err
}

// DecideAdjustment approves or rejects an adjustment that waits, once, in the
// name of the audit entry's operator. The same decision of the same operator
// again is what stands. ErrSameOperator where that operator requested it,
// ErrAdjusted where it was decided otherwise, ErrInsufficient where an approved
// debit exceeds what is available: it waits on. ErrNotFound: there is none.
func (s *Store) DecideAdjustment(ctx context.Context, audit Audit, owner movement.Owner, reference string, approve bool) (Adjustment, error) {
	if audit.At.IsZero() || audit.Operator == "" || audit.Action == "" {
		return Adjustment{}, fmt.Errorf("%w: an audit entry needs an operator, an action and a time", ErrInvalid)
	}
	state := Rejected
	if approve {
		state = Posted
	}
	waits, err := s.adjustment(ctx, owner, reference)
	if err != nil {
		return Adjustment{}, fmt.Errorf("store: decide adjustment: %w", err)
	}
	waits.State = state
	err = s.adjust(ctx, decideAdjustment, audit, waits, 0)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) && !violates(err, "ledger_balances_available") && !ambiguous(err) {
		return Adjustment{}, fmt.Errorf("store: decide adjustment: %w", err)
	}
	stands, readErr := s.adjustment(ctx, owner, reference)
	switch {
	case readErr != nil:
		return Adjustment{}, fmt.Errorf("store: decide adjustment: %w", errors.Join(readErr, unclearOf(err)))
	case stands.State == state && stands.DecidedBy == audit.Operator:
		return stands, nil
	case stands.State != Waiting:
		return Adjustment{}, ErrAdjusted
	case stands.RequestedBy == audit.Operator:
		return Adjustment{}, ErrSameOperator
	case ambiguous(err):
		return Adjustment{}, fmt.Errorf("store: decide adjustment: %w", err)
	}
	return Adjustment{}, movement.ErrInsufficient
}

// Adjustments lists operators' adjustments in a state, the newest first; "" is
// any state.
func (s *Store) Adjustments(ctx context.Context, state AdjustmentState, most int) ([]Adjustment, error) {
	rows, err := s.queries.Adjustments(ctx, dbsqlc.AdjustmentsParams{State: string(state), Most: int32(most)}) //nolint:gosec // a page
	if err != nil {
		return nil, fmt.Errorf("store: adjustments: %w", err)
	}
	list := make([]Adjustment, len(rows))
	for i, row := range rows {
		list[i] = adjustmentFromRow(row)
	}
	return list, nil
}

func adjustmentFromRow(row dbsqlc.LedgerAdjustment) Adjustment {
	a := Adjustment{
		Owner: movement.Owner{MerchantID: row.MerchantID, Mode: row.Mode}, Reference: row.Reference, ID: row.ID,
		Amount: money.Amount(row.Amount), Reason: row.Reason, State: AdjustmentState(row.State),
		RequestedBy: row.RequestedBy, RequestedAt: row.RequestedAt.UTC(), DecidedAt: orZero(row.DecidedAt),
	}
	if row.DecidedBy != nil {
		a.DecidedBy = *row.DecidedBy
	}
	return a
}
