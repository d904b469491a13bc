package sdktest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/sdktest"
)

// collections begins the names of mutants of the plugin that collects.
const collections = "collections "

const collectionManifest = `{
	"manifest": 1, "name": "collections", "version": "1.0.0", "title": "Collections", "lookup": "read",
	"settles_within": "30s", "account": "/key", "statements": true, "reports_late": "1h",
	"references": {"longest": 64, "alphabet": "0-9a-f"}, "connection": {"type": "object", "properties": {"key": {"type": "string"}}},
	"operations": [
		{"path": "/example/collect", "kind": "collection", "summary": "Collect", "timeout": "5s", "reference": "/id", "amount": "/amount",
		 "request": {"type": "object", "required": ["amount"], "additionalProperties": false,
			"properties": {"id": {"type": "string"}, "amount": {"type": "integer", "minimum": 1, "maximum": 1000000}}},
		 "result": {"type": "object", "required": ["code"], "properties": {"code": {"type": "string"}}}, "response": {"type": "object"}},
		{"path": "/example/collected", "status_of": "/example/collect", "summary": "Status", "reference": "/id",
		 "request": {"type": "object", "properties": {"id": {"type": "string"}}}, "response": {"type": "object"}}
	]}`

func collectionSuite() sdktest.Suite {
	return sdktest.Suite{
		Manifest: []byte(collectionManifest), Open: openUpstream, Command: mutantCommand(collections),
		Examples: []sdktest.Example{
			{Name: "collect", Operation: "/example/collect", Body: json.RawMessage(`{"amount":100}`), Want: sdk.Pending},
		},
	}
}

func TestConformanceOfCollections(t *testing.T) {
	t.Parallel()
	sdktest.Run(t, collectionSuite())
}

// Earn makes a charge of what a code says.
func (u *upstream) Earn(_ context.Context, _ sdk.Connection, result json.RawMessage) error {
	var made struct{ Code string }
	if err := json.Unmarshal(result, &made); err != nil {
		return err
	}
	code, err := url.ParseQuery(made.Code)
	if err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	paid := &charge{ID: strconv.Itoa(len(u.charges)), State: "paid", key: code.Get("to")}
	u.charges = append(u.charges, paid)
	return json.Unmarshal([]byte(code.Get("amount")), &paid.Amount)
}

// books answers the charges of an account, the oldest first.
func (u *upstream) books(w http.ResponseWriter, r *http.Request) {
	u.mu.Lock()
	defer u.mu.Unlock()
	mine := []*charge{}
	for _, c := range u.charges {
		if c.key == r.Header.Get("Authorization") {
			mine = append(mine, c)
		}
	}
	_ = json.NewEncoder(w).Encode(mine)
}

// collector is a right plugin that collects, unless it is a mutant.
type collector struct {
	*adapter
	kept int // of a mutant that remembers how far it read
}

func serveCollections(mutant string) {
	c := &collector{adapter: &adapter{mutant: mutant}}
	sdk.Serve([]byte(collectionManifest), sdk.Handlers{
		Calls:     map[string]func(context.Context, sdk.Call) sdk.Result{"/example/collect": c.collect},
		Lookup:    c.tell,
		Statement: c.statement,
	})
}

func (c *collector) codeOf(of sdk.Connection, amount any) map[string]string {
	who, _ := c.account(of)
	switch c.mutant {
	case "one code":
		amount = 100
	case "code of nobody":
		who.Key = ""
	case "other result":
		return map[string]string{"url": fmt.Sprint(amount)}
	}
	return map[string]string{"code": fmt.Sprintf("to=%s&amount=%d", who.Key, amount)}
}

func (c *collector) collect(_ context.Context, call sdk.Call) sdk.Result {
	return sdk.Accepted("", time.Time{}, c.codeOf(call.Connection, call.Amount))
}

func (c *collector) tell(_ context.Context, l sdk.Lookup) sdk.StatusUpdate {
	data := sdk.Accepted("", time.Time{}, c.codeOf(l.Connection, l.Amount)).Data
	if c.mutant == "forgets the code" {
		data = nil
	}
	return sdk.StatusUpdate{Reference: l.Reference, Status: sdk.StatusPending, Amount: l.Amount, Currency: "IDR", Data: data}
}

func (c *collector) charges(ctx context.Context, of sdk.Connection) (all []charge, err error) {
	who, err := c.account(of)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, who.URL+"/books", nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", who.Key)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return all, json.NewDecoder(response.Body).Decode(&all)
}

func (c *collector) statement(ctx context.Context, s sdk.Statement) sdk.StatementPage {
	all, err := c.charges(ctx, s.Connection)
	if err != nil {
		return sdk.NoStatement(sdk.BlameUpstream, err.Error())
	}
	from, err := strconv.Atoi(s.Cursor)
	if err != nil || from > len(all) {
		from = 0
	}
	switch c.mutant {
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

// spoil makes the report of a mutant.
func (c *collector) spoil(r sdk.StatementPage) sdk.StatementPage {
	switch {
	case c.mutant == "reads nothing":
		return sdk.NoStatement(sdk.BlameUpstream, "no")
	case c.mutant == "promises the future":
		r.Through = time.Now().Add(time.Hour)
	case c.mutant == "loses a row" && len(r.Lines) > 1:
		r.Lines = r.Lines[1:]
	case c.mutant == "names rows anew":
		for i := range r.Lines {
			r.Lines[i].ID += strconv.FormatInt(time.Now().UnixNano(), 10)
		}
	}
	return r
}
