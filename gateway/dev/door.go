package dev

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"html"
	"html/template"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/jsonbody"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// door is the sandbox's own, for people and tests: it pays as a payer would,
// shows what the upstreams did, and makes them fail. It knows the simulators
// only by their control API.
type door struct {
	url       string
	api       string // the gateway's own URL
	sandboxes []*simulator
	inbox     *inbox
	mails     *mails
	log       *slog.Logger
}

func (t *tree) newDoor() http.Handler {
	d := &door{url: t.doorURL(), api: t.gateway.APIURL(), sandboxes: t.sandboxes, inbox: t.inbox, mails: t.mails, log: t.Log}
	return d.routes()
}

func (d *door) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /pay", d.pay)
	mux.HandleFunc("GET /movements", d.movements)
	mux.HandleFunc("POST /faults", d.faults)
	mux.HandleFunc("POST /providers/{provider}/{order}", d.order)
	mux.HandleFunc("POST /inbox", d.inbox.receive)
	mux.HandleFunc("POST /inbox/{name}", d.inbox.receive)
	mux.HandleFunc("GET /inbox", d.inboxPage)
	mux.HandleFunc("GET /inbox.json", d.inbox.asJSON)
	mux.HandleFunc("GET /mails", d.mailsPage)
	mux.HandleFunc("GET /mails.json", d.mails.asJSON)
	mux.HandleFunc("GET /profile", profile)
	mux.HandleFunc("GET /{$}", d.page)
	mux.HandleFunc("GET /door.css", asset("text/css", doorCSS))
	mux.HandleFunc("GET /inbox.js", asset("text/javascript", inboxJS))
	return mux
}

func (t *tree) doorURL() string { return "http://" + t.door.Addr().String() }

// pay finds the upstream that a QR string or a page belongs to and pays there.
// A page of the gateway's own is read first, as a payer's browser would.
func (d *door) pay(w http.ResponseWriter, r *http.Request) {
	var order kit.PayRequest
	if !readOrder(w, r, &order) {
		return
	}
	if strings.HasPrefix(order.URL, d.api+"/checkout/") {
		shown, err := d.read(r.Context(), order.URL)
		if err != nil {
			say(w, http.StatusConflict, err.Error())
			return
		}
		shown.Amount = order.Amount
		order = shown
	}
	for _, s := range d.sandboxes {
		var receipt json.RawMessage
		status, err := s.Control(r.Context(), "pay", order, &receipt)
		switch {
		case err == nil:
			answer(w, http.StatusOK, receipt)
			return
		case status != http.StatusNotFound:
			say(w, max(status, http.StatusBadRequest), err.Error())
			return
		}
	}
	say(w, http.StatusNotFound, "no simulated provider knows this qr_string or url")
}

var (
	paymentLink = regexp.MustCompile(`<link rel="payment" href="([^"]*)"`)
	qrMeta      = regexp.MustCompile(`<meta name="qr-string" content="([^"]*)"`)
)

// unled does not go on to where a page leads.
var unled = &http.Client{
	Timeout:       client.Timeout,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// read finds what a checkout page offers to be paid: where it leads, or what it shows.
func (d *door) read(ctx context.Context, page string) (kit.PayRequest, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, page, http.NoBody)
	if err != nil {
		return kit.PayRequest{}, err
	}
	response, err := unled.Do(request)
	if err != nil {
		return kit.PayRequest{}, err
	}
	defer response.Body.Close() // read to its end below
	if provider, err := response.Location(); err == nil {
		return kit.PayRequest{URL: provider.String()}, nil
	}
	content, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return kit.PayRequest{}, err
	}
	if found := paymentLink.FindSubmatch(content); found != nil {
		return kit.PayRequest{URL: unescape(found[1])}, nil
	}
	if found := qrMeta.FindSubmatch(content); found != nil {
		return kit.PayRequest{QRString: unescape(found[1])}, nil
	}
	return kit.PayRequest{}, errors.New("this page has nothing to pay: the payment has ended, or there is none")
}

// movements is what the upstreams accepted and did, the oldest first.
func (d *door) movements(w http.ResponseWriter, r *http.Request) {
	all, err := d.moved(r.Context())
	if err != nil {
		say(w, http.StatusInternalServerError, err.Error())
		return
	}
	answer(w, http.StatusOK, all)
}

func (d *door) moved(ctx context.Context) ([]kit.Movement, error) {
	all := []kit.Movement{}
	for _, s := range d.sandboxes {
		var theirs []kit.Movement
		if _, err := s.Control(ctx, "movements", nil, &theirs); err != nil {
			return nil, err
		}
		all = append(all, theirs...)
	}
	slices.SortStableFunc(all, func(a, b kit.Movement) int { return a.At.Compare(b.At) })
	return all, nil
}

// latestShown is how many payments the page lists.
const latestShown = 10

// latest are the last movements that a simulator has a page about, the newest first.
func latest(movements []kit.Movement) []kit.Movement {
	var shown []kit.Movement
	for _, m := range slices.Backward(movements) {
		if m.Page != "" && len(shown) < latestShown {
			shown = append(shown, m)
		}
	}
	return shown
}

