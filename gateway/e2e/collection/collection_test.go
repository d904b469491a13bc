package collection_test

import (
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// TestCollections sells with QRIS codes that payers scan. The checks run side by
// side, each with a wallet of its own.
func TestCollections(t *testing.T) { //nolint:tparallel // the last checks touch what all share
	t.Parallel()
	edit := &harness.PolicyData{File: filepath.Join(t.TempDir(), "data.json")}
	edit.LiftRates(t)
	reports, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(reports.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	p := harness.Start(t, harness.Settings{Flags: []string{"--policy-dir", filepath.Dir(edit.File), "--plugin-port", port}})
	t.Run("checks", func(t *testing.T) {
		for name, check := range map[string]func(*testing.T, *harness.Program){
			"life": checkCollectionLife, "errors": checkCollectionErrors, "limits": checkCollectionLimits,
			"range": checkCollectionRange, "codes": checkStaticCodes, "owners": checkCodeOwners,
			"untidy reports": checkUntidyReports, "broken reports": checkBrokenReports, "forms of reports": checkFormsOfReports,
			"long report": checkLongReport, "remote report": func(t *testing.T, p *harness.Program) { checkRemoteReport(t, p, reports) }, "simulator": checkSandboxWallet, "reversals": checkReversals, "late": checkLateMoney, "two candidates": checkTwoCandidates,
			"assignments": checkAssignments,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				check(t, p)
			})
		}
	})
	checkSlowPlugin(t, p)
	checkDeniedCollection(t, p, edit)
}

// caught is a mail as the catcher of gerbang dev shows it.
type caught struct {
	To      []string `json:"to"`
	Subject string   `json:"subject"`
	Text    string   `json:"text"`
}

// mailsTo are the mails to somebody.
func mailsTo(t testing.TB, p *harness.Program, address string) []caught {
	t.Helper()
	var all []caught
	p.Sandbox(t, "/mails.json", nil, &all)
	return slices.DeleteFunc(all, func(c caught) bool { return !slices.Contains(c.To, address) })
}

// checkCollectionLife sells the same thing six times at once. Three are paid, in
// another order, and nobody asks for their status.
func checkCollectionLife(t *testing.T, p *harness.Program) {
	box := harness.NewReceiver(t, 0)
	secretOf := map[string]string{"live": p.Merchants[harness.Small].CallbackSecret, "test": p.Merchants[harness.Small].TestCallbackSecret}
	for _, mode := range []string{"live", "test"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := p.Shop(harness.Small, mode)
			var sales []collectionData
			var orders []harness.Fields
			for i := range 6 {
				order := collectionBody(s, harness.Fields{"amount": 50_000, "payer_email": fmt.Sprintf("payer%d.%s@example.com", i, mode), "description": "Kopi susu"})
				orders = append(orders, order)
				sales = append(sales, collect(t, s, order, "X-Callback-URL", box.URL))
				if want := 999 - int64(i); *sales[i].Remaining != want {
					t.Errorf("remaining_quota is %d after %d calls, want %d", *sales[i].Remaining, i+1, want)
				}
			}
			paid := []int{4, 0, 3}
			for _, i := range paid {
				if w := p.Pay(t, harness.Fields{"qr_string": sales[i].QRString}); w.Amount != sales[i].Amount {
					t.Errorf("paid %+v for %+v", w, sales[i])
				}
			}
			for i, sale := range sales {
				wantPaid(t, s, box, sale, fmt.Sprintf("payer%d.%s@example.com", i, mode), secretOf[mode], slices.Contains(paid, i))
			}
			// A replay tells the first answer, and uses nothing.
			used := usedOf(t, s)
			for i, sale := range sales {
				again := s.Ask(t, "/wallet2/create", orders[i])
				if sale.want(t, again, orders[i]); !again.Replayed() {
					t.Errorf("the same again: %s, headers %v", again, again.Header)
				}
			}
			if now := usedOf(t, s); now != used || used != 12 {
				t.Errorf("%d used, and %d after replays; 6 creates and 6 status calls were done", used, now)
			}
		})
	}
}

