package restore_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// endsWithin is how long a test waits at most until the gateway knows a movement's end.
const endsWithin = 5 * time.Minute

// story is a merchant at a gateway whose database is backed up and restored. It has a
// provider of each kind.
type story struct {
	*testing.T
	*harness.Deployment
	of   map[string]*harness.Deployment // by provider
	shop harness.Shop
}

func begin(t *testing.T) *story {
	t.Helper()
	harness.RequirePostgreSQL(t)
	first := harness.NewDeploymentOf(t, "ppob", "--poll-every=0s")
	s := &story{T: t, Deployment: first, of: map[string]*harness.Deployment{"ppob": first}}
	for _, provider := range []string{"wallet1", "payments"} {
		s.of[provider] = first.Another(t, provider)
	}
	p := s.launch(harness.ServeDatabase(t))
	s.Join(t, p)
	made := p.NewMerchant(t)
	s.shop = harness.Shop{Program: p, MerchantID: made.MerchantID, Key: made.LiveKey}
	s.Connect(t, p, "platform")
	for _, provider := range []string{"wallet1", "payments"} {
		s.of[provider].Connect(t, p, made.MerchantID)
	}
	credit := adminapi.NewAdjustment{Mode: "live", Amount: 1_000_000, Reason: "for a test", Reference: "credit-1"}
	credit.Merchant = made.MerchantID
	if _, err := adminapi.Credit.Call(t.Context(), p.Admin(), credit); err != nil {
		t.Fatal(err)
	}
	return s
}

// launch starts a replica with all providers.
func (s *story) launch(databaseURL string, flags ...string) *harness.Program {
	s.Helper()
	return s.LaunchWith(s, databaseURL, flags, s.of["wallet1"].Approved.Beside(), s.of["payments"].Approved.Beside())
}

// lose goes back to a backup: what was committed after it is lost.
func (s *story) lose(b harness.Backup) {
	s.Helper()
	s.shop.Stop(s)
	s.shop.Program = s.launch(b.Restore(s))
	s.Join(s, s.shop.Program)
}

// pays has a payer pay at the provider of payments.
func (s *story) pays(what harness.Fields) {
	s.Helper()
	s.of["payments"].Simulator().Pay(s, what)
}

// part is a story in three parts: what it does before the backup was done by the function
// that made it; this is what is lost, and what comes after the restore.
type part func() (after func())

// TestRestore loses what was committed after a backup: orders, transfers and payments.
func TestRestore(t *testing.T) {
	t.Parallel()
	s := begin(t)
	parts := []part{s.orders(), s.transfers(), s.payments()}
	backup := harness.BackUp(t, s.shop.DatabaseURL)
	var after []func()
	for _, lost := range parts {
		after = append(after, lost())
	}
	s.lose(backup)
	for _, check := range after {
		check()
	}
	s.shop.WantCleanLedger(t)
	s.checkLedger(backup)
}

// told is the data of an answer, as far as these tests read it.
type told struct {
	Status     string `json:"status"`
	QR         string `json:"qr_string"`
	ExternalID string `json:"external_id"`
}

func (s *story) ask(path string, f harness.Fields) (d told) {
	s.Helper()
	a := s.shop.Ask(s, path, f)
	if !a.Success {
		s.Fatalf("%s %v: %s", path, f, a)
	}
	if err := json.Unmarshal(a.Data, &d); err != nil {
		s.Fatal(err)
	}
	return d
}

// ends waits for the end of a movement.
func (s *story) ends(path, field, reference, status string) {
	s.Helper()
	var last told
	if err := harness.Until(endsWithin, func() bool {
		last = s.ask(path, harness.Fields{field: reference})
		return last.Status == status
	}); err != nil {
		s.Errorf("%s is %s after %v, want %s", reference, last.Status, endsWithin, status)
	}
}

// upstream is how often a provider has made something for a destination.
func (s *story) upstream(provider, destination string) (times int) {
	s.Helper()
	for _, m := range s.of[provider].Simulator().UpstreamMovements(s) {
		if m.Destination == destination {
			times++
		}
	}
	return times
}

func (s *story) balance() (available int64) {
	s.Helper()
	var funds struct{ Balance int64 }
	if err := json.Unmarshal(s.shop.Ask(s, "/balance", nil).Data, &funds); err != nil {
		s.Fatal(err)
	}
	return funds.Balance
}

