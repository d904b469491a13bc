package edge

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"net/url"
	"path"
	"strings"
	"time"
	"unicode"

	"github.com/seed-f006e74d/gerbang/gateway/kind"
	"github.com/seed-f006e74d/gerbang/gateway/text"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/sdk/qris"
)

//go:embed page
var pageFiles embed.FS

const assetRoot = "/checkout/assets/"

// pages are everything a checkout page is made of.
type pages struct {
	template *template.Template
	assets   map[string][]byte // by the name with the digest in it
	names    map[string]string // path by plain name
	images   *qrImages
}

// newPages reads what is embedded. Assets have their digest in their name, so
// browsers may keep them for ever.
func newPages() (*pages, error) {
	p := &pages{assets: map[string][]byte{}, names: map[string]string{}}
	var err error
	if p.images, err = newQRImages(); err != nil {
		return nil, err
	}
	if p.template, err = template.ParseFS(pageFiles, "page/page.html"); err != nil {
		return nil, fmt.Errorf("checkout page: %w", err)
	}
	for _, name := range []string{"page.css", "page.js", "icon.svg"} {
		content, err := fs.ReadFile(pageFiles, "page/"+name)
		if err != nil {
			return nil, fmt.Errorf("checkout page: %w", err)
		}
		sum := sha256.Sum256(content)
		extension := path.Ext(name)
		versioned := strings.TrimSuffix(name, extension) + "." + hex.EncodeToString(sum[:6]) + extension
		p.assets[versioned], p.names[name] = content, assetRoot+versioned
	}
	return p, nil
}

// view is what the template shows.
type view struct {
	Lang                        string
	Title, Problem              string
	Style, Script, Icon, Colour string
	Languages                   []languageLink

	Checkout *kind.Checkout // nil on a page that only shows a problem
	Amount   string
	Initial  string
	Pending  bool
	Image    string
	QRIS     *payee // what the payer's app reads in the code, nil where it is no QRIS code
	Ends     string // the expiry, for people
	End      ending // of a payment that has ended
	Paid     string // when, for people
	Shop     string // the way back from a payment that is not paid
	Now      string
}

type languageLink struct {
	Code, Name string
	Current    bool
}

// T is a text in the page's language.
func (v view) T(english string) string { return text.In(v.Lang, english) }

func (p *pages) view(code string) view {
	v := view{Lang: code, Title: text.In(code, "Payment"), Style: p.names["page.css"], Script: p.names["page.js"], Icon: p.names["icon.svg"]}
	for _, other := range text.Languages {
		v.Languages = append(v.Languages, languageLink{other.Code, other.Name, other.Code == code})
	}
	return v
}

// checkout renders a payment's page.
func (p *pages) checkout(code, id string, c kind.Checkout, now time.Time) ([]byte, error) {
	// The template takes what it is given to be safe only in its place; that a
	// link leads to the web at all is judged here.
	shop := shopOf(c.SuccessURL)
	c.PaymentURL, c.SuccessURL = webURL(c.PaymentURL), returnURL(c)
	v := p.view(code)
	v.Checkout = &c
	v.Amount = money.Amount(c.Amount).Format()
	v.Initial = initial(c.Merchant)
	v.Colour = colourSheet(c.Colour)
	v.Now = now.UTC().Format(time.RFC3339Nano)
	if v.Pending = c.Status == statusPending; v.Pending {
		v.Image = "/checkout/" + id + "/qr.png"
		v.QRIS = payeeOf(c.QR)
		v.Ends = forPeople(code, c.ExpiresAt, "15.04")
	} else {
		v.End = endingOf(c)
		v.Title = v.T(v.End.Title)
		v.Paid = forPeople(code, c.PaidAt, "15.04.05")
		if c.SuccessURL == "" {
			v.Shop = shop
		}
	}
	v.Title += " · " + c.Merchant
	return p.render(v)
}

// payee is whom a QRIS code says that it pays: the payer's app shows the same.
type payee struct{ Name, NMID string }

func payeeOf(qr string) *payee {
	code, err := qris.Parse(qr)
	if err != nil {
		return nil
	}
	return &payee{Name: code.MerchantName(), NMID: code.NationalID()}
}

// ending is how a page shows a payment that has ended.
type ending struct{ Look, Sign, Title, More string }

func endingOf(c kind.Checkout) ending {
	const tick, clock, cross = "M14 25l7 7 14-15", "M24 13v12l8 5", "M16 16l16 16M32 16l-16 16"
	switch {
	case c.Reversed:
		return ending{"failed", cross, "The payment was taken back", "This payment had arrived and was taken back since. This page is no proof of payment; contact the shop."}
	case c.Late:
		return ending{"expired", clock, "The payment came after its time", "Your payment is recorded and the shop has been told. Please don't pay again; contact the shop."}
	case c.Status == statusPaid:
		return ending{"paid", tick, "Payment received", "Thank you, your payment has arrived."}
	case c.Cancelled:
		return ending{"expired", cross, "The bill was cancelled", "It was closed before its time. Please don't pay here any more."}
	case c.Status == "EXPIRED":
		return ending{"expired", clock, "The time to pay is over", "Please don't pay here any more. Ask the shop for a new bill."}
	}
	return ending{"failed", cross, "The payment failed", "This payment could not be finished. Contact the shop or ask for a new bill."}
}

// problem renders a page that only says what is wrong.
func (p *pages) problem(code, title, more string) ([]byte, error) {
	v := p.view(code)
	v.Title, v.Problem = v.T(title), v.T(more)
	return p.render(v)
}

func (p *pages) render(v view) ([]byte, error) {
	var out bytes.Buffer
	if err := p.template.Execute(&out, v); err != nil {
		return nil, fmt.Errorf("checkout page: %w", err)
	}
	return out.Bytes(), nil
}

// webURL is the URL when it leads to the web, else "".
func webURL(link string) string {
	parsed, err := url.Parse(link)
	if err != nil || parsed.Host == "" || parsed.Scheme != "https" && parsed.Scheme != "http" {
		return ""
	}
	return parsed.String()
}

// returnURL is where the payer goes, told only when it is paid: before that
// nobody should arrive there.
func returnURL(c kind.Checkout) string {
	if c.Status != statusPaid {
		return ""
	}
	return webURL(c.SuccessURL)
}

// shopOf is the front page of the shop that a URL of success leads to: who has not paid
// must not arrive where that is thanked for.
func shopOf(success string) string {
	parsed, err := url.Parse(webURL(success))
	if err != nil || parsed.Host == "" {
		return ""
	}
	return (&url.URL{Scheme: parsed.Scheme, Host: parsed.Host, Path: "/"}).String()
}

func initial(name string) string {
	for _, r := range name {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return string(unicode.ToUpper(r))
		}
	}
	return "·"
}

// forPeople writes a time as it is read in Jakarta: 20 Nov 2026, 21.30 WIB. The
// zone is never alone on a line.
func forPeople(code, moment, clock string) string {
	at, err := time.Parse(time.RFC3339, moment)
	if err != nil {
		return ""
	}
	at = at.In(time.FixedZone("WIB", 7*60*60))
	return text.Day(code, at) + at.Format(", "+clock+"\u00a0MST")
}

// statusPaid and statusPending are the merchant's words that the page acts on.
const (
	statusPaid    = "PAID"
	statusPending = "PENDING"
)
