package policy_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/tier"
)

// ownLimitsOfMany gives many merchants limits of their own, a hundred thousand in the long tier. The limits are on the
// merchants' records, so the policy stays as it is, and another version of it is activated.
func ownLimitsOfMany(t *testing.T, r *replicaSet) {
	t.Helper()
	many := 1_000
	if tier.IsLong() {
		many = 100_000
	}
	databaseURL, p := r.databaseURL, r.replicas[0]
	shop := r.newShop(t, p)
	edit := &harness.PolicyData{File: filepath.Join(t.TempDir(), "data.json")}
	activate := func(burst int) time.Duration {
		t.Helper()
		edit.Change(t, func(tiers map[string]map[string]any, _ map[string]any) { tiers["starter"]["burst"] = burst })
		began := time.Now()
		p.MustRun(t, "", nil, "policy", "push", filepath.Dir(edit.File), "--message", "another burst", "--activate")
		return time.Since(began)
	}
	before := activate(11)

	conn, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	for _, statement := range []string{
		`INSERT INTO merchants (merchant_id, name, tier, status, labels, version, created_at, changed_at, change_shard)
			SELECT 'mer_' || md5('shop ' || n::TEXT)::UUID::TEXT, 'Toko', 'growth', 'active', '{}', 1, '2026-01-01 00:00:00+00', '2026-01-01 00:00:00+00', n % 16
			FROM generate_series(1, ` + strconv.Itoa(many) + `) AS s(n)`,
		`INSERT INTO merchant_limits (merchant_id, name, rate_per_second, burst, reason, set_by, set_at)
			SELECT merchant_id, 'default', 7, 77, 'asked for', 'ayu', '2026-01-01 00:00:00+00' FROM merchants WHERE tier = 'growth'`,
	} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	p.MustRun(t, "", nil, "merchant", "limit", shop.MerchantID, "--burst", "777", "--reason", "asked for")
	pushed, err := os.ReadFile(edit.File)
	if err != nil {
		t.Fatal(err)
	}
	var v adminapi.PolicyVersion
	p.MustRun(t, "", &v, "policy", "show", "active")
	if v.Files["data.json"] != string(pushed) {
		t.Errorf("limits of merchants are in data.json: %d bytes, pushed were %d", len(v.Files["data.json"]), len(pushed))
	}
	after := activate(12)
	t.Logf("pushed and activated in %v without merchants, in %v with %d that have limits of their own", before, after, many)
	harness.Await(t, harness.ReadyWithin, "the merchant's own limit under the new version", func() bool {
		a := shop.Ask(t, "/payments/status", harness.Fields{"external_id": "none"})
		return strings.Contains(a.Header.Get("RateLimit-Policy"), "q=777;")
	})
	edit.Change(t, func(tiers map[string]map[string]any, _ map[string]any) { delete(tiers, "growth") })
	if out, err := p.Run(t, "policy", "push", filepath.Dir(edit.File), "--message", "a tier less"); err == nil || !strings.Contains(out, fmt.Sprintf("(%d merchants)", many)) {
		t.Errorf("a tier that they are on is removed: %v\n%s", err, out)
	}
}
