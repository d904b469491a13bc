package adminapi

import (
	"context"
	"net/url"
	"time"
)

// StatementLine is a line of a provider's statement that pays no collection:
// unmatched, where it is for none; ambiguous, where it may be for several; again,
// where its collection was paid before.
type StatementLine struct {
	ID       string    `json:"id"` // by which a page after it is asked for
	Mode     string    `json:"mode"`
	Provider string    `json:"provider"`
	Payment  string    `json:"payment"` // its name on the account, by which it is assigned
	State    string    `json:"state"`
	Amount   Rupiah    `json:"amount"` // below zero for money taken back
	Currency string    `json:"currency"`
	At       time.Time `json:"at"`
	Row      string    `json:"row"`            // the provider's id of the line
	Data     string    `json:"data,omitempty"` // the line as the provider wrote it
}

// NewAssignment says which statement line pays a collection, and why.
type NewAssignment struct {
	Payment string `json:"payment"`
	Reason  string `json:"reason"` // 1 to 500 characters
}

// Assigned is a collection's state after a statement line was assigned to it.
type Assigned struct {
	Movement string `json:"movement"`
	Payment  string `json:"payment"`
	State    string `json:"state"`
}

// LineFilter bounds a list of statement lines.
type LineFilter struct {
	Until time.Time
	After string // the last line of the page before, whose time is Until
	Limit int
}

// StatementLines lists a merchant's statement lines that wait for an operator, the newest
// first.
func (c *Client) StatementLines(ctx context.Context, merchantID string, f LineFilter) ([]StatementLine, error) {
	return get[[]StatementLine](ctx, c, merchantPath(merchantID, "statement-lines")+params("until", timeText(f.Until), "after", f.After, "limit", number(f.Limit)))
}

// Assign gives a statement line to a collection.
func (c *Client) Assign(ctx context.Context, movementID string, a NewAssignment) (Assigned, error) {
	return post[Assigned](ctx, c, "/admin/movements/"+url.PathEscape(movementID)+"/assign", a)
}