// wantPaid looks at a sale's callback, status and mail.
func wantPaid(t *testing.T, s harness.Shop, box *harness.Receiver, sale collectionData, payer, secret string, paid bool) {
	t.Helper()
	if paid {
		harness.Await(t, collectedWithin, "the callback of "+sale.ExternalID, func() bool { return len(box.Of(sale.ExternalID)) > 0 })
		harness.Await(t, harness.PaidWithin, "the mail to "+payer, func() bool { return len(mailsTo(t, s.Program, payer)) > 0 })
	}
	now, told, mails := statusOfCollection(t, s, sale.ExternalID), box.Of(sale.ExternalID), mailsTo(t, s.Program, payer)
	if !paid {
		if now.Status != "PENDING" || now.PaidAt != nil || len(told) != 0 || len(mails) != 0 {
			t.Errorf("nobody has paid: %+v, told %d, mails %v", now, len(told), mails)
		}
		return
	}
	if now.Status != "PAID" || now.PaidAt == nil || !harness.Timestamp.MatchString(*now.PaidAt) || now.Amount != sale.Amount {
		t.Fatalf("it was paid: %+v", now)
	}
	if at, err := time.Parse(time.RFC3339, *now.PaidAt); err != nil || time.Since(at) > collectedWithin || time.Until(at) > time.Second {
		t.Errorf("paid_at %s, %v", *now.PaidAt, err)
	}
	if len(told) != 1 || len(mails) != 1 {
		t.Fatalf("%d callbacks, %d mails", len(told), len(mails))
	}
	harness.WantVerified(t, told[0], secret)
	now.wantCallback(t, told[0], "wallet2.status_update")
	for _, part := range []string{sale.ExternalID, "Rp50.0", "Kopi susu", "Warung Contoh"} {
		if !strings.Contains(mails[0].Text, part) || strings.HasPrefix(mails[0].Subject, "[Test]") != (s.Mode() == "test") {
			t.Errorf("the mail %q does not tell %q:\n%s", mails[0].Subject, part, mails[0].Text)
		}
	}
}

