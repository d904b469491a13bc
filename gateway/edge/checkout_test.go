package edge_test

import (
	"bytes"
	"errors"
	"image"
	_ "image/png"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/seed-f006e74d/gerbang/gateway/edge"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/kind"
	"github.com/seed-f006e74d/gerbang/sdk/qris"
)

// qrText is a published example of a code, made dynamic: it belongs to nobody.
var qrText = func() string {
	code, err := qris.Parse("00020101021126670018ID.CO.EXAMPLE2.WWW01159360001404567890215MIDCONTOH1234560303UMI" +
		"51370014ID.CO.QRIS.WWW0215ID10191234567815204123453033605802ID5914NamaMerchantC16009NamaKota1" +
		"6110123456789062070703K196304B22E")
	if err != nil {
		panic(err)
	}
	if code, err = code.Dynamic(125000); err != nil {
		panic(err)
	}
	return code.String()
}()

// pending is a payment that waits; tests change what they are about.
func pending(change ...func(*kind.Checkout)) func(string) (kind.Checkout, error) {
	c := kind.Checkout{
		Merchant: "Toko Contoh", Reference: "INV/2026/#001", Description: "Kopi susu", Amount: 125000, Status: "PENDING",
		QR: qrText, SuccessURL: "https://shop.example/thanks?a=1&b=2", ExpiresAt: "2026-11-20T05:30:00Z",
	}
	for _, f := range change {
		f(&c)
	}
	return func(string) (kind.Checkout, error) { return c, nil }
}

func TestCheckoutPage(t *testing.T) {
	t.Parallel()
	h := build(t)
	h.checkout = pending()
	got := h.send(t, http.MethodGet, "/checkout/abc", "")
	if got.StatusCode != http.StatusOK || got.Header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("got %d %v", got.StatusCode, got.Header)
	}
	for _, want := range []string{
		`lang="id"`, "Toko Contoh", "Rp125.000", "Kopi susu", "INV/2026/#001", `src="/checkout/abc/qr.png"`, "Bayar sebelum",
		"20 Nov 2026, 12.30\u00a0WIB", `<meta name="qr-string" content="` + qrText + `">`, `data-checkout="PENDING"`, `http-equiv="refresh"`,
		"NamaMerchantC1", "NMID: ID1019123456781", `aria-label="QRIS"`,
	} {
		if !strings.Contains(got.text, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	for _, unwanted := range []string{"shop.example", `rel="payment"`, "ribbon", "http://", "<style", " style=", " onclick"} {
		if strings.Contains(got.text, unwanted) {
			t.Errorf("the page has %s", unwanted)
		}
	}
	policy := got.Header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} {
		if !strings.Contains(policy, want) || strings.Contains(policy, "unsafe") {
			t.Errorf("the policy %q", policy)
		}
	}
	if got.Header.Get("Referrer-Policy") != "no-referrer" || got.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("headers %v", got.Header)
	}
}

func TestCheckoutLanguages(t *testing.T) {
	t.Parallel()
	h := build(t)
	h.checkout = pending()
	for _, test := range []struct{ query, accept, want string }{
		{"", "", "id"},
		{"", "en-GB,en;q=0.9", "en"},
		{"", "fr-FR", "id"},
		{"", "id-ID,en;q=0.5", "id"},
		{"?lang=en", "id-ID", "en"},
		{"?lang=id", "en", "id"},
		{"?lang=%22%3E%3Cscript%3E", "", "id"},
	} {
		got := h.send(t, http.MethodGet, "/checkout/abc"+test.query, "", header{"Accept-Language", test.accept})
		if !strings.Contains(got.text, `<html lang="`+test.want+`">`) {
			t.Errorf("%q, %q: not %s", test.query, test.accept, test.want)
		}
	}
}

// TestCheckoutInTheMerchantsLanguage: its label is spoken where the browser prefers
// nothing that we can speak.
func TestCheckoutInTheMerchantsLanguage(t *testing.T) {
	t.Parallel()
	h := build(t)
	h.checkout = pending(func(c *kind.Checkout) { c.Language = "en" })
	for accept, want := range map[string]string{"": "en", "fr": "en", "id": "id"} {
		got := h.send(t, http.MethodGet, "/checkout/abc", "", header{"Accept-Language", accept})
		if !strings.Contains(got.text, `<html lang="`+want+`">`) {
			t.Errorf("%q: not %s", accept, want)
		}
	}
}

