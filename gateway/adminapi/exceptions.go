package adminapi

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

// Attended is an entry of the operators' list about a movement, and who settled it.
type Attended struct {
	Reason     string     `json:"reason"`
	FactID     string     `json:"fact_id,omitempty"`
	Detail     string     `json:"detail"`
	At         time.Time  `json:"at"`
	ResolvedAt *time.Time `json:"resolved_at,omitempty"`
	ResolvedBy string     `json:"resolved_by,omitempty"`
	Resolution string     `json:"resolution,omitempty"`
}

// Attention is an entry of the operators' list. Merchant, mode, subject, reason
// and fact are its name, and ID is short for it.
type Exception struct {
	ID         string    `json:"id"`
	MerchantID string    `json:"merchant_id"`
	Mode       string    `json:"mode"`
	Subject    string    `json:"subject"`
	Reason     string    `json:"reason"`
	FactID     string    `json:"fact_id"`
	Provider   string    `json:"provider"`
	Detail     string    `json:"detail"`
	At         time.Time `json:"at"`
}

// Resolution names an entry of the operators' list and says how it was settled.
type Resolution struct {
	MerchantID string `json:"merchant_id"`
	Mode       string `json:"mode"`
	Subject    string `json:"subject"`
	Reason     string `json:"reason"`
	FactID     string `json:"fact_id,omitempty"`
	Resolution string `json:"resolution"`
}

// Attention lists what waits for an operator, the newest first, at most a thousand.
func (c *Client) Exceptions(ctx context.Context) ([]Exception, error) {
	return do[[]Exception](ctx, c, http.MethodGet, "/admin/attention?limit="+strconv.Itoa(maxPage), nil)
}

// ResolveException takes an entry off the operators' list.
func (c *Client) ResolveException(ctx context.Context, r Resolution) error {
	_, err := do[struct{}](ctx, c, http.MethodPost, "/admin/attention/resolve", r)
	return err
}