// checkCollectionErrors sends invalid requests. None uses quota, and the
// reference of a collection that was never made stays free.
func checkCollectionErrors(t *testing.T, p *harness.Program) {
	w, other := newOutlet(t, p), newOutlet(t, p)
	free := harness.NewReference()
	for _, c := range []struct {
		what  string
		given harness.Fields
		names []string
	}{
		{"no amount", harness.Fields{"amount": nil}, []string{"amount"}},
		{"no payer", harness.Fields{"payer_email": ""}, []string{"payer_email"}},
		{"no address", harness.Fields{"payer_email": "nobody"}, []string{"payer_email"}},
		{"99", harness.Fields{"amount": 99}, []string{"amount"}},
		{"half a rupiah", harness.Fields{"amount": 10_000.5}, []string{"amount"}},
		{"an amount in words", harness.Fields{"amount": "10000"}, []string{"amount"}},
		{"too much with its code", harness.Fields{"amount": 999_999_999_001}, []string{"amount"}},
		{"a field that is not there", harness.Fields{"expires_in": 60}, []string{"expires_in"}},
		{"too long a text", harness.Fields{"description": strings.Repeat("é", 501)}, []string{"description"}},
	} {
		refuses(t, w.Shop, c.what, "/wallet2/create", collectionBody(w.Shop, harness.Fields{"external_id": free}).With(c.given), harness.InvalidInput, c.names...)
	}
	refuses(t, w.Shop, "another merchant's name", "/wallet2/create", collectionBody(w.Shop, harness.Fields{"merchant_id": other.MerchantID}), harness.Refusal{Code: fault.AuthFailed, Sent: fault.SentNo, Retry: fault.RetryAfterChange})
	refuses(t, w.Shop, "a status of nothing", "/wallet2/status", harness.Fields{}, harness.InvalidInput, "external_id")
	refuses(t, w.Shop, "a status of what is not there", "/wallet2/status", harness.Fields{"external_id": free}, harness.NotFound)
	w.wantTransportErrors(t)

	made := collect(t, w.Shop, harness.Fields{"external_id": free, "amount": 100})
	refuses(t, w.Shop, "another request", "/wallet2/create", collectionBody(w.Shop, harness.Fields{"external_id": free, "amount": 101, "description": "x"}), harness.DuplicateReference, "amount", "description")
	refuses(t, other.Shop, "a status of another's", "/wallet2/status", harness.Fields{"external_id": free}, harness.NotFound)
	if a := other.Ask(t, "/wallet2/create", collectionBody(w.Shop, harness.Fields{"external_id": free})); !a.Success {
		t.Errorf("another merchant's reference: %s", a)
	}
	largest := collect(t, w.Shop, harness.Fields{"amount": 999_999_999_000, "merchant_id": w.MerchantID})
	if largest.Amount <= 999_999_999_000 || largest.Amount > 1_000_000_000_000 || made.Amount > 199 {
		t.Errorf("the largest is %+v, the smallest %+v", largest, made)
	}
	generated := w.Ask(t, "/wallet2/create", collectionBody(w.Shop, harness.Fields{"external_id": nil}))
	if c := collectionOf(generated); c.ExternalID == "" || statusOfCollection(t, w.Shop, c.ExternalID).Status != "PENDING" {
		t.Errorf("without a reference: %s", generated)
	}
	keyless := p.NewMerchant(t)
	alone := harness.Shop{Program: p, MerchantID: keyless.MerchantID, Key: keyless.LiveKey}
	a := refuses(t, alone, "no wallet", "/wallet2/create", collectionBody(alone, harness.Fields{"external_id": free}), harness.NoConnection)
	if strings.Contains(a.Message, alone.Key) {
		t.Errorf("the answer has the key: %s", a)
	}
	checkCollectionScopes(t, w)
}

// wantTransportErrors sends what is wrong before anybody reads a field.
func (w *outlet) wantTransportErrors(t *testing.T) {
	t.Helper()
	before := usedOf(t, w.Shop)
	for _, path := range []string{"/wallet2/create", "/wallet2/status"} {
		for _, c := range []struct {
			method, body, declared string
			want                   fault.Code
		}{
			{http.MethodGet, "{}", "", fault.MethodNotAllowed},
			{http.MethodPost, "amount=1", "application/x-www-form-urlencoded", fault.UnsupportedMediaType},
			{http.MethodPost, fmt.Sprintf(`{"secret_key":%q,"external_id":"a","description":"%s"}`, w.Key, strings.Repeat("x", 64<<10)), "", fault.PayloadTooLarge},
			{http.MethodPost, fmt.Sprintf(`{"secret_key":%q,"external_id":"a","external_id":"b"}`, w.Key), "", fault.InvalidRequest},
			{http.MethodPost, `{"secret_key":"sk_live_wrong","external_id":"a"}`, "", fault.AuthFailed},
		} {
			header := http.Header{}
			if c.declared != "" {
				header.Set("Content-Type", c.declared)
			}
			a, err := w.Send(t.Context(), c.method, path, []byte(c.body), header)
			if err != nil || a.Code != c.want || (a.Code == fault.MethodNotAllowed) != (a.Header.Get("Allow") == http.MethodPost) {
				t.Errorf("%s %s %.40s: %s, %v; want %s", c.method, path, c.body, a, err, c.want)
			}
		}
	}
	reference := harness.NewReference()
	harness.InvalidInput.Want(t, "two references", w.Ask(t, "/wallet2/create", collectionBody(w.Shop, harness.Fields{"external_id": reference}), "Idempotency-Key", "x"), reference, "Idempotency-Key", "external_id")
	harness.InvalidInput.Want(t, "no URL", w.Ask(t, "/wallet2/create", collectionBody(w.Shop, harness.Fields{"external_id": reference}), "X-Callback-URL", "ftp://example.com/"), reference, "X-Callback-URL")
	if after := usedOf(t, w.Shop); after != before {
		t.Errorf("%d of the quota were used by what is wrong", after-before)
	}
}

