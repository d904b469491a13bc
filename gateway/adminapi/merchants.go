package adminapi

import (
	"context"
	"strconv"
	"time"

	"github.com/seed-f006e74d/gerbang/tenants"
)

// NewMerchant asks for a merchant.
type NewMerchant struct {
	Name   string            `json:"name"`             // 1 to 200 characters, as payers read it
	Tier   string            `json:"tier"`             // one that the policy in force has limits for
	Labels map[string]string `json:"labels,omitempty"` // for policies, at most 50; time_zone names a zone
}

// CreatedMerchant is a new merchant with its secrets, which are shown this once.
type CreatedMerchant struct {
	MerchantID         string `json:"merchant_id"`
	Name               string `json:"name"`
	Tier               string `json:"tier"`
	Status             string `json:"status"`
	LiveKey            string `json:"live_key"`
	TestKey            string `json:"test_key"`
	CallbackSecret     string `json:"callback_secret"`
	TestCallbackSecret string `json:"test_callback_secret"`
}

// Merchant is a merchant without any secret.
type Merchant struct {
	MerchantID  string            `json:"merchant_id"`
	Name        string            `json:"name"`
	Tier        string            `json:"tier"`
	Status      string            `json:"status"` // active or suspended
	Labels      map[string]string `json:"labels,omitempty"`
	Version     int64             `json:"version"` // of the record; each change adds one
	CreatedAt   time.Time         `json:"created_at"`
	Keys        []Key             `json:"keys,omitempty"`        // not in lists
	Connections []Connection      `json:"connections,omitempty"` // not in lists
	Callbacks   []CallbackSetup   `json:"callbacks,omitempty"`   // not in lists
	Limits      []Limit           `json:"limits,omitempty"`      // its own; not in lists
	Pauses      []tenants.Pause   `json:"pauses,omitempty"`      // not in lists
}

// MerchantPage is a page of the list of merchants. Next is the after of the
// following page, or "" on the last one.
type MerchantPage struct {
	Merchants []Merchant `json:"merchants"`
	Next      string     `json:"next,omitempty"`
}

// Reason is why an operator makes a change, at most 500 characters. It is kept in
// the audit.
type Reason struct {
	Reason string `json:"reason,omitempty"`
}

// TierChange moves a merchant to another tier.
type TierChange struct {
	Tier   string `json:"tier"`
	Reason string `json:"reason,omitempty"`
}

// LabelChange gives a merchant labels, or takes away those that are null.
type LabelChange struct {
	Labels map[string]*string `json:"labels"`
	Reason string             `json:"reason,omitempty"`
}

// AuditEntry is one change that somebody made to a merchant, or one way in which somebody
// signed in.
type AuditEntry struct {
	ID       string    `json:"id"`
	Operator string    `json:"operator"`
	Action   string    `json:"action"` // such as merchant.suspend
	Detail   string    `json:"detail,omitempty"`
	At       time.Time `json:"at"`
	From     string    `json:"from,omitempty"` // a client's address, "command line" or "gateway"
	Times    int64     `json:"times"`          // an entry stands for so many, the last of which was at that time
}

// CreateMerchant makes a merchant with a live and a test key.
func (c *Client) CreateMerchant(ctx context.Context, m NewMerchant) (CreatedMerchant, error) {
	return post[CreatedMerchant](ctx, c, "/admin/merchants", m)
}

// Merchants lists at most so many merchants, those after an id.
func (c *Client) Merchants(ctx context.Context, after string, most int) (MerchantPage, error) {
	return get[MerchantPage](ctx, c, "/admin/merchants"+params("after", after, "limit", strconv.Itoa(most)))
}

// Merchant shows one merchant.
func (c *Client) Merchant(ctx context.Context, id string) (Merchant, error) {
	return get[Merchant](ctx, c, merchantPath(id))
}

// Suspend stops a merchant.
func (c *Client) Suspend(ctx context.Context, id, reason string) (Merchant, error) {
	return post[Merchant](ctx, c, merchantPath(id, "suspend"), Reason{Reason: reason})
}

// Resume ends a suspension.
func (c *Client) Resume(ctx context.Context, id, reason string) (Merchant, error) {
	return post[Merchant](ctx, c, merchantPath(id, "resume"), Reason{Reason: reason})
}

// SetTier moves a merchant to another tier.
func (c *Client) SetTier(ctx context.Context, id string, change TierChange) (Merchant, error) {
	return post[Merchant](ctx, c, merchantPath(id, "tier"), change)
}

// SetLabels changes a merchant's labels.
func (c *Client) SetLabels(ctx context.Context, id string, change LabelChange) (Merchant, error) {
	return post[Merchant](ctx, c, merchantPath(id, "labels"), change)
}

// AuditFilter says which entries of an audit to list. Everything may be left out.
type AuditFilter struct {
	Since, Until     time.Time
	After            string // the last entry of the page before, whose time is Until
	Operator, Action string // an action's beginning is enough
	Limit            int
}

// Audit lists the changes that were made to a merchant, the newest first.
func (c *Client) Audit(ctx context.Context, merchantID string, f AuditFilter) ([]AuditEntry, error) {
	query := params("since", timeText(f.Since), "until", timeText(f.Until), "after", f.After, "operator", f.Operator, "action", f.Action, "limit", number(f.Limit))
	return get[[]AuditEntry](ctx, c, merchantPath(merchantID, "audit")+query)
}
