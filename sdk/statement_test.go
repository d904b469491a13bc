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

func reporting(t *testing.T, read func(context.Context, Statement) StatementPage) *Client {
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
	c := reporting(t, func(_ context.Context, s Statement) StatementPage { got = s; return answer })
	report, err := c.Statement(t.Context(), asked)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(answer, report); diff != "" {
		t.Errorf("the report differs:\n%s", diff)
	}
	if diff := cmp.Diff(asked, got); diff != "" {
		t.Errorf("the handler got another question:\n%s", diff)
	}
	answer = NoReport(BlameAccount, "a.csv: line 3")
	if report, err = c.Statement(t.Context(), asked); err != nil || report.Known || report.Blame != BlameAccount || report.Detail != "a.csv: line 3" {
		t.Errorf("not read: %+v, %v", report, err)
	}
}

// TestAStatementThatPanicsWasNotRead: a cursor must not move past rows that
// nobody has seen.
func TestAStatementThatPanicsWasNotRead(t *testing.T) {
	t.Parallel()
	c := reporting(t, func(context.Context, Statement) StatementPage { panic("secret") })
	report, err := c.Statement(t.Context(), Statement{})
	if err != nil || report.Known || report.Cursor != "" || report.Detail == "" {
		t.Errorf("got %+v, %v", report, err)
	}
	if _, err := reporting(t, nil).Statement(t.Context(), Statement{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("of a plugin without statements: %v", err)
	}
}

// TestStatementsAreDeclared: a manifest that promises them has a handler.
func TestStatementsAreDeclared(t *testing.T) {
	t.Parallel()
	promising := strings.Replace(payManifest, `"notifications": true`, `"notifications": true, "statements": true, "reports_late": "2h"`, 1)
	h := rightHandlers()
	if _, err := newServer([]byte(promising), h); err == nil || !strings.Contains(err.Error(), "statements: ") {
		t.Errorf("got %v", err)
	}
	h.Statement = func(context.Context, Statement) StatementPage { return StatementPage{} }
	if _, err := newServer([]byte(promising), h); err != nil {
		t.Error(err)
	}
}