// checkCollectionScopes uses keys with too few scopes, and then suspends the
// merchant.
func checkCollectionScopes(t *testing.T, w *outlet) {
	t.Helper()
	keyed := func(scope string) harness.Shop {
		made, err := adminapi.CreateKey.Call(t.Context(), w.Admin(), adminapi.NewKey{Merchant: w.MerchantID, Mode: "live", Scopes: []string{scope}})
		if err != nil {
			t.Fatal(err)
		}
		w.KeepSecret(harness.Merchant{MerchantID: w.MerchantID + " with scope " + scope, LiveKey: made.SecretKey})
		s := w.Shop
		s.Key = made.SecretKey
		return s
	}
	reads, collects := keyed("read"), keyed("collect")
	made := collect(t, w.Shop, nil)
	for _, s := range []harness.Shop{reads, collects} {
		harness.Await(t, harness.ActsWithin, "the new keys", func() bool {
			return s.Ask(t, "/wallet2/status", harness.Fields{"external_id": "none"}).Code != fault.AuthFailed
		})
	}
	refuses(t, reads, "create, reading alone", "/wallet2/create", collectionBody(w.Shop, nil), harness.ScopeMissing)
	refuses(t, collects, "status, collecting alone", "/wallet2/status", harness.Fields{"external_id": made.ExternalID}, harness.ScopeMissing)
	collect(t, collects, nil)
	statusOfCollection(t, reads, made.ExternalID)

	if out, err := w.Run(t, "merchant", "suspend", w.MerchantID, "--reason", "for a test"); err != nil {
		t.Fatalf("suspend: %v\n%s", err, out)
	}
	stopped := harness.Refusal{Code: fault.MerchantSuspended, Sent: fault.SentNo, Retry: fault.RetryLater}
	refuses(t, w.Shop, "suspended", "/wallet2/create", collectionBody(w.Shop, nil), stopped)
	refuses(t, w.Shop, "suspended", "/wallet2/status", harness.Fields{"external_id": made.ExternalID}, stopped)
}

// checkCollectionLimits uses up a quota and a rate of the merchant's own.
func checkCollectionLimits(t *testing.T, p *harness.Program) {
	w := newOutlet(t, p)
	operate := func(args ...string) {
		t.Helper()
		if text, err := w.Run(t, append([]string{"merchant", "limit", w.MerchantID, "--reason", "for a test"}, args...)...); err != nil {
			t.Fatal(err, text)
		}
	}
	operate("--quota", "wallet2=3")
	order := collectionBody(w.Shop, nil)
	first := w.Ask(t, "/wallet2/create", order)
	made := collectionOf(first)
	for want := range slices.Values([]int64{1, 0}) {
		if got := statusOfCollection(t, w.Shop, made.ExternalID); *got.Remaining != want {
			t.Errorf("remaining_quota %d, want %d", *got.Remaining, want)
		}
	}
	usedUp := harness.Refusal{Code: fault.QuotaExceeded, Sent: fault.SentNo, Retry: fault.RetryLater}
	harness.WantQuotaExceeded(t, refuses(t, w.Shop, "beyond the quota", "/wallet2/create", collectionBody(w.Shop, nil), usedUp))
	harness.WantQuotaExceeded(t, refuses(t, w.Shop, "beyond the quota", "/wallet2/status", harness.Fields{"external_id": made.ExternalID}, usedUp))
	refuses(t, w.Shop, "another request beyond the quota", "/wallet2/create", collectionBody(w.Shop, harness.Fields{"external_id": made.ExternalID, "amount": 200}), harness.DuplicateReference, "amount")
	if again := w.Ask(t, "/wallet2/create", order); !again.Replayed() || string(again.Data) != string(first.Data) {
		t.Errorf("a replay beyond the quota: %s, first %s", again, first)
	}
	operate("--quota", "wallet2=100", "--rate", "1/h", "--burst", "1")
	collect(t, w.Shop, nil)
	slow := refuses(t, w.Shop, "beyond the rate", "/wallet2/create", collectionBody(w.Shop, nil), harness.Refusal{Code: fault.RateLimited, Sent: fault.SentNo, Retry: fault.RetryLater})
	for _, name := range []string{"Retry-After", "RateLimit", "RateLimit-Policy", "X-Svc-Decision-Id"} {
		if slow.Header.Get(name) == "" {
			t.Errorf("RATE_LIMITED has no %s: %v", name, slow.Header)
		}
	}
	if again := w.Ask(t, "/wallet2/create", order); !again.Replayed() || string(again.Data) != string(first.Data) {
		t.Errorf("a replay beyond the rate: %s", again)
	}
}

