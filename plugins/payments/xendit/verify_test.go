package xendit

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/plugins/payments/sandbox"
	"github.com/seed-f006e74d/gerbang/sdk"
)

func TestAKeyIsVerified(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer  reply
		outcome sdk.Outcome
		blame   sdk.Blame
		says    string
	}{
		"no invoice yet": {answer: reply{200, `[]`}, outcome: sdk.Done},
		"an invoice":     {answer: reply{200, `[` + anInvoice("PAID", "") + `]`}, outcome: sdk.Done, says: "Toko Contoh"},
		"wrong key": {
			answer:  reply{401, `{"error_code":"INVALID_API_KEY","message":"API key ` + testKey + ` is not valid"}`},
			outcome: sdk.NotSent, blame: sdk.BlameAccount, says: "API key [secret] is not valid",
		},
		"may not read": {
			answer:  reply{403, `{"error_code":"REQUEST_FORBIDDEN_ERROR","message":"no permission"}`},
			outcome: sdk.NotSent, blame: sdk.BlameAccount, says: "no permission",
		},
		"down":       {answer: reply{503, `<html>`}, outcome: sdk.Unknown, blame: sdk.BlameUpstream},
		"too often":  {answer: reply{429, `{"error_code":"RATE_LIMIT_EXCEEDED"}`}, outcome: sdk.NotSent, blame: sdk.BlameLimit},
		"no list":    {answer: reply{200, `{"invoices":[]}`}, outcome: sdk.Unknown, blame: sdk.BlameUpstream},
		"a redirect": {answer: reply{302, ``}, outcome: sdk.Unknown, blame: sdk.BlameUpstream},
	} {
		up := newStub(t, map[string]reply{"GET /v2/invoices?limit=1": c.answer})
		r := verify(t.Context(), connect(t, up.url))
		if r.Outcome != c.outcome || r.Blame != c.blame || !strings.Contains(r.ProviderReference+r.Detail, c.says) {
			t.Errorf("%s: %+v", name, r)
		}
		if strings.Contains(r.Detail, testKey) {
			t.Errorf("%s: the key is in %s", name, r.Detail)
		}
		if key, _, _ := basicAuth(up.only(t)); key != testKey {
			t.Errorf("%s: asked with key %q", name, key)
		}
	}
}

// TestVerifyingKeepsNothing: the next credentials under the same names are
// other ones.
func TestVerifyingKeepsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.DefaultOptions())
	right, wrong := w.connection, connect(t, "http://127.0.0.1:1", "secret_key", "nonsense")
	right.Version, wrong.Version = 0, 0
	if r := w.handlers().Verify(t.Context(), wrong); r.Outcome == sdk.Done {
		t.Errorf("nobody took it: %+v", r)
	}
	if r := w.handlers().Verify(t.Context(), right); r.Outcome != sdk.Done {
		t.Errorf("the simulator: %+v", r)
	}
	w.exist(0)
	unreadable := sdk.Connection{Credentials: json.RawMessage(`{"secret_key":"hush-hush"}`)}
	if r := verify(t.Context(), unreadable); r.Outcome != sdk.Refused || r.Refusal.Message == "" || strings.Contains(r.Refusal.Message, "hush") {
		t.Errorf("unreadable: %+v", r)
	}
}
