package sdk

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func statementServer(t *testing.T, read func(context.Context, Statement) StatementPage) *Client {
	t.Helper()
	return dial(t, &server{handlers: Handlers{Statement: read}, log: hclog.NewNullLogger()})
}

func TestStatementOverTheWire(t *testing.T) {
	t.Parallel()
	asked := Statement{RequestID: "r", Connection: Connection{MerchantID: "m", Mode: "live", Version: 3}, Cursor: "c", Limit: 7}
	answer := StatementPage{
		Known: true, Cursor: "d", More: true, Through: time.Unix(90, 0).UTC(),
		Lines: []StatementLine{{ID: "1", Reference: "1", Amount: 10057, Currency: "IDR", At: time.Unix(80, 0).UTC(), Data: json.RawMessage(`{"a":1}`)}},
	}
	var got Statement
	c := statementServer(t, func(_ context.Context, s Statement) StatementPage { got = s; return answer })
	page, err := c.Statement(t.Context(), asked)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(answer, page); diff != "" {
		t.Errorf("the page differs:\n%s", diff)
	}
	if diff := cmp.Diff(asked, got); diff != "" {
		t.Errorf("the handler got another request:\n%s", diff)
	}
	answer = NoStatement(BlameAccount, "a.csv: line 3")
	if page, err = c.Statement(t.Context(), asked); err != nil || page.Known || page.Blame != BlameAccount || page.Detail != "a.csv: line 3" {
		t.Errorf("not read: %+v, %v", page, err)
	}
}

// TestStatementPanicCountsAsNotRead: a cursor must not move past lines that
// were never read.
func TestStatementPanicCountsAsNotRead(t *testing.T) {
	t.Parallel()
	c := statementServer(t, func(context.Context, Statement) StatementPage { panic("secret") })
	page, err := c.Statement(t.Context(), Statement{})
	if err != nil || page.Known || page.Cursor != "" || page.Detail == "" {
		t.Errorf("got %+v, %v", page, err)
	}
	if _, err := statementServer(t, nil).Statement(t.Context(), Statement{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("a plugin without statements: %v", err)
	}
}

// TestStatementsAreDeclared: a manifest that declares statements needs a handler.
func TestStatementsAreDeclared(t *testing.T) {
	t.Parallel()
	declaring := strings.Replace(payManifest, `"notifications": true`, `"notifications": true, "statements": true, "reports_late": "2h"`, 1)
	h := rightHandlers()
	if _, err := newServer([]byte(declaring), h); err == nil || !strings.Contains(err.Error(), "statements: ") {
		t.Errorf("got %v", err)
	}
	h.Statement = func(context.Context, Statement) StatementPage { return StatementPage{} }
	if _, err := newServer([]byte(declaring), h); err != nil {
		t.Error(err)
	}
}