// orders: what was bought after the backup is bought once, however often it is sent again,
// and is paid for.
func (s *story) orders() part {
	t := s.T
	order := func(reference, sku, target string, qty any) harness.Fields {
		return harness.Fields{"ref_id": reference, "sku": sku, "target": target, "qty": qty}.With(nil)
	}
	orders := map[string]harness.Fields{
		"kept": order("kept", "xld10", harness.UnknownPhone(), nil), "lost": order("lost", "xld10", harness.UnknownPhone(), nil),
		"bill": order("bill", "pln", "530000000001", 11_000), "refunded": order("refunded", "xld10", harness.UnknownPhone(), nil),
	}
	buy := func(references ...string) {
		t.Helper()
		for _, reference := range references {
			s.ask("/ppob/order", orders[reference])
		}
	}
	buy("kept")
	s.ends("/ppob/status", "ref_id", "kept", "Success")
	return func() func() {
		buy("lost", "bill", "refunded")
		for _, reference := range []string{"lost", "bill", "refunded"} {
			s.ends("/ppob/status", "ref_id", reference, "Success")
		}
		spent := s.balance()
		return func() {
			s.exceptOfLost(orders["refunded"]["target"].(string))
			for range 3 {
				buy("kept", "lost", "bill", "refunded")
			}
			for reference, status := range map[string]string{"kept": "Success", "lost": "Success", "bill": "Success", "refunded": "Failed"} {
				s.ends("/ppob/status", "ref_id", reference, status)
				if n := s.upstream("ppob", orders[reference]["target"].(string)); n != 1 {
					t.Errorf("%s was bought %d times", reference, n)
				}
			}
			const airtime = 10_850
			if now := s.balance(); now != spent+airtime { // what was taken back is not paid for
				t.Errorf("the balance is %d, before the restore it was %d", now, spent)
			}
		}
	}
}

// exceptOfLost takes an order back that the gateway does not know any more: what the
// provider reports of it is an exception.
func (s *story) exceptOfLost(target string) {
	s.Helper()
	var taken json.RawMessage
	if status := s.Simulator().Sandbox(s, "/refund", harness.Fields{"reference": target}, &taken); status != http.StatusOK {
		s.Fatalf("refund: %d %s", status, taken)
	}
	harness.Await(s, harness.PaidWithin, "the exception of a lost movement", func() bool {
		listed, err := adminapi.ListExceptions.Call(s.Context(), s.shop.Admin(), adminapi.ExceptionFilter{Limit: adminapi.MostListed})
		if err != nil {
			s.Fatal(err)
		}
		return slices.ContainsFunc(listed, func(x adminapi.Exception) bool { return x.Reason == movement.ReasonUnknown && len(x.Subject) == 40 })
	})
}

// checkLedger checks the ledger of a restored database without a gateway, as whoever
// restores one does first.
func (s *story) checkLedger(backup harness.Backup) {
	t := s.T
	t.Helper()
	restored := &harness.Program{Document: harness.Document{DatabaseURL: backup.Restore(t)}}
	check := func(url string, right bool, want string) {
		t.Helper()
		for _, arguments := range [][]string{{}, {"--full"}} {
			out, err := restored.Run(t, append([]string{"ledger", "check", "--database-url", url}, arguments...)...)
			if (err == nil) != right || !strings.Contains(out, want) || strings.Contains(out, "hidden") {
				t.Errorf("%v: %v, %s; want %q", arguments, err, out, want)
			}
		}
	}
	check(restored.DatabaseURL, true, "Accounts checked from the beginning: ")
	var changed int
	restored.QueryRow(t, &changed, "UPDATE ledger_balances SET available = available - 1 WHERE available = 989150 RETURNING 1") // the credit without the order that was kept
	check(restored.DatabaseURL, false, "the balance is 989149 available, 0 held; its entries sum to 989150, 0")
	restored.QueryRow(t, &changed, "DELETE FROM goose_db_version WHERE version_id = (SELECT MAX(version_id) FROM goose_db_version) RETURNING 1")
	check(restored.DatabaseURL, false, "run gerbang migrate")
	check(dbtest.New(t, "", nil), false, "gerbang: the database has no tables of a gateway")
	check("postgres://gerbang:hidden@127.0.0.1:1/gerbang", false, "failed to connect")
	check("postgres://gerbang:hidden@127.0.0.1:port/gerbang", false, "the database URL can't be read")
}

