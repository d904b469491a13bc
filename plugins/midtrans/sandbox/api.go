package sandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// The keys that open an account by being used begin so, as the upstream's own do in either
// mode.
const (
	testKeyPrefix = "SB-Mid-server-"
	liveKeyPrefix = "Mid-server-"
)

const (
	maxBody  = 1 << 20
	maxQR    = money.Amount(10_000_000)
	linkLife = 24 * time.Hour
	qrisLife = 15 * time.Minute
)

// orderIDs are the names that an order may have.
var orderIDs = regexp.MustCompile(`^[A-Za-z0-9_.~-]{1,50}$`)

// caller is who asks, and with which key.
type caller struct {
	kit.Account
	key string
}

type callerKey struct{}

func callerOf(r *http.Request) caller {
	c, _ := r.Context().Value(callerKey{}).(caller)
	return c
}

// Handler serves both APIs and the payers' pages.
func (s *Simulator) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /snap/v1/transactions", s.guard("snap.transactions", true, s.createLink))
	mux.Handle("POST /v2/charge", s.guard("charge", true, s.charge))
	mux.Handle("GET /v2/{order}/status", s.guard("status", false, s.status))
	mux.Handle("POST /v2/{order}/expire", s.guard("expire", false, s.ender(stateExpire)))
	mux.Handle("POST /v2/{order}/cancel", s.guard("cancel", false, s.ender(stateCancel)))
	refund := s.guard("refund", true, s.refund) // one operation, whichever way it is asked for
	mux.Handle("POST /v2/{order}/refund", refund)
	mux.Handle("POST /v2/{order}"+pathDirect, refund)
	kit.NewRoom(s.env, pagePrefix, s.room).Serve(mux)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, r, problem(http.StatusNotFound, "The requested resource is not found"))
	})
	return mux
}

// guard puts an operation behind authentication and faults.
func (s *Simulator) guard(operation string, movesMoney bool, h func(*http.Request) (int, any, error)) http.Handler {
	inner := s.env.Faults.Wrap(operation, movesMoney, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, body, err := h(r)
		if err != nil {
			fail(w, r, err)
			return
		}
		answer(w, status, body)
	}))
	watched := s.env.Activity.Watch(operation, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.RLock()
		o := s.byName[orderKey{callerOf(r).ID, r.PathValue("order")}]
		s.mu.RUnlock()
		if o != nil {
			kit.Concern(r.Context(), o.page()) // before the faults: a call that is cut is of the payment, too
		}
		inner.ServeHTTP(w, r)
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := s.authenticate(r)
		if err != nil {
			fail(w, r, err)
			return
		}
		watched.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, c)))
	})
}

// authenticate reads Basic auth: the server key is the user, the password is empty.
func (s *Simulator) authenticate(r *http.Request) (caller, error) {
	key, password, ok := r.BasicAuth()
	if !ok || password != "" || len(key) <= len(testKeyPrefix) || !strings.HasPrefix(key, testKeyPrefix) && !strings.HasPrefix(key, liveKeyPrefix) {
		return caller{}, errKey
	}
	id := kit.AccountOf(key)
	account, _ := s.env.Accounts.Get(id)
	if account.Revoked {
		return caller{}, errKey
	}
	account.ID = id
	if account.Name == "" {
		account.Name = "Sandbox Merchant"
	}
	return caller{account, key}, nil
}

// Connect opens an account, which is no more than a server key that nobody else has.
func (s *Simulator) Connect(mode, key, token, base string) kit.Connection {
	secret := testKeyPrefix + key
	if mode == "live" {
		secret = liveKeyPrefix + key
	}
	return kit.Connection{
		Account: secret, CallbackToken: token,
		Credentials: map[string]string{"server_key": secret, "api_url": base, "snap_url": base},
	}
}

// Revoke implements the kit's Revoker.
func (s *Simulator) Revoke(account string) error { return s.env.Accounts.Revoke(account) }

