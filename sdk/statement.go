package sdk

import (
	"encoding/json"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// Statement asks for the upstream's own books from a cursor on.
type Statement struct {
	RequestID  string
	Connection Connection
	Cursor     string // opaque, of the last report; empty to begin
	Limit      int    // of entries, at most; fewer may be answered
}

// Entry is a row of the upstream's books: money that arrived, or that was taken
// back. The gateway checks amount and currency before believing it.
type StatementLine struct {
	// ID names the row, the same whenever it is read again, however often the
	// upstream repeats it.
	ID string
	// Reference is the upstream's name of the payment: the same in the row that
	// pays, whose ID it may be, and in the row that takes the payment back. Either
	// may be read first.
	Reference string
	Amount    money.Amount // also of what is taken back
	Currency  string
	At        time.Time // when it was paid, or taken back
	Reversed  bool
	Data      json.RawMessage // what else the row says, for operators
}

// Report is a handler's answer to a [Statement]. The zero value says nothing:
// the books could not be read, and the cursor stays where it is.
type StatementPage struct {
	Known  bool // the books were read
	Lines  []StatementLine
	Cursor string // where to read on, also when there was no entry
	More   bool   // there is more to read at once
	// Through is up to when the books are complete: every payment before it is in
	// what was read up to this cursor, however late rows may be. Zero where nothing
	// is known of that; it never takes back what an earlier one said.
	Through time.Time
	Blame   Blame
	Detail  string // for operators, also of books that were read; no secrets
}

// NoReport is the report of books that could not be read.
func NoReport(blame Blame, detail string) StatementPage {
	return StatementPage{Blame: blame, Detail: detail}
}
