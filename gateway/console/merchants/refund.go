package merchants

import (
	"strings"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// askRefund is the form by which a payment is given back. Its refund_id is drawn with it,
// so that what is sent twice is one refund.
func (c *Console) askRefund(r *room) error {
	m, err := c.ownPayment(r)
	if err != nil {
		return err
	}
	left, err := c.deps.Refundable(r.Request.Context(), m)
	if err != nil {
		return err
	}
	if left == 0 {
		return fault.New(fault.ProviderRejected, r.T("There is nothing to give back, or the provider of this payment takes no refunds from here."))
	}
	return r.Show("refund.html", r.T("Refund"), map[string]any{
		"Room": r, "M": m, "Name": nameOf(&m), "Paid": m.Paid(), "Left": left, "RefundID": "console-" + uuid.NewString(),
	})
}

// refund gives a payment back.
func (c *Console) refund(r *room) error {
	m, err := c.ownPayment(r)
	if err != nil {
		return err
	}
	amount, err := money.Parse(strings.TrimSpace(r.Form("amount")))
	if err != nil {
		return fault.Invalid("amount", "must be whole rupiah, in digits alone")
	}
	_, err = adminapi.RefundPayment.Call(r.Request.Context(), r.admin, adminapi.NewRefund{
		Movement: m.ID.String(), RefundID: r.Form("refund_id"), Amount: &amount, Reason: r.Form("reason"),
	})
	if err != nil {
		return err
	}
	return r.Go(r.Path("/movements/"+m.ID.String()), "The refund is ordered. The list of refunds tells how it stands.")
}

func (c *Console) ownPayment(r *room) (movement.Movement, error) {
	id, err := movement.ParseID(r.Request.PathValue("movement"))
	if err != nil {
		return movement.Movement{}, tenants.ErrNotFound
	}
	return c.own(r, id)
}
