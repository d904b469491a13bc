package adminapi

import (
	"context"
	"time"
)

// Exception is what needs a person. Merchant, mode, subject, reason and fact
// identify it; ID is short for them and the same while it is open. The resolved
// fields are there once somebody has resolved it.
type Exception struct {
	ID         string     `json:"id"` // 12 hexadecimal digits
	MerchantID string     `json:"merchant_id"`
	Mode       string     `json:"mode"`
	Subject    string     `json:"subject"` // what it is about: usually a movement's id
	Reason     string     `json:"reason"`  // such as amount_differs
	FactID     string     `json:"fact_id"` // the provider's id of what happened, or ""
	Provider   string     `json:"provider"`
	Detail     string     `json:"detail"`
	At         time.Time  `json:"at"`
	Times      int64      `json:"times,omitempty"` // how often it has come since then, of one that is counted
	ResolvedAt *time.Time `json:"resolved_at,omitempty"`
	ResolvedBy string     `json:"resolved_by,omitempty"` // operators' names
	Resolution string     `json:"resolution,omitempty"`
}

// Resolution resolves an exception and says how.
type Resolution struct {
	MerchantID string `json:"merchant_id"`
	Mode       string `json:"mode"`
	Subject    string `json:"subject"`
	Reason     string `json:"reason"`
	FactID     string `json:"fact_id,omitempty"`
	Resolution string `json:"resolution"` // 1 to 500 characters
}

// Exceptions lists the open exceptions, the newest first, at most a thousand.
func (c *Client) Exceptions(ctx context.Context) ([]Exception, error) {
	return get[[]Exception](ctx, c, "/admin/exceptions"+params("limit", number(MostListed)))
}

// ResolveException takes an exception off the list.
func (c *Client) ResolveException(ctx context.Context, r Resolution) error {
	_, err := post[struct{}](ctx, c, "/admin/exceptions/resolve", r)
	return err
}
