package sdktest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// envMutant names the fault that the example plugin has, in the tests that see
// the suite fail.
const envMutant = "SDKTEST_MUTANT"

const exampleManifest = `{
	"manifest": 1, "name": "example", "version": "1.0.0", "title": "Example", "lookup": "read", "settles_within": "30s",
	"notifications": true, "verifies": true, "references": {"longest": 64, "alphabet": "0-9a-f"}, "connection": {"type": "object"},
	"operations": [
		{"path": "/example/pay", "kind": "payment", "summary": "Pay", "timeout": "5s", "reference": "/id", "amount": "/amount",
		 "request": {"type": "object", "required": ["amount"], "additionalProperties": false,
			"properties": {"id": {"type": "string"}, "amount": {"type": "integer", "minimum": 1, "maximum": 1000000}}},
		 "result": {"type": "object", "required": ["url"], "properties": {"url": {"type": "string"}}}, "response": {"type": "object"}},
		{"path": "/example/paid", "status_of": "/example/pay", "summary": "Status", "reference": "/id",
		 "request": {"type": "object", "properties": {"id": {"type": "string"}}}, "response": {"type": "object"}},
		{"path": "/example/end", "cancel_of": "/example/pay", "summary": "End", "timeout": "5s", "reference": "/id",
		 "request": {"type": "object", "properties": {"id": {"type": "string"}}}, "response": {"type": "object"}},
		{"path": "/example/rate", "kind": "query", "summary": "Rate", "timeout": "5s", "request": {"type": "object"},
		 "result": {"type": "object", "required": ["rate"]}, "response": {"type": "object"}}
	]}`

// adapter is a right plugin, unless it is a mutant.
type adapter struct {
	mutant  string
	clients sdk.Instances[account]
}

type account struct {
	Key string `json:"key"`
	URL string `json:"url"`
}

func serveExample() {
	a := &adapter{mutant: os.Getenv(envMutant)}
	if mutant, ok := strings.CutPrefix(a.mutant, orders); ok {
		serveOrders(mutant)
	}
	if mutant, ok := strings.CutPrefix(a.mutant, collections); ok {
		serveCollections(mutant)
	}
	document := exampleManifest
	if a.mutant == "other manifest" {
		document = string(bytes.Replace([]byte(document), []byte("1.0.0"), []byte("1.0.1"), 1))
	}
	sdk.Serve([]byte(document), sdk.Handlers{
		Calls: map[string]func(context.Context, sdk.Call) sdk.Result{
			"/example/pay": a.pay, "/example/end": a.end, "/example/rate": a.rate,
		},
		Lookup: a.lookup,
		Notify: a.notify,
		Verify: a.verify,
	})
}

func (a *adapter) account(c sdk.Connection) (account, error) {
	switch a.mutant {
	case "one account":
		c.MerchantID = "everybody"
	case "one mode":
		c.Mode = "both"
	case "old credentials":
		c.Version = 1
	}
	return a.clients.Get(c, func(c sdk.Connection) (out account, err error) {
		return out, json.Unmarshal(c.Credentials, &out)
	})
}

var (
	errNothing = errors.New("nothing there")
	errRefused = errors.New("refused")
	errBroken  = errors.New("broken, as the upstream says itself")
)

func (a *adapter) ask(ctx context.Context, c sdk.Connection, method, path string, body any) (charge, error) {
	who, err := a.account(c)
	if err != nil {
		return charge{}, err
	}
	encoded, err := json.Marshal(body)
	if err != nil {
		return charge{}, err
	}
	request, err := http.NewRequestWithContext(ctx, method, who.URL+path, bytes.NewReader(encoded))
	if err != nil {
		return charge{}, err
	}
	request.Header.Set("Authorization", who.Key)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return charge{}, err
	}
	defer response.Body.Close()
	var got charge
	switch response.StatusCode {
	case http.StatusOK:
		err = json.NewDecoder(response.Body).Decode(&got)
	case http.StatusNotFound:
		err = errNothing
	case http.StatusUnprocessableEntity:
		err = errRefused
	case http.StatusInternalServerError:
		err = errBroken
	default:
		err = errors.New(response.Status)
	}
	return got, err
}

func (a *adapter) byReference(ctx context.Context, c sdk.Connection, reference string) (charge, error) {
	return a.ask(ctx, c, http.MethodGet, "/charges?ref="+url.QueryEscape(reference), nil)
}

