package console

import (
	"errors"
	"fmt"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/kind"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// refundPayment gives a payment back, by an operator's word or by that of one of its
// merchant's people. The audit has it before anything is sent.
func (c *Console) refundPayment(x *call, wanted adminapi.NewRefund) (adminapi.Refunded, error) {
	id, _, ok := ourName(wanted.Movement)
	switch {
	case !ok:
		return adminapi.Refunded{}, fault.New(fault.NotFound, "There is no such payment: refund names one by its id or upstream reference.")
	case !plain(wanted.Reason, 1, maxReason): // the operation's schema asks for less; this is what the audit takes
		return adminapi.Refunded{}, fault.Invalid("reason", fmt.Sprintf("must have 1 to %d characters, without control characters", maxReason))
	case !plain(wanted.RefundID, 1, maxAnyID):
		return adminapi.Refunded{}, fault.Invalid("refund_id", fmt.Sprintf("must have 1 to %d characters, without control characters", maxAnyID))
	case wanted.Amount != nil && *wanted.Amount < 1:
		return adminapi.Refunded{}, fault.Invalid("amount", "must be 1 rupiah at least, or left out for all that is left")
	}
	m, err := c.deps.Movements.MovementByID(x.request.Context(), id)
	if errors.Is(err, store.ErrNotFound) || err == nil && x.operator.Of != "" && m.Owner.MerchantID != string(x.operator.Of) {
		return adminapi.Refunded{}, fault.New(fault.NotFound, "There is no such payment.")
	}
	if err != nil {
		return adminapi.Refunded{}, err
	}
	amount := "all that is left"
	if wanted.Amount != nil {
		amount = wanted.Amount.Format()
	}
	audit := x.audit("payment.refund", wanted.RefundID+" of "+m.ID.String()+", mode "+m.Owner.Mode+", "+amount+": "+wanted.Reason)
	if err := c.deps.Merchants.NoteAudit(x.request.Context(), audit, tenants.MerchantID(m.Owner.MerchantID)); err != nil {
		return adminapi.Refunded{}, err
	}
	order := kind.RefundOrder{Payment: m.ID, RefundID: wanted.RefundID, Reason: wanted.Reason, RequestID: x.id, AloneUpTo: c.access.Load().ApprovalAbove}
	if wanted.Amount != nil {
		order.Amount = *wanted.Amount
	}
	if x.operator.Of == "" {
		order.Operator = x.operator.Name
	}
	done, err := c.deps.Refund(x.request.Context(), order)
	if err != nil {
		return adminapi.Refunded{}, err
	}
	return adminapi.Refunded{RefundID: wanted.RefundID, Answer: done.Data, Waiting: done.Waiting}, nil
}
