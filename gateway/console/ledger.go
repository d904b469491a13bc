package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Adjustments credits and debits balances by hand. Each change is committed with
// its audit entry. The errors are store.ErrAdjusted, ErrSameOperator,
// ErrInsufficient and ErrNotFound.
type Adjustments interface {
	Adjust(ctx context.Context, audit store.Audit, a store.Adjustment, limit money.Amount) (store.Adjustment, error)
	DecideAdjustment(ctx context.Context, audit store.Audit, owner movement.Owner, reference string, approve bool) (store.Adjustment, error)
	Adjustments(ctx context.Context, state store.AdjustmentState, most int) ([]store.Adjustment, error)
}

// Books reads what the ledger says.
type Books interface {
	Balance(ctx context.Context, owner movement.Owner) (ledger.Balance, error)
	BalanceAt(ctx context.Context, owner movement.Owner, at time.Time) (ledger.Balance, error)
	PlatformAt(ctx context.Context, mode string, at time.Time) ([]store.PlatformBalance, error)
	AccountStatement(ctx context.Context, owner movement.Owner, from, to time.Time, after *store.Entry, most int) ([]store.Entry, error)
}

// Proof checks the ledger's invariants over the whole database.
type Proof interface {
	CheckLedger(ctx context.Context) (store.LedgerReport, error)
}

// DefaultApprovalAbove is the amount above which a credit or debit waits for a
// second operator, unless the configuration says another.
const DefaultApprovalAbove money.Amount = 100_000_000

// maxReference is the length of what names a credit or debit, in characters.
const maxReference = 100

func (c *Console) credit(x *call) (any, error) { return c.adjust(x, ledger.Credit) }

func (c *Console) debit(x *call) (any, error) { return c.adjust(x, ledger.Debit) }

func (c *Console) adjust(x *call, kind ledger.Kind) (any, error) {
	var wanted adminapi.NewAdjustment
	if err := decode(x, &wanted); err != nil {
		return nil, err
	}
	a, err := checkAdjustment(x.merchant(), wanted)
	if err != nil {
		return nil, err
	}
	detail := fmt.Sprintf("%s, reference %s, mode %s: %s", a.Amount.Format(), a.Reference, a.Owner.Mode, a.Reason)
	if a.Amount > c.config.ApprovalAbove {
		detail = "waits for another operator: " + detail
	}
	if kind == ledger.Debit {
		a.Amount = -a.Amount
	}
	stands, err := c.deps.Adjustments.Adjust(x.request.Context(), x.audit("merchant."+string(kind), detail), a, c.config.ApprovalAbove)
	switch {
	case errors.Is(err, store.ErrAdjusted):
		return nil, fault.New(fault.DuplicateReference, "This reference names another credit or debit of this merchant.",
			fault.Field{Field: "reference", Message: "was used before with another amount or reason"})
	case errors.Is(err, movement.ErrInsufficient):
		return nil, c.tooMuch(x, a.Owner, -a.Amount)
	case err != nil:
		return nil, notFound(err, "merchant")
	}
	out := adjustmentDocument(stands)
	// The store keeps times to the microsecond. What was asked for at another
	// time was there already.
	out.Existed = !stands.RequestedAt.Equal(x.now.Truncate(time.Microsecond))
	return out, nil
}

// checkAdjustment turns what was asked into a credit.
func checkAdjustment(id tenants.MerchantID, wanted adminapi.NewAdjustment) (store.Adjustment, error) {
	mode, err := parseMode(cmp.Or(wanted.Mode, string(tenants.Live)))
	switch {
	case err != nil:
		return store.Adjustment{}, err
	case wanted.Amount < 1:
		return store.Adjustment{}, fault.Invalid("amount", "must be at least 1")
	case !plain(wanted.Reason, 1, maxReason):
		return store.Adjustment{}, fault.Invalid("reason", "must have 1 to 500 characters, without control characters")
	case !plain(wanted.Reference, 1, maxReference):
		return store.Adjustment{}, fault.Invalid("reference", "must have 1 to 100 characters, without control characters")
	}
	return store.Adjustment{
		Owner:     movement.Owner{MerchantID: string(id), Mode: string(mode)},
		Reference: wanted.Reference, Amount: wanted.Amount, Reason: wanted.Reason,
	}, nil
}

