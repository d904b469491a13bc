package conformance

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// checkCode: a collection is a code that any process can make again,
// another for each amount and for each account.
func checkCode(tr *trial, e Example) {
	o := tr.order(e)
	first := tr.sendAccepted(o)
	tr.mustFit(e, first.Data)
	again := tr.sendAccepted(o)
	found := tr.find(o, "")
	if string(again.Data) != string(first.Data) || string(found.Data) != string(first.Data) {
		tr.Errorf("answered %s, then %s, and %s when looked up", first.Data, again.Data, found.Data)
	}
	if found.Status != sdk.StatusPending || found.Reference != o.call.Reference || found.Amount != o.call.Amount || found.Currency != "IDR" {
		tr.Errorf("found %+v, want it pending as it was ordered", found)
	}
	more := o
	more.call.Amount++
	if r := tr.sendAccepted(more); string(r.Data) == string(first.Data) {
		tr.Errorf("two amounts have one code: %s", r.Data)
	}
	if r := tr.sendAccepted(tr.orderFor(e, tr.connect("B", "test"))); string(r.Data) == string(first.Data) {
		tr.Errorf("two accounts have one code: %s", r.Data)
	}
	tr.mustNotExist(o)
}

// collected is what a statement must have: for each amount how often.
type collected map[money.Amount]int

// collect has payers pay collections of growing amounts in an account.
func (tr *trial) collect(a *account, above money.Amount, count int) collected {
	i := slices.IndexFunc(tr.suite.examples.Examples, func(e Example) bool {
		op, _ := tr.manifest.Operation(e.Operation)
		return op.Kind == manifest.Collection && accepted(e.want())
	})
	if i < 0 {
		tr.Skip("no collection fills the statement of this provider")
	}
	paid := collected{}
	for n := range count {
		o := tr.orderFor(tr.suite.examples.Examples[i], a)
		o.call.Amount += above + money.Amount(n)
		if _, err := tr.pay(tr.sendAccepted(o), 0); err != nil {
			tr.unless(err, "let a payer pay a collection")
		}
		paid[o.call.Amount]++
	}
	return paid
}

// page reads one page of the statement.
func (tr *trial) page(a *account, cursor string, limit int) sdk.StatementPage {
	ctx, cancel := context.WithTimeout(tr.Context(), patience)
	defer cancel()
	r, err := tr.plugin.Statement(ctx, sdk.Statement{RequestID: uuid.NewString(), Connection: a.Connection, Cursor: cursor, Limit: limit})
	if err != nil {
		tr.Fatalf("the statement broke the transport: %v", err)
	}
	if !r.Known || len(r.Lines) > limit || r.Cursor == "" {
		tr.Fatalf("got %+v, want a statement that was read, at most %d lines, and a cursor", r, limit)
	}
	return r
}

// readAll reads on until there is no more, and gives the lines, each once, and
// the last page.
func (tr *trial) readAll(a *account, cursor string, limit int) (lines map[string]sdk.StatementLine, last sdk.StatementPage) {
	lines = map[string]sdk.StatementLine{}
	last.More, last.Cursor = true, cursor
	var through time.Time
	for pages := 0; last.More; pages++ {
		if pages > 1000 {
			tr.Fatal("the cursor goes in circles")
		}
		last = tr.page(a, last.Cursor, limit)
		for _, e := range last.Lines {
			if e.ID == "" || e.At.IsZero() || e.Amount < 1 {
				tr.Errorf("line %+v, want an id, a time and an amount", e)
			}
			lines[e.ID] = e
		}
		if !last.Through.IsZero() && last.Through.Before(through) {
			tr.Errorf("complete until %v after %v", last.Through, through)
		}
		through = last.Through
	}
	if through.After(time.Now()) {
		tr.Errorf("complete until %v, which has not come yet", through)
	}
	return lines, last
}

func amountsOf(lines map[string]sdk.StatementLine) collected {
	amounts := collected{}
	for _, e := range lines {
		amounts[e.Amount]++
	}
	return amounts
}

func (tr *trial) mustStatement() {
	if !tr.manifest.Statements {
		tr.Skip("this provider has no statements")
	}
}

