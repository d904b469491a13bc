package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
)

// TestTheAuditOfAll lists, exports and verifies what was done to two merchants and the platform.
func TestTheAuditOfAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	w.metrics.WatchAudit(w.audits.Figures)
	shop := w.merchant().MerchantID
	if _, err := adminapi.SuspendMerchant.Call(ctx, w, adminapi.StatusChange{Merchant: shop, Reason: "fraud 17"}); err != nil {
		t.Fatal(err)
	}
	if _, err := adminapi.CreateOperatorToken.Call(ctx, adminapi.NewClient(w.url, otherToken), adminapi.NewOperatorToken{Name: "cron", Role: "read"}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		wanted adminapi.AuditsFilter
		want   []string
	}{
		"all":             {adminapi.AuditsFilter{}, []string{"platform operator.token.create", shop + " merchant.suspend", shop + " merchant.create"}},
		"of the platform": {adminapi.AuditsFilter{Merchant: "platform"}, []string{"platform operator.token.create"}},
		"of one":          {adminapi.AuditsFilter{AuditSelection: adminapi.AuditSelection{Operator: "budi"}}, []string{"platform operator.token.create"}},
		"acts":            {adminapi.AuditsFilter{AuditSelection: adminapi.AuditSelection{Action: "merchant.s"}}, []string{shop + " merchant.suspend"}},
		"about":           {adminapi.AuditsFilter{AuditSelection: adminapi.AuditSelection{About: "fraud 17"}}, []string{shop + " merchant.suspend"}},
		"a page":          {adminapi.AuditsFilter{AuditSelection: adminapi.AuditSelection{Limit: 1}}, []string{"platform operator.token.create"}},
		"before":          {adminapi.AuditsFilter{AuditSelection: adminapi.AuditSelection{Until: time.Now().Add(-time.Hour)}}, nil},
		"nobody's":        {adminapi.AuditsFilter{Merchant: "mer_nobody"}, nil},
	} {
		entries, err := adminapi.ListAudits.Call(ctx, w, c.wanted)
		if err != nil || len(entries) != len(c.want) {
			t.Errorf("%s: %+v, %v", name, entries, err)
			continue
		}
		for i, e := range entries {
			if got := string(e.Merchant) + " " + e.Action; got != c.want[i] {
				t.Errorf("%s: %q, want %q", name, got, c.want[i])
			}
		}
	}
	if err := w.audits.Seal(ctx); err != nil {
		t.Fatal(err)
	}
	lines, err := adminapi.ExportAudit.Call(ctx, w, adminapi.AuditExport{After: 1, Limit: 1})
	if err != nil || len(lines) != 1 || lines[0].Sequence != 2 || lines[0].Entry.Action != "merchant.suspend" || lines[0].Entry.Operator != "ayu" {
		t.Fatalf("%+v, %v", lines, err)
	}
	report, err := adminapi.VerifyAudit.Call(ctx, w, adminapi.ExportedLink{Sequence: 2, Hash: lines[0].Hash})
	if err != nil || len(report.Breaks) != 0 || report.Sequence != 3 || report.Waiting != 0 {
		t.Errorf("%+v, %v", report, err)
	}
	report, err = adminapi.VerifyAudit.Call(ctx, w, adminapi.ExportedLink{Sequence: 3, Hash: lines[0].Hash})
	if err != nil || len(report.Breaks) != 1 {
		t.Errorf("%+v, %v", report, err)
	}
	_, _, text := w.send(http.MethodGet, "/metrics", "", "")
	for _, metric := range []string{"gerbang_audit_sequence 3\n", "gerbang_audit_breaks 1\n", "gerbang_audit_verified_timestamp_seconds ", "gerbang_audit_sealed_timestamp_seconds "} {
		if !strings.Contains(text, metric) {
			t.Errorf("there is no %q", metric)
		}
	}
	_, err = adminapi.VerifyAudit.Call(ctx, w, adminapi.ExportedLink{Sequence: 3, Hash: "ab"})
	w.refused(err, http.StatusBadRequest, "hash")
	_, err = adminapi.ListAudits.Call(ctx, w, adminapi.AuditsFilter{AuditSelection: adminapi.AuditSelection{About: "\x00"}})
	w.refused(err, http.StatusBadRequest, "about")
}
