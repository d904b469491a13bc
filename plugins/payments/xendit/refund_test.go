package xendit

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/plugins/payments/sandbox"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

const (
	refundReference = "gb-refund-1"
	listRefunds     = "GET /refunds?limit=100&invoice_id=" + invoiceID
)

func refundCall(c sdk.Connection, amount money.Amount, invoice string) sdk.Call {
	return sdk.Call{
		Operation: refundOperation, Connection: c, Reference: refundReference, Amount: amount,
		Body: json.RawMessage(`{"external_id":"INV/1","refund_id":"R/1","reason":"Duplicate"}`), SendBy: time.Now().Add(time.Minute),
		Payment: sdk.Payment{Reference: reference, ProviderReference: invoice},
	}
}

func refundLookup(call sdk.Call, providerReference string) sdk.Lookup {
	return sdk.Lookup{
		Operation: refundOperation, Connection: call.Connection, Reference: call.Reference, ProviderReference: providerReference,
		Amount: call.Amount, Body: call.Body, Payment: call.Payment,
	}
}

// ours is a refund of 40000 that we have ordered.
func ours(status, extra string) string {
	return strings.Replace(aRefund(status), `"reason"`, `"reference_id":"`+refundReference+`"`+extra+`,"reason"`, 1)
}

func inList(refunds ...string) reply {
	return reply{200, `{"data":[` + strings.Join(refunds, ",") + `],"has_more":false}`}
}

func refusal(code string) reply {
	return reply{400, `{"error_code":"` + code + `","message":"the upstream's words"}`}
}

