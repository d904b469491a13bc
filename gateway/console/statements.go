package console

import (
	"cmp"
	"strings"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/reconcile"
)

func (c *Console) listStatementLines(x *call, wanted adminapi.LineFilter) ([]adminapi.StatementLine, error) {
	account, err := c.account(x)
	if err != nil {
		return nil, err
	}
	r := movement.LineRange{MerchantID: string(account.ID()), Until: wanted.Until, Most: cmp.Or(wanted.Limit, defaultPage)}
	if wanted.After != "" {
		id, payment, _ := strings.Cut(wanted.After, "/")
		of, err := uuid.Parse(id)
		if err != nil || payment == "" || r.Until.IsZero() {
			return nil, fault.Invalid("after", "must be the id of the last one of a page, with its time as until")
		}
		r.Account, r.Payment = movement.AccountID(of), payment
	}
	lines, err := c.deps.Statements.ListLines(x.request.Context(), r)
	if err != nil {
		return nil, err
	}
	list := make([]adminapi.StatementLine, len(lines))
	for i, l := range lines {
		list[i] = adminapi.StatementLine{
			ID: l.Account.String() + "/" + l.Payment, Mode: l.Owner.Mode, Provider: l.Provider, Payment: l.Payment, State: string(l.State), Amount: adminapi.Rupiah(l.Amount),
			Currency: l.Currency, At: l.At, Row: l.ID, Data: l.Data,
		}
	}
	return list, nil
}

// assignStatementLine takes the account from the movement: a line of another account
// can't pay it.
func (c *Console) assignStatementLine(x *call, wanted adminapi.NewAssignment) (adminapi.Assigned, error) {
	if !plain(wanted.Reason, 1, maxReason) {
		return adminapi.Assigned{}, fault.Invalid("reason", "must say in 1 to 500 characters, without control characters, why")
	}
	if !plain(wanted.Payment, 1, maxReason) {
		return adminapi.Assigned{}, fault.Invalid("payment", "is required")
	}
	m, err := c.movementNamed(x, wanted.Movement)
	if err != nil {
		return adminapi.Assigned{}, err
	}
	assigned, err := c.deps.Assign(x.request.Context(), reconcile.Assignment{
		Account: movement.NewAccountID(m.Provider, m.Owner.Mode, m.ConnectionAccount), Payment: wanted.Payment, Movement: m.ID,
		Operator: x.operator.Name, Reason: wanted.Reason, AloneUpTo: c.access.Load().ApprovalAbove,
	})
	if err != nil {
		return adminapi.Assigned{}, err
	}
	return adminapi.Assigned{Movement: m.ID.String(), Payment: wanted.Payment, State: string(assigned.State), Waiting: assigned.Waiting}, nil
}
