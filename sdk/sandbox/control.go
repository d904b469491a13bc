package sandbox

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	strict "github.com/go-json-experiment/json"

	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// controlPrefix is where the control API lives beside the upstream's own.
const controlPrefix = "/_sandbox/"

// maxControlBody is the largest order.
const maxControlBody = 64 << 10

// payHeard is how long a payment by hand waits for its webhooks to be tried.
const payHeard = 3 * time.Second

// ErrUnknown is an upstream's word that it never made that code or page.
var ErrUnknown = errors.New("nothing of this upstream")

// NotPayable is an upstream's word that a code or page cannot be paid, and why.
type NotPayable struct {
	Reason string
}

// Error returns the reason.
func (e *NotPayable) Error() string { return e.Reason }

// PayRequest is what a payer has before them: a code or a page, never both.
type PayRequest struct {
	QRString string `json:"qr_string,omitempty"`
	URL      string `json:"url,omitempty"`
	// Amount is what the payer pays; nil is what was asked for.
	Amount *money.Amount `json:"amount,omitempty"`
}

// Receipt is what was paid.
type Receipt struct {
	Provider  string       `json:"provider"`
	Reference string       `json:"reference"`
	Amount    money.Amount `json:"amount"`
	State     string       `json:"state"`
}

// Magic is a value that makes the simulator do something special.
type Magic struct {
	Value  string `json:"value"`
	Effect string `json:"effect"`
}

// Description is what a simulator says of itself, for people and for the door
// that all simulators share.
type Description struct {
	Provider   string      `json:"provider"`
	Operations []Operation `json:"operations"`
	Magic      []Magic     `json:"magic"`
	// Prefixes are what the URLs of pages to pay on begin with.
	Prefixes []string `json:"prefixes"`
	// Orders are the control orders that only this simulator has.
	Orders []Order `json:"orders,omitempty"`
}

// Upstream is one simulator.
type Upstream interface {
	// Handler serves everything but the control API.
	Handler() http.Handler
	// Pay pays as a payer would. It returns ErrUnknown or a *NotPayable; any
	// other error is the simulator's own failure.
	Pay(PayRequest) (Receipt, error)
	// Describe fills in magic values and prefixes; base is the simulator's URL
	// without a slash at the end.
	Describe(base string) Description
}

// Handler serves an upstream together with its control API.
func (e *Env) Handler(up Upstream) http.Handler {
	api, control := up.Handler(), e.control(up)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, controlPrefix) {
			control.ServeHTTP(w, r)
			return
		}
		api.ServeHTTP(w, r)
	})
}

