package sdktest_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

const collectionManifest = `{
	"manifest": 1, "name": "collections", "version": "1.0.0", "title": "Collections", "lookup": "read",
	"settles_within": "30s", "account": "/key", "statements": true, "reports_late": "1h",
	"references": {"longest": 64, "alphabet": "0-9a-f"}, "connection": {"type": "object", "properties": {"key": {"type": "string"}}},
	"operations": [
		{"path": "/example/collect", "kind": "collection", "summary": "Collect", "timeout": "5s", "reference": "/id", "amount": "/amount",
		 "request": {"type": "object", "required": ["amount"], "additionalProperties": false,
			"properties": {"id": {"type": "string"}, "amount": {"type": "integer", "minimum": 1, "maximum": 1000000000000}}},
		 "result": {"type": "object", "required": ["qr_string"], "properties": {"qr_string": {"type": "string"}}}, "response": {"type": "object"}},
		{"path": "/example/collected", "status_of": "/example/collect", "summary": "Status", "reference": "/id",
		 "request": {"type": "object", "properties": {"id": {"type": "string"}}}, "response": {"type": "object"}}
	]}`

const collectionExamples = `{
	"examples": [{"name": "collect", "operation": "/example/collect", "body": {"amount": 100}, "outcome": "pending"}]
	}`

// collector is a sound plugin that collects, unless it has a bug.
type collector struct {
	*adapter
	kept int // of a bug that remembers how far it read
}

func serveCollections(a *adapter) {
	c := &collector{adapter: a}
	sdk.Serve([]byte(collectionManifest), sdk.Handlers{
		Calls:     map[string]func(context.Context, sdk.Call) sdk.Result{"/example/collect": c.collect},
		Lookup:    c.tell,
		Statement: c.statement,
	})
}

func (c *collector) codeOf(of sdk.Connection, amount any) map[string]string {
	to := sandbox.AccountOf("")
	if who, err := c.account(of); err == nil {
		to = sandbox.AccountOf(who.Key)
	}
	switch c.bug {
	case "makes one code for all amounts":
		amount = 100
	case "makes a code of nobody":
		to = ""
	case "answers what it did not declare":
		return map[string]string{"url": fmt.Sprint(amount)}
	}
	return map[string]string{"qr_string": fmt.Sprintf("to=%s&amount=%d", to, amount)}
}

func (c *collector) collect(_ context.Context, call sdk.Call) sdk.Result {
	return sdk.Accepted("", time.Time{}, c.codeOf(call.Connection, call.Amount))
}

func (c *collector) tell(_ context.Context, l sdk.Lookup) sdk.StatusUpdate {
	data := sdk.Accepted("", time.Time{}, c.codeOf(l.Connection, l.Amount)).Data
	if c.bug == "forgets the code" {
		data = nil
	}
	return sdk.StatusUpdate{Reference: l.Reference, Status: sdk.StatusPending, Amount: l.Amount, Currency: "IDR", Data: data}
}

// charges are the account's, the oldest first.
func (a *adapter) books(ctx context.Context, of sdk.Connection) ([]charge, error) {
	var all struct{ Rows []charge }
	err := a.fetch(ctx, of, http.MethodGet, "/books", nil, &all)
	if err == nil && all.Rows == nil {
		err = errUnclear
	}
	if a.bug == "takes books that it could not read for empty ones" {
		err = nil
	}
	return all.Rows, err
}