// checkStatements: the statement has what was paid into the account, whatever the
// size of a page, and reading on finds what is new and loses nothing.
func checkStatements(tr *trial) {
	tr.mustStatement()
	mine := tr.open("A", "test")
	want := tr.collect(mine, 0, 5)
	tr.collect(tr.open("B", "test"), 1000, 2)
	tr.collect(tr.open("A", "live"), 2000, 2)

	atOnce, last := tr.readAll(mine, "", 100)
	if got := amountsOf(atOnce); !maps.Equal(got, want) {
		tr.Errorf("the statement has %v, want %v", got, want)
	}
	singly, _ := tr.readAll(mine, "", 1)
	if !maps.EqualFunc(singly, atOnce, sameLine) {
		tr.Errorf("one by one the statement has %v, at once %v", amountsOf(singly), amountsOf(atOnce))
	}
	if again, _ := tr.readAll(mine, last.Cursor, 100); len(again) != 0 {
		tr.Errorf("nothing happened, and the cursor leads to %v", amountsOf(again))
	}
	fresh := tr.collect(mine, 100, 2)
	news, _ := tr.readAll(mine, last.Cursor, 1)
	maps.DeleteFunc(news, func(id string, e sdk.StatementLine) bool { return sameLine(atOnce[id], e) }) // upstreams repeat rows
	if !maps.Equal(amountsOf(news), fresh) {
		tr.Errorf("the new lines are %v, want %v", amountsOf(news), fresh)
	}
}

func sameLine(a, b sdk.StatementLine) bool {
	return a.ID == b.ID && a.Reference == b.Reference && a.Amount == b.Amount && a.Currency == b.Currency && a.At.Equal(b.At) && a.Reversed == b.Reversed
}

// checkReadTwice: a cursor is worth the same to another process, and as often as
// it is read: the answer may have been lost.
func checkReadTwice(tr *trial) {
	tr.mustStatement()
	mine := tr.open("A", "test")
	want := tr.collect(mine, 0, 4)
	tr.own()
	begun := tr.page(mine, "", 2)
	rest, _ := tr.readAll(mine, begun.Cursor, 1)
	if err := tr.plugin.kill(tr.Context()); err != nil {
		tr.Fatal(err)
	}
	tr.own()
	again, _ := tr.readAll(mine, begun.Cursor, 100)
	if !maps.EqualFunc(rest, again, sameLine) {
		tr.Errorf("the same cursor led to %v, then to %v", amountsOf(rest), amountsOf(again))
	}
	if all := distinct(begun.Lines, slices.Collect(maps.Values(rest))); !maps.Equal(amountsOf(all), want) {
		tr.Errorf("the statement has %v, want %v", amountsOf(all), want)
	}
}

func distinct(pages ...[]sdk.StatementLine) map[string]sdk.StatementLine {
	lines := map[string]sdk.StatementLine{}
	for _, e := range slices.Concat(pages...) {
		lines[e.ID] = e
	}
	return lines
}

// checkForeignCursor: what is no cursor of this plugin's is refused, or read as
// a beginning. It never hides what happened.
func checkForeignCursor(tr *trial) {
	tr.mustStatement()
	mine := tr.open("A", "test")
	want := tr.collect(mine, 0, 2)
	ctx, cancel := context.WithTimeout(tr.Context(), patience)
	defer cancel()
	for _, cursor := range []string{"nonsense", "{}", "[1]", "null", "999999999"} {
		r, err := tr.plugin.Statement(ctx, sdk.Statement{Connection: mine.Connection, Cursor: cursor, Limit: 100})
		if got := amountsOf(distinct(r.Lines)); err != nil || r.Known && !maps.Equal(got, want) {
			tr.Errorf("the cursor %q leads to %v, %v", cursor, got, err)
		}
	}
}

// checkStatementFaults: lines that could not be read are not said to be none.
func checkStatementFaults(tr *trial) {
	tr.mustStatement()
	a := tr.open("A", "test")
	want := tr.collect(a, 0, 3)
	a.renew()
	before := a.requests()
	tr.page(a, "", 100)
	requests := a.requests() - before
	tr.each(a, requests, func(f fault, n int, where string) {
		a.renew()
		a.arm(f, n)
		tr.mustReadAll(a, sdk.Statement{Limit: 100}, func(lines []sdk.StatementLine) bool {
			return maps.Equal(amountsOf(distinct(lines)), want)
		}, where)
	})
}