// TestRefundOutcomes: what an answer proves, and no more.
func TestRefundOutcomes(t *testing.T) {
	t.Parallel()
	none := inList()
	for name, c := range map[string]struct {
		answer, list reply
		want         sdk.Outcome
		words        string // of a refusal
		id           string
	}{
		"succeeded":                     {reply{200, ours("SUCCEEDED", "")}, none, sdk.Done, "", "rfd-1"},
		"pending":                       {reply{200, ours("PENDING", "")}, none, sdk.Pending, "", "rfd-1"},
		"failed at once":                {reply{200, ours("FAILED", `,"failure_code":"INSUFFICIENT_BALANCE"`)}, none, sdk.Refused, "balance at the provider", ""},
		"failed for a strange reason":   {reply{200, ours("FAILED", `,"failure_code":"MOON"`)}, none, sdk.Refused, "has failed", ""},
		"cancelled":                     {reply{200, ours("CANCELLED", "")}, none, sdk.Refused, "cancelled", ""},
		"a strange status":              {reply{200, ours("ODD", "")}, none, sdk.Unknown, "", ""},
		"another reference":             {reply{200, aRefund("SUCCEEDED")}, none, sdk.Unknown, "", ""},
		"another amount":                {reply{200, strings.Replace(ours("SUCCEEDED", ""), "40000", "4000", 1)}, none, sdk.Unknown, "", ""},
		"another invoice":               {reply{200, strings.Replace(ours("SUCCEEDED", ""), invoiceID, "63cc", 1)}, none, sdk.Unknown, "", ""},
		"another currency":              {reply{200, strings.Replace(ours("SUCCEEDED", ""), "IDR", "PHP", 1)}, none, sdk.Unknown, "", ""},
		"no id":                         {reply{200, strings.Replace(ours("SUCCEEDED", ""), "rfd-1", "", 1)}, none, sdk.Unknown, "", ""},
		"not supported":                 {refusal("REFUND_NOT_SUPPORTED"), none, sdk.Refused, "this channel", ""},
		"not in part":                   {refusal("PARTIAL_REFUND_NOT_SUPPORTED"), none, sdk.Refused, "not in part", ""},
		"too much":                      {refusal("MAXIMUM_REFUND_AMOUNT_REACHED"), none, sdk.Refused, "more than", ""},
		"ineligible":                    {reply{403, refusal("INELIGIBLE_TRANSACTION").body}, none, sdk.Refused, "time for refunds", ""},
		"no balance":                    {refusal("INSUFFICIENT_BALANCE"), none, sdk.Refused, "balance at the provider", ""},
		"a strange refusal":             {refusal("MOON"), none, sdk.Refused, "the upstream's words", ""},
		"refused, since it is made":     {refusal("MAXIMUM_REFUND_AMOUNT_REACHED"), inList(aRefund("SUCCEEDED"), ours("SUCCEEDED", "")), sdk.Done, "", "rfd-1"},
		"refused, and nobody can tell":  {refusal("MAXIMUM_REFUND_AMOUNT_REACHED"), reply{500, ""}, sdk.Unknown, "", ""},
		"a duplicate that is made":      {reply{409, refusal("DUPLICATE_ERROR").body}, inList(ours("PENDING", "")), sdk.Pending, "", "rfd-1"},
		"a duplicate, by its code":      {refusal("DUPLICATE_ERROR"), inList(ours("SUCCEEDED", "")), sdk.Done, "", "rfd-1"},
		"the key was used":              {refusal("IDEMPOTENCY_ERROR"), inList(ours("SUCCEEDED", "")), sdk.Done, "", "rfd-1"},
		"a key that is not shown":       {refusal("IDEMPOTENCY_ERROR"), none, sdk.Unknown, "", ""},
		"a duplicate that is not shown": {reply{409, refusal("DUPLICATE_ERROR").body}, none, sdk.Unknown, "", ""},
		"a duplicate, nobody can tell":  {reply{409, refusal("DUPLICATE_ERROR").body}, reply{500, ""}, sdk.Unknown, "", ""},
		"the key is wrong":              {reply{401, refusal("INVALID_API_KEY").body}, none, sdk.NotSent, "", ""},
		"too often":                     {reply{429, refusal("RATE_LIMIT_EXCEEDED").body}, none, sdk.NotSent, "", ""},
		"the upstream's own error":      {reply{500, refusal("SERVER_ERROR").body}, none, sdk.Unknown, "", ""},
		"a proxy's error":               {reply{502, "<html>"}, none, sdk.Unknown, "", ""},
		"a proxy's 404":                 {reply{404, "<html>"}, none, sdk.Unknown, "", ""},
		"no JSON":                       {reply{200, "<html>"}, none, sdk.Unknown, "", ""},
		"nothing":                       {reply{200, "{}"}, none, sdk.Unknown, "", ""},
	} {
		up := newStub(t, map[string]reply{"POST /refunds": c.answer, listRefunds: none, listRefunds + again: c.list})
		r := newAdapter().refund(t.Context(), refundCall(connect(t, up.url), 40000, invoiceID))
		if r.Outcome != c.want || !strings.Contains(r.Refusal.Message, c.words) || c.want == sdk.Refused && r.Refusal.Code != sdk.RefuseOther ||
			r.ProviderReference != c.id || r.Errored != (name == "the upstream's own error") {
			t.Errorf("%s: %+v", name, r)
		}
		if (r.Outcome == sdk.Done || r.Outcome == sdk.Pending) && string(r.Data) != `{}` {
			t.Errorf("%s: data %s", name, r.Data)
		}
	}
}

// TestRefundRequest: what the upstream is asked, and that the merchant's names are not in it.
func TestRefundRequest(t *testing.T) {
	t.Parallel()
	up := newStub(t, map[string]reply{"POST /refunds": {200, ours("SUCCEEDED", "")}, listRefunds: inList()})
	newAdapter().refund(t.Context(), refundCall(connect(t, up.url), 40000, invoiceID))
	asked := up.last(t, 2)
	const want = `{"invoice_id":"` + invoiceID + `","reference_id":"` + refundReference + `","amount":40000,"currency":"IDR","reason":"DUPLICATE","metadata":{"reason":"Duplicate"}}`
	if asked.body != want || asked.header.Get("idempotency-key") != refundReference {
		t.Errorf("asked with the key %q for %s, want %s", asked.header.Get("idempotency-key"), asked.body, want)
	}
}