func (c *collector) statement(ctx context.Context, s sdk.Statement) sdk.StatementPage {
	all, err := c.books(ctx, s.Connection)
	if err != nil {
		return sdk.NoStatement(sdk.BlameUpstream, err.Error())
	}
	from, err := strconv.Atoi(s.Cursor)
	if err != nil || from > len(all) {
		from = 0
	}
	switch c.bug {
	case "trusts the cursor":
		if err != nil && s.Cursor != "" || from == 0 && s.Cursor != "" {
			from = len(all)
		}
	case "keeps the cursor":
		from, c.kept = c.kept, min(c.kept+s.Limit, len(all))
	case "reads pages by time":
		slices.Reverse(all)
	}
	to := min(from+s.Limit, len(all))
	r := sdk.StatementPage{Known: true, Cursor: strconv.Itoa(to), More: to < len(all), Through: time.Now().Add(-time.Hour)}
	for _, paid := range all[from:to] {
		r.Lines = append(r.Lines, sdk.StatementLine{ID: paid.ID, Reference: paid.ID, Amount: paid.Amount, Currency: "IDR", At: time.Unix(1, 0)})
	}
	return c.spoil(r)
}

// spoil makes the page of a bug.
func (c *collector) spoil(r sdk.StatementPage) sdk.StatementPage {
	switch {
	case c.bug == "reads nothing":
		return sdk.NoStatement(sdk.BlameUpstream, "no")
	case c.bug == "promises the future":
		r.Through = time.Now().Add(time.Hour)
	case c.bug == "loses a row" && len(r.Lines) > 1:
		r.Lines = r.Lines[1:]
	case c.bug == "names rows anew":
		for i := range r.Lines {
			r.Lines[i].ID += strconv.FormatInt(time.Now().UnixNano(), 10)
		}
	}
	return r
}

const transferManifest = `{
	"manifest": 1, "name": "transfers", "version": "1.0.0", "title": "Transfers", "lookup": "read", "settles_within": "30s",
	"account": "/key", "mutations": true, "references": {"longest": 64, "alphabet": "0-9a-f"},
	"connection": {"type": "object", "properties": {"key": {"type": "string"}}},
	"operations": [
		{"path": "/example/send", "kind": "transfer", "summary": "Send", "timeout": "5s", "reference": "/id", "amount": "/amount", "destination": ["/to"],
		 "request": {"type": "object", "required": ["amount", "to"], "additionalProperties": false,
			"properties": {"id": {"type": "string"}, "amount": {"type": "integer", "minimum": 1, "maximum": 1000000000000}, "to": {"type": "string"}}},
		 "result": {"type": "object"}, "response": {"type": "object"}},
		{"path": "/example/sent", "status_of": "/example/send", "summary": "Status", "reference": "/id",
		 "request": {"type": "object", "properties": {"id": {"type": "string"}}}, "response": {"type": "object"}}
	]}`

const transferExamples = `{
	"own_errors": true,
	"examples": [{"name": "send", "operation": "/example/send", "body": {"amount": 100, "to": "1"}, "outcome": "pending"}]
	}`

// serveTransfers serves a sound plugin that sends money, unless it has a bug.
func serveTransfers(a *adapter) {
	sdk.Serve([]byte(transferManifest), sdk.Handlers{
		Calls:     map[string]func(context.Context, sdk.Call) sdk.Result{"/example/send": a.pay},
		Lookup:    a.lookup,
		Statement: a.mutations,
	})
}

func (a *adapter) mutations(ctx context.Context, s sdk.Statement) sdk.StatementPage {
	all, err := a.books(ctx, s.Connection)
	if err != nil {
		return sdk.NoStatement(sdk.BlameUpstream, err.Error())
	}
	from, _ := strconv.Atoi(s.Cursor)
	if a.bug == "skips a row at each page" && s.Cursor != "" {
		from++
	}
	to := min(from+s.Limit, len(all))
	r := sdk.StatementPage{Known: true, Cursor: strconv.Itoa(to), More: to < len(all)}
	if a.bug == "reads one page only" {
		r.More = false
	}
	for _, sent := range all[min(from, to):to] {
		line := sdk.StatementLine{ID: sent.ID, Reference: sent.Ref, Amount: sent.Amount, Currency: "IDR", At: time.Unix(1, 0), Outgoing: true}
		switch a.bug {
		case "names rows by the upstream's own ids":
			line.Reference = sent.ID
		case "takes money out for money in":
			line.Outgoing = false
		}
		r.Lines = append(r.Lines, line)
	}
	return r
}
