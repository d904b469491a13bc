package adminapi

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Settlement is a payment that arrived on a merchant's wallet and pays nothing:
// unmatched, where it is for no collection; ambiguous, where it may be for several;
// again, where its collection was paid before.
type StatementLine struct {
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

// Settlements lists a merchant's payments that wait for an operator, the newest
// first.
func (c *Client) StatementLines(ctx context.Context, merchantID string) ([]StatementLine, error) {
	return do[[]StatementLine](ctx, c, http.MethodGet, merchantPath(merchantID, "settlements")+"?limit="+strconv.Itoa(maxPage), nil)
}

// Assign gives a payment to a collection.
func (c *Client) Assign(ctx context.Context, movementID string, a NewAssignment) (Assigned, error) {
	return do[Assigned](ctx, c, http.MethodPost, "/admin/movements/"+url.PathEscape(movementID)+"/settlement", a)
}
