package adminapi

import (
	"strconv"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// AccountStatementFilter says which part of an account statement to read.
// Everything but the mode may be left out.
type AccountStatementFilter struct {
	Merchant string    `path:"merchant" arg:"" help:"The merchant's id."`
	Mode     string    `query:"mode" enum:"live,test" default:"live" help:"live or test (${default})."`
	From     time.Time `query:"from" placeholder:"TIME" help:"Only from this time on, such as 2026-01-02T03:04:05Z."`
	To       time.Time `query:"to" placeholder:"TIME" help:"Only before this time."`
	After    string    `query:"after" kong:"-"` // the next of the page before
	Limit    int       `query:"limit" kong:"-"`
}

// BalanceQuery says whose balance to show, and when.
type BalanceQuery struct {
	Merchant string    `path:"merchant" arg:"" optional:"" default:"platform" help:"The merchant's id, or platform (${default})."`
	Mode     string    `query:"mode" enum:"live,test" default:"live" help:"live or test (${default})."`
	At       time.Time `query:"at" placeholder:"TIME" help:"At this time, such as 2026-01-02T03:04:05Z; now unless given."`
}

// AdjustmentFilter bounds the list of credits and debits that wait.
type AdjustmentFilter struct {
	Limit int `query:"limit"`
}

// LedgerScope is which part of the ledger is checked: all since the last day that a check has verified, or from the beginning.
type LedgerScope struct {
	Full bool `query:"full" help:"From the beginning, also where an earlier check has verified something."`
}

// Rupiah is a balance or a change of one, in whole rupiah. Unlike an amount in a
// request, it may be below zero.
type Rupiah money.Amount

// String prints the number alone: -10000.
func (r Rupiah) String() string { return strconv.FormatInt(int64(r), 10) }

// NewAdjustment asks for a credit or debit by hand. Merchant, mode and reference
// identify it: the same again changes nothing.
type NewAdjustment struct {
	Merchant  string       `path:"merchant" json:"-"`
	Mode      string       `json:"mode,omitempty"` // live unless given
	Amount    money.Amount `json:"amount"`         // whole rupiah, at least 1
	Reason    string       `json:"reason"`         // 1 to 500 characters
	Reference string       `json:"reference"`      // 1 to 100 characters
}

// Adjustment is a credit or debit by hand.
type Adjustment struct {
	RequestedAt time.Time    `json:"requested_at" column:"REQUESTED"`
	RequestedBy string       `json:"requested_by" column:"BY"`
	MerchantID  string       `json:"merchant_id" column:"MERCHANT"`
	Mode        string       `json:"mode" column:"MODE"`
	Kind        string       `json:"kind" column:"KIND"` // credit or debit
	Amount      money.Amount `json:"amount" column:"AMOUNT"`
	Reference   string       `json:"reference" column:"REFERENCE" quoted:""`
	Reason      string       `json:"reason" column:"REASON"`
	State       string       `json:"state"` // posted, waiting for another operator, or rejected
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
	At               time.Time `json:"at" column:"AT"`
	Kind             string    `json:"kind" column:"KIND"`
	Reference        string    `json:"reference" column:"REFERENCE" quoted:""` // the merchant's, or the operator's
	Subject          string    `json:"subject"`                                // a movement's or an adjustment's id
	Attempt          int       `json:"attempt,omitempty"`
	Provider         string    `json:"provider,omitempty" column:"PROVIDER" otherwise:"-"`
	Available        Rupiah    `json:"available" column:"AVAILABLE"`
	Held             Rupiah    `json:"held" column:"HELD"`
	BalanceAvailable Rupiah    `json:"balance_available" column:"BALANCE"` // below zero where replicas' clocks differ
	BalanceHeld      Rupiah    `json:"balance_held" column:"HELD BALANCE"`
}

// The acts on balances. A credit or debit above what one operator may claim alone waits for another one.
var (
	Credit = Endpoint[NewAdjustment, Adjustment]{Act{Route: "POST /admin/merchants/{merchant}/credit", Takes: MoveMoney, Text: "Add to a merchant's balance."}}
	Debit  = Endpoint[NewAdjustment, Adjustment]{Act{Route: "POST /admin/merchants/{merchant}/debit", Takes: MoveMoney, Text: "Take from a merchant's balance."}}

	ListAdjustments   = Endpoint[AdjustmentFilter, []Adjustment]{Act{Route: "GET /admin/ledger/waiting", Takes: Read, Text: "List the credits and debits that wait for another operator, the newest first."}}
	ApproveAdjustment = Endpoint[AdjustmentKey, Adjustment]{Act{Route: "POST /admin/ledger/approve", Takes: MoveMoney, Text: "Post a credit or debit that waits."}}
	RejectAdjustment  = Endpoint[AdjustmentKey, Adjustment]{Act{Route: "POST /admin/ledger/reject", Takes: MoveMoney, Text: "Drop a credit or debit that waits."}}

	CheckLedger          = Endpoint[LedgerScope, LedgerCheck]{Act{Route: "GET /admin/ledger/check", Takes: Read, Slow: true, Text: "Check every invariant of the ledger."}}
	ShowBalance          = Endpoint[BalanceQuery, Balance]{Act{Route: "GET /admin/merchants/{merchant}/balance", Takes: Read, Platform: true, Text: "Show the balance of a merchant, or of platform, at a time."}}
	ListAccountStatement = Endpoint[AccountStatementFilter, AccountStatement]{Act{
		Route: "GET /admin/merchants/{merchant}/account-statement", Takes: Read, Text: "Read a page of a merchant's account statement, the oldest entry first.",
	}}
)
