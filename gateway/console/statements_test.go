package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/reconcile"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// collects makes a collection on an account, which becomes the merchant's by its first one.
func (w *world) collects(merchant, account string, now time.Time, reference string) movement.Movement {
	w.Helper()
	m, ours, err := w.store.Reserve(w.Context(), movement.Movement{
		Key: movement.Key{Owner: movement.Owner{MerchantID: merchant, Mode: "live"}, Kind: manifest.Collection, Reference: reference},
		ID:  movement.NewID(), Operation: "/wallet2/create", Provider: "wallet2", Amount: 10_000, Request: json.RawMessage(`{}`),
		ConnectionAccount: account, CreatedAt: now, SendBy: now, ExpiresAt: now.Add(time.Hour),
		Collected: movement.Collected{Reserved: movement.ReservedAmount{Account: movement.NewAccountID("wallet2", "live", account), FreeAt: now.Add(2 * time.Hour)}},
	})
	if err != nil || !ours {
		w.Fatal(ours, err)
	}
	return m
}

// TestAnAccountIsOneMerchants: whoever sells on it first keeps it, and nobody else
// can connect it.
func TestAnAccountIsOneMerchants(t *testing.T) {
	t.Parallel()
	wallet, err := manifest.Parse([]byte(strings.Replace(strings.Replace(bank, `"bank"`, `"wallet2"`, 1), `"notifications": true`,
		`"notifications": true, "statements": true, "reports_late": "2h", "account": "/api_key"`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(_ *console.Config, d *console.Dependencies) {
		plugins := newPlugins(t)
		plugins.others = append(plugins.others, wallet)
		d.Plugins = plugins
	})
	owner, other := w.merchant().MerchantID, w.merchant().MerchantID
	set := func(merchant, mode, key string) error {
		_, err := adminapi.SetConnection.Call(t.Context(), w, adminapi.ConnectionSpec{Merchant: merchant, Provider: "wallet2", Mode: mode, Credentials: []byte(`{"api_key":"` + key + `"}`)})
		return err
	}
	for _, merchant := range []string{owner, other} { // it is nobody's yet
		if err := set(merchant, "live", "k-10200"); err != nil {
			t.Fatal(err)
		}
	}
	w.collects(owner, "k-10200", time.Now().UTC(), "INV/1")
	if err := set(other, "live", "k-other"); err != nil {
		t.Error(err)
	}
	if failure := w.refused(set(other, "live", "k-10200"), http.StatusBadRequest, "credentials.api_key"); !strings.Contains(failure.Errors[0].Message, owner) {
		t.Errorf("refused with %+v", failure)
	}
	if c, ok := w.account(other).Connection(tenants.Live, "wallet2"); !ok || c.Version != 2 {
		t.Errorf("stored %+v", c)
	}
	for merchant, mode := range map[string]string{owner: "live", other: "test"} {
		if err := set(merchant, mode, "k-10200"); err != nil {
			t.Errorf("%s in mode %s: %v", merchant, mode, err)
		}
	}
}

func TestStatementLinesAreListedAndAssigned(t *testing.T) {
	t.Parallel()
	var assignments []reconcile.Assignment
	w := newWorld(t, func(_ *console.Config, deps *console.Dependencies) {
		deps.Assign = func(_ context.Context, a reconcile.Assignment) (reconcile.Assigned, error) {
			assignments = append(assignments, a)
			return reconcile.Assigned{Movement: movement.Movement{ID: a.Movement, State: movement.Succeeded}}, nil
		}
	})
	ctx, merchant, now := t.Context(), w.merchant().MerchantID, time.Now().UTC().Truncate(time.Second)
	account := movement.NewAccountID("wallet2", "live", "ID10200")
	m := w.collects(merchant, "ID10200", now, "INV/1")
	statement, err := w.store.Statement(ctx, account)
	if err != nil {
		t.Fatal(err)
	}
	row := movement.ImportedLine{Payment: "rrn-1", ID: "row-1", Amount: 10_000, Currency: "IDR", At: now, Paid: true}
	if _, err := w.store.Import(ctx, now, statement, []movement.ImportedLine{row}, "1", now); err != nil {
		t.Fatal(err)
	}
	if list, err := adminapi.ListStatementLines.Call(ctx, w, adminapi.LineFilter{MerchantID: tenants.MerchantID(merchant)}); err != nil || len(list) != 0 { // it is not matched yet
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := w.store.Match(ctx, now, statement, []movement.Match{{Payment: "rrn-1", State: movement.LineUnmatched}}); err != nil {
		t.Fatal(err)
	}
	list, err := adminapi.ListStatementLines.Call(ctx, w, adminapi.LineFilter{MerchantID: tenants.MerchantID(merchant)})
	want := adminapi.StatementLine{
		ID: account.String() + "/rrn-1", Mode: "live", Provider: "wallet2", Payment: "rrn-1", State: "unmatched", Amount: 10_000, Currency: "IDR", At: now, Row: "row-1",
	}
	if err != nil || len(list) != 1 || list[0] != want {
		t.Errorf("%+v, %v, want %+v", list, err, want)
	}
	for _, wrong := range []adminapi.NewAssignment{{Payment: "rrn-1"}, {Reason: "the payer called"}, {Payment: "rrn-1", Reason: "a\nb"}} {
		wrong.Movement = m.ID.String()
		if _, err := adminapi.AssignStatementLine.Call(ctx, w, wrong); err == nil {
			t.Errorf("%+v is taken", wrong)
		}
	}
	for _, id := range []string{movement.NewID().String(), "x"} {
		if _, err := adminapi.AssignStatementLine.Call(ctx, w, adminapi.NewAssignment{Movement: id, Payment: "rrn-1", Reason: "why"}); err == nil {
			t.Errorf("movement %s is found", id)
		}
	}
	if len(assignments) != 0 {
		t.Errorf("the engine was asked %+v", assignments)
	}
	made, err := adminapi.AssignStatementLine.Call(ctx, w, adminapi.NewAssignment{Movement: "INV/1", Payment: "rrn-1", Reason: "the payer called"})
	asked := reconcile.Assignment{Account: account, Payment: "rrn-1", Movement: m.ID, Operator: "ayu", Reason: "the payer called", AloneUpTo: console.DefaultApprovalAbove}
	if err != nil || made.State != string(movement.Succeeded) || len(assignments) != 1 || assignments[0] != asked {
		t.Errorf("%+v, %v; the engine was asked %+v", made, err, assignments)
	}
	// The entry is of the commit that assigns, and this engine's has assigned nothing.
	entries, err := adminapi.ListAudit.Call(ctx, w, adminapi.AuditFilter{Merchant: merchant, AuditSelection: adminapi.AuditSelection{Action: "statement.assign"}})
	if err != nil || len(entries) != 0 {
		t.Errorf("audit %+v, %v", entries, err)
	}
}

// TestStatementLinesGoOnPastAPage: also among those of one time and of several accounts, and none is lost or listed twice.
func TestStatementLinesGoOnPastAPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, merchant, now := t.Context(), w.merchant().MerchantID, time.Now().UTC().Truncate(time.Second)
	for i, account := range []string{"ID10400", "ID10500"} {
		w.collects(merchant, account, now, fmt.Sprint("INV/", i))
		statement, err := w.store.Statement(ctx, movement.NewAccountID("wallet2", "live", account))
		if err != nil {
			t.Fatal(err)
		}
		var lines []movement.ImportedLine
		var matches []movement.Match
		for n := range 4 {
			name := fmt.Sprintf("rrn/%d", n)
			lines = append(lines, movement.ImportedLine{Payment: name, ID: name, Amount: 1, Currency: "IDR", At: now.Add(-time.Duration(n/3) * time.Second), Paid: true})
			matches = append(matches, movement.Match{Payment: name, State: movement.LineUnmatched})
		}
		if _, err := w.store.Import(ctx, now, statement, lines, "1", now); err != nil {
			t.Fatal(err)
		}
		if _, err := w.store.Match(ctx, now, statement, matches); err != nil {
			t.Fatal(err)
		}
	}
	all, err := adminapi.ListStatementLines.Call(ctx, w, adminapi.LineFilter{MerchantID: tenants.MerchantID(merchant)})
	if err != nil || len(all) != 8 || !slices.IsSortedFunc(all, func(a, b adminapi.StatementLine) int { return b.At.Compare(a.At) }) {
		t.Fatalf("%d lines, %v: %+v", len(all), err, all)
	}
	for most := 1; most < 9; most++ {
		var paged []adminapi.StatementLine
		for f := (adminapi.LineFilter{MerchantID: tenants.MerchantID(merchant), Limit: most}); ; {
			page, err := adminapi.ListStatementLines.Call(ctx, w, f)
			if err != nil || len(page) > most {
				t.Fatalf("%d lines, %v", len(page), err)
			}
			paged = append(paged, page...)
			if len(page) < most {
				break
			}
			f.Until, f.After = page[most-1].At, page[most-1].ID
		}
		if !slices.Equal(paged, all) {
			t.Errorf("in pages of %d it is\n%+v\nwant\n%+v", most, paged, all)
		}
	}
	for _, wrong := range []adminapi.LineFilter{{After: all[0].ID}, {Until: now, After: "rrn/1"}, {Until: now, After: all[0].ID[:36]}} {
		wrong.MerchantID = tenants.MerchantID(merchant)
		_, err := adminapi.ListStatementLines.Call(ctx, w, wrong)
		w.refused(err, http.StatusBadRequest, "after")
	}
}
