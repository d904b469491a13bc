package snap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// ahead is how far the upstream's clock may be ahead of ours: rows of this moment are
// dated so.
const ahead = 5 * time.Minute

// reading is how far the mutations since a moment were read: up to when they are
// asked for, the next of the upstream's windows and pages, their size, and whether the
// page before had rows, but fewer. It is the cursor.
type reading struct {
	To     int64 `json:"to"`
	Window int   `json:"window"`
	Page   int   `json:"page"`
	Size   int   `json:"size"`
	Short  bool  `json:"short,omitempty"`
}

// statement answers the mutations of the wallet since a moment (service 12), one of the
// upstream's pages at a time. Rows that arrive meanwhile move others to the next page,
// so that a row may be told twice, and none is missed.
//
// "There is no such transaction" is no empty page here, but no statement, unless the page
// before it was short: then it can only be the end. An upstream whose records are away, or
// a part of them, says it to status requests too, and then a transfer would be proven
// absent by one fault alone.
func (a *adapter) statement(ctx context.Context, s sdk.Statement) sdk.StatementPage {
	acc, err := a.account(s.Connection)
	if err != nil {
		return sdk.NoStatement(sdk.BlameAccount, err.Error())
	}
	if s.From.IsZero() {
		return sdk.NoStatement(sdk.BlameNone, "the statement of this provider is its mutations since a moment")
	}
	at := reading{To: a.now().Add(ahead).Unix(), Size: max(1, min(s.Limit, pageRows))}
	if s.Cursor != "" && json.Unmarshal([]byte(s.Cursor), &at) != nil {
		return sdk.NoStatement(sdk.BlameNone, "the cursor is none of this plugin's")
	}
	windows := windowsBetween(s.From.Add(-time.Second), time.Unix(at.To, 0))
	if at.Window < 0 || at.Window >= len(windows) || at.Page < 0 || at.Size < 1 || at.Size > pageRows {
		return sdk.NoStatement(sdk.BlameNone, "the cursor is none of this plugin's")
	}
	rows, p := acc.rows(ctx, windows[at.Window], at.Page, at.Size)
	ends := p != nil && p.class == missing && at.Page > 0 && at.Short
	if p != nil && !ends {
		return sdk.NoStatement(p.blame, p.detail)
	}
	var page sdk.StatementPage
	for i, r := range rows {
		line, err := r.line()
		if err != nil {
			return sdk.NoStatement(sdk.BlameUpstream, "history: "+err.Error())
		}
		line.ID = fmt.Sprintf("%d-%d-%d", at.Window, at.Page, i)
		page.Lines = append(page.Lines, line)
	}
	at.Short = len(rows) > 0 && len(rows) < at.Size
	if at.Page++; len(rows) == 0 { // a short page may be as long as this upstream's are
		at.Window, at.Page = at.Window+1, 0
	}
	cursor, err := json.Marshal(at)
	if err != nil {
		return sdk.NoStatement(sdk.BlameNone, "encode the cursor: "+err.Error())
	}
	page.Known, page.Cursor, page.More = true, string(cursor), at.Window < len(windows)
	return page
}

// incoming are the types of rows that bring money, where a row does not say which way
// it goes. What is in no list goes out: a row too many proves nothing, and one that is
// missing would.
var incoming = map[string]bool{"TOP_UP": true, "RECEIVE_MONEY": true, "REFUND": true}

// line is a row of the history as a mutation, whatever its status: one that was
// cancelled is known to have been there.
func (r row) line() (sdk.StatementLine, error) {
	m, err := r.mutation()
	if err != nil {
		return sdk.StatementLine{}, err
	}
	line := sdk.StatementLine{At: m.at, Currency: rupiah, Outgoing: r.outgoing()}
	if line.Amount, err = money.Parse(m.TransactionAmount); err != nil && line.Outgoing {
		return sdk.StatementLine{}, errors.New("a row's amount is not in whole rupiah")
	}
	line.Data, err = json.Marshal(m)
	return line, err
}

func (r row) outgoing() bool {
	switch strings.ToUpper(string(r.Info.DebitCredit)) {
	case "DEBIT", "D":
		return true
	case "CREDIT", "C", "K":
		return false
	}
	return strings.HasPrefix(string(r.Amount.Value), "-") || !incoming[strings.ToUpper(string(r.Type))]
}