// TestCheckoutOfALinkGoesOn to the provider's page as long as it can be paid there.
func TestCheckoutOfALinkGoesOn(t *testing.T) {
	t.Parallel()
	const provider = "https://pay.example/i?a=1&b=2"
	h := build(t)
	h.checkout = pending(func(c *kind.Checkout) { c.QR, c.PaymentURL = "", provider })
	got := h.send(t, http.MethodGet, "/checkout/abc?lang=en", "")
	if got.StatusCode != http.StatusFound || got.Header.Get("Location") != provider || got.Header.Get("Cache-Control") != "no-store" || got.Header.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("while it is pending: %d %v", got.StatusCode, got.Header)
	}
	for _, c := range []func(*kind.Checkout){
		func(c *kind.Checkout) { c.QR, c.PaymentURL, c.Status = "", provider, "PAID" },
		func(c *kind.Checkout) { c.QR, c.PaymentURL = "", "javascript:alert(1)" },
		func(c *kind.Checkout) { c.QR, c.PaymentURL = "", "//pay.example" },
		func(c *kind.Checkout) { c.QR, c.PaymentURL = "", "" },
	} {
		h.checkout = pending(c)
		if got := h.send(t, http.MethodGet, "/checkout/abc", ""); got.StatusCode != http.StatusOK || got.Header.Get("Location") != "" {
			t.Errorf("it goes on: %d %v", got.StatusCode, got.Header)
		}
	}
}

// TestCheckoutOfASimulatedLink goes on to the control room of its merchant, where there is
// one: a simulator's own page is nobody's to reach.
func TestCheckoutOfASimulatedLink(t *testing.T) {
	t.Parallel()
	simulated := pending(func(c *kind.Checkout) {
		c.QR, c.PaymentURL, c.Test, c.Console = "", "http://payments.sandbox.invalid/web/1", true, "/mer_1/test/movements/abc"
	})
	for console, want := range map[string]string{"https://console.example": "https://console.example/mer_1/test/movements/abc", "": ""} {
		h := build(t, func(c *edge.Config) { c.ConsoleURL = console })
		h.checkout = simulated
		got := h.send(t, http.MethodGet, "/checkout/abc", "")
		if got.Header.Get("Location") != want || strings.Contains(got.text, "sandbox.invalid") {
			t.Errorf("%q: %d %v %s", console, got.StatusCode, got.Header, got.text)
		}
	}
}

