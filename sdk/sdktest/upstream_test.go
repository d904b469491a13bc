package sdktest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/sdk/sdktest"
)

// charge is what the example's upstream keeps.
type charge struct {
	ID     string       `json:"id"`
	Ref    string       `json:"ref"`
	Amount money.Amount `json:"amount"`
	State  string       `json:"state"`
	key    string
}

// upstream is a small payment provider: it makes a charge for each POST it
// gets, and knows nothing of idempotency.
type upstream struct {
	sdktest.Hanger
	server *httptest.Server

	mu       sync.Mutex
	charges  []*charge
	requests int
	faults   []sdktest.Fault
	versions map[string]int64
}

func openUpstream(t *testing.T) sdktest.Upstream {
	t.Helper()
	u := &upstream{versions: map[string]int64{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /charges", u.create)
	mux.HandleFunc("GET /charges", u.find)
	mux.HandleFunc("POST /charges/{id}/end", u.end)
	mux.HandleFunc("GET /books", u.books)
	u.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.mu.Lock()
		u.requests++
		u.mu.Unlock()
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { u.server.CloseClientConnections(); u.server.Close() })
	return u
}

// key has the account in it, so that the witness needs no table: merchant,
// mode and version.
func (u *upstream) key(merchant, mode string) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return fmt.Sprintf("%s-%s-%d", merchant, mode, u.versions[merchant+mode]+1)
}

func (u *upstream) Connect(merchant, mode string) sdk.Connection {
	key := u.key(merchant, mode)
	u.mu.Lock()
	defer u.mu.Unlock()
	return sdk.Connection{
		MerchantID: merchant, Mode: mode, Version: u.versions[merchant+mode] + 1,
		Credentials: fmt.Appendf(nil, `{"key":%q,"url":%q}`, key, u.server.URL),
	}
}

func (u *upstream) Rotate(merchant, mode string) sdk.Connection {
	u.mu.Lock()
	u.versions[merchant+mode]++
	u.mu.Unlock()
	return u.Connect(merchant, mode)
}

func (u *upstream) Requests() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.requests
}

func (u *upstream) Fail(f sdktest.Fault) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.faults = append(u.faults, f)
}

func (u *upstream) Movements(reference string) (made []sdktest.Movement) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, c := range u.charges {
		if c.Ref == reference {
			account := strings.Split(c.key, "-")
			made = append(made, sdktest.Movement{Reference: c.Ref, Amount: c.Amount, Merchant: account[0], Mode: account[1]})
		}
	}
	return made
}

func (u *upstream) Settle(_ context.Context, reference string) (sdk.Notification, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, c := range u.charges {
		if c.Ref == reference {
			c.State = "paid"
			body, err := json.Marshal(c)
			header := http.Header{"X-Token": {c.key}, "Content-Type": {"application/json"}}
			return sdk.Notification{Method: http.MethodPost, Header: header, Body: body}, err
		}
	}
	return sdk.Notification{}, fmt.Errorf("nothing under %s", reference)
}

func (u *upstream) nextFault() (sdktest.Fault, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.faults) == 0 {
		return 0, false
	}
	f := u.faults[0]
	u.faults = u.faults[1:]
	return f, true
}

func (u *upstream) create(w http.ResponseWriter, r *http.Request) {
	var body bytes.Buffer
	_, _ = body.ReadFrom(r.Body) // whole, so that the server notices when the client is gone
	if u.Hangs(r) {
		return
	}
	fault, failing := u.nextFault()
	if failing {
		switch fault {
		case sdktest.ErrorBefore:
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(w, `{"broken":true}`)
			return
		case sdktest.CutBefore:
			panic(http.ErrAbortHandler)
		case sdktest.CutAfter, sdktest.GarbageAfter:
		}
	}
	made := &charge{key: r.Header.Get("Authorization")}
	if err := json.Unmarshal(body.Bytes(), made); err != nil || made.Amount == 13 {
		http.Error(w, "unlucky", http.StatusUnprocessableEntity)
		return
	}
	if !u.knows(w, made.key) {
		return
	}
	u.mu.Lock()
	made.State = "open"
	made.ID = fmt.Sprintf("ch-%d", len(u.charges)+1)
	u.charges = append(u.charges, made)
	answer := *made
	u.mu.Unlock()
	switch {
	case failing && fault == sdktest.CutAfter:
		panic(http.ErrAbortHandler)
	case failing:
		fmt.Fprint(w, "<html>welcome")
	default:
		_ = json.NewEncoder(w).Encode(answer)
	}
}

// knows refuses a key that is not an account's present one.
func (u *upstream) knows(w http.ResponseWriter, key string) bool {
	account := strings.Split(key, "-")
	known := len(account) == 3 && key == u.key(account[0], account[1])
	if !known {
		http.Error(w, "who are you", http.StatusUnauthorized)
	}
	return known
}

func (u *upstream) find(w http.ResponseWriter, r *http.Request) {
	if !u.knows(w, r.Header.Get("Authorization")) {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, c := range u.charges {
		if c.Ref == r.URL.Query().Get("ref") && c.key == r.Header.Get("Authorization") {
			_ = json.NewEncoder(w).Encode(c)
			return
		}
	}
	http.Error(w, "nothing", http.StatusNotFound)
}

func (u *upstream) end(w http.ResponseWriter, r *http.Request) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, c := range u.charges {
		if c.ID == r.PathValue("id") && c.key == r.Header.Get("Authorization") {
			c.State = "ended"
			_ = json.NewEncoder(w).Encode(c)
			return
		}
	}
	http.Error(w, "nothing", http.StatusNotFound)
}
