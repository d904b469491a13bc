package sdktest_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// charge is what the example's upstream keeps.
type charge struct {
	ID     string       `json:"id"`
	Ref    string       `json:"ref"`
	Amount money.Amount `json:"amount"`
	Paid   money.Amount `json:"paid"`
	State  string       `json:"state"`
	Event  string       `json:"event"`
	Backs  []back       `json:"backs,omitempty"`
	// Auto is paid at once, Late is known only once it is paid.
	Auto bool `json:"auto,omitempty"`
	Late bool `json:"late,omitempty"`

	account sandbox.AccountID
}

// simulator is a small payment provider: it makes a charge for each POST it
// gets, and knows nothing of idempotency. It forgets all at a restart.
type simulator struct {
	env *sandbox.Env

	mu      sync.Mutex
	charges []*charge
	keys    map[string]bool
}

func program() sandbox.Program {
	return sandbox.Program{Provider: "example", Build: func(env *sandbox.Env) (sandbox.Upstream, error) {
		env.Faults.ServerError = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			answer(w, http.StatusInternalServerError, map[string]bool{"broken": true})
		})
		return &simulator{env: env, keys: map[string]bool{}}, env.Begin()
	}}
}

func (s *simulator) Handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, h := range map[string]func(http.ResponseWriter, *http.Request, sandbox.AccountID){
		"POST /charges": s.create, "GET /charges": s.find, "POST /charges/{id}/end": s.end, "POST /charges/{id}/backs": s.giveBack, "GET /books": s.books, "GET /rate": s.rate,
	} {
		mux.Handle(pattern, s.known(s.env.Faults, pattern, h))
	}
	return mux
}

func (s *simulator) Describe(base string) sandbox.Description {
	return sandbox.Description{Prefixes: []string{base + "/pay/"}}
}

func (s *simulator) Connect(_, key, token, base string) sandbox.Connection {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys[key] = true
	derived := func(purpose string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(purpose+key)))[:24] }
	return sandbox.Connection{Account: key, CallbackToken: token, Credentials: map[string]any{
		"key": key, "token": token, "url": base, "passphrase": derived("passphrase"), "reports": map[string]string{"feed": derived("feed")},
	}}
}

func (s *simulator) Revoke(account string) error { return s.env.Accounts.Revoke(account) }

// known refuses a key that is no account's, or was revoked.
func (s *simulator) known(f *sandbox.Faults, name string, h func(http.ResponseWriter, *http.Request, sandbox.AccountID)) http.Handler {
	inner := f.Wrap(name, name == "POST /charges" || strings.HasSuffix(name, "/backs"), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h(w, r, sandbox.AccountOf(r.Header.Get("Authorization")))
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("Authorization")
		s.mu.Lock()
		known := s.keys[key]
		s.mu.Unlock()
		if !known || s.env.Accounts.Revoked(sandbox.AccountOf(key)) {
			fail(w, http.StatusUnauthorized, "who are you")
			return
		}
		inner.ServeHTTP(w, r)
	})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func fail(w http.ResponseWriter, status int, text string) {
	answer(w, status, map[string]string{"error": text})
}

// unlucky is the amount that the upstream refuses.
const unlucky = 13