func TestRefundReasons(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]string{
		`"fraudulent"`: "FRAUDULENT", `"DUPLICATE"`: "DUPLICATE", `"Requested_By_Customer"`: "REQUESTED_BY_CUSTOMER",
		`"cancellation"`: "CANCELLATION", `"others"`: "OTHERS", `"Too small"`: "OTHERS", `""`: "OTHERS",
	} {
		up := newStub(t, map[string]reply{"POST /refunds": {200, ours("SUCCEEDED", "")}, listRefunds: inList()})
		call := refundCall(connect(t, up.url), 40000, invoiceID)
		call.Body = json.RawMessage(`{"external_id":"INV/1","refund_id":"R/1","reason":` + words + `}`)
		newAdapter().refund(t.Context(), call)
		body := up.last(t, 2).body
		said := strings.Contains(body, `"metadata":{"reason":`+words+`}`)
		if !strings.Contains(body, `"reason":"`+want+`"`) || said != (words != `""`) {
			t.Errorf("%s: asked %s", words, body)
		}
	}
}

// TestRefundThatIsMadeAlready: after a restore nobody here knows of it, and the upstream
// promises nothing of a name that is used twice.
func TestRefundThatIsMadeAlready(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		list reply
		want sdk.Outcome
	}{
		"it is made":      {inList(aRefund("SUCCEEDED"), ours("SUCCEEDED", "")), sdk.Done},
		"it has failed":   {inList(ours("FAILED", "")), sdk.Refused},
		"nobody can tell": {reply{500, ""}, sdk.NotSent},
		"nobody may read": {reply{403, refusal("REQUEST_FORBIDDEN_ERROR").body}, sdk.NotSent},
	} {
		up := newStub(t, map[string]reply{"POST /refunds": {200, ours("SUCCEEDED", "")}, listRefunds: c.list})
		r := newAdapter().refund(t.Context(), refundCall(connect(t, up.url), 40000, invoiceID))
		if r.Outcome != c.want || name == "nobody may read" && r.Blame != sdk.BlameNone || slices.ContainsFunc(up.asked(), func(asked string) bool { return strings.HasPrefix(asked, "POST") }) {
			t.Errorf("%s: %+v after %v", name, r, up.asked())
		}
	}
}