func (e *Env) control(up Upstream) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+controlPrefix+"pay", func(w http.ResponseWriter, r *http.Request) { e.pay(up, w, r) })
	mux.HandleFunc("POST "+controlPrefix+"faults", e.orderFault)
	mux.HandleFunc("POST "+controlPrefix+"hooks", e.registerHook)
	mux.HandleFunc("GET "+controlPrefix+"movements", e.showMovements)
	mux.HandleFunc("GET "+controlPrefix+"describe", func(w http.ResponseWriter, r *http.Request) {
		d := up.Describe("http://" + r.Host)
		d.Provider, d.Operations = e.Provider, e.Faults.Operations()
		if orderer, ok := up.(Orderer); ok {
			d.Orders = orderer.Orders()
		}
		if _, ok := up.(Returner); ok {
			d.Orders = append(d.Orders, returnOrder)
		}
		writeJSON(w, http.StatusOK, d)
	})
	mux.HandleFunc("POST "+controlPrefix+"clock", e.moveClock)
	if orderer, ok := up.(Orderer); ok {
		for _, order := range orderer.Orders() {
			mux.HandleFunc("POST "+controlPrefix+order.Name, func(w http.ResponseWriter, r *http.Request) { order.serve(e, w, r) })
		}
	}
	if returner, ok := up.(Returner); ok {
		mux.HandleFunc("POST "+controlPrefix+"return", func(w http.ResponseWriter, r *http.Request) { e.giveBack(returner, w, r) })
	}
	if revoker, ok := up.(Revoker); ok {
		mux.HandleFunc("POST "+controlPrefix+"revoke", func(w http.ResponseWriter, r *http.Request) { e.revoke(revoker, w, r) })
	}
	if connector, ok := up.(Connector); ok {
		mux.HandleFunc("POST "+controlPrefix+"connect", func(w http.ResponseWriter, r *http.Request) { e.connect(connector, w, r) })
	}
	want := sha256.Sum256([]byte("Bearer " + e.token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			writeError(w, http.StatusUnauthorized, "the control API wants its bearer token")
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func (e *Env) pay(up Upstream, w http.ResponseWriter, r *http.Request) {
	var request PayRequest
	if !readOrder(w, r, &request) {
		return
	}
	if (request.QRString == "") == (request.URL == "") {
		writeError(w, http.StatusBadRequest, "one of qr_string and url is required")
		return
	}
	if request.Amount != nil && *request.Amount < 1 {
		writeError(w, http.StatusBadRequest, "amount must be at least 1")
		return
	}
	receipt, err := up.Pay(request)
	var refusal *NotPayable
	switch {
	case errors.Is(err, ErrUnknown):
		writeError(w, http.StatusNotFound, err.Error())
	case errors.As(err, &refusal):
		writeError(w, http.StatusConflict, refusal.Reason)
	case err != nil:
		writeError(w, http.StatusInternalServerError, err.Error())
	default:
		heard, cancel := context.WithTimeout(r.Context(), payHeard)
		defer cancel()
		e.Webhooks.Tried(heard)
		receipt.Provider = e.Provider
		writeJSON(w, http.StatusOK, receipt)
	}
}

func (e *Env) showMovements(w http.ResponseWriter, r *http.Request) {
	movements := e.Movements.All()
	if reference := r.URL.Query().Get("reference"); reference != "" {
		movements = slices.DeleteFunc(movements, func(m Movement) bool { return m.Reference != reference })
	}
	if err := e.Journal.Sync(); err != nil {
		writeError(w, http.StatusInternalServerError, err.Error())
		return
	}
	if movements == nil {
		movements = []Movement{}
	}
	for n := range movements {
		if movements[n].Page != "" {
			movements[n].Page = "http://" + r.Host + movements[n].Page
		}
	}
	writeJSON(w, http.StatusOK, movements)
}

func (e *Env) orderFault(w http.ResponseWriter, r *http.Request) {
	var wanted struct {
		Fault     Fault  `json:"fault"`
		Count     int    `json:"count"`
		Operation string `json:"operation"`
	}
	wanted.Count = 1
	if !readOrder(w, r, &wanted) {
		return
	}
	if err := e.Faults.Add(wanted.Fault, wanted.Operation, wanted.Count); err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	writeJSON(w, http.StatusOK, wanted)
}

func (e *Env) registerHook(w http.ResponseWriter, r *http.Request) {
	var hook struct {
		Account       string `json:"account"`
		CallbackURL   string `json:"callback_url"`
		CallbackToken string `json:"callback_token"`
		Name          string `json:"name"`
	}
	if !readOrder(w, r, &hook) {
		return
	}
	target, err := url.Parse(hook.CallbackURL)
	if err != nil || target.Host == "" || target.Scheme != "http" && target.Scheme != "https" {
		writeError(w, http.StatusBadRequest, "callback_url must be an http or https URL")
		return
	}
	if hook.Account == "" {
		writeError(w, http.StatusBadRequest, "account is required: the API key whose webhooks these are")
		return
	}
	account := Account{
		ID: AccountOf(hook.Account), Name: hook.Name, CallbackURL: hook.CallbackURL, CallbackToken: hook.CallbackToken,
	}
	if err := e.Accounts.Register(account); err != nil {
		writeError(w, http.StatusInternalServerError, err.Error())
		return
	}
	writeJSON(w, http.StatusOK, map[string]AccountID{"account_id": account.ID})
}

// readOrder decodes one JSON object as strictly as the gateway does, no name twice and
// nothing after it, and answers 400 when it is none.
func readOrder(w http.ResponseWriter, r *http.Request, into any) bool {
	if err := strict.UnmarshalRead(http.MaxBytesReader(w, r.Body, maxControlBody), into, strict.RejectUnknownMembers(true)); err != nil {
		writeError(w, http.StatusBadRequest, fmt.Sprintf("the body is not the expected JSON: %v", err))
		return false
	}
	return true
}

func writeError(w http.ResponseWriter, status int, text string) {
	writeJSON(w, status, map[string]string{"error": text})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	// The caller may be gone; nobody is left to answer.
	_ = json.NewEncoder(w).Encode(body)
}
