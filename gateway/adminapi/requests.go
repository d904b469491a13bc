package adminapi

import (
	"context"
	"strconv"
	"time"
)

// Requests is what became of a merchant's requests in a mode in the last hour.
type Requests struct {
	MerchantID string         `json:"merchant_id"`
	Mode       string         `json:"mode"`
	Since      time.Time      `json:"since"`
	Requests   []RequestCount `json:"requests"` // the refused ones first, then by number
}

// RequestCount is how often requests for an operation were decided in one way. What was refused has the rule, and the
// reason where the rule gives every request the same. The limit is the one of the merchant's record as it is now.
type RequestCount struct {
	Operation string    `json:"operation"`
	Verdict   string    `json:"verdict"` // admitted, invalid, denied, slowed, over_quota or unjudged
	Rule      string    `json:"rule,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Limit     *LimitUse `json:"limit,omitempty"`
	N         int64     `json:"n"`
	Last      time.Time `json:"last"` // the minute
}

// Requests counts what was decided on a merchant's requests in the last hour.
func (c *Client) Requests(ctx context.Context, merchantID, mode string) (Requests, error) {
	return get[Requests](ctx, c, merchantPath(merchantID, "requests")+params("mode", mode))
}

// Refusals is a page of a merchant's requests in a mode that were refused or failed, the newest first. Each replica keeps at
// most 100 a second of all merchants, for seven days.
type Refusals struct {
	MerchantID string    `json:"merchant_id"`
	Mode       string    `json:"mode"`
	Since      time.Time `json:"since"` // the page looked as far back as this
	Refusals   []Refusal `json:"refusals"`
	Next       string    `json:"next,omitempty"` // the after of the next page; the page may be empty where there is one
}

// Refusal is a request with what it was answered. Its decision tells more.
type Refusal struct {
	At         time.Time `json:"at"`
	Operation  string    `json:"operation"`
	Code       string    `json:"error_code,omitempty"`
	Message    string    `json:"message,omitempty"`
	RequestID  string    `json:"request_id,omitempty"`
	DecisionID string    `json:"decision_id"`
}

// Refusals lists single requests that were refused or failed.
func (c *Client) Refusals(ctx context.Context, merchantID, mode, after string, limit int) (Refusals, error) {
	return get[Refusals](ctx, c, merchantPath(merchantID, "refusals")+params("mode", mode, "after", after, "limit", strconv.Itoa(limit)))
}

// FindOf finds what belongs to one merchant in one mode: a refused or admitted request by the id of its decision, a
// movement or a refused request by the id of its request. Nothing of another merchant's is told.
func (c *Client) FindOf(ctx context.Context, merchantID, mode, id string) (FindResult, error) {
	return get[FindResult](ctx, c, merchantPath(merchantID, "find")+params("mode", mode, "id", id))
}