// TestRefundIsNotSent: nothing reaches the upstream of what can't be refunded or comes late.
func TestRefundIsNotSent(t *testing.T) {
	t.Parallel()
	up := newStub(t, nil)
	late := refundCall(connect(t, up.url), 40000, invoiceID)
	late.SendBy = time.Now().Add(-time.Second)
	broken := refundCall(connect(t, up.url), 40000, invoiceID)
	broken.Body = json.RawMessage(`{"reason":1}`)
	for name, c := range map[string]struct {
		call sdk.Call
		want sdk.Outcome
	}{
		"a QR code's payment":   {refundCall(connect(t, up.url), 40000, qrID), sdk.Refused},
		"a payment without id":  {refundCall(connect(t, up.url), 40000, ""), sdk.NotSent},
		"after send_by":         {late, sdk.NotSent},
		"a body that is broken": {broken, sdk.NotSent},
	} {
		r := newAdapter().refund(t.Context(), c.call)
		if r.Outcome != c.want || c.want == sdk.Refused && (r.Refusal.Code != sdk.RefuseOther || !strings.Contains(r.Refusal.Message, "QR code")) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if asked := up.asked(); len(asked) != 0 {
		t.Errorf("asked %v", asked)
	}
}

// TestRefundLookup: not found is only what a complete list does not have.
func TestRefundLookup(t *testing.T) {
	t.Parallel()
	const byID, second = "GET /refunds/rfd-1", listRefunds + "&after_id=rfd-1"
	more := func(refunds ...string) reply {
		return reply{200, strings.Replace(inList(refunds...).body, `"has_more":false`, `"has_more":true`, 1)}
	}
	for name, c := range map[string]struct {
		known   string
		invoice string
		replies map[string]reply
		want    sdk.Status
		asked   []string
	}{
		"succeeded":                  {"rfd-1", invoiceID, map[string]reply{byID: {200, ours("SUCCEEDED", "")}}, sdk.StatusDone, []string{byID}},
		"pending":                    {"rfd-1", invoiceID, map[string]reply{byID: {200, ours("PENDING", "")}}, sdk.StatusPending, []string{byID}},
		"failed":                     {"rfd-1", invoiceID, map[string]reply{byID: {200, ours("FAILED", "")}}, sdk.StatusFailed, []string{byID}},
		"cancelled":                  {"rfd-1", invoiceID, map[string]reply{byID: {200, ours("CANCELLED", "")}}, sdk.StatusFailed, []string{byID}},
		"a strange status":           {"rfd-1", invoiceID, map[string]reply{byID: {200, ours("ODD", "")}}, sdk.StatusUnknown, []string{byID}},
		"another's":                  {"rfd-1", invoiceID, map[string]reply{byID: {200, aRefund("SUCCEEDED")}}, sdk.StatusUnknown, []string{byID}},
		"an id that is gone":         {"rfd-1", invoiceID, nil, sdk.StatusUnknown, []string{byID}},
		"by reference":               {"", invoiceID, map[string]reply{listRefunds: inList(aRefund("FAILED"), ours("SUCCEEDED", ""))}, sdk.StatusDone, []string{listRefunds}},
		"money first":                {"", invoiceID, map[string]reply{listRefunds: inList(ours("FAILED", ""), ours("PENDING", ""), ours("SUCCEEDED", ""))}, sdk.StatusDone, []string{listRefunds}},
		"on the second page":         {"", invoiceID, map[string]reply{listRefunds: more(aRefund("SUCCEEDED")), second: inList(ours("PENDING", ""))}, sdk.StatusPending, []string{listRefunds, second}},
		"none":                       {"", invoiceID, map[string]reply{listRefunds: inList(aRefund("SUCCEEDED"))}, sdk.StatusNotFound, []string{listRefunds}},
		"of another invoice":         {"", invoiceID, map[string]reply{listRefunds: inList(strings.Replace(ours("SUCCEEDED", ""), invoiceID, "63cc", 1))}, sdk.StatusNotFound, []string{listRefunds}},
		"half of the list":           {"", invoiceID, map[string]reply{listRefunds: more(aRefund("SUCCEEDED")), second: {500, ""}}, sdk.StatusUnknown, []string{listRefunds, second}},
		"a list that does not go on": {"", invoiceID, map[string]reply{listRefunds: more()}, sdk.StatusUnknown, []string{listRefunds}},
		"no list":                    {"", invoiceID, map[string]reply{listRefunds: {200, "{}"}}, sdk.StatusUnknown, []string{listRefunds}},
		"not allowed":                {"", invoiceID, map[string]reply{listRefunds: {403, refusal("REQUEST_FORBIDDEN_ERROR").body}}, sdk.StatusUnknown, []string{listRefunds}},
		"no such list":               {"", invoiceID, nil, sdk.StatusUnknown, []string{listRefunds}},
		"of a QR code":               {"", qrID, nil, sdk.StatusNotFound, []string{}},
		"of nothing":                 {"", "", nil, sdk.StatusUnknown, []string{}},
	} {
		up := newStub(t, c.replies)
		found := newAdapter().lookup(t.Context(), refundLookup(refundCall(connect(t, up.url), 40000, c.invoice), c.known))
		if found.Status != c.want || !slices.Equal(up.asked(), c.asked) {
			t.Errorf("%s: asked %v, found %+v", name, up.asked(), found)
		}
		ended := c.want == sdk.StatusDone || c.want == sdk.StatusPending || c.want == sdk.StatusFailed
		if ended && (found.Reference != refundReference || found.ProviderReference != "rfd-1" || found.Amount != 40000 || found.Currency != "IDR" ||
			found.EventID == "" || !found.At.Equal(today.Add(2*time.Hour))) {
			t.Errorf("%s: found %+v", name, found)
		}
	}
}

// TestEndlessRefunds: a list without an end is not read for ever.
func TestEndlessRefunds(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	asked := 0
	base := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		asked++
		mu.Unlock()
		_, _ = w.Write([]byte(`{"has_more":true,"data":[` + aRefund("SUCCEEDED") + `]}`))
	})
	found := newAdapter().lookup(t.Context(), refundLookup(refundCall(connect(t, base), 40000, invoiceID), ""))
	if found.Status != sdk.StatusUnknown || asked != refundsPages {
		t.Errorf("after %d pages %+v", asked, found)
	}
}

