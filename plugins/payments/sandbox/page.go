package sandbox

import (
	_ "embed"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// pagePrefix begins the path of a page to pay on.
const pagePrefix = "/web/"

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

var pageTemplate = template.Must(template.New("page").Parse(pageHTML))

//go:embed room.js
var roomJS string

// pageView is what the page shows.
type pageView struct {
	Merchant, Amount, Reference, Description, State, Expiry string
	Pending                                                 bool
	Self, SuccessURL                                        string // Self is the page's path
	Buttons                                                 []button
	Events                                                  []eventView
}

// eventView is an event as a line of the page.
type eventView struct {
	kit.Event

	Time   string // the time of the day
	Answer string
	Good   bool
}

func viewEvents(events []kit.Event) []eventView {
	lines := make([]eventView, len(events))
	for n, e := range events {
		lines[n] = eventView{e, e.At.UTC().Format("15:04:05.000"), e.Reason, e.Status/100 == 2}
		if e.Status != 0 {
			lines[n].Answer = strconv.Itoa(e.Status) + " " + http.StatusText(e.Status)
		}
	}
	return lines
}

// servePages adds the pages on which a person pays, and watches what follows.
func (s *Simulator) servePages(mux *http.ServeMux) {
	mux.HandleFunc("GET "+pagePrefix+"page.css", asset("text/css", pageCSS))
	mux.HandleFunc("GET "+pagePrefix+"room.js", asset("text/javascript", roomJS))
	mux.HandleFunc("GET "+pagePrefix+"{id}", s.showPage)
	mux.HandleFunc("GET "+pagePrefix+"{id}/events.json", s.showEvents)
	// Another site's script must not be able to press a button.
	press := http.NewCrossOriginProtection().Handler(http.HandlerFunc(s.press))
	mux.Handle("POST "+pagePrefix+"{id}", press)
}

func asset(kind, content string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind+"; charset=utf-8")
		_, _ = w.Write([]byte(content)) // the reader may be gone
	}
}

func (s *Simulator) showPage(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	shown, ok := s.find(id)
	if !ok {
		http.NotFound(w, r)
		return
	}
	view := shown.view
	view.Self = pagePrefix + id
	view.Buttons, view.Events = shown.buttons(), viewEvents(s.env.Activity.About(id))
	secure(w.Header(), view.SuccessURL)
	// The reader may be gone; nobody is left to answer.
	_ = pageTemplate.Execute(w, view)
}

// showEvents is what the page shows of the calls and notifications, for programs.
func (s *Simulator) showEvents(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if _, ok := s.find(id); !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	answer(w, http.StatusOK, s.env.Activity.About(id))
}

// press carries out what a button says. Without an order it is the payer's: it
// pays and goes on to where the merchant wants the payer.
func (s *Simulator) press(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	shown, ok := s.find(id)
	if !ok {
		http.NotFound(w, r)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxOrder)
	order := r.PostFormValue("order")
	var err error
	if order == "" {
		err = shown.pay(tellAsUsual)
	} else {
		err = s.give(r.Context(), shown, order)
	}
	_, refused := errors.AsType[*kit.NotPayable](err)
	switch {
	case errors.Is(err, errOrder):
		http.Error(w, err.Error(), http.StatusBadRequest)
	case err != nil && !refused:
		http.Error(w, "the sandbox failed", http.StatusInternalServerError)
	case order == "" && err == nil && shown.view.SuccessURL != "":
		http.Redirect(w, r, shown.view.SuccessURL, http.StatusSeeOther)
	default:
		// The page says what the state is, also when it was not to be paid.
		http.Redirect(w, r, pagePrefix+id, http.StatusSeeOther)
	}
}

// secure sets the headers of a page that loads its own style and script alone. The
// form's target includes where the answer redirects to: browsers check that.
func secure(header http.Header, successURL string) {
	target := ""
	// A host may legally hold what would begin another directive.
	if u, err := url.Parse(successURL); err == nil && u.Host != "" && !strings.ContainsAny(u.Host, ";, '\"") {
		target = " " + u.Scheme + "://" + u.Host
	}
	header.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'"+target+
		"; base-uri 'none'; frame-ancestors 'none'")
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	header.Set("Referrer-Policy", "same-origin")
	header.Set("X-Content-Type-Options", "nosniff")
}

// Pay pays a code or a page as a payer would.
func (s *Simulator) Pay(request kit.PayRequest) (kit.Receipt, error) {
	var amount money.Amount
	if request.Amount != nil {
		amount = *request.Amount
	}
	if request.QRString != "" {
		return s.payByText(request.QRString, amount)
	}
	target, err := url.Parse(request.URL)
	if err != nil {
		return kit.Receipt{}, kit.ErrUnknown
	}
	id, found := strings.CutPrefix(target.Path, pagePrefix)
	if !found {
		return kit.Receipt{}, kit.ErrUnknown
	}
	i, err := s.payInvoice(id, amount, tellAsUsual)
	return kit.Receipt{Reference: i.ExternalID, Amount: i.PaidAmount, State: i.State}, err
}

func (s *Simulator) payByText(text string, amount money.Amount) (kit.Receipt, error) {
	s.mu.RLock()
	found, ok := s.codes.byText[text]
	var id string
	if ok {
		id = found.ID
	}
	s.mu.RUnlock()
	if !ok {
		return kit.Receipt{}, kit.ErrUnknown
	}
	q, p, err := s.payQR(id, amount, tellAsUsual)
	return kit.Receipt{Reference: q.Reference, Amount: p.Amount, State: statePaid}, err
}
