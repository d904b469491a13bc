package adminapi

import (
	"context"
	"strconv"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// checkTimeout is for a check of the ledger, which reads all of it.
const checkTimeout = time.Hour

// AccountStatementFilter says which part of an account statement to read.
// Everything but the mode may be left out.
type AccountStatementFilter struct {
	Mode     string
	From, To time.Time
	After    string // the next of the page before
	Limit    int
}

// Rupiah is a balance or a change of one, in whole rupiah. Unlike an amount in a
// request, it may be below zero.
type Rupiah money.Amount

// String prints the number alone: -10000.
func (r Rupiah) String() string { return strconv.FormatInt(int64(r), 10) }

// NewAdjustment asks for a credit or debit by hand. Merchant, mode and reference
// identify it: the same again changes nothing.
type NewAdjustment struct {
	Mode      string       `json:"mode,omitempty"` // live unless given
	Amount    money.Amount `json:"amount"`         // whole rupiah, at least 1
	Reason    string       `json:"reason"`         // 1 to 500 characters
	Reference string       `json:"reference"`      // 1 to 100 characters
}

// Adjustment is a credit or debit by hand.
type Adjustment struct {
	MerchantID  string       `json:"merchant_id"`
	Mode        string       `json:"mode"`
	Reference   string       `json:"reference"`
	Kind        string       `json:"kind"` // credit or debit
	Amount      money.Amount `json:"amount"`
	Reason      string       `json:"reason"`
	State       string       `json:"state"` // posted, waiting for another operator, or rejected
	RequestedBy string       `json:"requested_by"`
	RequestedAt time.Time    `json:"requested_at"`
	DecidedBy   string       `json:"decided_by,omitempty"`
	DecidedAt   *time.Time   `json:"decided_at,omitempty"`
	Existed     bool         `json:"existed,omitempty"` // before this request
}

// AdjustmentKey identifies a credit or debit that waits.
type AdjustmentKey struct {
	MerchantID string `json:"merchant_id"`
	Mode       string `json:"mode,omitempty"` // live unless given
	Reference  string `json:"reference"`
}

// LedgerCheck is the result of a check of the ledger. An account, which is of a merchant
// in a mode, is checked from its beginning, or since the last day that a check has
// verified.
type LedgerCheck struct {
	OK            bool        `json:"ok"`
	Accounts      int         `json:"accounts"`                 // all of them
	SinceVerified int         `json:"since_verified"`           // those that were checked since a verified day
	VerifiedUntil *time.Time  `json:"verified_until,omitempty"` // the end of the first such day
	Invariants    []Invariant `json:"invariants"`
}

// Invariant is one condition that every row of the ledger must meet.
type Invariant struct {
	Invariant string    `json:"invariant"`
	Checked   int64     `json:"checked"` // rows
	OK        bool      `json:"ok"`
	Offences  []Offence `json:"offences"` // the first hundred
}

// Offence is a row that breaks an invariant. Merchant, mode and subject are left out
// where it concerns the whole ledger.
type Offence struct {
	MerchantID string `json:"merchant_id,omitempty"`
	Mode       string `json:"mode,omitempty"`
	Subject    string `json:"subject,omitempty"` // a movement's or an adjustment's id
	Detail     string `json:"detail"`
}

// Balance is the accounts of a merchant, or of platform, at a time in a mode. Money
// that is owed or was earned is above zero, money that was spent below.
type Balance struct {
	MerchantID string           `json:"merchant_id"`
	Mode       string           `json:"mode"`
	At         time.Time        `json:"at"`
	Accounts   []AccountBalance `json:"accounts"`
}

// AccountBalance is the balance of one account. A merchant has available and held;
// platform has margin, cost and deposit at each provider, and adjustments.
type AccountBalance struct {
	Account  string `json:"account"`
	Provider string `json:"provider,omitempty"`
	Amount   Rupiah `json:"amount"`
}

// AccountStatement is a page of a merchant's account statement, the oldest entry
// first. Next is the after of the following page, or "" on the last one.
type AccountStatement struct {
	Entries []AccountEntry `json:"entries"`
	Next    string         `json:"next,omitempty"`
}

// AccountEntry is one transaction: what it changed, and the balance after it.
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

// Credit adds to a merchant's balance.
func (c *Client) Credit(ctx context.Context, merchantID string, a NewAdjustment) (Adjustment, error) {
	return post[Adjustment](ctx, c, merchantPath(merchantID, "credit"), a)
}

// Debit takes from a merchant's balance.
func (c *Client) Debit(ctx context.Context, merchantID string, a NewAdjustment) (Adjustment, error) {
	return post[Adjustment](ctx, c, merchantPath(merchantID, "debit"), a)
}

// Waiting lists the credits and debits that wait for another operator, the
// newest first.
func (c *Client) Waiting(ctx context.Context) ([]Adjustment, error) {
	return get[[]Adjustment](ctx, c, "/admin/ledger/waiting"+params("limit", number(MostListed)))
}

// Approve posts a credit or debit that waits.
func (c *Client) Approve(ctx context.Context, key AdjustmentKey) (Adjustment, error) {
	return post[Adjustment](ctx, c, "/admin/ledger/approve", key)
}

// Reject drops a credit or debit that waits.
func (c *Client) Reject(ctx context.Context, key AdjustmentKey) (Adjustment, error) {
	return post[Adjustment](ctx, c, "/admin/ledger/reject", key)
}

// CheckLedger checks every invariant of the ledger and waits up to an hour. Full is from
// the beginning, also where a check has verified something before.
func (c *Client) CheckLedger(ctx context.Context, full bool) (LedgerCheck, error) {
	patient := *c
	patient.http.Timeout = checkTimeout
	path := "/admin/ledger/check"
	if full {
		path += "?full=true"
	}
	return get[LedgerCheck](ctx, &patient, path)
}

// Balance shows the balance of a merchant, or of platform, at a time; now where it
// is zero.
func (c *Client) Balance(ctx context.Context, merchantID, mode string, at time.Time) (Balance, error) {
	return get[Balance](ctx, c, merchantPath(merchantID, "balance")+params("mode", mode, "at", timeText(at)))
}

// AccountStatement reads a page of a merchant's account statement.
func (c *Client) AccountStatement(ctx context.Context, merchantID string, f AccountStatementFilter) (AccountStatement, error) {
	query := params("mode", f.Mode, "from", timeText(f.From), "to", timeText(f.To), "after", f.After, "limit", number(f.Limit))
	return get[AccountStatement](ctx, c, merchantPath(merchantID, "account-statement")+query)
}
