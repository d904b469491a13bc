package edge

import (
	"net/http"
	"regexp"
	"strconv"

	"github.com/julienschmidt/httprouter"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/kind"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/sandbox"
	"github.com/seed-f006e74d/gerbang/gateway/text"
)

// pagePolicy lets a page load its own style, script and images, ask for its own
// state, and nothing else.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

var checkoutID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// findCheckout reads the data of a page, which everybody who knows its id can ask for.
func (x *exchange) findCheckout(id string) (kind.Checkout, error) {
	if !checkoutID.MatchString(id) {
		return kind.Checkout{}, fault.New(fault.NotFound, "There is no such payment.")
	}
	done, err := x.queue(x.edge.payers)
	if err != nil {
		return kind.Checkout{}, err
	}
	defer done()
	return x.edge.Checkouts.Checkout(x.ctx, id)
}

// checkoutPage shows a payment to its payer.
func (x *exchange) checkoutPage(params httprouter.Params) {
	id := params.ByName("id")
	c, err := x.findCheckout(id)
	code := text.Choose(x.request.URL.Query().Get("lang"), x.request.Header.Get("Accept-Language"), c.Language)
	if err == nil && sandbox.Simulated(c.PaymentURL) { // whose page nobody can reach: it is paid in the control room
		c.PaymentURL = ""
		if x.edge.config.ConsoleURL != "" {
			c.PaymentURL = x.edge.config.ConsoleURL + c.Console
		}
	}
	if err == nil && c.Status == statusPending && c.QR == "" && webURL(c.PaymentURL) != "" {
		x.goOn(webURL(c.PaymentURL))
		return
	}
	if err != nil {
		x.problemPage(code, fault.From(err))
		return
	}
	page, err := x.edge.pages.checkout(code, id, c, x.started)
	if err != nil {
		x.problemPage(code, fault.From(err))
		return
	}
	x.page(http.StatusOK, page)
}

// goOn sends a payer on to the provider's page: ours has nothing to add to it, until
// the payment has ended.
func (x *exchange) goOn(to string) {
	header := x.Header()
	header.Set("Location", to)
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "no-store")
	x.WriteHeader(http.StatusFound)
}

// problemPage renders an error for people, as the envelope does for programs.
func (x *exchange) problemPage(code string, f *fault.Error) {
	x.code = string(f.Code)
	x.logCause(f)
	title, more := "The page can't be shown right now", "Something is wrong on our side for the moment. Reload this page in a little while."
	if f.Code == fault.NotFound {
		title, more = "There is no such bill", "Check the link, or ask the shop for a new one."
	}
	page, err := x.edge.pages.problem(code, title, more)
	if err != nil {
		x.fail(fault.From(err))
		return
	}
	x.page(f.Status(), page)
}

func (x *exchange) page(status int, text []byte) {
	header := x.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", pagePolicy)
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "no-store")
	header.Set("Vary", "Accept-Language")
	header.Set("Content-Length", strconv.Itoa(len(text)))
	x.WriteHeader(status)
	_, _ = x.Write(text)
}

// checkoutPart serves the parts of a page: its assets, which share its prefix, its
// state and its image.
func (x *exchange) checkoutPart(params httprouter.Params) {
	id, part := params.ByName("id"), params.ByName("part")
	switch {
	case id == "assets":
		x.asset(part)
	case part == "state":
		x.checkoutState(id)
	case part == "qr.png":
		x.checkoutImage(id)
	default:
		x.fail(fault.New(fault.NotFound, "There is no such path."))
	}
}

// checkoutState is the answer to a waiting page, which reads itself anew when it has
// changed.
type checkoutState struct {
	Status string `json:"status"`
}

// checkoutState answers a waiting page.
func (x *exchange) checkoutState(id string) {
	c, err := x.findCheckout(id)
	if err != nil {
		x.fail(x.truthful(err))
		return
	}
	x.succeed(lifecycle.Answer{Data: checkoutState{Status: c.Status}})
}

// checkoutImage serves the QR code as long as it can be paid.
func (x *exchange) checkoutImage(id string) {
	c, err := x.findCheckout(id)
	if err == nil && (c.QR == "" || c.Status != statusPending) {
		err = fault.New(fault.NotFound, "There is no QR code to pay.")
	}
	var image []byte
	if err == nil {
		image, err = x.edge.pages.images.png(c.QR)
	}
	if err != nil {
		x.fail(x.truthful(err))
		return
	}
	header := x.Header()
	header.Set("Content-Type", "image/png")
	header.Set("Cache-Control", "private, no-cache")
	header.Set("Content-Security-Policy", "default-src 'none'")
	x.content("qr.png", image)
}

func (x *exchange) asset(name string) {
	content, ok := x.edge.pages.assets[name]
	if !ok {
		content, ok = colourStyle(name)
	}
	if !ok {
		x.fail(fault.New(fault.NotFound, "There is no such path."))
		return
	}
	header := x.Header()
	header.Set("Cache-Control", "public, max-age=31536000, immutable")
	header.Set("Content-Security-Policy", "default-src 'none'")
	x.content(name, content)
}
