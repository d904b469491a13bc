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
	"github.com/seed-f006e74d/gerbang/sdk/money"
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
	T                   words
	Lang                string
	Title, Problem      string
	Style, Script, Icon string
	Languages           []languageLink

	Checkout *kind.Checkout // nil on a page that only shows a problem
	Amount   string
	Initial  string
	Image    string
	Ends     string // the expiry, for people
	Now      string
	Return   string // of a meta refresh, where a page without scripts goes back
}

type languageLink struct {
	Code, Name string
	Current    bool
}

func (p *pages) view(t words) view {
	v := view{T: t, Lang: t.Code, Title: t.Checkout, Style: p.names["page.css"], Script: p.names["page.js"], Icon: p.names["icon.svg"]}
	for _, other := range languages {
		v.Languages = append(v.Languages, languageLink{other.Code, other.Name, other.Code == t.Code})
	}
	return v
}

// checkout renders a payment's page.
func (p *pages) checkout(t words, id string, c kind.Checkout, now time.Time) ([]byte, error) {
	// The template takes what it is given to be safe only in its place; that a
	// link leads to the web at all is judged here.
	c.PaymentURL, c.SuccessURL = webURL(c.PaymentURL), returnURL(c)
	v := p.view(t)
	v.Checkout = &c
	v.Amount = money.Amount(c.Amount).Format()
	v.Title = titleOf(t, c.Status) + " · " + c.Merchant
	v.Initial = initial(c.Merchant)
	v.Image = "/checkout/" + id + "/qr.png"
	v.Ends = forPeople(t, c.ExpiresAt)
	v.Now = now.UTC().Format(time.RFC3339Nano)
	if c.SuccessURL != "" {
		v.Return = "4;url=" + c.SuccessURL
	}
	return p.render(v)
}

// problem renders a page that only says what is wrong.
func (p *pages) problem(t words, title, text string) ([]byte, error) {
	v := p.view(t)
	v.Title, v.Problem = title, text
	return p.render(v)
}

func (p *pages) render(v view) ([]byte, error) {
	var out bytes.Buffer
	if err := p.template.Execute(&out, v); err != nil {
		return nil, fmt.Errorf("checkout page: %w", err)
	}
	return out.Bytes(), nil
}

func titleOf(t words, status string) string {
	switch status {
	case statusPaid:
		return t.Paid
	case "EXPIRED":
		return t.Expired
	case "FAILED":
		return t.Failed
	}
	return t.Checkout
}

// webURL is the URL when it leads to the web, else "".
func webURL(text string) string {
	parsed, err := url.Parse(text)
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
func forPeople(t words, text string) string {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return ""
	}
	at = at.In(time.FixedZone("WIB", 7*60*60))
	return fmt.Sprintf("%d %s %d, %02d.%02d\u00a0WIB", at.Day(), t.Months[at.Month()-1], at.Year(), at.Hour(), at.Minute())
}

// statusPaid and statusPending are the merchant's words that the page acts on.
const (
	statusPaid    = "PAID"
	statusPending = "PENDING"
)
