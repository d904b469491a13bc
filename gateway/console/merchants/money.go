package merchants

import (
	"encoding/csv"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console/page"
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
		next = r.Path("/balance") + page.Query(map[string]string{"from": asked["from"], "to": asked["to"], "after": statement.Next})
	}
	return r.Show("balance.html", r.T("Balance"), map[string]any{
		"Room": r, "Balance": balance, "Rows": statement.Entries, "Next": next, "Asked": asked, "CSV": r.Path("/balance/statement.csv") + page.Query(asked),
	})
}

// statementFilter is a statement's span: the last 31 days unless it is given.
func (c *Console) statementFilter(r *room) (adminapi.AccountStatementFilter, error) {
	span, err := r.Span(c.zone())
	filter := adminapi.AccountStatementFilter{Merchant: r.id(), Mode: string(r.Mode), From: span.Since, To: span.Until}
	if span.From == "" {
		filter.From = c.deps.Now().Add(-statementSpan)
	}
	return filter, err
}

// statementSpan is how much of a statement is shown unless a day is given.
const statementSpan = 31 * 24 * time.Hour

// statementCSV writes the whole statement.
func (c *Console) statementCSV(r *room) error {
	filter, err := c.statementFilter(r)
	if err != nil {
		return err
	}
	filter.Limit = adminapi.MostListed
	header := []string{"time", "kind", "reference", "available", "held", "balance_available", "balance_held"}
	return r.download("statement-"+string(r.Mode), header, func() (rows [][]string, more bool, err error) {
		found, err := adminapi.ListAccountStatement.Call(r.Request.Context(), r.admin, filter)
		for _, e := range found.Entries {
			rows = append(rows, []string{
				c.moment(e.At), e.Kind, cell(e.Reference), e.Available.String(), e.Held.String(), e.BalanceAvailable.String(), e.BalanceHeld.String(),
			})
		}
		filter.After = found.Next
		return rows, found.Next != "", err
	})
}

// download writes CSV as RFC 4180 has it, batch by batch, with the mark by which Excel
// knows UTF-8. What fails at first is shown as a page; what fails later is said in the last line.
func (r *room) download(name string, header []string, next func() (rows [][]string, more bool, err error)) error {
	rows, more, err := next()
	if err != nil {
		return err
	}
	r.Writer.Header().Set("Content-Type", "text/csv; charset=utf-8")
	r.Writer.Header().Set("Content-Disposition", `attachment; filename="`+name+`.csv"`)
	_, _ = io.WriteString(r.Writer, "\ufeff") // who reads may be gone, which the last flush tells
	out := csv.NewWriter(r.Writer)
	out.UseCRLF = true
	_ = out.Write(header)
	for {
		r.moreTime()
		_ = out.WriteAll(rows)
		if !more || out.Error() != nil {
			return nil //nolint:nilerr // who reads is gone
		}
		if rows, more, err = next(); err != nil {
			_ = out.WriteAll([][]string{{"incomplete: " + strconv.Quote(err.Error())}})
			return nil // what is cut says so itself
		}
	}
}

// moment is a time for programs, in the console's zone.
func (c *Console) moment(at time.Time) string {
	return at.In(c.zone()).Format("2006-01-02T15:04:05.999999-07:00")
}

func (c *Console) zone() *time.Location {
	if c.config.Location == nil {
		return time.UTC
	}
	return c.config.Location
}

// batchTime is how long a batch of a download may take.
const batchTime = time.Minute

// moreTime gives a download the time of another batch, so that however long it is, it ends
// at its end, or at one who reads no more.
func (r *room) moreTime() {
	_ = http.NewResponseController(r.Writer).SetWriteDeadline(time.Now().Add(batchTime)) // a writer without a deadline cuts nothing
}

// cell keeps a spreadsheet from taking what others have written for a formula.
func cell(text string) string {
	if strings.ContainsAny(text[:min(1, len(text))], "=+-@\t\r\n") {
		return "'" + text
	}
	return text
}
