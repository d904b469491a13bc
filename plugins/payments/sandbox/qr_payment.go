package sandbox

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// payQR pays a code that was given out; zero is the amount asked for. A
// code that has run out can still be paid: that is late money.
func (s *Simulator) payQR(id string, amount money.Amount, how kit.Telling) (qrCode, qrPayment, error) {
	now := s.now()
	s.mu.Lock()
	q, ok := s.codes.byID[id]
	if !ok {
		s.mu.Unlock()
		return qrCode{}, qrPayment{}, kit.ErrUnknown
	}
	if q.Type == typeDynamic && len(q.Payments) > 0 {
		s.mu.Unlock()
		return qrCode{}, qrPayment{}, &kit.NotPayable{Reason: "the QR code is already paid"}
	}
	if amount == 0 {
		amount = q.Amount
	}
	if amount == 0 {
		s.mu.Unlock()
		return qrCode{}, qrPayment{}, &kit.NotPayable{Reason: "a static code needs an amount"}
	}
	p := qrPayment{ID: "qrpy_" + kit.RandomHex(16), Amount: amount, Created: now}
	entries := []kit.Entry{s.qrTopic.Entry(qrEvent{ID: id, Payment: &p})}
	commit := s.env.Journal.Append(append(entries, s.qrWebhooks(*q, p, how)...)...)
	paidCode := *q
	s.mu.Unlock()
	return paidCode, p, commit.Wait()
}

func (s *Simulator) selfPayQR(id string) error {
	s.mu.RLock()
	q, ok := s.codes.byID[id]
	open := ok && q.state(s.now()) == stateActive && len(q.Payments) == 0
	s.mu.RUnlock()
	if !open {
		return nil
	}
	_, _, err := s.payQR(id, 0, kit.TellAsUsual)
	return err
}

// qrWebhooks are the messages about a payment that has just come.
func (s *Simulator) qrWebhooks(q qrCode, p qrPayment, how kit.Telling) []kit.Entry {
	switch {
	case how == kit.TellNever || q.Amount == magicLost:
		return nil
	case how == kit.TellLate || q.Amount == magicStaleAfter:
		return s.qrWebhook(q, p, p.Created.Add(kit.LateGap), 1)
	case q.Amount == magicTwice:
		return s.qrWebhook(q, p, p.Created, 2)
	default:
		return s.qrWebhook(q, p, p.Created, 1)
	}
}

func (s *Simulator) qrWebhook(q qrCode, p qrPayment, at time.Time, copies int) []kit.Entry {
	return s.webhook(kit.Webhook{Account: q.Account, URL: q.HookURL, Subject: q.ID, Says: statePaid, At: at}, copies, q.noticeV2(p))
}

// webhook queues a message so many times, under one webhook-id. Nothing is
// queued when nobody has said where to send it: the upstream does not retry
// those either.
func (s *Simulator) webhook(hook kit.Webhook, copies int, notice any) []kit.Entry {
	account, _ := s.env.Accounts.Get(hook.Account)
	if hook.URL == "" && account.CallbackURL == "" {
		return nil
	}
	body, err := json.Marshal(notice)
	if err != nil {
		s.env.Log.Error("webhook left out", "err", err)
		return nil
	}
	hook.TokenHeader, hook.Body = "x-callback-token", body
	hook.Header = map[string]string{"webhook-id": kit.RandomHex(16)}
	entries := make([]kit.Entry, copies)
	for n := range entries {
		entries[n] = s.env.Webhooks.Entry(hook)
	}
	return entries
}

// lookupQR returns a copy of an account's code.
func (s *Simulator) lookupQR(r *http.Request, name string) (qrCode, error) {
	s.mu.RLock()
	found, ok := s.codes.find(accountOf(r).ID, name)
	var q qrCode
	if ok {
		q = *found
	}
	s.mu.RUnlock()
	if !ok {
		return qrCode{}, errQRNotFound
	}
	// What is answered must not be undone by a crash.
	return q, s.env.Journal.Sync()
}

func (s *Simulator) getQR(r *http.Request) (int, any, error) {
	v2, err := isVersion2(r)
	if err != nil {
		return 0, nil, err
	}
	q, err := s.lookupQR(r, r.PathValue("id"))
	if err != nil {
		return 0, nil, err
	}
	if v2 {
		return http.StatusOK, q.bodyV2(s.now()), nil
	}
	return http.StatusOK, q.bodyV1(s.now()), nil
}

// listQRPayments answers the payments of a code, the newest first.
func (s *Simulator) listQRPayments(r *http.Request) (int, any, error) {
	if err := needVersion2(r); err != nil {
		return 0, nil, err
	}
	limit, err := readLimit(r)
	if err != nil {
		return 0, nil, err
	}
	q, err := s.lookupQR(r, r.PathValue("id"))
	if err != nil {
		return 0, nil, err
	}
	data := newestFirst(q.Payments, limit, q.paymentV2)
	return http.StatusOK, map[string]any{"data": data, "has_more": len(data) < len(q.Payments)}, nil
}

// newestFirst renders the newest payments; the list is never null.
func newestFirst[B any](payments []qrPayment, limit int, render func(qrPayment) B) []B {
	out := []B{}
	for i := len(payments) - 1; i >= 0 && len(out) < limit; i-- {
		out = append(out, render(payments[i]))
	}
	return out
}

// readLimit reads ?limit=, 10 unless given, at most 100.
func readLimit(r *http.Request) (int, error) {
	text := r.URL.Query().Get("limit")
	if text == "" {
		return 10, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 || limit > 100 {
		return 0, validationError(finding("query", "limit", "must be between 1 and 100", "number.range"))
	}
	return limit, nil
}