// faults makes the next calls of one provider fail.
func (d *door) faults(w http.ResponseWriter, r *http.Request) {
	var order struct {
		Provider  string `json:"provider"`
		Fault     string `json:"fault"`
		Count     int    `json:"count"`
		Operation string `json:"operation,omitempty"`
	}
	if !readOrder(w, r, &order) {
		return
	}
	var names []string
	for _, s := range d.sandboxes {
		names = append(names, s.plugin.name)
		if s.plugin.name != order.Provider {
			continue
		}
		var set json.RawMessage
		body := map[string]any{"fault": order.Fault, "count": order.Count}
		if order.Operation != "" {
			body["operation"] = order.Operation
		}
		if status, err := s.Control(r.Context(), "faults", body, &set); err != nil {
			say(w, max(status, http.StatusBadRequest), err.Error())
			return
		}
		answer(w, http.StatusOK, set)
		return
	}
	say(w, http.StatusBadRequest, "provider must be one of "+strings.Join(names, ", "))
}

// order passes one of a simulator's own orders on, as the page lists them.
func (d *door) order(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("order")
	at := slices.IndexFunc(d.sandboxes, func(s *simulator) bool { return s.plugin.name == r.PathValue("provider") })
	if at < 0 {
		say(w, http.StatusNotFound, "there is no such provider")
		return
	}
	var body json.RawMessage
	if !readOrder(w, r, &body) {
		return
	}
	var description kit.Description
	if _, err := d.sandboxes[at].Control(r.Context(), "describe", nil, &description); err != nil {
		say(w, http.StatusInternalServerError, err.Error())
		return
	}
	if name != "clock" && !slices.ContainsFunc(description.Orders, func(o kit.Order) bool { return o.Name == name }) {
		say(w, http.StatusNotFound, "this provider has no such order; the page at / lists them")
		return
	}
	var done json.RawMessage
	if status, err := d.sandboxes[at].Control(r.Context(), name, body, &done); err != nil {
		say(w, max(status, http.StatusBadRequest), err.Error())
		return
	}
	answer(w, http.StatusOK, done)
}

//go:embed door.html
var doorHTML string

//go:embed door.css
var doorCSS string

//go:embed inbox.html
var inboxHTML string

//go:embed mails.html
var mailsHTML string

//go:embed inbox.js
var inboxJS string

var (
	doorPage  = template.Must(template.New("door").Parse(doorHTML))
	inboxPage = template.Must(template.New("inbox").Parse(inboxHTML))
	mailsPage = template.Must(template.New("mails").Parse(mailsHTML))
)

// pagePolicy lets a page load what is the door's own, and nothing else.
const pagePolicy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// page explains the door and the magic values of every simulator, and leads to the
// pages of the latest payments.
func (d *door) page(w http.ResponseWriter, r *http.Request) {
	var upstreams []kit.Description
	for _, s := range d.sandboxes {
		var description kit.Description
		if _, err := s.Control(r.Context(), "describe", nil, &description); err != nil {
			say(w, http.StatusInternalServerError, err.Error())
			return
		}
		upstreams = append(upstreams, description)
	}
	movements, err := d.moved(r.Context())
	if err != nil {
		say(w, http.StatusInternalServerError, err.Error())
		return
	}
	d.show(w, doorPage, map[string]any{"Door": d.url, "API": d.api, "Upstreams": upstreams, "Latest": latest(movements)})
}

// inboxPage shows the callbacks that came.
func (d *door) inboxPage(w http.ResponseWriter, _ *http.Request) {
	d.show(w, inboxPage, map[string]any{"Door": d.url, "Arrivals": d.inbox.list()})
}

// mailsPage shows the mails that were caught.
func (d *door) mailsPage(w http.ResponseWriter, _ *http.Request) {
	d.show(w, mailsPage, map[string]any{"Mails": d.mails.list()})
}

func (d *door) show(w http.ResponseWriter, page *template.Template, values map[string]any) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", pagePolicy)
	if err := page.Execute(w, values); err != nil {
		d.log.Warn("the sandbox's page", "page", page.Name(), "error", err)
	}
}

func asset(kind, content string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind+"; charset=utf-8")
		_, _ = io.WriteString(w, content) // the reader is gone
	}
}

func readOrder(w http.ResponseWriter, r *http.Request, order any) bool {
	content, err := io.ReadAll(http.MaxBytesReader(w, r.Body, jsonbody.Max))
	if err == nil {
		err = jsonbody.Decode(content, order)
	}
	if err != nil {
		say(w, http.StatusBadRequest, "the body must be a JSON object as the page at / explains: "+fault.From(err).Message)
		return false
	}
	return true
}

func say(w http.ResponseWriter, status int, text string) {
	answer(w, status, map[string]string{"error": text})
}

func answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // the reader is gone
}

func unescape(attribute []byte) string { return html.UnescapeString(string(attribute)) }
