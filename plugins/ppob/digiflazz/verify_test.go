package digiflazz

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/sdk"
)

func TestAnAccountIsVerified(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer  canned
		outcome sdk.Outcome
		blame   sdk.Blame
		says    string
	}{
		"a deposit":     {answer: canned{200, `{"data":{"deposit":500000}}`}, outcome: sdk.Done},
		"in the red":    {answer: canned{200, `{"data":{"deposit":"-1.5"}}`}, outcome: sdk.Done},
		"wrong key":     {answer: canned{400, `{"data":{"rc":"41","message":"Signature tidak valid","status":"Gagal"}}`}, outcome: sdk.NotSent, blame: sdk.BlameAccount, says: "signature is wrong"},
		"wrong user":    {answer: canned{400, `{"data":{"rc":"42","message":"x"}}`}, outcome: sdk.NotSent, blame: sdk.BlameAccount, says: "API user"},
		"wrong address": {answer: canned{400, `{"data":{"rc":"45","message":"IP Anda tidak kami kenali"}}`}, outcome: sdk.NotSent, blame: sdk.BlameAccount, says: "IP address"},
		"quoted": {
			answer: canned{400, `{"data":{"rc":"41","message":"` + testKey + ` ` + testSecret + `"}}`}, outcome: sdk.NotSent,
			blame: sdk.BlameAccount, says: "[secret] [secret]",
		},
		"too often": {answer: canned{400, `{"data":{"rc":"85","message":"x","status":"Gagal"}}`}, outcome: sdk.Unknown, blame: sdk.BlameLimit},
		"nothing":   {answer: canned{200, `{"data":{}}`}, outcome: sdk.Unknown, blame: sdk.BlameUpstream},
		"a list":    {answer: canned{200, `{"data":[]}`}, outcome: sdk.Unknown, blame: sdk.BlameUpstream},
		"down":      {answer: canned{502, `<html>`}, outcome: sdk.Unknown, blame: sdk.BlameUpstream},
	} {
		up := newStub(t, map[string]canned{"/cek-saldo deposit": c.answer})
		r := verify(t.Context(), connect(t, up.url))
		if r.Outcome != c.outcome || r.Blame != c.blame || !strings.Contains(r.Detail, c.says) {
			t.Errorf("%s: %+v", name, r)
		}
		if strings.Contains(r.Detail, testKey) || strings.Contains(r.Detail, testSecret) {
			t.Errorf("%s: a secret is in %s", name, r.Detail)
		}
		if got := up.only(t).body; got["username"] != testUser || got["sign"] != (credentials{testUser, testKey, ""}).sign("depo") {
			t.Errorf("%s: asked with %v", name, got)
		}
	}
	if r := verify(t.Context(), connect(t, "http://127.0.0.1:1")); r.Outcome != sdk.NotSent || r.Blame != sdk.BlameUpstream {
		t.Errorf("nobody there: %+v", r)
	}
	unusable := sdk.Connection{Credentials: json.RawMessage(`{"username":"u","api_key":"hush-hush"}`)}
	if r := verify(t.Context(), unusable); r.Outcome != sdk.Refused || r.Refusal.Message == "" || strings.Contains(r.Refusal.Message, "hush") {
		t.Errorf("unusable: %+v", r)
	}
}
