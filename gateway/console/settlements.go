package console

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/reconcile"
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
	Assign(ctx context.Context, a reconcile.Assignment) (movement.Movement, error)
}

// Settlement is a payment that arrived on a merchant's wallet and pays nothing:
// unmatched, where it is for no collection; ambiguous, where it may be for several;
// again, where its collection was paid before.
type Settlement struct {
	Mode     string    `json:"mode"`
	Provider string    `json:"provider"`
	Payment  string    `json:"payment"`
	State    string    `json:"state"`
	Amount   Rupiah    `json:"amount"`
	Currency string    `json:"currency"`
	At       time.Time `json:"at"`
	Row      string    `json:"row"`
	Data     string    `json:"data,omitempty"`
}

// NewAssignment says for which payment an operator answers, and why.
type NewAssignment struct {
	Payment string `json:"payment"`
	Reason  string `json:"reason"`
}

// Assigned is the movement after a payment was given to it.
type Assigned struct {
	Movement string `json:"movement"`
	Payment  string `json:"payment"`
	State    string `json:"state"`
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
	list := make([]Settlement, len(waiting))
	for i, s := range waiting {
		list[i] = Settlement{
			Mode: s.Owner.Mode, Provider: s.Provider, Payment: s.Payment, State: string(s.State), Amount: Rupiah(s.Amount),
			Currency: s.Currency, At: s.At, Row: s.ID, Data: s.Data,
		}
	}
	return list, nil
}

// assignSettlement names the account by the movement: a payment pays nothing on
// another one.
func (c *Console) assignSettlement(x *call) (any, error) {
	var order NewAssignment
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
	now, err := c.deps.Assigner.Assign(x.request.Context(), reconcile.Assignment{
		Account: movement.NewAccountID(m.Provider, m.Owner.Mode, m.ConnectionAccount), Payment: order.Payment, Movement: m.ID,
		Operator: x.operator, Reason: order.Reason,
	})
	if err != nil {
		return nil, err
	}
	return Assigned{Movement: m.ID.String(), Payment: order.Payment, State: string(now.State)}, nil
}

// Settlements lists a merchant's payments that wait for an operator, the newest
// first.
func (c *Client) Settlements(ctx context.Context, merchantID string) ([]Settlement, error) {
	return do[[]Settlement](ctx, c, http.MethodGet, merchantPath(merchantID, "settlements")+"?limit="+strconv.Itoa(maxPage), nil)
}

// Assign gives a payment to a collection.
func (c *Client) Assign(ctx context.Context, movementID string, a NewAssignment) (Assigned, error) {
	return do[Assigned](ctx, c, http.MethodPost, "/admin/movements/"+url.PathEscape(movementID)+"/settlement", a)
}
