package payment_test

import (
	"bytes"
	"html"
	"image/png"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/browser"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

var (
	qrString  = regexp.MustCompile(`<meta name="qr-string" content="([^"]+)">`)
	elsewhere = regexp.MustCompile(`(?:src|href)="(?:https?:)?//`)
	paidTime  = regexp.MustCompile(`<time datetime="20\d\d-[^"]*Z">\d+ \w+ 20\d\d, \d\d\.\d\d\.\d\d\x{00a0}WIB</time>`)
)

func checkCheckoutPage(t *testing.T, p *harness.Program) {
	s := newPayee(t, p, "test")
	made := s.Create(t, harness.Fields{"amount": 16000, "description": "<b>Dua</b> kopi", "success_url": "https://shop.example/done"})
	if provider := p.ProviderPage(t, made.CheckoutURL); strings.HasPrefix(provider, p.APIURL) {
		t.Errorf("a link that is not paid goes on to %s, want the provider's page", provider)
	}
	p.Pay(t, harness.Fields{"url": made.CheckoutURL})
	s.AwaitStatus(t, made.ExternalID, "PAID", harness.PaidWithin)
	status, page, header := p.Get(t, made.CheckoutURL)
	if status != http.StatusOK || !bytes.Contains(page, []byte("https://shop.example/done")) || harness.PaymentLink.Match(page) {
		t.Errorf("after it is paid the page should lead back, and nowhere to pay: %d\n%s", status, page)
	}
	if !bytes.Contains(page, []byte("Rp16.000")) || !bytes.Contains(page, []byte("&lt;b&gt;Dua&lt;/b&gt; kopi")) || !paidTime.Match(page) {
		t.Errorf("no proof: it is without the amount, the description or the time, or with raw markup:\n%s", page)
	}
	if policy := header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
		t.Errorf("Content-Security-Policy %q", policy)
	}
	checkCancelledPage(t, p, s)
	if status, page, _ = p.Get(t, p.APIURL+"/checkout/00000000-0000-4000-8000-000000000000"); status != http.StatusNotFound || !bytes.Contains(page, []byte("<html")) {
		t.Errorf("an unknown payment's page: %d\n%s", status, page)
	}
}

// checkCancelledPage cancels a payment, whose page then says so: whatever the provider
// calls it, it has not run out.
func checkCancelledPage(t *testing.T, p *harness.Program, s harness.Shop) {
	made := s.Create(t, harness.Fields{"amount": 16001})
	if a := s.Ask(t, "/payments/cancel", harness.Fields{"external_id": made.ExternalID}); !a.Success {
		t.Fatalf("the cancel: %d %s", a.HTTP, a.Body)
	}
	if _, page, _ := p.Get(t, made.CheckoutURL); !bytes.Contains(page, []byte("Tagihan dibatalkan")) || bytes.Contains(page, []byte("Waktu pembayaran habis")) {
		t.Errorf("it does not say that it was cancelled:\n%s", page)
	}
}

// checkOwnQRPage makes a merchant of its own, whose payment links are QR codes
// on the gateway's page.
func checkOwnQRPage(t *testing.T, p *harness.Program) {
	s := newShop(t, p, "growth", harness.Fields{"link": "qr"})
	made := s.Create(t, harness.Fields{"amount": 17000, "success_url": "https://shop.example/done"})
	_, page, _ := p.Get(t, made.CheckoutURL)
	code := qrString.FindSubmatch(page)
	if code == nil || harness.PaymentLink.Match(page) || elsewhere.Match(page) || bytes.Contains(page, []byte("shop.example")) {
		t.Fatalf("the page has no QR string, leads elsewhere, loads something from there, or tells the way back before it is paid:\n%s", page)
	}
	if !bytes.Contains(page, []byte("NMID: ID")) {
		t.Errorf("the page has no national id of the merchant:\n%s", page)
	}
	status, image, header := p.Get(t, made.CheckoutURL+"/qr.png")
	if status != http.StatusOK || header.Get("Content-Type") != "image/png" {
		t.Fatalf("the image: %d %s", status, header.Get("Content-Type"))
	}
	if _, err := png.Decode(bytes.NewReader(image)); err != nil {
		t.Errorf("the image: %v", err)
	}
	if got, decoded := strangersDecoder(t, image); decoded && got != html.UnescapeString(string(code[1])) {
		t.Errorf("a stranger's decoder reads %q, the page says %q", got, code[1])
	}
	p.Pay(t, harness.Fields{"url": made.CheckoutURL})
	s.AwaitStatus(t, made.ExternalID, "PAID", harness.PaidWithin)
	if status, _, _ := p.Get(t, made.CheckoutURL+"/qr.png"); status != http.StatusNotFound {
		t.Errorf("the QR code of what is paid is still shown: %d", status)
	}
}

