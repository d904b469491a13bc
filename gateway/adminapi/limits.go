package adminapi

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Limit is a limit of a merchant's own, which goes before what its tier says: of a
// rate, or of a quota. What is not set is the tier's.
type Limit struct {
	Name          string     `json:"name"`
	RatePerSecond float64    `json:"rate_per_second,omitempty"`
	Burst         int64      `json:"burst,omitempty"`
	Limit         *int64     `json:"limit,omitempty"` // of a quota
	Reason        string     `json:"reason"`
	SetBy         string     `json:"set_by"`
	SetAt         time.Time  `json:"set_at"`
	ExpiresAt     *time.Time `json:"expires_at,omitempty"`
	InForce       bool       `json:"in_force"`
}

// LimitChange gives a merchant limits of its own, each in place of the one that it
// has under that name. For is how long they hold, as in "2h"; for ever unless
// given.
type LimitChange struct {
	Limits []NewLimit `json:"limits"`
	For    string     `json:"for,omitempty"`
	Reason string     `json:"reason"`
}

// NewLimit is one of them: a rate, a burst or both, or the size of a quota.
type NewLimit struct {
	Name          string  `json:"name"`
	RatePerSecond float64 `json:"rate_per_second,omitempty"`
	Burst         int64   `json:"burst,omitempty"`
	Limit         *int64  `json:"limit,omitempty"`
}

// String is the limit for the audit.
func (l NewLimit) String() string {
	words := []string{l.Name}
	if l.RatePerSecond != 0 {
		words = append(words, fmt.Sprintf("%g/s", l.RatePerSecond))
	}
	if l.Burst != 0 {
		words = append(words, fmt.Sprintf("burst %d", l.Burst))
	}
	if l.Limit != nil {
		words = append(words, fmt.Sprintf("quota %d", *l.Limit))
	}
	return strings.Join(words, " ")
}

// Quotas is where a merchant's quotas stand in a mode, in the month that it is.
type Quotas struct {
	MerchantID string    `json:"merchant_id"`
	Mode       string    `json:"mode"`
	Period     string    `json:"period"`    // such as 2026-11
	ResetsAt   time.Time `json:"resets_at"` // in the merchant's zone
	Quotas     []Quota   `json:"quotas"`
}

// Quota is one of them, by the policy in force. What was used of a quota that the
// policy has no longer is shown without a limit.
type Quota struct {
	Quota      string   `json:"quota"`
	Limit      *int64   `json:"limit,omitempty"`
	Used       int64    `json:"used"`
	Remaining  *int64   `json:"remaining,omitempty"`
	Operations []string `json:"operations,omitempty"` // that it counts
}

// Limits tells a merchant's own limits, those that have expired too.
func (c *Client) Limits(ctx context.Context, merchantID string) ([]Limit, error) {
	return do[[]Limit](ctx, c, http.MethodGet, merchantPath(merchantID, "limits"), nil)
}

// SetLimits gives a merchant limits of its own, and tells all that it then has.
func (c *Client) SetLimits(ctx context.Context, merchantID string, change LimitChange) ([]Limit, error) {
	return do[[]Limit](ctx, c, http.MethodPost, merchantPath(merchantID, "limits"), change)
}

// RemoveLimit takes a limit of its own from a merchant, and tells those that stay.
func (c *Client) RemoveLimit(ctx context.Context, merchantID, name, reason string) ([]Limit, error) {
	return do[[]Limit](ctx, c, http.MethodPost, merchantPath(merchantID, "limits", name, "remove"), Reason{Reason: reason})
}

// Quotas tells where a merchant's quotas stand in a mode.
func (c *Client) Quotas(ctx context.Context, merchantID, mode string) (Quotas, error) {
	query := url.Values{"mode": {mode}}
	return do[Quotas](ctx, c, http.MethodGet, merchantPath(merchantID, "quotas")+"?"+query.Encode(), nil)
}
