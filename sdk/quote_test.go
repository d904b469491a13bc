package sdk

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

const orderManifest = `{
	"manifest": 1, "name": "counter", "version": "1.0.0", "title": "Counter",
	"lookup": "resubmit", "settles_within": "30s", "lookup_every": "10s", "resubmit_within": "24h", "account": "/user",
	"references": {"longest": 64, "alphabet": "0-9a-f"}, "connection": {"type": "object", "properties": {"user": {"type": "string"}}},
	"operations": [{"path": "/counter/order", "kind": "order", "summary": "Order", "timeout": "5s", "reference": "/id", "quote": true,
		"request": {"type": "object", "additionalProperties": false, "properties": {"id": {"type": "string"}}},
		"result": {"type": "object"}, "response": {"type": "object"}},
		{"path": "/counter/status", "status_of": "/counter/order", "summary": "Status", "reference": "/id",
		 "request": {"type": "object", "properties": {"id": {"type": "string"}}}, "response": {"type": "object"}}]}`

type quoteHandlers = map[string]func(context.Context, Quote) Quoted

func orderHandlers(quote func(context.Context, Quote) Quoted) Handlers {
	return Handlers{
		Calls:  callHandlers{"/counter/order": func(context.Context, Call) Result { return Result{} }},
		Quotes: quoteHandlers{"/counter/order": quote},
		Lookup: func(context.Context, Lookup) StatusUpdate { return StatusUpdate{Status: StatusDone} },
	}
}

func TestQuotesOverTheWire(t *testing.T) {
	t.Parallel()
	s, err := newServer([]byte(orderManifest), orderHandlers(func(_ context.Context, q Quote) Quoted {
		switch string(q.Body) {
		case "refuse":
			return NoQuote(Refuse(RefuseRequest, "no", FieldFault{"qty", "is required"}))
		case "panic":
			panic("at the counter")
		}
		return Quoted{Outcome: Done, Price: 10, Cost: 9, Data: q.Product}
	}))
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, s)
	ask := func(body string) Quoted {
		t.Helper()
		quoted, err := c.Quote(t.Context(), Quote{Operation: "/counter/order", Body: json.RawMessage(body), Product: json.RawMessage(`{"sku":1}`)})
		if err != nil {
			t.Fatal(err)
		}
		return quoted
	}
	if q := ask("{}"); q.Outcome != Done || q.Price != 10 || q.Cost != 9 || string(q.Data) != `{"sku":1}` {
		t.Errorf("got %+v", q)
	}
	if q := ask("refuse"); q.Outcome != Refused || q.Refusal.Code != RefuseRequest || q.Refusal.Fields[0].Field != "qty" {
		t.Errorf("got %+v", q)
	}
	if q := ask("panic"); q.Outcome != Unknown || q.Detail == "" {
		t.Errorf("got %+v", q)
	}
	if _, err := c.Quote(t.Context(), Quote{Operation: "/counter/none"}); err == nil {
		t.Error("a quote for nothing was answered")
	}
}

func TestALookupThatComesTooLateIsNotMade(t *testing.T) {
	t.Parallel()
	s, err := newServer([]byte(orderManifest), orderHandlers(func(context.Context, Quote) Quoted { return Quoted{} }))
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, s)
	for late, want := range map[time.Duration]Status{-time.Millisecond: StatusUnknown, time.Minute: StatusDone} {
		if f, err := c.Lookup(t.Context(), Lookup{SendBy: time.Now().Add(late)}); err != nil || f.Status != want {
			t.Errorf("send_by %v from now: %+v, %v", late, f, err)
		}
	}
}

func TestNewServerComparesQuotes(t *testing.T) {
	t.Parallel()
	h := orderHandlers(nil)
	if _, err := newServer([]byte(orderManifest), h); err == nil || !strings.Contains(err.Error(), "needs a quote handler true") {
		t.Errorf("without its quote: %v", err)
	}
	h = rightHandlers()
	h.Quotes = quoteHandlers{"/shop/pay": func(context.Context, Quote) Quoted { return Quoted{} }}
	if _, err := newServer([]byte(payManifest), h); err == nil || !strings.Contains(err.Error(), "needs a quote handler false") {
		t.Errorf("with one too many: %v", err)
	}
}