func (a *adapter) pay(ctx context.Context, c sdk.Call) sdk.Result {
	if a.mutant == "deaf" {
		ctx = context.WithoutCancel(ctx)
	}
	if a.mutant != "creates twice" {
		switch made, err := a.byReference(ctx, c.Connection, c.Reference); {
		case err == nil:
			return sdk.Accepted(made.ID, time.Time{}, map[string]string{"url": "u"})
		case !errors.Is(err, errNothing):
			return sdk.DidNotSend(sdk.BlameUpstream, err.Error())
		}
	}
	amount := c.Amount
	if a.mutant == "wrong amount" {
		amount++
	}
	made, err := a.ask(ctx, c.Connection, http.MethodPost, "/charges", charge{Ref: c.Reference, Amount: amount})
	switch {
	case errors.Is(err, errRefused) && a.mutant != "sure of refusals":
		return sdk.Refuse(sdk.RefuseOther, "unlucky")
	case err != nil && a.mutant == "optimist":
		return sdk.DidNotSend(sdk.BlameUpstream, err.Error())
	case err != nil && a.mutant == "blames nobody":
		return sdk.DontKnow(sdk.BlameNone, err.Error())
	case err != nil && a.mutant == "hears its end in anything", errors.Is(err, errBroken) && a.mutant != "hears no end":
		return sdk.UpstreamError(err.Error())
	case err != nil:
		return sdk.DontKnow(sdk.BlameUpstream, err.Error())
	case a.mutant == "other result":
		return sdk.Accepted(made.ID, time.Time{}, map[string]int{"url": 1})
	}
	return sdk.Accepted(made.ID, time.Time{}, map[string]string{"url": "u"})
}

func (a *adapter) end(ctx context.Context, c sdk.Call) sdk.Result {
	if a.mutant == "ends nothing" {
		return sdk.Finished(c.ProviderReference, struct{}{})
	}
	if _, err := a.ask(ctx, c.Connection, http.MethodPost, "/charges/"+c.ProviderReference+"/end", nil); err != nil {
		return sdk.DontKnow(sdk.BlameUpstream, err.Error())
	}
	return sdk.Finished(c.ProviderReference, struct{}{})
}

func (a *adapter) verify(ctx context.Context, c sdk.Connection) sdk.Result {
	_, err := a.byReference(ctx, c, "none")
	switch {
	case errors.Is(err, errNothing) || a.mutant == "verifies anything":
		return sdk.Usable("")
	case a.mutant == "blames nobody":
		return sdk.DontKnow(sdk.BlameNone, err.Error())
	}
	return sdk.DidNotSend(sdk.BlameAccount, err.Error())
}

func (a *adapter) rate(context.Context, sdk.Call) sdk.Result {
	if a.mutant == "other result" {
		return sdk.Finished("", map[string]int{})
	}
	return sdk.Finished("", map[string]int{"rate": 1})
}

func (a *adapter) lookup(ctx context.Context, l sdk.Lookup) sdk.StatusUpdate {
	found, err := a.byReference(ctx, l.Connection, l.Reference)
	switch {
	case errors.Is(err, errNothing) && a.mutant == "never says not found":
		return sdk.NoStatus(sdk.BlameUpstream, err.Error())
	case errors.Is(err, errNothing):
		return sdk.StatusUpdate{Reference: l.Reference, Status: sdk.StatusNotFound}
	case a.mutant == "finds nothing":
		return sdk.StatusUpdate{Reference: l.Reference, Status: sdk.StatusNotFound}
	case err != nil:
		return sdk.NoStatus(sdk.BlameUpstream, err.Error())
	}
	return a.statusUpdate(found)
}

func (a *adapter) statusUpdate(c charge) sdk.StatusUpdate {
	f := sdk.StatusUpdate{
		Reference: c.Ref, ProviderReference: c.ID, Amount: c.Amount, Currency: "IDR", EventID: c.ID + c.State,
		Status: map[string]sdk.Status{"open": sdk.StatusPending, "paid": sdk.StatusDone, "ended": sdk.StatusExpired}[c.State],
	}
	switch a.mutant {
	case "no currency":
		f.Currency = ""
	case "new event id":
		f.EventID = time.Now().String()
	case "halves":
		f.Amount = money.Amount(int64(f.Amount) / 2)
	}
	return f
}

func (a *adapter) notify(_ context.Context, n sdk.Notification) sdk.Acknowledgement {
	who, err := a.account(n.Connection)
	if err != nil || (n.Header.Get("X-Token") != who.Key && a.mutant != "trusts anybody") {
		return sdk.Acknowledgement{Status: http.StatusUnauthorized}
	}
	var c charge
	if err := json.Unmarshal(n.Body, &c); err != nil && a.mutant != "reads anything" {
		return sdk.Acknowledgement{Status: http.StatusBadRequest}
	}
	update := a.statusUpdate(c)
	if a.mutant == "other channel" {
		update.Channel = "CASH"
	}
	return sdk.Acknowledgement{Status: http.StatusNoContent, Updates: []sdk.StatusUpdate{update}}
}
