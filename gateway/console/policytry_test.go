package console_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// night refuses transfers at night, and one bank at any time.
const night = `package gerbang

refusals contains "Transfers rest from 23:00 to 05:00." if {
	input.operation.kind == "transfer"
	input.clock.hour in {23, 0, 1, 2, 3, 4}
}

refusals contains "Not that bank." if input.fields.bank_code == "999"
`

// TestTryPolicy asks versions and a set that is none about a transfer at night and by day.
func TestTryPolicy(t *testing.T) {
	t.Parallel()
	w := withPolicy(t)
	content, err := os.ReadFile("../../plugins/wallet1/manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	wallet1, err := manifest.Parse(content)
	if err != nil {
		t.Fatal(err)
	}
	w.plugins.others = append(w.plugins.others, wallet1)
	w.catalog.Swap(w.offered())
	m := w.merchant()
	if _, err := adminapi.SetLimits.Call(t.Context(), w, adminapi.LimitChange{Merchant: m.MerchantID, Reason: "small", Limits: []adminapi.NewLimit{
		{Name: adminapi.LimitDay, Amount: new(int64(500))}, {Name: "default", Burst: 7},
	}}); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"night.rego": night}
	for name, content := range policy.Default() {
		files[name] = string(content)
	}
	v, err := adminapi.PushPolicy.Call(t.Context(), w, adminapi.NewPolicy{Files: files, Message: "nights are quiet"})
	if err != nil {
		t.Fatal(err)
	}
	body := func(bank string) json.RawMessage {
		return json.RawMessage(`{"secret_key": "k", "merchant_id": "` + m.MerchantID + `", "amount": 50000, "bank_code": "` + bank + `", "account_no": "1234567890"}`)
	}
	transfer := adminapi.PolicyCase{Merchant: m.MerchantID, Operation: "/wallet1/transfer/bank", Input: body("014"), At: "2026-11-20 23:30"}
	for name, c := range map[string]struct {
		change func(*adminapi.PolicyCase)
		want   []adminapi.PolicyReason
	}{
		"in force":     {func(*adminapi.PolicyCase) {}, nil},
		"the version":  {func(p *adminapi.PolicyCase) { p.Version = v.Version[:8] }, []adminapi.PolicyReason{{Reason: "Transfers rest from 23:00 to 05:00.", Rule: "gerbang.refusals", File: "night.rego", Line: 3}}},
		"the files":    {func(p *adminapi.PolicyCase) { p.Files = files }, []adminapi.PolicyReason{{Reason: "Transfers rest from 23:00 to 05:00.", Rule: "gerbang.refusals", File: "night.rego", Line: 3}}},
		"by day":       {func(p *adminapi.PolicyCase) { p.Version, p.At = v.Version, "2026-11-20T05:00:00+07:00" }, nil},
		"in UTC":       {func(p *adminapi.PolicyCase) { p.Version, p.At = v.Version, "2026-11-20T16:00:00Z" }, []adminapi.PolicyReason{{Reason: "Transfers rest from 23:00 to 05:00.", Rule: "gerbang.refusals", File: "night.rego", Line: 3}}},
		"another bank": {func(p *adminapi.PolicyCase) { p.Version, p.At, p.Input = v.Version, "2026-11-20 12:00", body("999") }, []adminapi.PolicyReason{{Reason: "Not that bank.", Rule: "gerbang.refusals", File: "night.rego", Line: 8}}},
	} {
		asked := transfer
		c.change(&asked)
		got, err := adminapi.TryPolicy.Call(t.Context(), w, asked)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got.Allow != (c.want == nil) || len(got.Reasons) != len(c.want) || len(c.want) > 0 && got.Reasons[0] != c.want[0] {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		if *got.Amount != 50000 || got.Fields["account_no"] != "1234567890" || got.Limits.Rates[0].Burst != 7 || *got.Limits.Day.Amount != 500 || got.Steps == 0 {
			t.Errorf("%s: the rules saw %+v", name, got)
		}
	}
	unnamed := w.offered()
	unnamed.MustBeNamed("wallet1")
	w.catalog.Swap(unnamed)
	refused := []adminapi.PolicyReason{{Reason: "The policy does not name this operation yet."}}
	if got, err := adminapi.TryPolicy.Call(t.Context(), w, transfer); err != nil || got.Allow || !slices.Equal(got.Reasons, refused) {
		t.Errorf("what only an approval has brought, and the policy does not name: %+v, %v", got, err)
	}
	w.catalog.Swap(w.offered())
	for field, change := range map[string]func(*adminapi.PolicyCase){
		"operation": func(p *adminapi.PolicyCase) { p.Operation = "/nowhere" },
		"at":        func(p *adminapi.PolicyCase) { p.At = "tonight" },
		"mode":      func(p *adminapi.PolicyCase) { p.Mode = "both" },
		"input.amount": func(p *adminapi.PolicyCase) {
			p.Input = json.RawMessage(`{"amount": "many", "bank_code": "014", "account_no": "1"}`)
		},
		"version": func(p *adminapi.PolicyCase) { p.Version, p.Files = v.Version, files },
		"files": func(p *adminapi.PolicyCase) {
			p.Files = map[string]string{"data.json": files["data.json"], "a.rego": "package a\n\nx :="}
		},
	} {
		asked := transfer
		change(&asked)
		_, err := adminapi.TryPolicy.Call(t.Context(), w, asked)
		if failure := w.refused(err, http.StatusBadRequest, field); field == "files" && !strings.Contains(failure.Error(), "a.rego:3:4") {
			t.Errorf("the fault's place is not told: %v", failure)
		}
	}
	nobody, unknown := transfer, transfer
	nobody.Merchant, unknown.Version = "mer_none", "ffffffff"
	for _, asked := range []adminapi.PolicyCase{nobody, unknown} {
		_, err := adminapi.TryPolicy.Call(t.Context(), w, asked)
		w.refused(err, http.StatusNotFound, "")
	}
}

// TestOnePolicyIsJudgedAtATime: while a push is judged, another and a trial are told to wait.
func TestOnePolicyIsJudgedAtATime(t *testing.T) {
	t.Parallel()
	w := withPolicy(t)
	begun, end := make(chan struct{}), make(chan struct{})
	w.publisher.Judge = func(context.Context, policy.Source) ([]policy.Finding, error) {
		close(begun)
		<-end
		return nil, nil
	}
	pushed := make(chan error, 1)
	push := adminapi.NewPolicy{Files: map[string]string{"data.json": "{}"}, Message: "m"}
	go func() {
		_, err := adminapi.PushPolicy.Call(t.Context(), w, push)
		pushed <- err
	}()
	<-begun
	wanted := adminapi.PolicyCase{Merchant: w.merchant().MerchantID, Operation: "/bank/name"}
	_, err := adminapi.TryPolicy.Call(t.Context(), w, wanted)
	w.refused(err, http.StatusConflict, "")
	_, err = adminapi.PushPolicy.Call(t.Context(), w, push)
	w.refused(err, http.StatusConflict, "")
	close(end)
	if err := <-pushed; err != nil {
		t.Error(err)
	}
	if _, err := adminapi.TryPolicy.Call(t.Context(), w, wanted); err != nil {
		t.Errorf("once the push is through: %v", err)
	}
}
