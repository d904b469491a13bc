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

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/kind"
)

const qrText = "00020101021226570011ID.DANA.WWW011893600915302259148102090225914810303UMI6304ABCD"

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

func TestCheckoutOfALink(t *testing.T) {
	t.Parallel()
	h := build(t)
	h.checkout = pending(func(c *kind.Checkout) { c.QR, c.PaymentURL, c.Test = "", "https://pay.example/i?a=1&b=2", true })
	got := h.send(t, http.MethodGet, "/checkout/abc", "")
	for _, want := range []string{`<link rel="payment" href="https://pay.example/i?a=1&amp;b=2">`, `class="button" href="https://pay.example/i?a=1&amp;b=2"`, "ribbon"} {
		if !strings.Contains(got.text, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	if strings.Contains(got.text, "qr.png") || strings.Contains(got.text, "qr-string") {
		t.Error("the page shows a QR code that is not there")
	}
	h.send(t, http.MethodGet, "/checkout/abc/qr.png", "").wantFault(t, fault.NotFound)
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
		if back := strings.Contains(got.text, "shop.example/thanks") && strings.Contains(state, "shop.example/thanks"); back != paid {
			t.Errorf("%s: the return address is shown: %v", status, back)
		}
		h.send(t, http.MethodGet, "/checkout/abc/qr.png", "").wantFault(t, fault.NotFound)
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
