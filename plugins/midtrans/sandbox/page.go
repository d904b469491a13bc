package sandbox

import (
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// pagePrefix begins the path of a page to pay on.
const pagePrefix = "/snap/v4/redirection/"

// Amounts that make something special happen.
const (
	magicNotActivated money.Amount = 10100
	magicTwice        money.Amount = 10110
	magicLost         money.Amount = 10112
	magicPaidByItself money.Amount = 10114

	// selfPayGap is when magicPaidByItself is paid.
	selfPayGap = 3 * time.Second
)

var page = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>{{.Merchant}}: {{.Amount}}</title></head>
<body>
<main>
<p>Sandbox: no money moves here.</p>
<h1>{{.Merchant}}</h1>
<p>{{.Amount}}</p>
<p>State: <strong>{{.State}}</strong></p>
{{if .Open}}<form method="post"><button type="submit">Pay {{.Amount}} by QRIS</button></form>{{end}}
</main>
</body>
</html>
`))

// servePages adds the pages on which a person pays.
func (s *Simulator) servePages(mux *http.ServeMux) {
	mux.HandleFunc("GET "+pagePrefix+"{token}", s.showPage)
	// Another site's script must not be able to press the button.
	mux.Handle("POST "+pagePrefix+"{token}", http.NewCrossOriginProtection().Handler(http.HandlerFunc(s.pressPay)))
}

func (s *Simulator) link(token string) (order, bool, error) {
	return s.find(func() *order { return s.byToken[token] })
}

func (s *Simulator) showPage(w http.ResponseWriter, r *http.Request) {
	o, ok, err := s.link(r.PathValue("token"))
	if err != nil || !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; frame-ancestors 'none'")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	state := o.state(s.now())
	// The reader may be gone; nobody is left to answer.
	_ = page.Execute(w, map[string]any{
		"Merchant": o.Merchant, "Amount": o.Amount.Format(), "State": state, "Open": state == statePending || state == stateUntouched,
	})
}

// pressPay pays and goes on to where the merchant wants the payer.
func (s *Simulator) pressPay(w http.ResponseWriter, r *http.Request) {
	o, ok, err := s.link(r.PathValue("token"))
	if err == nil && ok {
		o, err = s.pay(o.ID)
	}
	_, ended := errors.AsType[*kit.NotPayable](err)
	switch {
	case !ok:
		http.NotFound(w, r)
	case err != nil && !ended:
		http.Error(w, "the sandbox failed", http.StatusInternalServerError)
	case err == nil && o.Finish != "":
		http.Redirect(w, r, o.Finish, http.StatusSeeOther)
	default:
		http.Redirect(w, r, r.URL.Path, http.StatusSeeOther) // the page says what the state is
	}
}

// offered finds what a payer has before them.
func (s *Simulator) offered(qr, page string) (order, error) {
	token := ""
	if target, err := url.Parse(page); err == nil {
		token, _ = strings.CutPrefix(target.Path, pagePrefix)
	}
	o, ok, err := s.find(func() *order {
		if qr != "" {
			return s.byQR[qr]
		}
		return s.byToken[token]
	})
	if err == nil && !ok {
		err = kit.ErrUnknown
	}
	return o, err
}

// Pay pays a code or a page as a payer would. The upstream takes no other amount than
// the one asked for.
func (s *Simulator) Pay(request kit.PayRequest) (kit.Receipt, error) {
	o, err := s.offered(request.QRString, request.URL)
	if err != nil {
		return kit.Receipt{}, err
	}
	if request.Amount != nil && *request.Amount != 0 && *request.Amount != o.Amount {
		return kit.Receipt{}, &kit.NotPayable{Reason: "an order is paid whole, and no more"}
	}
	o, err = s.pay(o.ID)
	if err != nil {
		return kit.Receipt{}, err
	}
	return kit.Receipt{Reference: o.OrderID, Amount: o.Amount, State: o.Tx.State}, nil
}

// Orders implements the kit's Orderer.
func (s *Simulator) Orders() []kit.Order {
	type body struct {
		URL string `json:"url"`
	}
	return []kit.Order{kit.NewOrder("choose", `{"url":"..."}: the payer of a link chooses how to pay, and does not pay yet`, func(b body) (any, error) {
		o, err := s.offered("", b.URL)
		if err != nil {
			return nil, err
		}
		if o, err = s.choose(o.ID); err != nil {
			return nil, err
		}
		return map[string]string{"reference": o.OrderID, "state": o.Tx.State}, nil
	})}
}

// Describe lists the magic amounts and where the pages are.
func (s *Simulator) Describe(base string) kit.Description {
	return kit.Description{
		Prefixes: []string{base + pagePrefix},
		Magic: []kit.Magic{
			{Value: magicNotActivated.String(), Effect: "QRIS: the charge is turned away: 402, the channel is not activated"},
			{Value: magicTwice.String(), Effect: "each notification is sent twice"},
			{Value: magicLost.String(), Effect: "no notification at all: only a look-up finds out"},
			{Value: magicPaidByItself.String(), Effect: "is paid by itself after 3 s"},
		},
	}
}