// checkSlowPlugin stops the plugin's process before a create. The create times
// out, the same request in the meantime is in progress, and the same request
// afterwards continues it.
func checkSlowPlugin(t *testing.T, p *harness.Program) {
	w := newOutlet(t, p)
	plugin := p.OneProcess(t, "the plugin", func(one harness.Process) bool { return one.Plays("wallet2", false) })
	order := collectionBody(w.Shop, nil)
	reference, _ := order["external_id"].(string)
	if err := syscall.Kill(plugin.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	answered := make(chan harness.Answer, 1)
	go func() {
		a, _ := w.Post(t.Context(), "/wallet2/create", order)
		answered <- a
	}()
	harness.Await(t, harness.PaidWithin, "the reservation", func() bool {
		var there bool
		w.QueryRow(t, &there, "SELECT true FROM movements WHERE merchant_id = $1 AND reference = $2", w.MerchantID, reference)
		return there
	})
	beside := w.Ask(t, "/wallet2/create", order)
	if (harness.Refusal{Code: fault.InProgress, Sent: fault.SentNo, Retry: fault.RetryLater}).Want(t, "the same meanwhile", beside, reference); beside.Header.Get("Retry-After") == "" {
		t.Errorf("IN_PROGRESS has no Retry-After: %v", beside.Header)
	}
	if a := <-answered; !a.Success { // else the plugin that replaced it was asked in time
		harness.ProviderTimeout.Want(t, "a plugin that does not answer", a, reference)
	}
	_ = syscall.Kill(plugin.PID, syscall.SIGCONT) // it may have been replaced, since it did not answer
	var after harness.Answer
	harness.Await(t, time.Minute, "an answer", func() bool {
		after = w.Ask(t, "/wallet2/create", order)
		return after.Success
	})
	made := collectionOf(after)
	if status := statusOfCollection(t, w.Shop, reference); made.QRString == "" || status.Status != "PENDING" || status.Amount != made.Amount {
		t.Errorf("the same afterwards: %s, and its status %+v", after, status)
	}
}

// checkDeniedCollection has a policy deny a collection.
func checkDeniedCollection(t *testing.T, p *harness.Program, edit *harness.PolicyData) {
	t.Helper()
	s := p.Shop(harness.Large, "live")
	edit.Change(t, func(_ map[string]map[string]any, amounts map[string]any) {
		amounts["/wallet2/create"] = map[string]any{"max": 40_000}
	})
	harness.Await(t, harness.PolicyLiveWithin, "the policy", func() bool {
		return s.Ask(t, "/wallet2/create", collectionBody(s, harness.Fields{"amount": 40_001})).Code == fault.PolicyDenied
	})
	a := refuses(t, s, "beyond the policy's bound", "/wallet2/create", collectionBody(s, harness.Fields{"amount": 40_001}), harness.PolicyDenied)
	if !strings.Contains(a.Message, "at most 40000") || a.Header.Get("X-Svc-Decision-Id") == "" {
		t.Errorf("beyond the policy's bound: %s, %v", a, a.Header)
	}
	if made := collect(t, s, harness.Fields{"amount": 40_000}); made.Amount <= 40_000 {
		t.Errorf("%+v", made)
	}
}