func TestCheckoutOfALinkWithACode(t *testing.T) {
	t.Parallel()
	h := build(t)
	h.checkout = pending(func(c *kind.Checkout) {
		c.QR, c.PaymentURL, c.Test = "no QRIS code", "https://pay.example/i?a=1&b=2", true
	})
	got := h.send(t, http.MethodGet, "/checkout/abc", "")
	for _, want := range []string{`<link rel="payment" href="https://pay.example/i?a=1&amp;b=2">`, `class="button" href="https://pay.example/i?a=1&amp;b=2"`, "ribbon"} {
		if !strings.Contains(got.text, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	if strings.Contains(got.text, "NMID") || strings.Contains(got.text, `"QRIS"`) {
		t.Error("the page calls a code QRIS that is none")
	}
}

func TestCheckoutThatEnded(t *testing.T) {
	t.Parallel()
	for status, words := range map[string]string{"PAID": "Pembayaran berhasil", "EXPIRED": "Waktu pembayaran habis", "FAILED": "Pembayaran gagal"} {
		h := build(t)
		h.checkout = pending(func(c *kind.Checkout) { c.Status, c.PaymentURL = status, "https://pay.example/" })
		got := h.send(t, http.MethodGet, "/checkout/abc", "")
		if !strings.Contains(got.text, "<title>"+words) || !strings.Contains(got.text, `data-checkout="`+status+`"`) {
			t.Errorf("%s: the page does not say %q", status, words)
		}
		for _, trace := range []string{"qr-string", `rel="payment"`, "qr.png", "pay.example"} {
			if strings.Contains(got.text, trace) {
				t.Errorf("%s: the page still has %s", status, trace)
			}
		}
		state := h.send(t, http.MethodGet, "/checkout/abc/state", "").text
		paid := status == "PAID"
		if strings.Contains(got.text, "shop.example/thanks") != paid || strings.Contains(state, "shop.example") {
			t.Errorf("%s: the way back is shown where it must not be, or not shown\n%s\n%s", status, got.text, state)
		}
		if strings.Contains(got.text, `class="button" href="https://shop.example/" rel="noreferrer">Kembali ke toko`) == paid || strings.Contains(got.text, "data-back") != paid {
			t.Errorf("%s: who has not paid is led to the shop's front page, and not by itself\n%s", status, got.text)
		}
		if to := strings.Contains(got.text, "Bayar ke"); to || strings.Contains(got.text, "Tagihan dari") == paid || strings.Contains(got.text, "Dibayar ke") != paid {
			t.Errorf("%s: the page asks to pay: %v", status, to)
		}
		h.send(t, http.MethodGet, "/checkout/abc/qr.png", "").wantFault(t, fault.NotFound)
	}
}

// TestCheckoutIsProof: it says when it was paid, to the second, in Jakarta.
func TestCheckoutIsProof(t *testing.T) {
	t.Parallel()
	h := build(t)
	h.checkout = pending(func(c *kind.Checkout) { c.Status, c.PaidAt = "PAID", "2026-11-20T18:03:09Z" })
	got := h.send(t, http.MethodGet, "/checkout/abc", "").text
	for _, want := range []string{"21 Nov 2026, 01.03.09\u00a0WIB", `datetime="2026-11-20T18:03:09Z"`, "Rp125.000", "Toko Contoh", "INV/2026/#001", "Kopi susu"} {
		if !strings.Contains(got, want) {
			t.Errorf("the page has no %s", want)
		}
	}
}

func TestCheckoutThatWasCancelled(t *testing.T) {
	t.Parallel()
	h := build(t)
	h.checkout = pending(func(c *kind.Checkout) { c.Status, c.Cancelled = "EXPIRED", true })
	for lang, want := range map[string]string{"id": "Tagihan dibatalkan", "en": "The bill was cancelled"} {
		got := h.send(t, http.MethodGet, "/checkout/abc?lang="+lang, "").text
		if !strings.Contains(got, "<title>"+want) || strings.Contains(got, "Waktu pembayaran habis") {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// TestCheckoutInTheMerchantsColour: text can be read on it, or it is not used.
func TestCheckoutInTheMerchantsColour(t *testing.T) {
	t.Parallel()
	h := build(t)
	for colour, sheet := range map[string]string{
		"#7a1fa2": ":root { --accent: #7a1fa2; --on-accent: #ffffff; }\n",
		"#0A5":    ":root { --accent: #00aa55; --on-accent: #14181f; }\n",
		"#757575": ":root { --accent: #757575; --on-accent: #ffffff; }\n", // 4.6 : 1
		"#7b7b7b": "",                                                     // 4.2 : 1 to both
		"":        "", "0a5": "", "#0a": "", "#00aa555": "", "red": "", "#zzz": "", `#"><`: "", "#é1": "",
	} {
		h.checkout = pending(func(c *kind.Checkout) { c.Colour = colour })
		page := h.send(t, http.MethodGet, "/checkout/abc", "").text
		link := regexp.MustCompile(`/checkout/assets/colour-[^"]*`).FindString(page)
		if (link == "") != (sheet == "") || strings.Contains(page, "style=") {
			t.Errorf("%q: the page links %q", colour, link)
		}
		if link == "" {
			continue
		}
		got := h.send(t, http.MethodGet, link, "")
		if got.text != sheet || got.Header.Get("Content-Type") != "text/css; charset=utf-8" || !strings.Contains(got.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%q: %d %v %s", colour, got.StatusCode, got.Header, got.text)
		}
	}
	for _, name := range []string{"colour-7b7b7b.css", "colour-0A5.css", "colour-.css", "colour-00aa55.js", "colour-00aa55}.css"} {
		h.send(t, http.MethodGet, "/checkout/assets/"+name, "").wantFault(t, fault.NotFound)
	}
}

func TestCheckoutState(t *testing.T) {
	t.Parallel()
	h := build(t)
	h.checkout = pending()
	got := h.send(t, http.MethodGet, "/checkout/abc/state", "")
	if want := `{"success":true,"data":{"status":"PENDING"}}` + "\n"; got.text != want || got.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("got %s %v", got.text, got.Header)
	}
}

func TestCheckoutImage(t *testing.T) {
	t.Parallel()
	h := build(t)
	h.checkout = pending()
	got := h.send(t, http.MethodGet, "/checkout/abc/qr.png", "")
	picture, format, err := image.Decode(bytes.NewReader([]byte(got.text)))
	if err != nil || format != "png" || got.Header.Get("Content-Type") != "image/png" {
		t.Fatalf("%v: %s %v", err, format, got.Header)
	}
	side := picture.Bounds().Dx()
	dark := func(x, y int) bool { r, _, _, _ := picture.At(x, y).RGBA(); return r == 0 }
	for i := range side {
		if dark(i, 39) || dark(39, i) || dark(i, side-40) || dark(side-40, i) {
			t.Fatalf("the quiet zone is not four modules wide at %d", i)
		}
	}
	if !dark(40, 40) || !dark(side-41, 40) || !dark(40, side-41) {
		t.Error("the three corners are not where they must be")
	}
}

func TestCheckoutAssets(t *testing.T) {
	t.Parallel()
	h := build(t)
	h.checkout = pending()
	page := h.send(t, http.MethodGet, "/checkout/abc", "").text
	links := regexp.MustCompile(`/checkout/assets/[a-z]+\.[0-9a-f]{12}\.(css|js|svg)`).FindAllString(page, -1)
	if len(links) != 3 {
		t.Fatalf("the page needs %v", links)
	}
	for _, link := range links {
		got := h.send(t, http.MethodGet, link, "")
		if got.StatusCode != http.StatusOK || !strings.Contains(got.Header.Get("Cache-Control"), "immutable") || len(got.text) == 0 {
			t.Errorf("%s: %d %v", link, got.StatusCode, got.Header)
		}
		if regexp.MustCompile(`https?://(?:[^w]|w[^w])`).MatchString(got.text) {
			t.Errorf("%s loads something from elsewhere", link)
		}
	}
}

func TestHostileTextsStayTexts(t *testing.T) {
	t.Parallel()
	const hostile = `"'><script>alert(1)</script><img src=x onerror=alert(1)>{{.}}`
	h := build(t)
	h.checkout = pending(func(c *kind.Checkout) {
		c.Merchant, c.Description, c.Reference, c.ExpiresAt, c.Status = hostile, hostile, hostile, hostile, "PENDING"
		c.QR, c.PaymentURL, c.SuccessURL = hostile, "javascript:alert(1)", "data:text/html,x"
	})
	wantHarmless(t, h.send(t, http.MethodGet, "/checkout/abc", "").text)
	h.checkout = pending(func(c *kind.Checkout) {
		c.Status, c.Merchant, c.SuccessURL = "PAID", hostile, `https://shop.example/"><script>alert(1)</script>`
	})
	wantHarmless(t, h.send(t, http.MethodGet, "/checkout/abc", "").text)
}

// wantHarmless parses a page as a browser would and looks for what could act.
func wantHarmless(t *testing.T, text string) {
	t.Helper()
	page, err := html.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	scripts, images := 0, 0
	for node := range page.Descendants() {
		switch node.Data {
		case "script":
			scripts++
		case "img":
			images++
		}
		for _, attribute := range node.Attr {
			if strings.HasPrefix(attribute.Key, "on") || strings.HasPrefix(attribute.Val, "javascript:") || strings.HasPrefix(attribute.Val, "data:") {
				t.Errorf("<%s %s=%q>", node.Data, attribute.Key, attribute.Val)
			}
		}
	}
	if scripts != 1 || images > 1 {
		t.Errorf("%d scripts and %d images", scripts, images)
	}
}

func TestCheckoutsThatAreNotThere(t *testing.T) {
	t.Parallel()
	h := build(t)
	for _, id := range []string{"unknown", "a%20b", strings.Repeat("x", 65)} {
		got := h.send(t, http.MethodGet, "/checkout/"+id, "")
		if got.StatusCode != http.StatusNotFound || !strings.Contains(got.text, "Tagihan tidak ditemukan") {
			t.Errorf("%s: %d %s", id, got.StatusCode, got.text)
		}
		h.send(t, http.MethodGet, "/checkout/"+id+"/state", "").wantFault(t, fault.NotFound)
	}
	h.checkout = func(string) (kind.Checkout, error) { return kind.Checkout{}, errors.New("secret_table is gone") }
	got := h.send(t, http.MethodGet, "/checkout/abc?lang=en", "")
	if got.StatusCode != http.StatusInternalServerError || !strings.Contains(got.text, "shown right now") || strings.Contains(got.text, "secret_table") {
		t.Errorf("got %d %s", got.StatusCode, got.text)
	}
}
