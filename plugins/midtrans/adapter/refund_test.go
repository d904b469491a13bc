package adapter

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

const (
	refundKey   = "89abcdef0123456789abcdef0123456789abcdef"
	refundOther = "0000000000000000000000000000000000000001"
	directly    = "POST /v2/" + reference + "/refund/online/direct"
	indirectly  = "POST /v2/" + reference + "/refund"

	settledAt = `,"settlement_time":"2026-11-20 17:05:00"`
	approved  = `,"refund_chargeback_id":1,"refund_amount":"5000.00","refund_key":"` + refundKey + `"`
)

func (s *stub) refund(t *testing.T) sdk.Call {
	t.Helper()
	return sdk.Call{
		Operation: opRefund, Connection: s.connection(t), Reference: refundKey, Amount: 5000, SendBy: time.Now().Add(time.Minute),
		Body:    json.RawMessage(`{"external_id":"INV/1","refund_id":"R/1","amount":5000,"reason":"broken cup"}`),
		Payment: sdk.Payment{Reference: reference, ProviderReference: reference},
	}
}

func (s *stub) refundLookup(t *testing.T) sdk.Lookup {
	t.Helper()
	c := s.refund(t)
	return sdk.Lookup{
		Operation: c.Operation, Connection: c.Connection, Reference: c.Reference, Amount: c.Amount, Body: c.Body, Payment: c.Payment, SentAt: today,
	}
}

// paidBy is a settled transaction of a way to pay.
func paidBy(method string) reply {
	return reply{http.StatusOK, strings.Replace(aTransaction("200", "settlement", settledAt), `"payment_type":"qris"`, `"payment_type":"`+method+`"`, 1)}
}

// listing is a transaction that lists our refund, with other members of it.
func listing(amount, extra string) reply {
	return reply{http.StatusOK, aTransaction("200", "partial_refund", settledAt+`,"refund_amount":"`+amount+`","refunds":[`+
		`{"refund_chargeback_id":1,"refund_key":"`+refundOther+`","refund_amount":"1.00","created_at":"2026-11-20 17:30:00"},`+
		`{"refund_chargeback_id":2,"refund_key":"`+refundKey+`","refund_amount":"`+amount+`","created_at":"2026-11-20 18:00:00"`+extra+`}]`)}
}

// TestRefundGoesThePathOfItsChannel, with our names of it and the merchant's reason alone.
func TestRefundGoesThePathOfItsChannel(t *testing.T) {
	t.Parallel()
	const sent = ` {"refund_key":"` + refundKey + `","amount":5000,"reason":"broken cup"}`
	for method, c := range map[string]struct {
		path string
		want sdk.Outcome
	}{
		"qris": {directly, sdk.Done}, "gopay": {directly, sdk.Done}, "shopeepay": {directly, sdk.Done},
		"credit_card": {indirectly, sdk.Pending}, "dana": {indirectly, sdk.Pending}, "ovo": {indirectly, sdk.Pending},
		"kredivo": {indirectly, sdk.Pending}, "akulaku": {indirectly, sdk.Pending},
	} {
		up := newStub(t, map[string]reply{statusPath: paidBy(method), c.path: {200, aTransaction("200", "partial_refund", approved)}})
		got := newAdapter().refund(t.Context(), up.refund(t))
		if got.Outcome != c.want || got.ProviderReference != refundKey || string(got.Data) != `{}` {
			t.Errorf("%s: %+v", method, got)
		}
		if seen := up.requests(); !slices.Equal(seen, []string{statusPath + " ", c.path + sent}) {
			t.Errorf("%s: sent %q", method, seen)
		}
	}
}

func TestRefundWithoutReasonSendsNone(t *testing.T) {
	t.Parallel()
	up := newStub(t, map[string]reply{statusPath: paidBy("qris")})
	call := up.refund(t)
	call.Body = json.RawMessage(`{"external_id":"INV/1","refund_id":"R/1"}`)
	newAdapter().refund(t.Context(), call)
	if seen := up.requests(); len(seen) < 2 || seen[1] != directly+` {"refund_key":"`+refundKey+`","amount":5000}` {
		t.Errorf("sent %q", seen)
	}
}