// paidLink makes a link and has it paid.
func (w *world) paidLink(amount money.Amount) sdk.Result {
	w.Helper()
	result := w.made(linkBody, amount)
	w.pay(result)
	w.only(w.next(), sdk.StatusDone, amount)
	return result
}

// returned insists on what went back of a payment.
func (w *world) returned(payment sdk.Result, amount money.Amount, want ...sdk.Return) {
	w.Helper()
	for _, providerReference := range []string{"", payment.ProviderReference} {
		found := w.find(linkBody, amount, providerReference)
		if found.Status != sdk.StatusDone || !slices.Equal(found.Returns, want) {
			w.Errorf("the payment is %+v, want the returns %+v", found, want)
		}
	}
}

// refunded insists on the status of a refund, asked both ways.
func (w *world) refunded(call sdk.Call, id string, want sdk.Status) {
	w.Helper()
	for _, known := range []string{"", id} {
		found := w.lookup(w.Context(), refundLookup(call, known))
		if found.Status != want || want != sdk.StatusNotFound && (found.Reference != call.Reference || found.ProviderReference != id || found.Amount != call.Amount) {
			w.Errorf("by %q: %+v, want %v", known, found, want)
		}
	}
}

// TestRefundFlow: a refund is made once, told by a webhook and by its payment under our
// reference, and a new process that is given the same call makes no second one.
func TestRefundFlow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.DefaultOptions())
	payment := w.paidLink(50000)
	call := refundCall(w.connection, 20000, payment.ProviderReference)
	first := w.refund(w.Context(), call)
	if first.Outcome != sdk.Done {
		t.Fatalf("got %+v", first)
	}
	want := sdk.Return{ID: first.ProviderReference, Sort: sdk.ReturnRefund, Amount: 20000, At: today, Reference: refundReference}
	if told := w.only(w.next(), sdk.StatusDone, 50000); !slices.Equal(told.Returns, []sdk.Return{want}) {
		t.Errorf("the webhook says %+v", told)
	}
	for name, a := range map[string]*adapter{"the same process": w.adapter, "another": {now: w.clock.Now}} {
		if again := a.refund(w.Context(), call); again.Outcome != sdk.Done || again.ProviderReference != first.ProviderReference {
			t.Errorf("%s: again %+v, first %+v", name, again, first)
		}
	}
	w.returned(payment, 50000, want)
	w.refunded(call, first.ProviderReference, sdk.StatusDone)

	tooMuch := refundCall(w.connection, 30001, payment.ProviderReference)
	tooMuch.Reference = "gb-refund-2"
	if r := w.refund(w.Context(), tooMuch); r.Outcome != sdk.Refused || !strings.Contains(r.Refusal.Message, "more than") {
		t.Errorf("too much: %+v", r)
	}
	if found := w.lookup(w.Context(), refundLookup(tooMuch, "")); found.Status != sdk.StatusNotFound {
		t.Errorf("of what was refused: %+v", found)
	}
	w.returned(payment, 50000, want)
}

