package console

import (
	"context"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/engine"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// Settlements reads the payments that wait for an operator, the newest first, and
// whose an account is, which is nobody's (store.ErrNotFound) until its first sale.
type Settlements interface {
	Statement(ctx context.Context, account movement.AccountID) (movement.Statement, error)
	ListLines(ctx context.Context, merchant string, most int) ([]movement.ListedLine, error)
}

// Assigner gives a payment to a collection by an operator's word. Its error is a
// *fault.Error.
type Assigner interface {
	Assign(ctx context.Context, a engine.Assignment) (movement.Movement, error)
}

func (c *Console) listSettlements(x *call) (any, error) {
	most, err := pageSize(x.request.URL.Query().Get("limit"))
	if err != nil {
		return nil, err
	}
	account, err := c.account(x)
	if err != nil {
		return nil, err
	}
	waiting, err := c.deps.Settlements.ListLines(x.request.Context(), string(account.ID()), most)
	if err != nil {
		return nil, err
	}
	list := make([]adminapi.StatementLine, len(waiting))
	for i, s := range waiting {
		list[i] = adminapi.StatementLine{
			Mode: s.Owner.Mode, Provider: s.Provider, Payment: s.Payment, State: string(s.State), Amount: adminapi.Rupiah(s.Amount),
			Currency: s.Currency, At: s.At, Row: s.ID, Data: s.Data,
		}
	}
	return list, nil
}

// assignSettlement names the account by the movement: a payment pays nothing on
// another one.
func (c *Console) assignSettlement(x *call) (any, error) {
	var order adminapi.NewAssignment
	if err := decode(x, &order); err != nil {
		return nil, err
	}
	if !plain(order.Reason, 1, maxReason) {
		return nil, fault.Invalid("reason", "must say in 1 to 500 characters, without control characters, why")
	}
	if !plain(order.Payment, 1, maxReason) {
		return nil, fault.Invalid("payment", "is required")
	}
	m, err := c.movementNamed(x, x.request.PathValue("movement"))
	if err != nil {
		return nil, err
	}
	if err := c.note(x, "settlement.assign", m.Owner, "payment "+order.Payment+" to movement "+m.ID.String()+": "+order.Reason); err != nil {
		return nil, err
	}
	now, err := c.deps.Assigner.Assign(x.request.Context(), engine.Assignment{
		Account: movement.NewAccountID(m.Provider, m.Owner.Mode, m.ConnectionAccount), Payment: order.Payment, Movement: m.ID,
		Operator: x.operator, Reason: order.Reason,
	})
	if err != nil {
		return nil, err
	}
	return adminapi.Assigned{Movement: m.ID.String(), Payment: order.Payment, State: string(now.State)}, nil
}