func (s *simulator) create(w http.ResponseWriter, r *http.Request, account sandbox.AccountID) {
	body, err := io.ReadAll(r.Body)
	made := &charge{}
	if err = errors.Join(err, json.Unmarshal(body, made)); err != nil || made.Amount == unlucky {
		fail(w, http.StatusUnprocessableEntity, "unlucky")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	made.account, made.State, made.Event = account, "open", ""
	made.ID = fmt.Sprintf("ch-%d", len(s.charges)+1)
	s.charges = append(s.charges, made)
	if !made.Late {
		s.record(made)
	}
	if made.Auto {
		s.settle(made, made.Amount)
	}
	answer(w, http.StatusOK, made)
}

func (s *simulator) record(c *charge) {
	s.env.Movements.Record(c.ID, sandbox.Movement{Account: c.account, Reference: c.Ref, Amount: c.Amount, State: c.State})
}

// settle pays a charge and announces it. The lock is held.
func (s *simulator) settle(c *charge, paid money.Amount) {
	if c.Late {
		s.record(c)
	}
	c.State, c.Paid, c.Event, c.Late = "paid", paid, c.ID+"-paid", false
	body, err := json.Marshal(c)
	if err == nil {
		s.env.Journal.Append(s.env.Webhooks.Entry(sandbox.Webhook{
			Account: c.account, SignatureHeader: "X-Signature", Body: body, At: s.env.Clock.Now(),
		}))
	}
}

// Pay pays a charge by its page, or what a collection's code asks for.
func (s *simulator) Pay(p sandbox.PayRequest) (sandbox.Receipt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.QRString != "" {
		code, err := url.ParseQuery(p.QRString)
		if err != nil {
			return sandbox.Receipt{}, sandbox.ErrUnknown
		}
		paid := &charge{ID: strconv.Itoa(len(s.charges)), State: "paid", account: sandbox.AccountID(code.Get("to"))}
		s.charges = append(s.charges, paid)
		return sandbox.Receipt{Reference: paid.ID}, json.Unmarshal([]byte(code.Get("amount")), &paid.Amount)
	}
	_, id, _ := strings.Cut(p.URL, "/pay/")
	for _, c := range s.charges {
		if c.ID != id {
			continue
		}
		if c.State != "open" {
			return sandbox.Receipt{}, &sandbox.NotPayable{Reason: "it is " + c.State}
		}
		amount := c.Amount
		if p.Amount != nil {
			amount = *p.Amount
		}
		s.settle(c, amount)
		return sandbox.Receipt{Reference: c.Ref, Amount: amount, State: c.State}, nil
	}
	return sandbox.Receipt{}, sandbox.ErrUnknown
}

func (s *simulator) find(w http.ResponseWriter, r *http.Request, account sandbox.AccountID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.charges {
		if c.Ref == r.URL.Query().Get("ref") && c.account == account && !c.Late {
			answer(w, http.StatusOK, c)
			return
		}
	}
	fail(w, http.StatusNotFound, "nothing")
}

func (s *simulator) end(w http.ResponseWriter, r *http.Request, account sandbox.AccountID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range slices.Backward(s.charges) {
		if (c.ID == r.PathValue("id") || r.PathValue("id") == "newest") && c.account == account {
			if c.State == "open" {
				c.State, c.Event = "ended", c.ID+"-ended"
			}
			answer(w, http.StatusOK, c)
			return
		}
	}
	fail(w, http.StatusNotFound, "nothing")
}

// back is money of a charge that went back.
type back struct {
	ID     string       `json:"id"`
	Ref    string       `json:"ref"`
	Amount money.Amount `json:"amount"`
	Sort   string       `json:"sort,omitempty"` // "" is a refund
	Undone bool         `json:"undone,omitempty"`
}

// left is what of a paid charge has not gone back.
func (c *charge) left() money.Amount {
	left := c.Paid
	for _, b := range c.Backs {
		if !b.Undone {
			left -= b.Amount
		}
	}
	return left
}

// Return has money of a paid charge go back, or come again.
func (s *simulator) Return(r sandbox.ReturnRequest) (sandbox.Returned, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.charges {
		if c.Ref != r.Reference {
			continue
		}
		if i := slices.IndexFunc(c.Backs, func(b back) bool { return b.ID == r.ID }); i >= 0 {
			c.Backs[i].Undone = true
			return sandbox.Returned{ID: r.ID, Amount: c.Backs[i].Amount}, nil
		}
		made := back{ID: fmt.Sprintf("%s-back-%d", c.ID, len(c.Backs)+1), Amount: cmp.Or(r.Amount, c.left()), Sort: r.Sort}
		if c.State != "paid" || made.Amount < 1 || made.Amount > c.left() {
			return sandbox.Returned{}, &sandbox.NotPayable{Reason: "it has " + c.left().String() + " left"}
		}
		c.Backs = append(c.Backs, made)
		return sandbox.Returned{ID: made.ID, Amount: made.Amount}, nil
	}
	return sandbox.Returned{}, sandbox.ErrUnknown
}

// giveBack gives money of a paid charge back, for each request once more.
func (s *simulator) giveBack(w http.ResponseWriter, r *http.Request, account sandbox.AccountID) {
	var made back
	body, err := io.ReadAll(r.Body)
	err = errors.Join(err, json.Unmarshal(body, &made))
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.charges {
		if c.ID != r.PathValue("id") || c.account != account {
			continue
		}
		if err != nil || made.Amount < 1 || made.Amount > c.left() {
			fail(w, http.StatusUnprocessableEntity, "too much")
			return
		}
		made.ID = fmt.Sprintf("%s-back-%d", c.ID, len(c.Backs)+1)
		c.Backs = append(c.Backs, made)
		answer(w, http.StatusOK, made)
		return
	}
	fail(w, http.StatusNotFound, "nothing")
}

// books answers the charges of an account, the oldest first.
func (s *simulator) books(w http.ResponseWriter, _ *http.Request, account sandbox.AccountID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	mine := []*charge{}
	for _, c := range s.charges {
		if c.account == account {
			mine = append(mine, c)
		}
	}
	answer(w, http.StatusOK, map[string]any{"rows": mine})
}

func (s *simulator) rate(w http.ResponseWriter, _ *http.Request, _ sandbox.AccountID) {
	answer(w, http.StatusOK, map[string]int{"rate": 1})
}
