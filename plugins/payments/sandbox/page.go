package sandbox

import (
	_ "embed"
	"errors"
	"html/template"
	"net/http"
	"net/url"
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

// pageView is what the page shows.
type pageView struct {
	Merchant, Amount, Description, State, Expiry string
	Pending                                      bool
}

// servePages adds the pages on which a person pays.
func (s *Simulator) servePages(mux *http.ServeMux) {
	mux.HandleFunc("GET "+pagePrefix+"page.css", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		_, _ = w.Write([]byte(pageCSS))
	})
	mux.HandleFunc("GET "+pagePrefix+"{id}", s.showPage)
	// Another site's script must not be able to press the button.
	press := http.NewCrossOriginProtection().Handler(http.HandlerFunc(s.pressPay))
	mux.Handle("POST "+pagePrefix+"{id}", press)
}

func (s *Simulator) showPage(w http.ResponseWriter, r *http.Request) {
	s.mu.RLock()
	found, ok := s.invoices.byID[r.PathValue("id")]
	var i invoice
	if ok {
		i = found.at(s.now())
	}
	s.mu.RUnlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	secure(w.Header(), i.SuccessURL)
	// The reader may be gone; nobody is left to answer.
	_ = pageTemplate.Execute(w, pageView{
		Merchant: i.Merchant, Amount: i.Amount.Format(), Description: i.Description, State: i.State,
		Expiry: stamp(i.Expiry), Pending: i.State == statePending,
	})
}

// pressPay pays and goes on to where the merchant wants the payer.
func (s *Simulator) pressPay(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	i, err := s.payInvoice(id, 0)
	var refusal *kit.NotPayable
	switch {
	case errors.Is(err, kit.ErrUnknown):
		http.NotFound(w, r)
	case err != nil && !errors.As(err, &refusal):
		http.Error(w, "the sandbox failed", http.StatusInternalServerError)
	case err == nil && i.SuccessURL != "":
		http.Redirect(w, r, i.SuccessURL, http.StatusSeeOther)
	default:
		// The page says what the state is, also when it was not to be paid.
		http.Redirect(w, r, pagePrefix+id, http.StatusSeeOther)
	}
}

// secure sets the headers of a page that runs nothing and loads one style. The
// form's target includes where the answer redirects to: browsers check that.
func secure(header http.Header, successURL string) {
	target := ""
	// A host may legally hold what would begin another directive.
	if u, err := url.Parse(successURL); err == nil && u.Host != "" && !strings.ContainsAny(u.Host, ";, '\"") {
		target = " " + u.Scheme + "://" + u.Host
	}
	header.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; form-action 'self'"+target+
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
	i, err := s.payInvoice(id, amount)
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
	q, p, err := s.payQR(id, amount)
	return kit.Receipt{Reference: q.Reference, Amount: p.Amount, State: statePaid}, err
}