// transfers: what has a reference is moved once; what has none can't be protected.
func (s *story) transfers() part {
	t := s.T
	send := func(reference string) (string, harness.Fields) {
		f := harness.Fields{"amount": 20_001, "phone": harness.UnknownPhone(), "external_id": reference}
		return "62" + strings.TrimPrefix(f["phone"].(string), "0"), f
	}
	toWallet, wallet := send("wallet")
	toNobody, unnamed := send("")
	delete(unnamed, "external_id")
	bank := harness.Fields{"amount": 20_002, "bank_code": "014", "account_no": "7000012345", "external_id": "bank"}
	again := func() {
		t.Helper()
		s.ask("/wallet1/transfer/wallet", wallet)
		s.ask("/wallet1/transfer/bank", bank)
	}
	return func() func() {
		again()
		if d := s.ask("/wallet1/transfer/wallet", unnamed); d.Status != "Success" {
			t.Errorf("without a reference: %+v", d)
		}
		return func() {
			for range 3 {
				again()
			}
			for reference, destination := range map[string]string{"wallet": toWallet, "bank": "014/7000012345"} {
				s.ends("/wallet1/transfer/status", "external_id", reference, "Success")
				if n := s.upstream("wallet1", destination); n != 1 {
					t.Errorf("%s was moved %d times", reference, n)
				}
			}
			s.ask("/wallet1/transfer/wallet", unnamed)
			if n := s.upstream("wallet1", toNobody); n != 2 {
				t.Errorf("without a reference it was moved %d times: the documents say that this is not protected", n)
			}
		}
	}
}

// TestRecovery goes through a restore as the handbook does: in recovery nothing moves
// and merchants are kept out, the provider's own list tells what the backup does not
// know, and an operator's word opens every replica. After it, a link is looked up before it
// is made, so there are not two that a payer could pay. What the provider does not have is
// made.
func TestRecovery(t *testing.T) {
	t.Parallel()
	s := begin(t)
	send := func(reference string) harness.Fields {
		return harness.Fields{"amount": 20_003, "phone": harness.UnknownPhone(), "external_id": reference}
	}
	kept, lost, late := send("kept"), send("lost"), send("late")
	lost["amount"] = 20_004
	s.ask("/wallet1/transfer/wallet", kept)
	backup := harness.BackUp(t, s.shop.DatabaseURL)
	s.ask("/wallet1/transfer/wallet", lost)
	_, linked := s.pay("link", "payment_link", 22_001)
	page := s.shop.ProviderPage(t, linked.Payment().CheckoutURL)
	s.shop.Stop(t)

	databaseURL, began := backup.Restore(t), time.Now()
	first := s.launch(databaseURL, "--recovery")
	harness.Await(t, harness.ReadyWithin, "a replica in recovery", first.Serves)
	second := s.launch(databaseURL)
	harness.Await(t, harness.ReadyWithin, "another", second.Serves)
	for _, p := range []*harness.Program{first, second} {
		at := s.shop.At(p)
		harness.Await(t, harness.ReadyWithin, "a replica that waits for the recovery alone", func() bool {
			status, body, _ := p.Get(t, p.ConsoleURL+"/readyz")
			var said adminapi.Readiness
			if err := json.Unmarshal(body, &said); err != nil {
				t.Fatalf("%s: %v", body, err)
			}
			wrong := slices.DeleteFunc(said.Checks, func(c adminapi.Check) bool { return c.OK })
			return status == http.StatusServiceUnavailable && len(wrong) == 1 && strings.Contains(wrong[0].Detail, "gerbang recovery open")
		})
		for _, f := range []harness.Fields{lost, late} {
			harness.ProviderUnavailable.Want(t, "a transfer in recovery", at.Ask(t, "/wallet1/transfer/wallet", f), f["external_id"].(string))
		}
		if a := at.Ask(t, "/wallet1/transfer/status", harness.Fields{"external_id": "kept"}); !a.Success {
			t.Errorf("a read in recovery: %s", a)
		}
		if a := at.Ask(t, "/wallet1/transfer/wallet", kept); !a.Success || !a.Replayed() {
			t.Errorf("what is there is answered %s", a)
		}
	}
	first.WantCleanLedger(t)

	var shown adminapi.Recovery
	first.MustRun(t, "", &shown, "recovery", "show")
	var listed int
	for _, account := range shown.Accounts {
		for _, row := range account.Rows {
			if row.Amount == 20_004 && row.Names != "a movement" {
				listed++
			}
		}
	}
	if !shown.Recovering || shown.Since == nil || listed != 1 {
		t.Errorf("the provider's list has the lost transfer %d times: %+v", listed, shown)
	}
	if out, err := first.Run(t, "recovery", "open"); err == nil {
		t.Errorf("opened without a reason: %s", out)
	}
	first.MustRun(t, "", nil, "recovery", "open", "--yes", "--reason", "one transfer is lost; its merchant sends it again")
	s.Join(t, first, second)
	s.shop = s.shop.At(second)
	s.findsLink(page, began)
	for _, f := range []harness.Fields{lost, late} {
		s.ask("/wallet1/transfer/wallet", f)
		s.ends("/wallet1/transfer/status", "external_id", f["external_id"].(string), "Success")
		if n := s.upstream("wallet1", "62"+strings.TrimPrefix(f["phone"].(string), "0")); n != 1 {
			t.Errorf("%s was moved %d times", f["external_id"], n)
		}
	}
	var audit string
	first.QueryRow(t, &audit, "SELECT operator || ' ' || action || ' ' || detail FROM audit WHERE merchant_id = 'platform' AND action = 'recovery.open'")
	if audit != "ops recovery.open one transfer is lost; its merchant sends it again" {
		t.Errorf("audit %q", audit)
	}
}