// TestRefundFailsLater: a pending refund is no return; what failed never went.
func TestRefundFailsLater(t *testing.T) {
	t.Parallel()
	for amount, want := range map[money.Amount]sdk.Status{20304: sdk.StatusFailed, 10310: sdk.StatusDone} {
		w := newWorld(t, sandbox.DefaultOptions())
		payment := w.paidLink(50000)
		call := refundCall(w.connection, amount, payment.ProviderReference)
		r := w.refund(w.Context(), call)
		if r.Outcome != sdk.Pending {
			t.Fatalf("got %+v", r)
		}
		w.refunded(call, r.ProviderReference, sdk.StatusPending)
		w.returned(payment, 50000)
		w.clock.Advance(3 * time.Second)
		told := w.only(w.next(), sdk.StatusDone, 50000)
		w.refunded(call, r.ProviderReference, want)
		back := sdk.Return{ID: r.ProviderReference, Sort: sdk.ReturnRefund, Amount: amount, At: today, Reference: refundReference}
		if want == sdk.StatusFailed {
			back.Undone, back.UndoneAt = true, today.Add(3*time.Second)
		}
		if !slices.Equal(told.Returns, []sdk.Return{back}) {
			t.Errorf("the webhook says %+v, want %+v", told.Returns, back)
		}
		w.returned(payment, 50000, back)
	}
}

// TestRefundUnderFaults: after a lost answer the refund is found by its reference, and where
// the upstream has nothing it is not found.
func TestRefundUnderFaults(t *testing.T) {
	t.Parallel()
	for fault, want := range map[kit.Fault]sdk.Status{
		kit.FaultError500: sdk.StatusNotFound, kit.FaultDropBefore: sdk.StatusNotFound,
		kit.FaultDropAfter: sdk.StatusDone, kit.FaultGarbage: sdk.StatusDone,
	} {
		w := newWorld(t, sandbox.DefaultOptions())
		payment := w.paidLink(50000)
		if err := w.env.Faults.Add(fault, "refunds.create", 1); err != nil {
			t.Fatal(err)
		}
		call := refundCall(w.connection, 20000, payment.ProviderReference)
		if r := w.refund(w.Context(), call); r.Outcome != sdk.Unknown || r.Blame != sdk.BlameUpstream || r.Errored != (fault == kit.FaultError500) {
			t.Errorf("%s: got %+v, want unknown", fault, r)
		}
		if found := w.lookup(w.Context(), refundLookup(call, "")); found.Status != want || want == sdk.StatusDone && found.ProviderReference == "" {
			t.Errorf("%s: found %+v", fault, found)
		}
		// While the first attempt may be under way nothing is made; afterwards it is, once.
		again := w.refund(w.Context(), call)
		if made := want == sdk.StatusDone; (again.Outcome == sdk.Done) != made || again.Outcome == sdk.Refused || again.Outcome == sdk.NotSent {
			t.Errorf("%s: again %+v", fault, again)
		}
		w.clock.Advance(attemptLasts)
		if again = w.refund(w.Context(), call); again.Outcome != sdk.Done {
			t.Errorf("%s: at last %+v", fault, again)
		}
		if found := w.find(linkBody, 50000, ""); len(found.Returns) != 1 || found.Returns[0].Reference != refundReference {
			t.Errorf("%s: the payment is %+v", fault, found)
		}
	}
}

// TestRefundTimesOut: a caller that stops waiting knows nothing.
func TestRefundTimesOut(t *testing.T) {
	t.Parallel()
	base := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, inList().body)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body) // so that the server notices when the caller is gone
		<-r.Context().Done()
	})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if r := newAdapter().refund(ctx, refundCall(connect(t, base), 20000, invoiceID)); r.Outcome != sdk.Unknown || r.Errored {
		t.Errorf("got %+v", r)
	}
}
