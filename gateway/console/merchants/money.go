package merchants

import (
	"encoding/csv"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

func (c *Console) balance(r *room) error {
	filter, err := c.statementFilter(r)
	if err != nil {
		return err
	}
	balance, err := adminapi.ShowBalance.Call(r.Request.Context(), r.admin, adminapi.BalanceQuery{Merchant: r.id(), Mode: string(r.Mode)})
	if err != nil {
		return err
	}
	filter.Limit, filter.After = pageOf, r.Form("after")
	statement, err := adminapi.ListAccountStatement.Call(r.Request.Context(), r.admin, filter)
	if err != nil {
		return err
	}
	asked := map[string]string{"from": r.Form("from"), "to": r.Form("to")}
	next := ""
	if statement.Next != "" {
		next = r.Path("/balance") + query(map[string]string{"from": asked["from"], "to": asked["to"], "after": statement.Next})
	}
	return r.Show("balance.html", r.T("Balance"), map[string]any{
		"Room": r, "Balance": balance, "Rows": statement.Entries, "Next": next, "Asked": asked, "CSV": r.Path("/balance/statement.csv") + query(asked),
	})
}

// statementFilter is a statement's span: the last 31 days unless it is given.
func (c *Console) statementFilter(r *room) (adminapi.AccountStatementFilter, error) {
	filter := adminapi.AccountStatementFilter{Merchant: r.id(), Mode: string(r.Mode), From: c.deps.Now().Add(-prefixSpan)}
	if text := r.Form("from"); text != "" {
		from, err := c.day(text, 0)
		if err != nil {
			return filter, fault.Invalid("from", "must be a day like 2026-01-31")
		}
		filter.From = from
	}
	if text := r.Form("to"); text != "" {
		to, err := c.day(text, 1)
		if err != nil {
			return filter, fault.Invalid("to", "must be a day like 2026-01-31")
		}
		filter.To = to
	}
	return filter, nil
}

// statementCSV writes the whole statement, page by page.
func (c *Console) statementCSV(r *room) error {
	filter, err := c.statementFilter(r)
	if err != nil {
		return err
	}
	filter.Limit = adminapi.MostListed
	page, err := adminapi.ListAccountStatement.Call(r.Request.Context(), r.admin, filter)
	if err != nil {
		return err
	}
	r.Writer.Header().Set("Content-Type", "text/csv; charset=utf-8")
	r.Writer.Header().Set("Content-Disposition", `attachment; filename="statement-`+string(r.Mode)+`.csv"`)
	out := csv.NewWriter(r.Writer)
	_ = out.Write([]string{"time", "kind", "reference", "available", "held", "balance_available", "balance_held"})
	for {
		r.moreTime()
		for _, e := range page.Entries {
			_ = out.Write([]string{
				e.At.Format(time.RFC3339Nano), e.Kind, cell(e.Reference), e.Available.String(), e.Held.String(),
				e.BalanceAvailable.String(), e.BalanceHeld.String(),
			})
		}
		if out.Flush(); page.Next == "" || out.Error() != nil {
			break
		}
		filter.After = page.Next
		if page, err = adminapi.ListAccountStatement.Call(r.Request.Context(), r.admin, filter); err != nil {
			// The head is out: the cut is said in the last line.
			_ = out.Write([]string{"incomplete: " + strconv.Quote(err.Error())})
			break
		}
	}
	out.Flush()
	return nil //nolint:nilerr // what is cut says so itself
}

// batchTime is how long a batch of a download may take.
const batchTime = time.Minute

// moreTime gives a download the time of another batch, so that however long it is, it ends
// at its end, or at one who reads no more.
func (r *room) moreTime() {
	_ = http.NewResponseController(r.Writer).SetWriteDeadline(time.Now().Add(batchTime)) // a writer without a deadline cuts nothing
}

// cell keeps a spreadsheet from taking a reference for a formula.
func cell(text string) string {
	if strings.ContainsAny(text[:min(1, len(text))], "=+-@\t\r") {
		return "'" + text
	}
	return text
}
