package sdk

import (
	"encoding/json"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// Statement asks for a page of the upstream's own statement, from a cursor on.
type Statement struct {
	RequestID  string // the same for all pages that are read in a row
	Connection Connection
	Cursor     string // opaque, of the last page; empty to begin
	Limit      int    // of lines, at most; fewer may be answered
	// From is set where the account's own mutations are asked for, which the manifest
	// declares: all rows from this moment on, in any order. A transfer that the
	// upstream does not find was never made only if no row can be it, so what can't
	// be read to its end is [NoStatement], and a row too many is better than one that
	// is missing. The upstream's clock may be ahead of ours: its newest rows belong
	// to the answer, too.
	From time.Time
}

// StatementLine is a line of the upstream's statement: a payment that arrived, or
// its reversal, or where mutations were asked for a row of these. The gateway checks
// amount and currency before it uses one.
//
// Of a mutation only Outgoing, Amount and Reference count. Amount is what was asked for,
// with the fee in it or without (by up to manifest.HighestFee). Its reference is ours, where the
// upstream tells which transfer a row is about, else empty: one of the upstream's own
// tells nothing.
type StatementLine struct {
	// ID names the line, the same whenever it is read again, however often the
	// upstream repeats it.
	ID string
	// Reference is the upstream's name of the payment: the same in the line that
	// pays, whose ID it may be, and in the line that reverses the payment. Either
	// may be read first.
	Reference string
	Amount    money.Amount // positive also in a reversal
	Currency  string
	At        time.Time // when it was paid, or reversed
	Reversed  bool
	Failed    bool            // no money came by it, or none any more: a payment that it told before is taken back
	Outgoing  bool            // of a mutation: money that left the account, or may have
	Data      json.RawMessage // what else the line says, for operators
}

// StatementPage is a handler's answer to a [Statement]. The zero value says that
// the statement could not be read; the cursor stays where it is.
type StatementPage struct {
	Known  bool // the statement was read
	Lines  []StatementLine
	Cursor string // where to read on, also when there was no line
	More   bool   // there are more lines to read at once
	// Through is up to when the statement is complete: every payment before it is
	// in the lines up to this cursor, however late lines may be. Zero where that is
	// not known; it does not lower an earlier Through.
	Through time.Time
	Blame   Blame
	Detail  string // for operators, also where the statement was read; no secrets
}

// NoStatement is the page of a statement that could not be read.
func NoStatement(blame Blame, detail string) StatementPage {
	return StatementPage{Blame: blame, Detail: detail}
}
