package sandbox_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// providers are those that ship with the gateway, beside payments.
var providers = []string{"ppob", "wallet1", "wallet2", "midtrans"}

// newMerchant is a merchant of a gateway that nobody has connected to any provider, in live
// mode and in test mode.
func newMerchant(t *testing.T, p *harness.Program) (live, test harness.Shop) {
	t.Helper()
	var made harness.Merchant
	p.MustRun(t, "", &made, "merchant", "create", "Toko Contoh", "--tier", "scale")
	p.Merchants = append(p.Merchants, made)
	return harness.Shop{Program: p, MerchantID: made.MerchantID, Key: made.LiveKey}, harness.Shop{Program: p, MerchantID: made.MerchantID, Key: made.TestKey}
}

// launch starts a gateway that reaches no simulator but its own.
func launch(t *testing.T, d *harness.Deployment, databaseURL string, more ...string) *harness.Program {
	t.Helper()
	d.Approved.Ports, d.Approved.Read = nil, nil
	for _, name := range providers {
		beside := harness.Approve(t, name).Beside()
		if name == "wallet2" && os.Geteuid() == 0 { // whose simulator writes what its plugin reads, as a user of their own
			beside = strings.TrimSuffix(beside, "}") + ", user: nobody}"
		}
		more = append([]string{beside}, more...)
	}
	if err := os.Chmod(filepath.Dir(d.Dir), 0o711); err != nil { // the test's own, through which that user passes
		t.Fatal(err)
	}
	p := d.Launch(t, databaseURL, d.Approved, more...)
	p.AwaitServing(t)
	return p
}

