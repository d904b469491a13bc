package adminapi

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// NewMerchant is what a merchant is made of.
type NewMerchant struct {
	Name   string            `json:"name"`
	Tier   string            `json:"tier"`
	Labels map[string]string `json:"labels,omitempty"`
}

// CreatedMerchant is a new merchant with its secrets, which are told this once.
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
	Status      string            `json:"status"`
	Labels      map[string]string `json:"labels,omitempty"`
	Version     int64             `json:"version"`
	CreatedAt   time.Time         `json:"created_at"`
	Keys        []Key             `json:"keys,omitempty"`        // not in lists
	Connections []Connection      `json:"connections,omitempty"` // not in lists
	Callbacks   []CallbackSetup   `json:"callbacks,omitempty"`   // not in lists
	Limits      []Limit           `json:"limits,omitempty"`      // its own; not in lists
}

// MerchantPage is a part of the list of merchants. Next is what to ask after
// for the following part, or "".
type MerchantPage struct {
	Merchants []Merchant `json:"merchants"`
	Next      string     `json:"next,omitempty"`
}

// Reason is why an operator does something; it stands in the audit.
type Reason struct {
	Reason string `json:"reason,omitempty"`
}

// TierChange moves a merchant to another tier.
type TierChange struct {
	Tier   string `json:"tier"`
	Reason string `json:"reason,omitempty"`
}

// AuditEntry is what an operator did to a merchant.
type AuditEntry struct {
	Operator string    `json:"operator"`
	Action   string    `json:"action"`
	Detail   string    `json:"detail,omitempty"`
	At       time.Time `json:"at"`
}

// CreateMerchant makes a merchant with a live and a test key.
func (c *Client) CreateMerchant(ctx context.Context, m NewMerchant) (CreatedMerchant, error) {
	return do[CreatedMerchant](ctx, c, http.MethodPost, "/admin/merchants", m)
}

// Merchants lists merchants after one of them, most of them at once.
func (c *Client) Merchants(ctx context.Context, after string, most int) (MerchantPage, error) {
	query := url.Values{"after": {after}, "limit": {strconv.Itoa(most)}}
	return do[MerchantPage](ctx, c, http.MethodGet, "/admin/merchants?"+query.Encode(), nil)
}

// Merchant shows one merchant.
func (c *Client) Merchant(ctx context.Context, id string) (Merchant, error) {
	return do[Merchant](ctx, c, http.MethodGet, merchantPath(id), nil)
}

// Suspend stops a merchant.
func (c *Client) Suspend(ctx context.Context, id, reason string) (Merchant, error) {
	return do[Merchant](ctx, c, http.MethodPost, merchantPath(id, "suspend"), Reason{Reason: reason})
}

// Resume lets a stopped merchant go on.
func (c *Client) Resume(ctx context.Context, id, reason string) (Merchant, error) {
	return do[Merchant](ctx, c, http.MethodPost, merchantPath(id, "resume"), Reason{Reason: reason})
}

// SetTier moves a merchant to another tier.
func (c *Client) SetTier(ctx context.Context, id string, change TierChange) (Merchant, error) {
	return do[Merchant](ctx, c, http.MethodPost, merchantPath(id, "tier"), change)
}

// Audit lists what operators did to a merchant, the newest first.
func (c *Client) Audit(ctx context.Context, merchantID string) ([]AuditEntry, error) {
	return do[[]AuditEntry](ctx, c, http.MethodGet, merchantPath(merchantID, "audit"), nil)
}
