package console

import (
	"cmp"
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

// DefaultApprovalAbove is the sum above which operators' claims on money wait for a second
// operator, unless the configuration says another.
const DefaultApprovalAbove = movement.ApprovalAbove

// maxReference is the length of what names a credit or debit, in characters.
const maxReference = 100

func (c *Console) credit(x *call, wanted adminapi.NewAdjustment) (out adminapi.Adjustment, err error) {
	return c.adjust(x, ledger.Credit, wanted)
}

func (c *Console) debit(x *call, wanted adminapi.NewAdjustment) (out adminapi.Adjustment, err error) {
	return c.adjust(x, ledger.Debit, wanted)
}

func (c *Console) adjust(x *call, kind ledger.Kind, wanted adminapi.NewAdjustment) (out adminapi.Adjustment, err error) {
	a, err := checkAdjustment(x.merchant(), wanted)
	if err != nil {
		return out, err
	}
	detail := fmt.Sprintf("%s, reference %s, mode %s: %s", a.Amount.Format(), a.Reference, a.Owner.Mode, a.Reason)
	if kind == ledger.Debit {
		a.Amount = -a.Amount
	}
	stands, err := c.deps.Ledger.Adjust(x.request.Context(), x.audit("merchant."+string(kind), detail), a, c.access.Load().ApprovalAbove)
	switch {
	case errors.Is(err, store.ErrAdjusted):
		return out, fault.New(fault.DuplicateReference, "This reference names another credit or debit of this merchant.",
			fault.Field{Field: "reference", Message: "was used before with another amount or reason"})
	case errors.Is(err, movement.ErrInsufficient):
		return out, c.tooMuch(x, a.Owner, -a.Amount)
	case err != nil:
		return out, notFound(err, "merchant")
	}
	out = adjustmentDocument(stands)
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
	balance, err := c.deps.Ledger.Balance(x.request.Context(), owner)
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

func (c *Console) listWaiting(x *call, wanted adminapi.AdjustmentFilter) ([]adminapi.Adjustment, error) {
	waiting, err := c.deps.Ledger.Adjustments(x.request.Context(), store.Waiting, cmp.Or(wanted.Limit, defaultPage))
	if err != nil {
		return nil, err
	}
	list := make([]adminapi.Adjustment, len(waiting))
	for i, a := range waiting {
		list[i] = adjustmentDocument(a)
	}
	return list, nil
}

func (c *Console) approve(x *call, key adminapi.AdjustmentKey) (out adminapi.Adjustment, err error) {
	return c.decide(x, "ledger.approve", true, key)
}

func (c *Console) reject(x *call, key adminapi.AdjustmentKey) (out adminapi.Adjustment, err error) {
	return c.decide(x, "ledger.reject", false, key)
}

func (c *Console) decide(x *call, action string, approve bool, key adminapi.AdjustmentKey) (out adminapi.Adjustment, err error) {
	mode, err := parseMode(cmp.Or(key.Mode, string(tenants.Live)))
	if err != nil {
		return out, err
	}
	owner := movement.Owner{MerchantID: key.MerchantID, Mode: string(mode)}
	audit := x.audit(action, fmt.Sprintf("reference %s, mode %s", key.Reference, mode))
	stands, err := c.deps.Ledger.DecideAdjustment(x.request.Context(), audit, owner, key.Reference, approve)
	switch {
	case errors.Is(err, store.ErrSameOperator):
		return out, fault.New(fault.ScopeMissing, "Another operator than "+x.operator.Name+" must decide it: "+x.operator.Name+" asked for it.")
	case errors.Is(err, store.ErrAdjusted):
		return out, fault.New(fault.DuplicateReference, "It does not wait any more: it was posted or rejected before.")
	case errors.Is(err, movement.ErrInsufficient):
		return out, c.tooMuch(x, owner, 0)
	case err != nil:
		return out, notFound(err, "credit or debit")
	}
	return adjustmentDocument(stands), nil
}

func (c *Console) checkLedger(x *call, wanted adminapi.LedgerScope) (out adminapi.LedgerCheck, err error) {
	report, err := c.deps.Ledger.CheckLedger(x.request.Context(), store.LedgerScope{Full: wanted.Full})
	if err != nil {
		return out, err
	}
	c.deps.Metrics.observeLedger(x.now, wanted.Full, report)
	return LedgerDocument(report), nil
}

// LedgerDocument is what operators are told of a check.
func LedgerDocument(report store.LedgerReport) adminapi.LedgerCheck {
	out := adminapi.LedgerCheck{
		OK: report.Clean(), Accounts: report.Accounts, SinceVerified: report.Since, VerifiedUntil: given(report.Earliest),
		Invariants: make([]adminapi.Invariant, len(report.Invariants)),
	}
	for i, check := range report.Invariants {
		found := adminapi.Invariant{Invariant: check.Invariant, Checked: check.Checked, OK: len(check.Offences) == 0, Offences: []adminapi.Offence{}}
		for _, o := range check.Offences {
			found.Offences = append(found.Offences, adminapi.Offence{
				MerchantID: o.Owner.MerchantID, Mode: o.Owner.Mode, Subject: o.Subject, Detail: o.Detail,
			})
		}
		out.Invariants[i] = found
	}
	return out
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