// TestRefundsThatAreNotAskedFor: what the transaction says before is enough, and nothing
// that moves money is sent.
func TestRefundsThatAreNotAskedFor(t *testing.T) {
	t.Parallel()
	captured := reply{200, aTransaction("200", "capture", `,"fraud_status":"accept"`)}
	captured.body = strings.Replace(captured.body, `"qris"`, `"credit_card"`, 1)
	for name, c := range map[string]struct {
		status reply
		want   sdk.Outcome
		blame  sdk.Blame
		says   string // to the merchant
	}{
		"a bank transfer":              {paidBy("bank_transfer"), sdk.Refused, 0, "made by bank_transfer"},
		"a Mandiri bill":               {paidBy("echannel"), sdk.Refused, 0, "made by echannel"},
		"a shop's till":                {paidBy("cstore"), sdk.Refused, 0, "made by cstore"},
		"no way to pay":                {paidBy(""), sdk.Refused, 0, "unknown means"},
		"a card that is not settled":   {captured, sdk.Refused, 0, "Void it"},
		"a refund that was made":       {listing("5000.00", ""), sdk.Done, 0, ""},
		"a refund that is under way":   {listing("5000.00", `,"refund_method":"offline"`), sdk.Pending, 0, ""},
		"a refund that was denied":     {listing("0.00", ""), sdk.Refused, 0, "denied the refund"},
		"a refund of another amount":   {listing("4000.00", ""), sdk.Unknown, sdk.BlameUpstream, ""},
		"a refund of a fraction":       {listing("5000.50", ""), sdk.Unknown, sdk.BlameUpstream, ""},
		"no transaction":               {reply{404, unknownTx}, sdk.NotSent, 0, ""},
		"a wrong key":                  {reply{401, `{"status_code":"401","status_message":"wrong"}`}, sdk.NotSent, sdk.BlameAccount, ""},
		"a status that can't be asked": {reply{503, `{"status_code":"503","status_message":"down"}`}, sdk.NotSent, sdk.BlameUpstream, ""},
	} {
		up := newStub(t, map[string]reply{statusPath: c.status})
		got := newAdapter().refund(t.Context(), up.refund(t))
		if got.Outcome != c.want || got.Blame != c.blame || !strings.Contains(got.Refusal.Message, c.says) {
			t.Errorf("%s: %+v", name, got)
		}
		if got.Outcome == sdk.Refused && got.Refusal.Code != sdk.RefuseOther {
			t.Errorf("%s: refused with %s", name, got.Refusal.Code)
		}
		if seen := up.requests(); !slices.Equal(seen, []string{statusPath + " "}) {
			t.Errorf("%s: asked %q", name, seen)
		}
	}
}