// checkReceipts pays two payments: the payer of the merchant that asks for receipts is
// mailed one in its language, the other's is not.
func checkReceipts(t *testing.T, p *harness.Program) {
	type mail struct {
		To            []string `json:"to"`
		Subject, Text string
	}
	to := func(payer string) (found []mail) {
		var all []mail
		p.Sandbox(t, "/mails.json", nil, &all)
		for _, m := range all {
			if slices.Contains(m.To, payer) {
				found = append(found, m)
			}
		}
		return found
	}
	pay := func(s harness.Shop, payer string) harness.Payment {
		made := s.Create(t, harness.Fields{"amount": 19000, "payer_email": payer, "description": "Dua kopi"})
		p.Pay(t, harness.Fields{"url": made.CheckoutURL})
		s.AwaitStatus(t, made.ExternalID, "PAID", harness.PaidWithin)
		return made
	}
	const without, with = "without-receipt@example.com", "with-receipt@example.com"
	pay(newShop(t, p, "growth", nil), without)
	made := pay(newLabelledShop(t, p, "growth", map[string]string{"receipts": "payments", "language": "en"}, nil), with)
	harness.Await(t, harness.PaidWithin, "the receipt", func() bool { return len(to(with)) > 0 })
	got := to(with)
	if len(got) != 1 || got[0].Subject != "[Test] Receipt from Toko Baru: Rp19.000" || !strings.Contains(got[0].Text, made.ExternalID) || !strings.Contains(got[0].Text, "Dua kopi") {
		t.Errorf("the mails are %+v", got)
	}
	if got := to(without); len(got) != 0 {
		t.Errorf("nobody asked for %+v", got)
	}
}

// strangersDecoder reads a QR code with zbar, where it is installed.
func strangersDecoder(t *testing.T, image []byte) (string, bool) {
	t.Helper()
	if _, err := exec.LookPath("zbarimg"); err != nil {
		t.Log("zbarimg is not installed: no stranger has read the QR code")
		return "", false
	}
	file := filepath.Join(t.TempDir(), "qr.png")
	if err := os.WriteFile(file, image, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "zbarimg", "--quiet", "--raw", file).Output()
	if err != nil {
		t.Fatalf("zbarimg: %v", err)
	}
	return strings.TrimSpace(string(out)), true
}

// newShop makes a merchant by the admin API and connects its test mode to the
// simulator, with settings of the connection added.
func newShop(t testing.TB, p *harness.Program, tier string, extra harness.Fields) harness.Shop {
	t.Helper()
	return newLabelledShop(t, p, tier, nil, extra)
}

func newLabelledShop(t testing.TB, p *harness.Program, tier string, labels map[string]string, extra harness.Fields) harness.Shop {
	t.Helper()
	made, err := adminapi.CreateMerchant.Call(t.Context(), p.Admin(), adminapi.NewMerchant{Name: "Toko Baru", Tier: tier, Labels: labels})
	if err != nil {
		t.Fatal(err)
	}
	p.ConnectDev(t, made.MerchantID, "payments", "test", extra)
	return harness.Shop{Program: p, MerchantID: made.MerchantID, Key: made.TestKey}
}

// checkBrowser opens a checkout page in Chromium, pays, and waits for the page
// to say so without being loaded again.
func checkBrowser(t *testing.T, p *harness.Program) {
	b := browser.Start(t)
	s := newShop(t, p, "growth", harness.Fields{"link": "qr"})
	made := s.Create(t, harness.Fields{"amount": 18000, "description": "Nasi goreng"})
	if out := b.Run(t, "testdata/checkout.mjs", nil, made.CheckoutURL, p.SandboxURL); out != "" {
		t.Error(out)
	}
}
