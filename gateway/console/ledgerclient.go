package console

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// checkTimeout is for a check of the ledger, which reads all of it.
const checkTimeout = time.Hour

// Credit gives a merchant rupiah.
func (c *Client) Credit(ctx context.Context, merchantID string, a NewAdjustment) (Adjustment, error) {
	return do[Adjustment](ctx, c, http.MethodPost, merchantPath(merchantID, "credit"), a)
}

// Debit takes rupiah from a merchant.
func (c *Client) Debit(ctx context.Context, merchantID string, a NewAdjustment) (Adjustment, error) {
	return do[Adjustment](ctx, c, http.MethodPost, merchantPath(merchantID, "debit"), a)
}

// Waiting lists the credits and debits that wait for another operator, the
// newest first.
func (c *Client) Waiting(ctx context.Context) ([]Adjustment, error) {
	return do[[]Adjustment](ctx, c, http.MethodGet, "/admin/ledger/waiting?limit="+strconv.Itoa(maxPage), nil)
}

// Approve posts a credit or debit that waits.
func (c *Client) Approve(ctx context.Context, d Decision) (Adjustment, error) {
	return do[Adjustment](ctx, c, http.MethodPost, "/admin/ledger/approve", d)
}

// Reject drops a credit or debit that waits.
func (c *Client) Reject(ctx context.Context, d Decision) (Adjustment, error) {
	return do[Adjustment](ctx, c, http.MethodPost, "/admin/ledger/reject", d)
}

// CheckLedger checks every invariant over the whole ledger, however long it takes.
func (c *Client) CheckLedger(ctx context.Context) (LedgerCheck, error) {
	patient := *c
	patient.http.Timeout = checkTimeout
	return do[LedgerCheck](ctx, &patient, http.MethodGet, "/admin/ledger/check", nil)
}

// Balance tells what a merchant, or platform, has in a mode; at the zero time,
// what it has now.
func (c *Client) Balance(ctx context.Context, merchantID, mode string, at time.Time) (Balance, error) {
	query := url.Values{"mode": {mode}}
	if !at.IsZero() {
		query.Set("at", at.Format(time.RFC3339Nano))
	}
	return do[Balance](ctx, c, http.MethodGet, merchantPath(merchantID, "balance")+"?"+query.Encode(), nil)
}

// StatementFilter says which part of a statement to read; everything but the
// mode may be left out.
type StatementFilter struct {
	Mode     string
	From, To time.Time
	After    string // the next of the page before
	Limit    int
}

// Statement reads a page of a merchant's statement, the oldest entry first.
func (c *Client) Statement(ctx context.Context, merchantID string, f StatementFilter) (StatementPage, error) {
	query := url.Values{"mode": {f.Mode}}
	for name, at := range map[string]time.Time{"from": f.From, "to": f.To} {
		if !at.IsZero() {
			query.Set(name, at.Format(time.RFC3339Nano))
		}
	}
	if f.After != "" {
		query.Set("after", f.After)
	}
	if f.Limit != 0 {
		query.Set("limit", strconv.Itoa(f.Limit))
	}
	return do[StatementPage](ctx, c, http.MethodGet, merchantPath(merchantID, "statement")+"?"+query.Encode(), nil)
}
