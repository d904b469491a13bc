package adminapi

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// StatementFilter says which part of a statement to read; everything but the
// mode may be left out.
type AccountStatementFilter struct {
	Mode     string
	From, To time.Time
	After    string // the next of the page before
	Limit    int
}

// Rupiah is what an account has or changes by, in whole rupiah. Unlike an
// amount that is asked for, it may be below zero.
type Rupiah money.Amount

// String prints the number alone: -10000.
func (r Rupiah) String() string { return strconv.FormatInt(int64(r), 10) }

// NewAdjustment is what to credit a merchant with or debit it by: at least one
// rupiah. Merchant, mode and reference are its name: the same again changes
// nothing. The mode is live unless given.
type NewAdjustment struct {
	Mode      string       `json:"mode,omitempty"`
	Amount    money.Amount `json:"amount"`
	Reason    string       `json:"reason"`
	Reference string       `json:"reference"`
}

// Adjustment is an operator's credit or debit and where it stands: posted,
// waiting for another operator, or rejected.
type Adjustment struct {
	MerchantID  string       `json:"merchant_id"`
	Mode        string       `json:"mode"`
	Reference   string       `json:"reference"`
	Kind        string       `json:"kind"` // credit or debit
	Amount      money.Amount `json:"amount"`
	Reason      string       `json:"reason"`
	State       string       `json:"state"`
	RequestedBy string       `json:"requested_by"`
	RequestedAt time.Time    `json:"requested_at"`
	DecidedBy   string       `json:"decided_by,omitempty"`
	DecidedAt   *time.Time   `json:"decided_at,omitempty"`
	Existed     bool         `json:"existed,omitempty"` // before it was asked for now
}

// Decision names a credit or debit that waits. The mode is live unless given.
type AdjustmentKey struct {
	MerchantID string `json:"merchant_id"`
	Mode       string `json:"mode,omitempty"`
	Reference  string `json:"reference"`
}

// LedgerCheck is what a check of the whole ledger found.
type LedgerCheck struct {
	OK         bool        `json:"ok"`
	Invariants []Invariant `json:"invariants"`
}

// Invariant is one thing that must be true of the ledger, of how many rows it
// was asked, and those of which it is not: the first hundred of them.
type Invariant struct {
	Invariant string    `json:"invariant"`
	Checked   int64     `json:"checked"`
	OK        bool      `json:"ok"`
	Offences  []Offence `json:"offences"`
}

// Offence is a row that breaks an invariant. Merchant, mode and subject are ""
// where it is about everything.
type Offence struct {
	MerchantID string `json:"merchant_id,omitempty"`
	Mode       string `json:"mode,omitempty"`
	Subject    string `json:"subject,omitempty"` // a movement's or an adjustment's id
	Detail     string `json:"detail"`
}

// Balance is what the accounts of a merchant, or of platform, have at a time in
// a mode. What is owed or was earned is above zero, what was spent below.
type Balance struct {
	MerchantID string           `json:"merchant_id"`
	Mode       string           `json:"mode"`
	At         time.Time        `json:"at"`
	Accounts   []AccountBalance `json:"accounts"`
}

// AccountBalance is what one account has. A merchant has available and held;
// platform has margin, cost and deposit at each provider, and adjustments.
type AccountBalance struct {
	Account  string `json:"account"`
	Provider string `json:"provider,omitempty"`
	Amount   Rupiah `json:"amount"`
}

// StatementPage is a part of a merchant's statement, the oldest entry first.
// Next is what to ask after for the following part, or "".
type AccountStatement struct {
	Entries []AccountEntry `json:"entries"`
	Next    string         `json:"next,omitempty"`
}

// StatementEntry is one transaction: what it changed, and the balance after it.
type AccountEntry struct {
	At               time.Time `json:"at"`
	Kind             string    `json:"kind"`
	Reference        string    `json:"reference"` // the merchant's, or the operator's
	Subject          string    `json:"subject"`   // a movement's or an adjustment's id
	Attempt          int       `json:"attempt,omitempty"`
	Provider         string    `json:"provider,omitempty"`
	Available        Rupiah    `json:"available"`
	Held             Rupiah    `json:"held"`
	BalanceAvailable Rupiah    `json:"balance_available"` // below zero where replicas' clocks differ
	BalanceHeld      Rupiah    `json:"balance_held"`
}

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
func (c *Client) Approve(ctx context.Context, d AdjustmentKey) (Adjustment, error) {
	return do[Adjustment](ctx, c, http.MethodPost, "/admin/ledger/approve", d)
}

// Reject drops a credit or debit that waits.
func (c *Client) Reject(ctx context.Context, d AdjustmentKey) (Adjustment, error) {
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

// Statement reads a page of a merchant's statement, the oldest entry first.
func (c *Client) AccountStatement(ctx context.Context, merchantID string, f AccountStatementFilter) (AccountStatement, error) {
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
	return do[AccountStatement](ctx, c, http.MethodGet, merchantPath(merchantID, "statement")+"?"+query.Encode(), nil)
}

// checkTimeout is for a check of the ledger, which reads all of it.
const checkTimeout = time.Hour