// pay asks for a payment.
func (s *story) pay(reference, kind string, amount int) (d told, a harness.Answer) {
	s.Helper()
	a = s.shop.Ask(s, "/payments/create", s.shop.PaymentBody(harness.Fields{"external_id": reference, "type": kind, "amount": amount}))
	if err := json.Unmarshal(a.Data, &d); err != nil || !a.Success {
		s.Fatalf("%s: %s", reference, a)
	}
	return d, a
}

// provenWithin is how long after the recovery's beginning "not found" proves nothing: what
// was on its way may come yet.
const provenWithin = 42 * time.Second

// findsLink asks for the link again that was made after the backup, after a recovery that
// began then.
func (s *story) findsLink(page string, began time.Time) {
	t := s.T
	t.Helper()
	payments := s.of["payments"].Simulator()
	early := s.shop.Ask(t, "/payments/create", s.shop.PaymentBody(harness.Fields{"external_id": "new", "amount": 22_002}))
	if time.Since(began) < provenWithin && (early.Code != fault.ProviderUnavailable || early.Sent != fault.SentNo || len(payments.UpstreamMovements(t)) != 1) {
		t.Errorf("a payment of seconds after the recovery began: %s", early)
	}
	made := len(payments.UpstreamMovements(t)) // a slow machine has made the new one
	_, again := s.pay("link", "payment_link", 22_001)
	if now := s.shop.ProviderPage(t, again.Payment().CheckoutURL); now != page {
		t.Errorf("the provider's page was %s and is %s", page, now)
	}
	s.pays(harness.Fields{"url": page})
	s.ends("/payments/status", "external_id", "link", "PAID")
	if now := len(payments.UpstreamMovements(t)); now != made {
		t.Errorf("the provider has %d payments, want %d", now, made)
	}
}

// payments: where nobody has begun a recovery, a QR code is the same one again; of a link
// there may be two, and an operator hears of a payment of the one that was lost.
func (s *story) payments() part {
	t := s.T
	return func() func() {
		code, _ := s.pay("code", "qris", 21_001)
		_, first := s.pay("link", "payment_link", 21_002)
		page := s.shop.ProviderPage(t, first.Payment().CheckoutURL)
		return func() {
			if same, _ := s.pay("code", "qris", 21_001); same.QR != code.QR || code.QR == "" {
				t.Errorf("the code was %q and is %q", code.QR, same.QR)
			}
			s.pays(harness.Fields{"qr_string": code.QR})
			s.ends("/payments/status", "external_id", "code", "PAID")
			s.pay("link", "payment_link", 21_002)
			s.pays(harness.Fields{"url": page})
			s.shop.WantException(t, "contradiction", "payments", "the provider called it")
		}
	}
}
