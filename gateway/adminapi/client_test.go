package adminapi_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

const token = "operator-token-of-ayu"

// answers is a client of a console that always answers the same, and what the
// console was last asked.
func answers(t *testing.T, status int, body string) (*adminapi.Client, func() string) {
	t.Helper()
	asked := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" { // where a client looks whether it is at a console
			http.NotFound(w, r)
			return
		}
		content, _ := io.ReadAll(r.Body)
		asked <- strings.TrimSpace(r.Method + " " + r.URL.String() + " " + r.Header.Get("Authorization") + " " + string(content))
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	return adminapi.NewClient(server.URL+"/", token), func() string { return <-asked } // also with a slash at the end
}

func TestClientAsksOnlyForWhatIsGiven(t *testing.T) {
	t.Parallel()
	client, asked := answers(t, http.StatusOK, `{"success":true,"data":{}}`)
	at := time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)
	for want, ask := range map[string]func() error{
		"GET /admin/merchants/a%2Fb/balance?mode=live Bearer " + token: func() error {
			_, err := adminapi.ShowBalance.Call(t.Context(), client, adminapi.BalanceQuery{Merchant: "a/b", Mode: "live"})
			return err
		},
		"GET /admin/merchants/m/balance?at=2026-01-02T03%3A04%3A05.0000006Z&mode=test Bearer " + token: func() error {
			_, err := adminapi.ShowBalance.Call(t.Context(), client, adminapi.BalanceQuery{Merchant: "m", Mode: "test", At: at})
			return err
		},
		"GET /admin/merchants/m/account-statement?after=n+1&limit=5&mode=live Bearer " + token: func() error {
			_, err := adminapi.ListAccountStatement.Call(t.Context(), client, adminapi.AccountStatementFilter{Merchant: "m", Mode: "live", After: "n 1", Limit: 5})
			return err
		},
		"GET /admin/merchants Bearer " + token: func() error {
			_, err := adminapi.ListMerchants.Call(t.Context(), client, adminapi.MerchantFilter{})
			return err
		},
		"POST /admin/movements/m-1/override Bearer " + token + ` {"as":"failed","reason":"r"}`: func() error {
			_, err := adminapi.OverrideMovement.Call(t.Context(), client, adminapi.NewOverride{Movement: "m-1", As: "failed", Reason: "r"})
			return err
		},
	} {
		if err := ask(); err != nil {
			t.Errorf("%s: %v", want, err)
		}
		if got := asked(); got != want {
			t.Errorf("asked %s\nwant  %s", got, want)
		}
	}
}

func TestClientFailures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status     int
		body, want string
		code       fault.Code
	}{
		{502, "bad gateway", "the console answered with status 502", ""},
		{502, `{"message":7,"error_code":"INTERNAL"}`, "the console answered with status 502", ""},
		{302, "", "the console answered with status 302", ""}, // the token stays here
		{401, `{"success":false,"message":"The operator token is missing or wrong.","error_code":"AUTH_FAILED","request_id":"r"}`,
			"The operator token is missing or wrong.", fault.AuthFailed},
		{400, `{"message":"The request is invalid: a is required.","error_code":"INVALID_REQUEST",` +
			`"errors":[{"field":"a","message":"is required"},{"field":"b","message":"is wrong"}]}`,
			"The request is invalid: a is required.\n  b is wrong", fault.InvalidRequest},
	} {
		client, _ := answers(t, c.status, c.body)
		_, err := adminapi.ListPlugins.Call(t.Context(), client, adminapi.None{})
		failure, ok := errors.AsType[*adminapi.Failure](err)
		if !ok || failure.Status != c.status || failure.Code != c.code || failure.Error() != c.want {
			t.Errorf("%d %s: %+v, %v", c.status, c.body, failure, err)
		}
	}
	client, _ := answers(t, http.StatusOK, "no JSON")
	if _, err := adminapi.ListPlugins.Call(t.Context(), client, adminapi.None{}); err == nil || !strings.Contains(err.Error(), "read the console's answer") {
		t.Errorf("an answer that is no JSON: %v", err)
	}
}

func TestReady(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status     int
		body, want string
	}{
		{200, `{"ready":true,"checks":[{"name":"database","ok":true}]}`, ""},
		{503, `{"ready":false,"checks":[{"name":"database","ok":false,"detail":"does not answer"},{"name":"clock","ok":true}]}`,
			"the gateway is not ready: database does not answer"},
		{503, `{}`, "the console answered with status 503"},
	} {
		client, _ := answers(t, c.status, c.body)
		got := ""
		if err := client.Ready(t.Context()); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%d %s: %q, want %q", c.status, c.body, got, c.want)
		}
	}
}