// play has something happen to a movement.
func play(t *testing.T, p *harness.Program, id, what string, amount money.Amount) error {
	t.Helper()
	_, err := adminapi.PlayMovement.Call(t.Context(), p.Admin(), adminapi.NewPlay{Movement: id, Play: what, Amount: amount})
	return err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

func refused(t *testing.T, what string, err error, code fault.Code) {
	t.Helper()
	if failure, is := errors.AsType[*adminapi.Failure](err); !is || failure.Code != code {
		t.Errorf("%s: %v", what, err)
	}
}

// idOf is a payment's id, as its checkout names it.
func idOf(made harness.Payment) string {
	return made.CheckoutURL[strings.LastIndex(made.CheckoutURL, "/")+1:]
}

// TestFirstHour: a new merchant works in test mode with all providers, and not in live mode.
// What is paid, fails and goes back in the control room is known to the gateway, also after a
// restart.
func TestFirstHour(t *testing.T) {
	t.Parallel()
	d, databaseURL := harness.NewDeployment(t), harness.ServeDatabase(t)
	p := launch(t, d, databaseURL)
	live, shop := newMerchant(t, p)
	if a := live.Ask(t, "/payments/create", live.PaymentBody(nil)); a.Success || a.Code != fault.NoConnection {
		t.Errorf("live mode answers %s", a)
	}
	sale := harness.NewReference()
	for _, one := range []struct {
		path string
		body harness.Fields
	}{
		{"/payments/create", shop.PaymentBody(harness.Fields{"type": "qris"})},
		{"/wallet1/transfer/bank", harness.Fields{"bank_code": "014", "account_no": "2460888509", "account_name": "Nasabah Contoh 8509", "amount": 50000}},
		{"/wallet2/create", harness.Fields{"amount": 10000, "payer_email": "payer@example.com", "external_id": sale}},
		{"/ppob/order", harness.Fields{"sku": "xld10", "target": "087800001230", "ref_id": harness.NewReference()}}, // paid from a balance that tops itself up
	} {
		if a := shop.Ask(t, one.path, one.body); !a.Success {
			t.Errorf("%s: %s", one.path, a)
		}
	}
	paid, failed, open := shop.Create(t, nil), shop.Create(t, nil), shop.Create(t, nil)
	if code, page, header := p.Get(t, p.CheckoutURL(paid)); strings.Contains(string(page)+header.Get("Location"), "sandbox.invalid") {
		t.Errorf("the payer is led nowhere: %d %v %s", code, header, page)
	}
	must(t, play(t, p, idOf(paid), "pay", 0))
	must(t, play(t, p, idOf(failed), "fail", 0))
	shop.AwaitStatus(t, paid.ExternalID, "PAID", harness.PaidWithin)
	shop.AwaitStatus(t, failed.ExternalID, "EXPIRED", harness.PaidWithin)
	must(t, play(t, p, idOf(paid), "refund", 4000))
	harness.Await(t, harness.PaidWithin, "a refund by the provider", func() bool {
		return strings.Contains(string(shop.Ask(t, "/payments/status", harness.Fields{"external_id": paid.ExternalID}).Data), `"returned_amount":4000`)
	})
	if err := play(t, p, idOf(failed), "pay", 0); err == nil {
		t.Error("what has failed is paid")
	}
	found, err := adminapi.Find.Call(t.Context(), p.Admin(), adminapi.Search{ID: sale})
	must(t, err)
	if len(found.Movements) != 1 {
		t.Fatalf("the sale is %+v", found)
	}
	must(t, play(t, p, found.Movements[0].ID, "pay", 0))
	harness.Await(t, harness.PaidWithin, "a paid sale", func() bool {
		return shop.Ask(t, "/wallet2/status", harness.Fields{"external_id": sale}).Payment().Status == "PAID"
	})
	p.Stop(t)
	p = launch(t, d, databaseURL)
	shop.Program = p
	must(t, play(t, p, idOf(open), "pay", 0))
	shop.AwaitStatus(t, open.ExternalID, "PAID", harness.PaidWithin)
}

// TestControlRoomIsOfTestMode: nothing of live mode happens at a simulator, and a merchant's
// own test connection takes the place of the simulator's.
func TestControlRoomIsOfTestMode(t *testing.T) {
	t.Parallel()
	d := harness.NewDeployment(t)
	real := d.Approved // whose ports lead to another simulator, which is the real provider here
	p := d.Launch(t, harness.ServeDatabase(t), real)
	d.Join(t, p)
	live, shop := newMerchant(t, p)
	d.Connect(t, p, live.MerchantID)
	made := live.Create(t, nil)
	refused(t, "a live payment", play(t, p, idOf(made), "pay", 0), fault.NotFound)
	before := shop.Create(t, nil)
	d.ConnectTest(t, p, live.MerchantID)
	after := shop.Create(t, nil)
	for name, one := range map[string]harness.Payment{"of before": before, "at the real provider": after} {
		refused(t, "a payment "+name, play(t, p, idOf(one), "pay", 0), fault.ProviderRejected)
	}
}

// TestReplicas: one runs the simulators. A replica that names it works as it does, and one
// that does not sends nothing anywhere.
func TestReplicas(t *testing.T) {
	t.Parallel()
	d, databaseURL := harness.NewDeployment(t), harness.ServeDatabase(t)
	d.Approved.Ports, d.Approved.Read = nil, nil
	address := harness.FreeAddress(t)
	home := d.Launch(t, databaseURL, d.Approved, "sandbox_listen: "+address)
	home.AwaitServing(t)
	_, shop := newMerchant(t, home)
	first := shop.Create(t, nil)
	other, stranger := d.Launch(t, databaseURL, d.Approved, "sandbox_url: http://"+address), d.Launch(t, databaseURL, d.Approved)
	d.Join(t, home, other)
	stranger.AwaitServing(t)
	for _, p := range []*harness.Program{other, stranger} {
		p.Merchants = home.Merchants
	}
	shop.Program = other
	second := shop.Create(t, nil)
	for _, made := range []harness.Payment{first, second} {
		must(t, play(t, other, idOf(made), "pay", 0))
		shop.AwaitStatus(t, made.ExternalID, "PAID", harness.PaidWithin)
	}
	shop.Program = stranger
	a, err := shop.Post(t.Context(), "/payments/create", shop.PaymentBody(nil))
	if err != nil || a.Code != fault.ProviderUnavailable || a.Sent != fault.SentNo {
		t.Errorf("a replica that knows of no simulators: %s, %v", a, err)
	}
	harness.Await(t, harness.ActsWithin, "a line in its log that says what to set", func() bool {
		return strings.Contains(stranger.Log.String(), "sandbox_url has to name it")
	})
	refused(t, "nor anything happens", play(t, stranger, idOf(first), "refund", 0), fault.ProviderUnavailable)
	response, err := http.Get("http://" + address + "/payments/_sandbox/describe")
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized {
		t.Errorf("somebody who is no replica is answered %s", response.Status)
	}
}
