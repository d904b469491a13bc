package adminapi

import (
	"time"

	"github.com/seed-f006e74d/gerbang/tenants"
)

// StatementLine is a line of a provider's statement that pays no collection:
// unmatched, where it is for none; ambiguous, where it may be for several; again,
// where its collection was paid before.
type StatementLine struct {
	ID       string    `json:"id"` // by which a page after it is asked for
	At       time.Time `json:"at" column:"AT"`
	Mode     string    `json:"mode" column:"MODE"`
	Provider string    `json:"provider" column:"PROVIDER"`
	Payment  string    `json:"payment" column:"PAYMENT"` // its name on the account, by which it is assigned
	State    string    `json:"state" column:"STATE"`
	Amount   Rupiah    `json:"amount" column:"AMOUNT"` // below zero for money taken back
	Currency string    `json:"currency" column:"CURRENCY"`
	Row      string    `json:"row"`            // the provider's id of the line
	Data     string    `json:"data,omitempty"` // the line as the provider wrote it
}

// NewAssignment says which statement line pays a collection, and why.
type NewAssignment struct {
	Movement string `path:"movement" json:"-"` // any of its ids
	Payment  string `json:"payment"`
	Reason   string `json:"reason"` // 1 to 500 characters
}

// Assigned is a collection's state after a statement line was assigned to it.
type Assigned struct {
	Movement string `json:"movement"`
	Payment  string `json:"payment"`
	State    string `json:"state"`
	Waiting  bool   `json:"waiting"` // for another operator, who says the same: nothing is assigned yet
}

// LineFilter bounds a list of statement lines.
type LineFilter struct {
	MerchantID tenants.MerchantID `path:"merchant" json:"-"`
	Until      time.Time          `query:"until" json:"-"`
	After      string             `query:"after" json:"-"` // the last line of the page before, whose time is Until
	Limit      int                `query:"limit" json:"-"`
}

// The acts on statement lines.
var (
	ListStatementLines = Endpoint[LineFilter, []StatementLine]{Act{
		Route: "GET /admin/merchants/{merchant}/statement-lines", Takes: Read, Text: "List a merchant's statement lines that wait for an operator, the newest first.",
	}}
	AssignStatementLine = Endpoint[NewAssignment, Assigned]{Act{Route: "POST /admin/movements/{movement}/assign", Takes: MoveMoney, Text: "Give a statement line to a collection."}}
)