// request is what both creations have in common.
type request struct {
	Details struct {
		OrderID     string      `json:"order_id"`
		GrossAmount json.Number `json:"gross_amount"`
	} `json:"transaction_details"`
	Items []struct {
		Price    money.Amount `json:"price"`
		Quantity money.Amount `json:"quantity"`
	} `json:"item_details"`
	PaymentType string `json:"payment_type"`
	Expiry      struct {
		Duration int64  `json:"duration"`
		Unit     string `json:"unit"`
	} `json:"expiry"`
	CustomExpiry struct {
		Duration int64  `json:"expiry_duration"`
		Unit     string `json:"unit"`
	} `json:"custom_expiry"`
	Callbacks struct {
		Finish string `json:"finish"`
	} `json:"callbacks"`
}

var units = map[string]time.Duration{"second": time.Second, "": time.Minute, "minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour}

// lasts is how long an order lives; nothing given is the standard.
func lasts(duration int64, unit string, standard time.Duration) (time.Duration, error) {
	one, ok := units[strings.TrimSuffix(unit, "s")]
	switch {
	case duration == 0:
		return standard, nil
	case !ok || duration < 0 || duration > int64(366*24*time.Hour/one):
		return 0, problem(http.StatusBadRequest, "expiry is not valid")
	}
	return time.Duration(duration) * one, nil
}

// read reads a creation and makes an order of it, without its transaction.
func (s *Simulator) read(r *http.Request) (request, order, error) {
	var wanted request
	data, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil || json.Unmarshal(data, &wanted) != nil {
		return wanted, order{}, problem(http.StatusBadRequest, "The request body is not valid JSON")
	}
	c, now := callerOf(r), s.now()
	o := order{
		ID: newID(), Account: c.ID, Key: c.key, Merchant: c.Name,
		OrderID: wanted.Details.OrderID, Finish: wanted.Callbacks.Finish, Created: now,
	}
	if !orderIDs.MatchString(o.OrderID) {
		return wanted, order{}, problem(http.StatusBadRequest, "transaction_details.order_id is not valid")
	}
	o.Amount, err = money.Parse(wanted.Details.GrossAmount.String())
	if err != nil || o.Amount < 1 {
		return wanted, order{}, problem(http.StatusBadRequest, "transaction_details.gross_amount must be a whole number, greater than or equal to 1")
	}
	var sum money.Amount
	for _, i := range wanted.Items {
		sum += i.Price * i.Quantity
	}
	if len(wanted.Items) > 0 && sum != o.Amount {
		return wanted, order{}, problem(http.StatusBadRequest, "transaction_details.gross_amount is not equal to the sum of item_details")
	}
	return wanted, o, nil
}

func (s *Simulator) createLink(r *http.Request) (int, any, error) {
	wanted, o, err := s.read(r)
	if err != nil {
		return 0, nil, err
	}
	life, err := lasts(wanted.Expiry.Duration, wanted.Expiry.Unit, linkLife)
	if err != nil {
		return 0, nil, err
	}
	o.Token, o.Expiry = newID(), o.Created.Add(life)
	if err := s.make(o); err != nil {
		return 0, nil, err
	}
	kit.Concern(r.Context(), o.page())
	return http.StatusCreated, map[string]string{"token": o.Token, "redirect_url": "http://" + r.Host + pagePrefix + o.Token}, nil
}

func (s *Simulator) charge(r *http.Request) (int, any, error) {
	wanted, o, err := s.read(r)
	if err != nil {
		return 0, nil, err
	}
	life, err := lasts(wanted.CustomExpiry.Duration, wanted.CustomExpiry.Unit, qrisLife)
	switch {
	case err != nil:
		return 0, nil, err
	case wanted.PaymentType != typeQRIS:
		return 0, nil, problem(http.StatusBadRequest, "payment_type is not valid")
	case o.Amount > maxQR:
		return 0, nil, problem(http.StatusBadRequest, "transaction_details.gross_amount is above the maximum of QRIS")
	case o.Amount == magicNotActivated:
		return 0, nil, problem(http.StatusPaymentRequired, "Payment channel is not activated.")
	}
	o.Expiry, o.Tx = o.Created.Add(life), &transaction{ID: newID(), State: statePending, Begun: o.Created}
	if o.Tx.QR, err = s.codeOf(o); err != nil {
		return 0, nil, err
	}
	if err := s.make(o); err != nil {
		return 0, nil, err
	}
	kit.Concern(r.Context(), o.page())
	body := s.body(o, "201", "QRIS transaction is created")
	body["qr_string"] = o.Tx.QR // no later answer tells it
	body["actions"] = []map[string]string{{"name": "generate-qr-code", "method": "GET", "url": "http://" + r.Host + "/v2/qris/" + o.Tx.ID + "/qr-code"}}
	return http.StatusCreated, body, nil
}

// codeOf makes the code that a payer scans. Each is unique by its label.
func (s *Simulator) codeOf(o order) (string, error) {
	code, err := s.demo.Dynamic(o.Amount)
	if err != nil {
		return "", err
	}
	code, err = code.WithReference(strings.ReplaceAll(o.Tx.ID, "-", "")[:24])
	return code.String(), err
}

// named finds the order of a path. One without a transaction is unknown.
func (s *Simulator) named(r *http.Request) (order, error) {
	o, ok, err := s.find(func() *order { return s.byName[orderKey{callerOf(r).ID, r.PathValue("order")}] })
	if err == nil && (!ok || o.Tx == nil) {
		err = errUnknown
	}
	return o, err
}

func (s *Simulator) status(r *http.Request) (int, any, error) {
	o, err := s.named(r)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, s.body(o, codes[o.state(s.now())], "Success, transaction is found"), nil
}

// refundKeys are the names that a refund may have.
var refundKeys = regexp.MustCompile(`^[A-Za-z0-9_-]*$`)

const longestReason = 255

// pathDirect asks the payer's provider at once.
const pathDirect = "/refund/online/direct"

// refund is the merchant's order to give money back.
func (s *Simulator) refund(r *http.Request) (int, any, error) {
	var wanted struct {
		Key    string       `json:"refund_key"`
		Amount money.Amount `json:"amount"`
		Reason string       `json:"reason"`
	}
	if data, err := io.ReadAll(io.LimitReader(r.Body, maxBody)); err != nil || json.Unmarshal(data, &wanted) != nil {
		return 0, nil, problem(http.StatusBadRequest, "The request body is not valid JSON")
	}
	switch {
	case !refundKeys.MatchString(wanted.Key):
		return 0, nil, problem(http.StatusBadRequest, "refund_key is not valid")
	case len([]rune(wanted.Reason)) > longestReason:
		return 0, nil, problem(http.StatusBadRequest, "reason is too long")
	}
	o, err := s.named(r)
	if err != nil {
		return 0, nil, err
	}
	online, can := refundable[o.Tx.paymentType()]
	if !can {
		return 0, nil, errUnchangeable
	}
	b := back{Key: cmp.Or(wanted.Key, newID()), Amount: wanted.Amount, Reason: wanted.Reason}
	b.Offline = !online && !strings.HasSuffix(r.URL.Path, pathDirect)
	o, err = s.giveBack(o.ID, b, kit.TellAsUsual)
	if errors.Is(err, errDenied) {
		body := s.body(o, "202", errDenied.Error())
		body["refund_chargeback_id"], body["refund_amount"], body["refund_key"] = len(o.Tx.Returns)+1, money.Amount(0).Decimal2(), b.Key
		return http.StatusOK, body, nil
	}
	if err != nil {
		return 0, nil, err
	}
	body := s.body(o, "200", "Success, refund request is approved")
	delete(body, "refunds") // which the status lists
	body["refund_chargeback_id"], body["refund_key"] = len(o.Tx.Returns), b.Key
	return http.StatusOK, body, nil
}

// ender is the merchant's order to end what is not paid.
func (s *Simulator) ender(state string) func(*http.Request) (int, any, error) {
	return func(r *http.Request) (int, any, error) {
		o, err := s.named(r)
		if err != nil {
			return 0, nil, err
		}
		now := s.now()
		o, err = s.move(o.ID, func(o order) (*transaction, error) {
			if o.state(now) != statePending {
				return nil, errEnded
			}
			return o.Tx.as(state), nil
		})
		if err != nil {
			return 0, nil, err
		}
		return http.StatusOK, s.body(o, codes[state], "Success, transaction is "+state), nil
	}
}