// TestWhatARefundsAnswerProves, where the transaction does not list the refund, neither
// before nor after.
func TestWhatARefundsAnswerProves(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer reply
		want   sdk.Outcome
		blame  sdk.Blame
		ended  bool
		asked  int
	}{
		"denied":                    {reply{200, aTransaction("202", "settlement", `,"refund_amount":"0.00","refund_key":"`+refundKey+`"`)}, sdk.Refused, 0, false, 3},
		"a status that allows none": {reply{412, `{"status_code":"412","status_message":"Merchant cannot modify the status of the transaction"}`}, sdk.Refused, 0, false, 3},
		"the same, as 200":          {reply{200, `{"status_code":"412","status_message":"Merchant cannot modify the status of the transaction"}`}, sdk.Refused, 0, false, 3},
		"more than is left":         {reply{414, `{"status_code":"414","status_message":"invalid amount"}`}, sdk.Refused, 0, false, 3},
		"wrong syntax":              {reply{413, `{"status_code":"413","status_message":"syntax"}`}, sdk.Refused, 0, false, 3},
		"not valid":                 {reply{400, `{"status_code":"400","status_message":"reason is too long"}`}, sdk.Refused, 0, false, 3},
		"a payer who is blocked":    {reply{410, `{"status_code":"410","status_message":"GoPay user is blocked"}`}, sdk.Refused, 0, false, 3},
		"a duplicate of nothing":    {reply{406, `{"status_code":"406","status_message":"Duplicate refund ID"}`}, sdk.Unknown, 0, false, 3},
		"no such transaction":       {reply{404, unknownTx}, sdk.Unknown, 0, false, 2},
		"a code without meaning":    {reply{418, `{"status_code":"418","status_message":"teapot"}`}, sdk.Unknown, sdk.BlameUpstream, false, 2},
		"no access to refunds":      {reply{402, `{"status_code":"402","status_message":"no access"}`}, sdk.NotSent, sdk.BlameAccount, false, 2},
		"too often":                 {reply{429, `{"status_code":"429","status_message":"slow down"}`}, sdk.NotSent, sdk.BlameLimit, false, 2},
		"an error of its own":       {reply{500, `{"status_code":"500","status_message":"error"}`}, sdk.Unknown, sdk.BlameUpstream, true, 2},
		"a proxy's error":           {reply{502, `<html>`}, sdk.Unknown, sdk.BlameUpstream, false, 2},
		"a proxy's no":              {reply{412, `<html>`}, sdk.Unknown, sdk.BlameUpstream, false, 2},
		"another refund":            {reply{200, aTransaction("200", "refund", strings.Replace(approved, refundKey, refundOther, 1))}, sdk.Unknown, sdk.BlameUpstream, false, 2},
		"another order":             {reply{200, strings.Replace(aTransaction("200", "refund", approved), reference, "another", 1)}, sdk.Unknown, sdk.BlameUpstream, false, 2},
		"less than was asked for":   {reply{200, aTransaction("200", "refund", strings.Replace(approved, "5000.00", "4999.00", 1))}, sdk.Unknown, sdk.BlameUpstream, false, 2},
		"more, with earlier ones":   {reply{200, aTransaction("200", "refund", strings.Replace(approved, "5000.00", "6000.00", 1))}, sdk.Done, 0, false, 2},
		"no amount":                 {reply{200, aTransaction("200", "refund", `,"refund_key":"`+refundKey+`"`)}, sdk.Unknown, sdk.BlameUpstream, false, 2},
		"pending":                   {reply{200, aTransaction("201", "settlement", approved)}, sdk.Unknown, sdk.BlameUpstream, false, 2},
	} {
		up := newStub(t, map[string]reply{statusPath: paidBy("qris"), directly: c.answer})
		got := newAdapter().refund(t.Context(), up.refund(t))
		if got.Outcome != c.want || got.Blame != c.blame || got.Errored != c.ended {
			t.Errorf("%s: %+v, want %v", name, got, c.want)
		}
		if got.Outcome == sdk.Refused && (got.Refusal.Code != sdk.RefuseOther || got.Refusal.Message == "" || got.Detail == "") {
			t.Errorf("%s: %+v", name, got)
		}
		if seen := up.requests(); len(seen) != c.asked {
			t.Errorf("%s: asked %q", name, seen)
		}
	}
}

func TestRefundThatComesTooLateIsNotSent(t *testing.T) {
	t.Parallel()
	up := newStub(t, nil)
	call := up.refund(t)
	call.SendBy = time.Now().Add(-time.Second)
	if got := newAdapter().refund(t.Context(), call); got.Outcome != sdk.NotSent || len(up.requests()) != 0 {
		t.Errorf("%+v after %q", got, up.requests())
	}
}

// TestRefundIsNotSentAfterASlowReading: its time may be over once the transaction is read.
func TestRefundIsNotSentAfterASlowReading(t *testing.T) {
	t.Parallel()
	up := newStub(t, map[string]reply{statusPath: paidBy("qris"), directly: {200, aTransaction("200", "partial_refund", approved)}})
	call := up.refund(t)
	call.SendBy = time.Now().Add(150 * time.Millisecond)
	up.held = call.SendBy.Add(time.Millisecond)
	got := newAdapter().refund(t.Context(), call)
	if moved := slices.ContainsFunc(up.requests(), func(seen string) bool { return strings.HasPrefix(seen, "POST ") }); got.Outcome != sdk.NotSent || moved {
		t.Errorf("%+v after %q", got, up.requests())
	}
}

