package sdktest_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/sdk/sdktest"
)

// orders begins the names of mutants of the plugin that sells, whose lookups
// are the same request again.
const orders = "orders "

const orderManifest = `{
	"manifest": 1, "name": "orders", "version": "1.0.0", "title": "Orders", "lookup": "resubmit", "resubmit_within": "2040h",
	"settles_within": "30s", "lookup_every": "10s", "account": "/key", "notifications": true,
	"references": {"longest": 64, "alphabet": "0-9a-f"}, "connection": {"type": "object", "properties": {"key": {"type": "string"}}},
	"operations": [
		{"path": "/example/list", "kind": "query", "summary": "List", "timeout": "5s", "cache": "5m",
		 "request": {"type": "object"}, "result": {"type": "array"}, "response": {"type": "array"}},
		{"path": "/example/buy", "kind": "order", "quote": true, "summary": "Buy", "timeout": "5s", "reference": "/id",
		 "product": {"list": "/example/list", "key": "/code", "field": "/sku", "available": "/on"},
		 "request": {"type": "object", "required": ["sku"], "additionalProperties": false,
			"properties": {"id": {"type": "string"}, "sku": {"type": "string"}}},
		 "result": {"type": "object"}, "response": {"type": "object"}},
		{"path": "/example/bought", "status_of": "/example/buy", "summary": "Status", "reference": "/id",
		 "request": {"type": "object", "properties": {"id": {"type": "string"}}}, "response": {"type": "object"}}
	]}`

func orderSuite() sdktest.Suite {
	return sdktest.Suite{
		Manifest: []byte(orderManifest), Open: openUpstream, Command: mutantCommand(orders),
		Examples: []sdktest.Example{
			{Name: "list", Operation: "/example/list", Body: json.RawMessage(`{}`), Want: sdk.Done},
			{Name: "buy", Operation: "/example/buy", Body: json.RawMessage(`{"sku":"tea"}`), Want: sdk.Pending},
			{Name: "unlucky", Operation: "/example/buy", Body: json.RawMessage(`{"sku":"bad luck"}`), Want: sdk.Refused, Code: sdk.RefuseOther},
			{Name: "sold out", Operation: "/example/buy", Body: json.RawMessage(`{"sku":"air"}`), Want: sdk.Refused, Code: sdk.RefuseProduct},
		},
	}
}

func TestConformanceOfOrders(t *testing.T) {
	t.Parallel()
	sdktest.Run(t, orderSuite())
}

// seller is a right plugin that sells, unless it is a mutant.
type seller struct{ *adapter }

func serveOrders(mutant string) {
	s := seller{&adapter{mutant: mutant}}
	sdk.Serve([]byte(orderManifest), sdk.Handlers{
		Calls: map[string]func(context.Context, sdk.Call) sdk.Result{
			"/example/list": s.list, "/example/buy": s.buy,
		},
		Quotes: map[string]func(context.Context, sdk.Quote) sdk.Quoted{"/example/buy": s.quote},
		Lookup: s.again,
		Notify: s.notify,
	})
}

type article struct {
	Code  string       `json:"code"`
	Price money.Amount `json:"price"`
	On    bool         `json:"on"`
}

func (s seller) list(context.Context, sdk.Call) sdk.Result {
	if s.mutant == "lists nothing" {
		return sdk.Finished("", []article{})
	}
	return sdk.Finished("", []article{{"tea", 500, true}, {"bad luck", 13, true}, {"air", 0, true}})
}

func (s seller) quote(ctx context.Context, q sdk.Quote) sdk.Quoted {
	var of article
	switch err := json.Unmarshal(q.Product, &of); {
	case err != nil:
		return sdk.NoQuote(sdk.DontKnow(sdk.BlameNone, err.Error()))
	case s.mutant == "quotes nothing":
		return sdk.Quoted{Outcome: sdk.Done}
	case of.Price == 0 || s.mutant == "refuses to quote":
		return sdk.NoQuote(sdk.Refuse(sdk.RefuseProduct, "sold out"))
	case s.mutant == "buys in the quote":
		_, _ = s.ask(ctx, q.Connection, http.MethodPost, "/charges", charge{Ref: q.Reference, Amount: of.Price})
	}
	return sdk.Quoted{Outcome: sdk.Done, Price: of.Price, Cost: of.Price, Data: json.RawMessage(`{}`)}
}

// sell makes what is not there yet, however often it is asked.
func (s seller) sell(ctx context.Context, c sdk.Connection, reference string, cost money.Amount) (charge, error) {
	if s.mutant != "buys again" {
		if made, err := s.byReference(ctx, c, reference); !errors.Is(err, errNothing) {
			return made, err
		}
	}
	if s.mutant == "ignores the quote" {
		cost++
	}
	return s.ask(ctx, c, http.MethodPost, "/charges", charge{Ref: reference, Amount: cost})
}

func (s seller) buy(ctx context.Context, c sdk.Call) sdk.Result {
	_, err := s.sell(ctx, c.Connection, c.Reference, c.Cost)
	switch {
	case errors.Is(err, errRefused):
		return sdk.Refuse(sdk.RefuseOther, "unlucky")
	case err != nil:
		return sdk.DontKnow(sdk.BlameUpstream, err.Error())
	}
	return sdk.Accepted("", time.Time{}, struct{}{})
}

func (s seller) again(ctx context.Context, l sdk.Lookup) sdk.StatusUpdate {
	made, err := s.sell(ctx, l.Connection, l.Reference, l.Cost)
	switch {
	case errors.Is(err, errRefused):
		return sdk.StatusUpdate{Reference: l.Reference, Status: sdk.StatusFailed}
	case err != nil:
		return sdk.NoStatus(sdk.BlameUpstream, err.Error())
	}
	f := s.statusUpdate(made)
	f.ProviderReference = ""
	switch s.mutant {
	case "tells another price":
		f.Amount--
	case "other event id":
		f.EventID += "-found"
	}
	return f
}