// tooMuch refuses a debit and names the balance that is too small for it.
func (c *Console) tooMuch(x *call, owner movement.Owner, debit money.Amount) error {
	balance, err := c.deps.Books.Balance(x.request.Context(), owner)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("The balance is %s, which is less than the debit", balance.Available.Format())
	if debit > 0 {
		text += " of " + debit.Format()
	}
	if balance.Held > 0 {
		text += fmt.Sprintf("; %s more is held for orders under way", balance.Held.Format())
	}
	return fault.New(fault.InsufficientBalance, text+".")
}

func (c *Console) listWaiting(x *call) (any, error) {
	most, err := pageSize(x.request.URL.Query().Get("limit"))
	if err != nil {
		return nil, err
	}
	waiting, err := c.deps.Adjustments.Adjustments(x.request.Context(), store.Waiting, most)
	if err != nil {
		return nil, err
	}
	list := make([]adminapi.Adjustment, len(waiting))
	for i, a := range waiting {
		list[i] = adjustmentDocument(a)
	}
	return list, nil
}

func (c *Console) approve(x *call) (any, error) { return c.decide(x, "ledger.approve", true) }

func (c *Console) reject(x *call) (any, error) { return c.decide(x, "ledger.reject", false) }

func (c *Console) decide(x *call, action string, approve bool) (any, error) {
	var d adminapi.AdjustmentKey
	if err := decode(x, &d); err != nil {
		return nil, err
	}
	mode, err := parseMode(cmp.Or(d.Mode, string(tenants.Live)))
	if err != nil {
		return nil, err
	}
	owner := movement.Owner{MerchantID: d.MerchantID, Mode: string(mode)}
	audit := x.audit(action, fmt.Sprintf("reference %s, mode %s", d.Reference, mode))
	stands, err := c.deps.Adjustments.DecideAdjustment(x.request.Context(), audit, owner, d.Reference, approve)
	switch {
	case errors.Is(err, store.ErrSameOperator):
		return nil, fault.New(fault.ScopeMissing, "Another operator than "+x.operator+" must decide it: "+x.operator+" asked for it.")
	case errors.Is(err, store.ErrAdjusted):
		return nil, fault.New(fault.DuplicateReference, "It does not wait any more: it was posted or rejected before.")
	case errors.Is(err, movement.ErrInsufficient):
		return nil, c.tooMuch(x, owner, 0)
	case err != nil:
		return nil, notFound(err, "credit or debit")
	}
	return adjustmentDocument(stands), nil
}

func (c *Console) checkLedger(x *call) (any, error) {
	report, err := c.deps.Proof.CheckLedger(x.request.Context())
	if err != nil {
		return nil, err
	}
	out := adminapi.LedgerCheck{OK: report.Clean(), Invariants: make([]adminapi.Invariant, len(report))}
	for i, check := range report {
		found := adminapi.Invariant{Invariant: check.Invariant, Checked: check.Checked, OK: len(check.Offences) == 0, Offences: []adminapi.Offence{}}
		for _, o := range check.Offences {
			found.Offences = append(found.Offences, adminapi.Offence{
				MerchantID: o.Owner.MerchantID, Mode: o.Owner.Mode, Subject: o.Subject, Detail: o.Detail,
			})
		}
		out.Invariants[i] = found
	}
	return out, nil
}

func adjustmentDocument(a store.Adjustment) adminapi.Adjustment {
	out := adminapi.Adjustment{
		MerchantID: a.Owner.MerchantID, Mode: a.Owner.Mode, Reference: a.Reference, Kind: string(ledger.Credit), Amount: a.Amount,
		Reason: a.Reason, State: string(a.State), RequestedBy: a.RequestedBy, RequestedAt: a.RequestedAt,
		DecidedBy: a.DecidedBy, DecidedAt: given(a.DecidedAt),
	}
	if a.Amount < 0 {
		out.Kind, out.Amount = string(ledger.Debit), -a.Amount
	}
	return out
}
