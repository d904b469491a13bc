package sandbox

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

const (
	// versionHeader chooses the shape of QR calls.
	versionHeader = "api-version"
	// version2 is the only version it knows; none means the first shape.
	version2 = "2022-07-31"
	// qrLife is how long a QR code lives unless it says otherwise.
	qrLife = 48 * time.Hour
	// labelDigits is how much of a code's id stands in tag 62-05.
	labelDigits = 24
)

// Types and states of a QR code.
const (
	typeDynamic   = "DYNAMIC"
	typeStatic    = "STATIC"
	stateActive   = "ACTIVE"
	stateInactive = "INACTIVE"
)

// qrCode is a QR code as the journal keeps it.
type qrCode struct {
	ID        string          `json:"id"`
	Account   kit.AccountID   `json:"account"`
	Merchant  string          `json:"merchant"`
	Reference string          `json:"reference"`
	Type      string          `json:"type"`
	Amount    money.Amount    `json:"amount,omitempty"`
	Text      string          `json:"qr_string"`
	HookURL   string          `json:"hook_url,omitempty"`
	Channel   string          `json:"channel,omitempty"`
	Basket    json.RawMessage `json:"basket,omitempty"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
	Created   time.Time       `json:"created"`
	Expiry    time.Time       `json:"expiry"`
	Updated   time.Time       `json:"updated"`
	Expired   bool            `json:"expired,omitempty"`
	Payments  []qrPayment     `json:"payments,omitempty"`
}

// qrPayment is money that came for a QR code.
type qrPayment struct {
	ID       string       `json:"id"`
	Amount   money.Amount `json:"amount"`
	Created  time.Time    `json:"created"`
	Refunded bool         `json:"refunded,omitempty"`
}

// state is what the upstream calls the code at a moment: a dynamic one is used
// up by its first payment.
func (q qrCode) state(now time.Time) string {
	if q.Expired || !now.Before(q.Expiry) || q.Type == typeDynamic && len(q.Payments) > 0 {
		return stateInactive
	}
	return stateActive
}

// qrEvent is a new code, a payment, or the end of a code's time.
type qrEvent struct {
	New     *qrCode    `json:"new,omitempty"`
	ID      string     `json:"id,omitempty"`
	Payment *qrPayment `json:"payment,omitempty"`
	Expired time.Time  `json:"expired,omitzero"`
}

// codeBook finds QR codes.
type codeBook struct {
	byID        map[string]*qrCode
	byReference map[reference]*qrCode
	byText      map[string]*qrCode
}

func newCodeBook() codeBook {
	return codeBook{map[string]*qrCode{}, map[reference]*qrCode{}, map[string]*qrCode{}}
}

// find looks a code up by its id or by the merchant's reference.
func (b *codeBook) find(account kit.AccountID, name string) (*qrCode, bool) {
	if q, ok := b.byID[name]; ok {
		return q, q.Account == account
	}
	q, ok := b.byReference[reference{account, name}]
	return q, ok
}

// applyQR writes an event into the state.
func (s *Simulator) applyQR(e qrEvent) {
	if e.New != nil {
		s.addQR(*e.New)
		return
	}
	q, ok := s.codes.byID[e.ID]
	switch {
	case !ok:
	case e.Payment != nil:
		// A copy, so that readers who hold the old slice see no half of it.
		before := slices.DeleteFunc(slices.Clone(q.Payments), func(p qrPayment) bool { return p.ID == e.Payment.ID })
		q.Payments = append(before, *e.Payment)
		q.Updated = e.Payment.Created
		s.env.Movements.SetState(q.ID, statePaid)
	default:
		q.Expired, q.Updated = true, e.Expired
		if len(q.Payments) == 0 {
			s.env.Movements.SetState(q.ID, stateExpired)
		}
	}
}

func (s *Simulator) addQR(q qrCode) {
	s.codes.byID[q.ID] = &q
	s.codes.byReference[reference{q.Account, q.Reference}] = &q
	s.codes.byText[q.Text] = &q
	s.env.Movements.Record(q.ID, kit.Movement{
		Account: q.Account, Reference: q.Reference, Destination: q.Merchant, Amount: q.Amount, State: statePending, At: q.Created,
		Page: pagePrefix + q.ID,
	})
	s.agenda.Add(q.Expiry, task{(*Simulator).expireQR, q.ID})
	if q.Amount == magicPaidByItself {
		s.agenda.Add(q.Created.Add(selfPayGap), task{(*Simulator).selfPayQR, q.ID})
	}
}

func (s *Simulator) createQR(r *http.Request) (int, any, error) {
	if err := needVersion2(r); err != nil {
		return 0, nil, err
	}
	f, err := readForm(r)
	if err != nil {
		return 0, nil, err
	}
	q := s.readQR(f, accountOf(r))
	if err := f.err(); err != nil {
		return 0, nil, err
	}
	if err := magicRefusal(q.Amount); err != nil {
		return 0, nil, err
	}
	if q.Text, err = s.qrText(q); err != nil {
		return 0, nil, err
	}
	s.mu.Lock()
	if _, taken := s.codes.byReference[reference{q.Account, q.Reference}]; taken {
		s.mu.Unlock()
		return 0, nil, problem(http.StatusConflict, "DUPLICATE_ERROR", "QR code with the same reference_id already exists")
	}
	commit := s.env.Journal.Append(s.qrTopic.Entry(qrEvent{New: &q}))
	s.mu.Unlock()
	if err := commit.Wait(); err != nil {
		return 0, nil, err
	}
	kit.Concern(r.Context(), q.ID)
	// Whether the upstream says 200 or 201 here is not known for sure.
	return http.StatusCreated, q.bodyV2(q.Created), nil
}

// isVersion2 reads the api-version header.
func isVersion2(r *http.Request) (bool, error) {
	if r.Header.Get(versionHeader) == "" {
		return false, nil
	}
	return true, needVersion2(r)
}

// needVersion2 refuses what is only answered in the second shape: in the first, a
// code is read and no more.
func needVersion2(r *http.Request) error {
	if r.Header.Get(versionHeader) != version2 {
		return validationError(finding("headers", versionHeader, "must be one of ["+version2+"]", "any.allowOnly"))
	}
	return nil
}

func (s *Simulator) readQR(f *form, account kit.Account) qrCode {
	now := s.now()
	id := kit.RandomHex(16)
	q := qrCode{
		ID:      fmt.Sprintf("qr_%s-%s-%s-%s-%s", id[:8], id[8:12], id[12:16], id[16:20], id[20:]),
		Account: account.ID, Merchant: account.Name,
		Reference: f.text("reference_id", true, 255),
		Type:      f.oneOf("type", true, typeDynamic, typeStatic),
		Metadata:  f.metadata(),
		Created:   now,
		Updated:   now,
		Expiry:    now.Add(qrLife),
	}
	q.Amount = f.rupiah("amount", q.Type == typeDynamic)
	if _, old := f.fields["external_id"]; old {
		f.wrong("external_id", "is not allowed", "object.allowUnknown")
	}
	f.oneOf("currency", true, "IDR")
	q.HookURL = f.link("webhook_url")
	q.Channel = f.text("channel_code", false, 50)
	q.Basket = f.raw("basket")
	q.Expiry = f.future("expires_at", now, q.Expiry)
	if q.Type == typeStatic {
		q.Amount = 0
	} else if f.err() == nil && (q.Amount < s.options.MinAmount || q.Amount > s.options.MaxQR) {
		f.wrong("amount", fmt.Sprintf("must be between %s and %s", s.options.MinAmount, s.options.MaxQR), "number.range")
	}
	return q
}

// future reads a point in time that is still to come.
func (f *form) future(field string, now, standard time.Time) time.Time {
	text := f.text(field, false, 64)
	if text == "" {
		return standard
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || !at.After(now) {
		f.wrong(field, "must be an ISO 8601 date in the future", "date.iso")
		return standard
	}
	return at.UTC()
}

// qrText makes the code that a payer scans. Each is unique by its label, so
// that a payment finds its code.
func (s *Simulator) qrText(q qrCode) (string, error) {
	code := s.demo
	var err error
	if q.Type == typeDynamic {
		if code, err = code.Dynamic(q.Amount); err != nil {
			return "", err
		}
	}
	code, err = code.WithReference(q.label())
	return code.String(), err
}

// label is the code's id as far as it fits into tag 62-05.
func (q qrCode) label() string {
	digits := make([]byte, 0, labelDigits)
	for _, c := range []byte(q.ID[len("qr_"):]) {
		if c != '-' && len(digits) < labelDigits {
			digits = append(digits, c)
		}
	}
	return string(digits)
}

// expireQR ends a code whose time is over.
func (s *Simulator) expireQR(id string) error {
	now := s.now()
	return s.endQR(id, now, func(q qrCode) bool { return !now.Before(q.Expiry) })
}

// endQR takes a code out of use when a condition holds, unless its payment did.
// The upstream tells nobody.
func (s *Simulator) endQR(id string, now time.Time, when func(qrCode) bool) error {
	s.mu.Lock()
	q, ok := s.codes.byID[id]
	if !ok || !when(*q) || q.Expired || q.Type == typeDynamic && len(q.Payments) > 0 {
		s.mu.Unlock()
		return nil
	}
	commit := s.env.Journal.Append(s.qrTopic.Entry(qrEvent{ID: id, Expired: now}))
	s.mu.Unlock()
	return commit.Wait()
}
