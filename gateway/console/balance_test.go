package console_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

// morning is the time of a console whose clock a test moves by hand.
var morning = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// newBooks is a world whose console's clock goes on by a minute at each look,
// with a merchant that was credited five times: 1, 2, 3, 4, 5.
func newBooks(t *testing.T) (*world, string) {
	t.Helper()
	looks := make(chan time.Time, 1)
	looks <- morning
	w := newWorld(t, func(_ *console.Config, d *console.Dependencies) {
		d.Now = func() time.Time { now := <-looks; looks <- now.Add(time.Minute); return now }
	})
	id := w.merchant().MerchantID // at morning
	for i := 1; i <= 5; i++ {
		order := adminapi.NewAdjustment{Amount: 1, Reason: "r", Reference: fmt.Sprint("in-", i)}
		for range i - 1 {
			order.Amount++
		}
		order.Merchant = id
		if _, err := adminapi.Credit.Call(t.Context(), w, order); err != nil {
			t.Fatal(err)
		}
	}
	return w, id
}

func (w *world) statement(id string, f adminapi.AccountStatementFilter) (entries []adminapi.AccountEntry, pages int) {
	w.Helper()
	for {
		f.Merchant = id
		page, err := adminapi.ListAccountStatement.Call(w.Context(), w, f)
		if err != nil {
			w.Fatal(err)
		}
		entries, pages = append(entries, page.Entries...), pages+1
		if f.After = page.Next; f.After == "" {
			return entries, pages
		}
	}
}

func TestAStatementIsReadInPages(t *testing.T) {
	t.Parallel()
	w, id := newBooks(t)
	whole, _ := w.statement(id, adminapi.AccountStatementFilter{Mode: "live"})
	var got []string
	for _, e := range whole {
		got = append(got, fmt.Sprintf("%s %s %s %s", e.Kind, e.Reference, e.Available, e.BalanceAvailable))
	}
	want := []string{"credit in-1 1 1", "credit in-2 2 3", "credit in-3 3 6", "credit in-4 4 10", "credit in-5 5 15"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	paged, pages := w.statement(id, adminapi.AccountStatementFilter{Mode: "live", Limit: 2})
	if !slices.Equal(paged, whole) || pages != 3 {
		t.Errorf("in %d pages: %+v", pages, paged)
	}
	if part, _ := w.statement(id, adminapi.AccountStatementFilter{Mode: "live", From: whole[1].At, To: whole[3].At, Limit: 1}); !slices.Equal(part, whole[1:3]) {
		t.Errorf("a part: %+v, want %+v", part, whole[1:3])
	}
	if other, _ := w.statement(id, adminapi.AccountStatementFilter{Mode: "test"}); len(other) != 0 {
		t.Errorf("in test mode: %+v", other)
	}
}

func TestABalanceOfATime(t *testing.T) {
	t.Parallel()
	w, id := newBooks(t)
	entries, _ := w.statement(id, adminapi.AccountStatementFilter{Mode: "live"})
	for at, want := range map[time.Time]adminapi.Rupiah{
		{}: 15, entries[0].At.Add(-time.Microsecond): 0, entries[0].At: 1, entries[2].At: 6, entries[4].At: 15,
	} {
		balance, err := adminapi.ShowBalance.Call(t.Context(), w, adminapi.BalanceQuery{Merchant: id, Mode: "live", At: at})
		if err != nil || balance.MerchantID != id || balance.Mode != "live" || balance.Accounts[0].Amount != want ||
			balance.Accounts[1] != (adminapi.AccountBalance{Account: "held"}) || !at.IsZero() && !balance.At.Equal(at) || balance.At.IsZero() {
			t.Errorf("at %v: %+v, %v; want %s", at, balance, err, want)
		}
	}
	platform, err := adminapi.ShowBalance.Call(t.Context(), w, adminapi.BalanceQuery{Merchant: "platform", Mode: "live"})
	want := []adminapi.AccountBalance{{Account: "adjustments", Amount: -15}}
	if err != nil || platform.MerchantID != "platform" || !slices.Equal(platform.Accounts, want) {
		t.Errorf("platform %+v, %v", platform, err)
	}
	if early, err := adminapi.ShowBalance.Call(t.Context(), w, adminapi.BalanceQuery{Merchant: "platform", Mode: "live", At: entries[1].At}); err != nil || early.Accounts[0].Amount != -3 {
		t.Errorf("platform, early: %+v, %v", early, err)
	}
}

// earnings is a ledger that only knows the platform's accounts.
type earnings struct{ console.Ledger }

func (earnings) PlatformAt(context.Context, string, time.Time) ([]store.PlatformBalance, error) {
	return []store.PlatformBalance{{Adjustments: -100}, {Provider: "pulsa", Margin: 50, Cost: -40, Deposit: 40}}, nil
}

func TestThePlatformsAccountsAreToldByProvider(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *console.Config, d *console.Dependencies) { d.Ledger = earnings{} })
	platform, err := adminapi.ShowBalance.Call(t.Context(), w, adminapi.BalanceQuery{Merchant: "platform", Mode: "test"})
	want := []adminapi.AccountBalance{
		{Account: "adjustments", Amount: -100}, {Account: "margin", Provider: "pulsa", Amount: 50},
		{Account: "cost", Provider: "pulsa", Amount: -40}, {Account: "deposit", Provider: "pulsa", Amount: 40},
	}
	if err != nil || platform.Mode != "test" || !slices.Equal(platform.Accounts, want) {
		t.Errorf("platform %+v, %v", platform, err)
	}
}

func TestBooksThatCantBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.merchant().MerchantID
	for path, want := range map[string]string{
		"/balance?mode=prod": "mode", "/balance?at=noon": "at", "/account-statement?mode=prod": "mode", "/account-statement?from=noon": "from",
		"/account-statement?to=noon": "to", "/account-statement?limit=0": "limit", "/account-statement?after=x": "after", "/account-statement?after=a.1.1.1.1.1": "after",
		"/account-statement?after=00000000-0000-4000-8000-000000000000.1.1.1.1.x": "after",
		"/account-statement?after=00000000-0000-4000-8000-000000000000.1.1.1.1":   "after",
	} {
		status, _, body := w.send(http.MethodGet, "/admin/merchants/"+id+path, "Bearer "+token, "")
		if status != http.StatusBadRequest || !strings.Contains(body, `"field":"`+want+`"`) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	_, err := adminapi.ShowBalance.Call(t.Context(), w, adminapi.BalanceQuery{Merchant: "mer_nobody", Mode: "live"})
	w.refused(err, http.StatusNotFound, "")
	_, err = adminapi.ListAccountStatement.Call(t.Context(), w, adminapi.AccountStatementFilter{Merchant: "mer_nobody", Mode: "live"})
	w.refused(err, http.StatusNotFound, "")
	_, err = adminapi.ShowBalance.Call(t.Context(), w, adminapi.BalanceQuery{Merchant: "platform", Mode: "prod"})
	w.refused(err, http.StatusBadRequest, "mode")
}
