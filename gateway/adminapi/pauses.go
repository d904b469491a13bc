package adminapi

import (
	"context"
	"time"
)

// Pause is what operators have paused. Nothing new begins; what has begun goes on.
type Pause struct {
	// MerchantID is whose connection or transfers it is: platform for its own
	// connections, for providers, and for the transfers of all merchants.
	MerchantID string     `json:"merchant_id"`
	What       string     `json:"what"`               // connection, provider or transfers
	Provider   string     `json:"provider,omitempty"` // none for transfers
	Mode       string     `json:"mode,omitempty"`     // both where it is empty; connections have one
	Reason     string     `json:"reason,omitempty"`
	SetBy      string     `json:"set_by,omitempty"` // not in requests
	SetAt      *time.Time `json:"set_at,omitempty"` // not in requests
	// Still are other pauses that hold the same thing, wider or narrower ones, after
	// a change. Not in requests and lists.
	Still []Pause `json:"still_paused_by,omitempty"`
}

// ConnectionRemoval says which connection is removed, and why.
type ConnectionRemoval struct {
	Mode   string `json:"mode"`
	Reason string `json:"reason,omitempty"`
}

// Pause pauses something, on every replica within a second.
func (c *Client) Pause(ctx context.Context, p Pause) (Pause, error) {
	return post[Pause](ctx, c, "/admin/pauses", p)
}

// EndPause lets something go on.
func (c *Client) EndPause(ctx context.Context, p Pause) (Pause, error) {
	return post[Pause](ctx, c, "/admin/pauses/end", p)
}

// Pauses lists what is paused, [MostListed] at most.
func (c *Client) Pauses(ctx context.Context) ([]Pause, error) {
	return get[[]Pause](ctx, c, "/admin/pauses")
}

// RemoveConnection forgets a paused connection.
func (c *Client) RemoveConnection(ctx context.Context, merchantID, provider string, r ConnectionRemoval) (Merchant, error) {
	return post[Merchant](ctx, c, merchantPath(merchantID, "connections", provider, "remove"), r)
}
