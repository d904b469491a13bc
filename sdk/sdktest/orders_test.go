package sdktest_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

const orderManifest = `{
	"manifest": 1, "name": "orders", "version": "1.0.0", "title": "Orders", "lookup": "resubmit", "resubmit_within": "2040h",
	"settles_within": "30s", "lookup_every": "10s", "account": "/key", "notifications": true, "notification_proof": "signed",
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

const orderExamples = `{
	"own_errors": true,	"signed": ["body", "X-Signature"],
	"examples": [
		{"name": "list", "operation": "/example/list", "body": {}, "outcome": "done"},
		{"name": "buy", "operation": "/example/buy", "body": {"sku": "tea"}, "outcome": "pending"},
		{"name": "unlucky", "operation": "/example/buy", "body": {"sku": "bad luck"}, "outcome": "refused", "code": "PROVIDER_REJECTED"},
		{"name": "sold out", "operation": "/example/buy", "body": {"sku": "air"}, "outcome": "refused", "code": "PRODUCT_UNAVAILABLE"}
	]}`

// seller is a sound plugin that sells, whose lookups are the same request again,
// unless it has a bug.
type seller struct{ *adapter }

func serveOrders(a *adapter) {
	s := seller{a}
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
	if s.bug == "lists nothing" {
		return sdk.Finished("", []article{})
	}
	return sdk.Finished("", []article{{"tea", 500, true}, {"bad luck", 13, true}, {"air", 0, true}})
}

func (s seller) quote(ctx context.Context, q sdk.Quote) sdk.Quoted {
	var of article
	switch err := json.Unmarshal(q.Product, &of); {
	case err != nil:
		return sdk.NoQuote(sdk.DontKnow(sdk.BlameNone, err.Error()))
	case s.bug == "quotes nothing":
		return sdk.Quoted{Outcome: sdk.Done}
	case of.Price == 0 || s.bug == "refuses to quote":
		return sdk.NoQuote(sdk.Refuse(sdk.RefuseProduct, "sold out"))
	case s.bug == "buys in the quote":
		_, _ = s.ask(ctx, q.Connection, http.MethodPost, "/charges", charge{Ref: q.Reference, Amount: of.Price, Auto: true})
	}
	return sdk.Quoted{Outcome: sdk.Done, Price: of.Price, Cost: of.Price, Data: json.RawMessage(`{}`)}
}

// sell makes what is not there yet, however often it is asked.
func (s seller) sell(ctx context.Context, c sdk.Connection, reference string, cost money.Amount, sendBy time.Time) (charge, error) {
	if s.bug != "buys again" {
		if made, err := s.byReference(ctx, c, reference); !errors.Is(err, errNothing) {
			return made, err
		}
	}
	if time.Now().After(sendBy) {
		return charge{}, errUnsent
	}
	if s.bug == "ignores the quote" {
		cost++
	}
	return s.ask(ctx, c, http.MethodPost, "/charges", charge{Ref: reference, Amount: cost, Auto: true})
}

func (s seller) buy(ctx context.Context, c sdk.Call) sdk.Result {
	made, err := s.sell(ctx, c.Connection, c.Reference, c.Cost, c.SendBy)
	if err != nil {
		return s.failed(err)
	}
	return sdk.Accepted(made.ID, time.Time{}, struct{}{})
}

func (s seller) again(ctx context.Context, l sdk.Lookup) sdk.StatusUpdate {
	made, err := s.sell(ctx, l.Connection, l.Reference, l.Cost, l.SendBy)
	switch {
	case errors.Is(err, errRefused):
		return sdk.StatusUpdate{Reference: l.Reference, Status: sdk.StatusFailed}
	case errors.Is(err, errKey):
		return sdk.NoStatus(sdk.BlameAccount, err.Error())
	case errors.Is(err, errLimit):
		return sdk.NoStatus(sdk.BlameLimit, err.Error())
	case err != nil:
		return sdk.NoStatus(sdk.BlameUpstream, err.Error())
	}
	f := s.statusUpdate(made)
	switch s.bug {
	case "tells another price":
		f.Amount--
	case "tells another event":
		f.EventID += "-found"
	}
	return f
}
