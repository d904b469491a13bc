package app_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// TestCollections sells by codes that a payer scans. The checks run side by side,
// each with a wallet of its own.
func TestCollections(t *testing.T) { //nolint:tparallel // the last checks touch what all share
	t.Parallel()
	edit := &limits{file: filepath.Join(t.TempDir(), "data.json")}
	edit.lift(t)
	p := start(t, settings{flags: []string{"--policy-dir", filepath.Dir(edit.file)}})
	t.Run("checks", func(t *testing.T) {
		for name, check := range map[string]func(*testing.T, *program){
			"story": checkCollectionStory, "errors": checkCollectionErrors, "limits": checkCollectionLimits,
			"range": checkCollectionRange, "codes": checkStaticCodes, "owners": checkCodeOwners,
			"untidy reports": checkUntidyReports, "broken reports": checkBrokenReports, "forms of reports": checkFormsOfReports,
			"long report": checkLongReport, "remote report": checkRemoteReport, "simulator": checkSandboxWallet, "reversals": checkReversals, "late": checkLateMoney, "two candidates": checkTwoCandidates,
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
func (p *program) mailsTo(t testing.TB, address string) []caught {
	t.Helper()
	var all []caught
	p.door(t, "/mails.json", nil, &all)
	return slices.DeleteFunc(all, func(c caught) bool { return !slices.Contains(c.To, address) })
}

// checkCollectionStory sells the same thing six times at once, of which three are
// paid, in another order; nobody asks how they stand.
func checkCollectionStory(t *testing.T, p *program) {
	box := newMailbox(t, 0)
	secretOf := map[string]string{"live": p.Merchants[small].CallbackSecret, "test": p.Merchants[small].TestCallbackSecret}
	for _, mode := range []string{"live", "test"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := p.shop(small, mode)
			var sales []collected
			var orders []fields
			for i := range 6 {
				order := s.collection(fields{"amount": 50_000, "payer_email": fmt.Sprintf("payer%d.%s@example.com", i, mode), "description": "Kopi susu"})
				orders = append(orders, order)
				sales = append(sales, s.collect(t, order, "X-Callback-URL", box.url))
				if want := 999 - int64(i); *sales[i].Remaining != want {
					t.Errorf("remaining_quota is %d after %d calls, want %d", *sales[i].Remaining, i+1, want)
				}
			}
			paid := []int{4, 0, 3}
			for _, i := range paid {
				if w := p.pay(t, fields{"qr_string": sales[i].QRString}); w.Amount != sales[i].Amount {
					t.Errorf("paid %+v for %+v", w, sales[i])
				}
			}
			for i, sale := range sales {
				s.wantSold(t, box, sale, fmt.Sprintf("payer%d.%s@example.com", i, mode), secretOf[mode], slices.Contains(paid, i))
			}
			// A replay tells the first answer, and uses nothing.
			used := s.usedOf(t)
			for i, sale := range sales {
				again := s.ask(t, "/wallet2/create", orders[i])
				if sale.want(t, again, orders[i]); !again.replayed() {
					t.Errorf("the same again: %s, headers %v", again, again.Header)
				}
			}
			if now := s.usedOf(t); now != used || used != 12 {
				t.Errorf("%d used, and %d after replays; 6 creates and 6 status calls were done", used, now)
			}
		})
	}
}

// wantSold looks at a sale's callback, status and mail.
func (s shop) wantSold(t *testing.T, box *mailbox, sale collected, payer, secret string, paid bool) {
	t.Helper()
	if paid {
		await(t, collectedWithin, "the callback of "+sale.ExternalID, func() bool { return len(box.of(sale.ExternalID)) > 0 })
		await(t, paidWithin, "the mail to "+payer, func() bool { return len(s.mailsTo(t, payer)) > 0 })
	}
	now, told, mails := s.collectionOf(t, sale.ExternalID), box.of(sale.ExternalID), s.mailsTo(t, payer)
	if !paid {
		if now.Status != "PENDING" || now.PaidAt != nil || len(told) != 0 || len(mails) != 0 {
			t.Errorf("nobody has paid: %+v, told %d, mails %v", now, len(told), mails)
		}
		return
	}
	if now.Status != "PAID" || now.PaidAt == nil || !stamp.MatchString(*now.PaidAt) || now.Amount != sale.Amount {
		t.Fatalf("it was paid: %+v", now)
	}
	if at, err := time.Parse(time.RFC3339, *now.PaidAt); err != nil || time.Since(at) > time.Minute || time.Until(at) > time.Second {
		t.Errorf("paid_at %s, %v", *now.PaidAt, err)
	}
	if len(told) != 1 || len(mails) != 1 {
		t.Fatalf("%d callbacks, %d mails", len(told), len(mails))
	}
	wantVerified(t, told[0], secret)
	now.wantTold(t, told[0], "wallet2.status_update")
	for _, part := range []string{sale.ExternalID, "Rp50.0", "Kopi susu", "Warung Contoh"} {
		if !strings.Contains(mails[0].Text, part) || strings.HasPrefix(mails[0].Subject, "[Test]") != (s.mode() == "test") {
			t.Errorf("the mail %q does not tell %q:\n%s", mails[0].Subject, part, mails[0].Text)
		}
	}
}

// checkCollectionErrors sends what is wrong. None of it uses quota, and the
// reference of what was never made is free.
func checkCollectionErrors(t *testing.T, p *program) {
	w, other := p.newStall(t), p.newStall(t)
	free := newReference()
	for _, c := range []struct {
		what  string
		given fields
		names []string
	}{
		{"no amount", fields{"amount": nil}, []string{"amount"}},
		{"no payer", fields{"payer_email": ""}, []string{"payer_email"}},
		{"no address", fields{"payer_email": "nobody"}, []string{"payer_email"}},
		{"99", fields{"amount": 99}, []string{"amount"}},
		{"half a rupiah", fields{"amount": 10_000.5}, []string{"amount"}},
		{"an amount in words", fields{"amount": "10000"}, []string{"amount"}},
		{"too much with its code", fields{"amount": 999_999_999_001}, []string{"amount"}},
		{"a field that is not there", fields{"expires_in": 60}, []string{"expires_in"}},
		{"too long a text", fields{"description": strings.Repeat("é", 501)}, []string{"description"}},
	} {
		w.refuses(t, c.what, "/wallet2/create", w.collection(fields{"external_id": free}).with(c.given), wrongInput, c.names...)
	}
	w.refuses(t, "another merchant's name", "/wallet2/create", w.collection(fields{"merchant_id": other.merchant}), refusal{fault.AuthFailed, fault.SentNo, fault.RetryAfterChange})
	w.refuses(t, "a status of nothing", "/wallet2/status", fields{}, wrongInput, "external_id")
	w.refuses(t, "a status of what is not there", "/wallet2/status", fields{"external_id": free}, unknownHere)
	w.wantTransportErrors(t)

	made := w.collect(t, fields{"external_id": free, "amount": 100})
	w.refuses(t, "another request", "/wallet2/create", w.collection(fields{"external_id": free, "amount": 101, "description": "x"}), usedBefore, "amount", "description")
	other.refuses(t, "a status of another's", "/wallet2/status", fields{"external_id": free}, unknownHere)
	if a := other.ask(t, "/wallet2/create", w.collection(fields{"external_id": free})); !a.Success {
		t.Errorf("another merchant's reference: %s", a)
	}
	largest := w.collect(t, fields{"amount": 999_999_999_000, "merchant_id": w.merchant})
	if largest.Amount <= 999_999_999_000 || largest.Amount > 1_000_000_000_000 || made.Amount > 199 {
		t.Errorf("the largest is %+v, the smallest %+v", largest, made)
	}
	generated := w.ask(t, "/wallet2/create", w.collection(fields{"external_id": nil}))
	if c := generated.collected(); c.ExternalID == "" || w.collectionOf(t, c.ExternalID).Status != "PENDING" {
		t.Errorf("without a reference: %s", generated)
	}
	keyless := p.register(t)
	alone := shop{p, keyless.MerchantID, keyless.LiveKey}
	a := alone.refuses(t, "no wallet", "/wallet2/create", alone.collection(fields{"external_id": free}), notNow)
	if strings.Contains(a.Message, alone.key) {
		t.Errorf("the answer has the key: %s", a)
	}
	checkCollectionScopes(t, w)
}

// wantTransportErrors sends what is wrong before anybody reads a field.
func (w *stall) wantTransportErrors(t *testing.T) {
	t.Helper()
	before := w.usedOf(t)
	for _, path := range []string{"/wallet2/create", "/wallet2/status"} {
		for _, c := range []struct {
			method, body, declared string
			want                   fault.Code
		}{
			{http.MethodGet, "{}", "", fault.MethodNotAllowed},
			{http.MethodPost, "amount=1", "application/x-www-form-urlencoded", fault.UnsupportedMediaType},
			{http.MethodPost, fmt.Sprintf(`{"secret_key":%q,"external_id":"a","description":"%s"}`, w.key, strings.Repeat("x", 64<<10)), "", fault.PayloadTooLarge},
			{http.MethodPost, fmt.Sprintf(`{"secret_key":%q,"external_id":"a","external_id":"b"}`, w.key), "", fault.InvalidRequest},
			{http.MethodPost, `{"secret_key":"sk_live_wrong","external_id":"a"}`, "", fault.AuthFailed},
		} {
			header := http.Header{}
			if c.declared != "" {
				header.Set("Content-Type", c.declared)
			}
			a, err := w.send(t.Context(), c.method, path, []byte(c.body), header)
			if err != nil || a.Code != c.want || (a.Code == fault.MethodNotAllowed) != (a.Header.Get("Allow") == http.MethodPost) {
				t.Errorf("%s %s %.40s: %s, %v; want %s", c.method, path, c.body, a, err, c.want)
			}
		}
	}
	reference := newReference()
	wrongInput.want(t, "two references", w.ask(t, "/wallet2/create", w.collection(fields{"external_id": reference}), "Idempotency-Key", "x"), reference, "Idempotency-Key", "external_id")
	wrongInput.want(t, "no URL", w.ask(t, "/wallet2/create", w.collection(fields{"external_id": reference}), "X-Callback-URL", "ftp://example.com/"), reference, "X-Callback-URL")
	if after := w.usedOf(t); after != before {
		t.Errorf("%d of the quota were used by what is wrong", after-before)
	}
}

// checkCollectionScopes uses keys that may not do everything, and then stops the
// merchant.
func checkCollectionScopes(t *testing.T, w *stall) {
	t.Helper()
	keyed := func(scope string) shop {
		var made adminapi.CreatedKey
		w.succeed(t, "", &made, "key", "create", w.merchant, "--mode", "live", "--scope", scope)
		w.known.Lock()
		defer w.known.Unlock()
		w.guests = append(w.guests, merchant{MerchantID: w.merchant + " with scope " + scope, LiveKey: made.SecretKey})
		s := w.shop
		s.key = made.SecretKey
		return s
	}
	reads, collects := keyed("read"), keyed("collect")
	made := w.collect(t, nil)
	for _, s := range []shop{reads, collects} {
		await(t, actsWithin, "the new keys", func() bool {
			return s.ask(t, "/wallet2/status", fields{"external_id": "none"}).Code != fault.AuthFailed
		})
	}
	reads.refuses(t, "create, reading alone", "/wallet2/create", w.collection(nil), notAllowed)
	collects.refuses(t, "status, collecting alone", "/wallet2/status", fields{"external_id": made.ExternalID}, notAllowed)
	collects.collect(t, nil)
	reads.collectionOf(t, made.ExternalID)

	if out, err := w.run(t, "merchant", "suspend", w.merchant, "--reason", "for a test"); err != nil {
		t.Fatalf("suspend: %v\n%s", err, out)
	}
	stopped := refusal{fault.MerchantSuspended, fault.SentNo, fault.RetryLater}
	w.refuses(t, "suspended", "/wallet2/create", w.collection(nil), stopped)
	w.refuses(t, "suspended", "/wallet2/status", fields{"external_id": made.ExternalID}, stopped)
}

// checkCollectionLimits uses a quota and a rate of the merchant's own up.
func checkCollectionLimits(t *testing.T, p *program) {
	w := p.newStall(t)
	operate := func(args ...string) {
		t.Helper()
		if text, err := w.run(t, append([]string{"merchant", "limit", w.merchant, "--reason", "for a test"}, args...)...); err != nil {
			t.Fatal(err, text)
		}
	}
	operate("--quota", "wallet2=3")
	order := w.collection(nil)
	first := w.ask(t, "/wallet2/create", order)
	made := first.collected()
	for want := range slices.Values([]int64{1, 0}) {
		if got := w.collectionOf(t, made.ExternalID); *got.Remaining != want {
			t.Errorf("remaining_quota %d, want %d", *got.Remaining, want)
		}
	}
	usedUp := refusal{fault.QuotaExceeded, fault.SentNo, fault.RetryLater}
	wantUsedUp(t, w.refuses(t, "beyond the quota", "/wallet2/create", w.collection(nil), usedUp))
	wantUsedUp(t, w.refuses(t, "beyond the quota", "/wallet2/status", fields{"external_id": made.ExternalID}, usedUp))
	w.refuses(t, "another request beyond the quota", "/wallet2/create", w.collection(fields{"external_id": made.ExternalID, "amount": 200}), usedBefore, "amount")
	if again := w.ask(t, "/wallet2/create", order); !again.replayed() || string(again.Data) != string(first.Data) {
		t.Errorf("a replay beyond the quota: %s, first %s", again, first)
	}
	operate("--quota", "wallet2=100", "--rate", "1/h", "--burst", "1")
	w.collect(t, nil)
	slow := w.refuses(t, "beyond the rate", "/wallet2/create", w.collection(nil), refusal{fault.RateLimited, fault.SentNo, fault.RetryLater})
	for _, name := range []string{"Retry-After", "RateLimit", "RateLimit-Policy", "X-Svc-Decision-Id"} {
		if slow.Header.Get(name) == "" {
			t.Errorf("RATE_LIMITED has no %s: %v", name, slow.Header)
		}
	}
	if again := w.ask(t, "/wallet2/create", order); !again.replayed() || string(again.Data) != string(first.Data) {
		t.Errorf("a replay beyond the rate: %s", again)
	}
}

// checkSlowPlugin stops the plugin's process before a create: that one times out,
// and the same again meanwhile is in progress; afterwards the same continues it.
func checkSlowPlugin(t *testing.T, p *program) {
	w := p.newStall(t)
	plugin := p.one(t, "the plugin", func(one process) bool { return one.plays("wallet2", false) })
	order := w.collection(nil)
	reference, _ := order["external_id"].(string)
	if err := syscall.Kill(plugin.pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	answered := make(chan answer, 1)
	go func() {
		a, _ := w.post(t.Context(), "/wallet2/create", order)
		answered <- a
	}()
	await(t, paidWithin, "the claim", func() bool {
		var there bool
		w.query(t, &there, "SELECT true FROM movements WHERE merchant_id = $1 AND reference = $2", w.merchant, reference)
		return there
	})
	beside := w.ask(t, "/wallet2/create", order)
	if (refusal{fault.InProgress, fault.SentNo, fault.RetryLater}).want(t, "the same meanwhile", beside, reference); beside.Header.Get("Retry-After") == "" {
		t.Errorf("IN_PROGRESS has no Retry-After: %v", beside.Header)
	}
	noAnswer.want(t, "a plugin that does not answer", <-answered, reference)
	_ = syscall.Kill(plugin.pid, syscall.SIGCONT) // it may have been replaced, since it did not answer
	var after answer
	await(t, time.Minute, "an answer", func() bool {
		after = w.ask(t, "/wallet2/create", order)
		return after.Success
	})
	made := after.collected()
	if status := w.collectionOf(t, reference); made.QRString == "" || status.Status != "PENDING" || status.Amount != made.Amount {
		t.Errorf("the same afterwards: %s, and its status %+v", after, status)
	}
}

// checkDeniedCollection has a policy refuse.
func checkDeniedCollection(t *testing.T, p *program, edit *limits) {
	t.Helper()
	s := p.shop(large, "live")
	edit.change(t, func(_ map[string]map[string]any, amounts map[string]any) {
		amounts["/wallet2/create"] = map[string]any{"max": 40_000}
	})
	await(t, 2*liveWithin, "the policy", func() bool {
		return s.ask(t, "/wallet2/create", s.collection(fields{"amount": 40_001})).Code == fault.PolicyDenied
	})
	a := s.refuses(t, "beyond the policy's bound", "/wallet2/create", s.collection(fields{"amount": 40_001}), denied)
	if !strings.Contains(a.Message, "at most 40000") || a.Header.Get("X-Svc-Decision-Id") == "" {
		t.Errorf("beyond the policy's bound: %s, %v", a, a.Header)
	}
	if made := s.collect(t, fields{"amount": 40_000}); made.Amount <= 40_000 {
		t.Errorf("%+v", made)
	}
}