func TestRefundLookups(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status reply
		want   sdk.Status
		blame  sdk.Blame
		event  string
		amount int64
		at     time.Time
	}{
		"made":             {listing("5000.00", `,"refund_method":"online"`), sdk.StatusDone, 0, refundKey + "-refunded", 5000, today.Add(time.Hour)},
		"of another size":  {listing("4000.00", ""), sdk.StatusDone, 0, refundKey + "-refunded", 4000, today.Add(time.Hour)},
		"under way":        {listing("5000.00", `,"refund_method":"offline"`), sdk.StatusPending, 0, "", 5000, today.Add(time.Hour)},
		"confirmed":        {listing("5000.00", `,"refund_method":"offline","bank_confirmed_at":"2026-11-20 19:00:00"`), sdk.StatusDone, 0, refundKey + "-refunded", 5000, today.Add(2 * time.Hour)},
		"denied":           {listing("0.00", ""), sdk.StatusFailed, 0, refundKey + "-denied", 5000, today.Add(time.Hour)},
		"a fraction":       {listing("5000.50", ""), sdk.StatusUnknown, sdk.BlameUpstream, "", 0, time.Time{}},
		"not listed":       {paidBy("qris"), sdk.StatusNotFound, 0, "", 0, time.Time{}},
		"others are":       {reply{200, strings.ReplaceAll(listing("5000.00", "").body, refundKey, "r-7")}, sdk.StatusNotFound, 0, "", 0, time.Time{}},
		"nothing is":       {reply{200, aTransaction("200", "refund", settledAt)}, sdk.StatusUnknown, sdk.BlameUpstream, "", 0, time.Time{}},
		"a part, unlisted": {reply{200, aTransaction("200", "partial_refund", settledAt)}, sdk.StatusUnknown, sdk.BlameUpstream, "", 0, time.Time{}},
		"no transaction":   {reply{404, unknownTx}, sdk.StatusUnknown, 0, "", 0, time.Time{}},
		"a wrong key":      {reply{401, `{"status_code":"401"}`}, sdk.StatusUnknown, sdk.BlameAccount, "", 0, time.Time{}},
	} {
		up := newStub(t, map[string]reply{statusPath: c.status})
		got := newAdapter().lookup(t.Context(), up.refundLookup(t))
		if got.Status != c.want || got.Blame != c.blame || got.EventID != c.event || int64(got.Amount) != c.amount || !got.At.Equal(c.at) {
			t.Errorf("%s: %+v", name, got)
		}
		if found := c.amount != 0; found && (got.Reference != refundKey || got.ProviderReference != refundKey || got.Currency != "IDR") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestReturnsNameTheirRefunds: by its key, where that can be one of the gateway's. What is
// under way or denied is no return.
func TestReturnsNameTheirRefunds(t *testing.T) {
	t.Parallel()
	first := sdk.Return{ID: refundOther, Sort: sdk.ReturnRefund, Amount: 1, At: today.Add(30 * time.Minute), Reference: refundOther}
	ours := sdk.Return{ID: refundKey, Sort: sdk.ReturnRefund, Amount: 5000, At: today.Add(time.Hour), Reference: refundKey}
	upper, short := ours, ours
	upper.ID, upper.Reference = strings.ToUpper(refundKey), ""
	short.ID, short.Reference = refundKey[1:], ""
	for name, c := range map[string]struct {
		body string
		want []sdk.Return
	}{
		"ours":             {listing("5000.00", "").body, []sdk.Return{first, ours}},
		"in capitals":      {strings.ReplaceAll(listing("5000.00", "").body, refundKey, upper.ID), []sdk.Return{first, upper}},
		"too short":        {strings.ReplaceAll(listing("5000.00", "").body, refundKey, short.ID), []sdk.Return{first, short}},
		"one is under way": {listing("5000.00", `,"refund_method":"offline"`).body, []sdk.Return{first}},
		"one was denied":   {listing("0.00", "").body, []sdk.Return{first}},
		"a chargeback of more than is under way": {aTransaction("200", "chargeback", settledAt+`,"refund_amount":"5000.00","refunds":[{"refund_key":"`+refundKey+
			`","refund_amount":"5000.00","refund_method":"offline"}]`), []sdk.Return{{Sort: sdk.ReturnChargeback, Amount: 25000}}},
		"a chargeback beside": {strings.Replace(listing("5000.00", "").body, `"partial_refund"`, `"chargeback"`, 1), []sdk.Return{first, ours, {Sort: sdk.ReturnChargeback, Amount: 19999}}},
	} {
		up := newStub(t, map[string]reply{statusPath: {200, c.body}})
		got := newAdapter().lookup(t.Context(), up.lookup(t, aQRIS, reference, today))
		if got.Status != sdk.StatusDone || !slices.Equal(got.Returns, c.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestNotificationsNameTheRefund(t *testing.T) {
	t.Parallel()
	up := newStub(t, nil)
	body := told("200", "partial_refund", settledAt+`,"refunds":[{"refund_key":"`+refundKey+`","refund_amount":"5000.00"}]`)
	got := newAdapter().notify(t.Context(), sdk.Notification{Connection: up.connection(t), Body: body})
	if len(got.Updates) != 1 || len(got.Updates[0].Returns) != 1 || got.Updates[0].Returns[0].Reference != refundKey {
		t.Errorf("%+v", got)
	}
}

// TestRefundIsMadeOnce, at the simulator: the same call again, and another one past what is
// left.
func TestRefundIsMadeOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pay(w.made(aQRIS))
	for range 2 {
		if got := w.adapter.refund(t.Context(), w.upstream.refund(t)); got.Outcome != sdk.Done || got.ProviderReference != refundKey {
			t.Errorf("%+v", got)
		}
	}
	over := w.upstream.refund(t)
	over.Reference, over.Amount = refundOther, 20001
	if got := w.adapter.refund(t.Context(), over); got.Outcome != sdk.Refused || !strings.Contains(got.Refusal.Message, "invalid amount") {
		t.Errorf("more than is left: %+v", got)
	}
	payment := w.adapter.lookup(t.Context(), w.upstream.lookup(t, aQRIS, reference, today))
	if len(payment.Returns) != 1 || payment.Returns[0].Reference != refundKey || payment.Returns[0].Amount != 5000 {
		t.Errorf("the payment: %+v", payment)
	}
	over.Amount = 20000
	if got := w.adapter.refund(t.Context(), over); got.Outcome != sdk.Done {
		t.Errorf("the rest: %+v", got)
	}
}

// TestLostAnswerOfARefundIsFoundByALookup, and so is that it was never made.
func TestLostAnswerOfARefundIsFoundByALookup(t *testing.T) {
	t.Parallel()
	for fault, c := range map[kit.Fault]struct {
		call  sdk.Outcome
		ended bool
		found sdk.Status
		again sdk.Outcome
	}{
		kit.FaultDropAfter:     {sdk.Unknown, false, sdk.StatusDone, sdk.Done},
		kit.FaultGarbage:       {sdk.Unknown, false, sdk.StatusDone, sdk.Done},
		kit.FaultError500After: {sdk.Unknown, true, sdk.StatusDone, sdk.Done},
		kit.FaultDropBefore:    {sdk.Unknown, false, sdk.StatusNotFound, sdk.Done},
		kit.FaultError500:      {sdk.Unknown, true, sdk.StatusNotFound, sdk.Done},
	} {
		w := newWorld(t)
		w.pay(w.made(aQRIS))
		if err := w.env.Faults.Add(fault, "refund", 1); err != nil {
			t.Fatal(err)
		}
		if got := w.adapter.refund(t.Context(), w.upstream.refund(t)); got.Outcome != c.call || got.Errored != c.ended {
			t.Errorf("%s: %+v", fault, got)
		}
		if got := w.adapter.lookup(t.Context(), w.upstream.refundLookup(t)); got.Status != c.found {
			t.Errorf("%s: looked up %+v", fault, got)
		}
		if got := w.adapter.refund(t.Context(), w.upstream.refund(t)); got.Outcome != c.again {
			t.Errorf("%s: again %+v", fault, got)
		}
		payment := w.adapter.lookup(t.Context(), w.upstream.lookup(t, aQRIS, reference, today))
		if len(payment.Returns) != 1 || payment.Returns[0].Amount != 5000 {
			t.Errorf("%s: the payment %+v", fault, payment)
		}
	}
}

// TestDuplicateIsReadAndNotRefused: an earlier request comes through between the first
// reading and this one.
func TestDuplicateIsReadAndNotRefused(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]reply{
		"a duplicate":   {406, `{"status_code":"406","status_message":"Duplicate refund ID"}`},
		"nothing left":  {414, `{"status_code":"414","status_message":"invalid amount"}`},
		"all went back": {412, `{"status_code":"412","status_message":"Merchant cannot modify the status of the transaction"}`},
	} {
		up := newStub(t, map[string]reply{statusPath: paidBy("qris"), directly: answer})
		up.then = map[string]reply{statusPath: listing("5000.00", "")}
		if got := newAdapter().refund(t.Context(), up.refund(t)); got.Outcome != sdk.Done || got.ProviderReference != refundKey {
			t.Errorf("%s: %+v", name, got)
		}
		unread := newStub(t, map[string]reply{statusPath: paidBy("qris"), directly: answer})
		unread.then = map[string]reply{statusPath: {503, `{"status_code":"503"}`}}
		if got := newAdapter().refund(t.Context(), unread.refund(t)); got.Outcome != sdk.Unknown {
			t.Errorf("%s that can't be read: %+v", name, got)
		}
	}
}

// TestCardRefundWaitsForTheBank at the simulator, from the capture to the confirmation.
func TestCardRefundWaitsForTheBank(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	link := w.made(aLink)
	w.order("choose", `{"url":"`+link.PaymentURL+`","payment_type":"credit_card"}`)
	w.pay(link)
	if got := w.adapter.refund(t.Context(), w.upstream.refund(t)); got.Outcome != sdk.Refused {
		t.Errorf("before it settles: %+v", got)
	}
	w.order("settle", `{"reference":"`+reference+`"}`)
	if got := w.adapter.refund(t.Context(), w.upstream.refund(t)); got.Outcome != sdk.Pending {
		t.Errorf("settled: %+v", got)
	}
	w.refundStands(sdk.StatusPending, 0)
	w.order("confirm", `{"reference":"`+reference+`"}`)
	w.refundStands(sdk.StatusDone, 1)
}

func (w *world) refundStands(want sdk.Status, returns int) {
	w.Helper()
	if got := w.adapter.lookup(w.Context(), w.upstream.refundLookup(w.T)); got.Status != want {
		w.Errorf("the refund: %+v, want %v", got, want)
	}
	if got := w.adapter.lookup(w.Context(), w.upstream.lookup(w.T, aLink, reference, today)); got.Status != sdk.StatusDone || len(got.Returns) != returns {
		w.Errorf("the payment: %+v, want %d returns", got, returns)
	}
}

// TestRefusedRefundsAtTheSimulator: of a bank transfer, and one that the bank denies.
func TestRefusedRefundsAtTheSimulator(t *testing.T) {
	t.Parallel()
	for name, method := range map[string]string{"a bank transfer": "bank_transfer", "denied": "gopay"} {
		w := newWorld(t)
		link := w.made(aLink)
		w.order("choose", `{"url":"`+link.PaymentURL+`","payment_type":"`+method+`"}`)
		w.pay(link)
		call := w.upstream.refund(t)
		call.Amount = 10116 // which the simulator's bank denies
		if got := w.adapter.refund(t.Context(), call); got.Outcome != sdk.Refused || got.Refusal.Code != sdk.RefuseOther {
			t.Errorf("%s: %+v", name, got)
		}
		w.refundStands(sdk.StatusNotFound, 0)
	}
}
