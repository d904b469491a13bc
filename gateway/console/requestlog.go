package console

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/requestlog"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Requests reads the log of requests. Requests reads a merchant's parts, the last first, RequestsBetween all merchants', and
// RequestsDropped counts a merchant's calls that were not kept.
type Requests interface {
	Requests(ctx context.Context, r requestlog.Range) ([]requestlog.Part, error)
	RequestsBetween(ctx context.Context, since, until time.Time) ([]requestlog.Part, error)
	RequestsDropped(ctx context.Context, of requestlog.Owner, since time.Time) (int64, error)
}

// requestLog reads the log of requests.
func (c *Console) requestLog() *requestlog.Reader {
	return &requestlog.Reader{Parts: c.deps.Requests.Requests, Open: func(of requestlog.Owner, sealed []byte) ([]byte, error) {
		return c.deps.Vault.OpenRequests(tenants.MerchantID(of.Merchant), tenants.Mode(of.Mode), sealed)
	}}
}

func (c *Console) listRequestLog(x *call, wanted adminapi.RequestLogFilter) (out adminapi.RequestLog, err error) {
	ctx := x.request.Context()
	account, of, err := c.logOwner(x, wanted.Mode)
	if err != nil {
		return out, err
	}
	if wanted.State != "" && wanted.State != "succeeded" && wanted.State != "failed" {
		return out, fault.Invalid("state", "must be succeeded or failed")
	}
	from := requestlog.Place{At: x.now.Add(movement.ClockSkew)}
	if wanted.After != "" {
		if from, err = requestlog.ParsePlace(wanted.After); err != nil || from.At.After(x.now.Add(ahead)) {
			return out, fault.Invalid("after", "must be the next of the page before")
		}
	}
	out = adminapi.RequestLog{MerchantID: of.Merchant, Mode: of.Mode, Since: x.now.Add(-requestlog.Kept), Requests: []adminapi.LoggedRequest{}}
	if out.NotKept, err = c.deps.Requests.RequestsDropped(ctx, of, x.now.Add(-time.Hour)); err != nil {
		return out, err
	}
	filter := requestlog.Filter{State: wanted.State, Operation: wanted.Operation, Code: wanted.Code, ID: wanted.ID}
	var found []requestlog.Entry
	var next requestlog.Place
	if made, told := c.toldBy(wanted.ID, x.now); told { // its time is known
		found, err = c.keptAt(ctx, of, made, filter)
	} else {
		found, next, err = c.requestLog().Page(ctx, of, filter, from, out.Since, cmp.Or(wanted.Limit, defaultPage))
	}
	if err != nil {
		return out, err
	}
	if next != (requestlog.Place{}) {
		out.Next, out.Since = next.String(), next.At
	}
	for _, e := range found {
		out.Requests = append(out.Requests, loggedDocument(account, of.Mode, e))
	}
	return out, nil
}

func (c *Console) showLoggedRequest(x *call, wanted adminapi.LoggedRequestID) (out adminapi.LoggedRequest, err error) {
	account, of, err := c.logOwner(x, wanted.Mode)
	if err != nil {
		return out, err
	}
	e, err := c.keptOf(x.request.Context(), of, wanted.Request, x.now)
	if err != nil {
		return out, err
	}
	if e == nil {
		return out, fault.New(fault.NotFound, "There is no such request in the log.")
	}
	out = loggedDocument(account, of.Mode, *e)
	out.Address, out.Agent, out.Sent, out.Retry = e.Address, e.Agent, e.Sent, e.Retry
	out.Asked, out.Answered, out.AskedBytes, out.AnsweredBytes = json.RawMessage(e.Asked), json.RawMessage(e.Answered), e.AskedBytes, e.AnsweredBytes
	return out, nil
}

// logOwner is the merchant that the path names, in a mode.
func (c *Console) logOwner(x *call, mode string) (*tenants.Account, requestlog.Owner, error) {
	parsed, err := parseMode(mode)
	if err != nil {
		return nil, requestlog.Owner{}, err
	}
	account, err := c.account(x)
	if err != nil {
		return nil, requestlog.Owner{}, err
	}
	return account, requestlog.Owner{Merchant: string(account.ID()), Mode: string(parsed)}, nil
}

// loggedDocument is a call as lists have it.
func loggedDocument(account *tenants.Account, mode string, e requestlog.Entry) adminapi.LoggedRequest {
	out := adminapi.LoggedRequest{
		At: e.At, RequestID: e.ID, Mode: mode, Method: e.Method, Operation: e.Operation, Status: e.Status, Code: e.Code, Message: e.Message, Reference: e.Reference,
		KeyID: e.KeyID, KeyName: e.KeyName, DurationMS: float64(e.Ended.Sub(e.At).Microseconds()) / 1000, DecisionID: e.DecisionID, Replayed: e.Replayed,
	}
	if key, ok := account.Key(tenants.KeyID(e.KeyID)); ok && out.KeyName == "" {
		out.KeyName = key.Called()
	}
	return out
}

// toldBy is the time that the id of a request or a decision tells.
func (c *Console) toldBy(id string, now time.Time) (time.Time, bool) {
	if at, ok := madeAt(id); ok {
		return at, true
	}
	facts, err := c.deps.Decisions.Key.Open(id, now)
	return facts.At, err == nil
}

// Within what time most calls end, and all.
const (
	mostEndWithin = 20 * time.Second
	allEndWithin  = 10 * time.Minute
)

// keptAt are the calls of an owner that began about a time and that a filter wants.
func (c *Console) keptAt(ctx context.Context, of requestlog.Owner, at time.Time, f requestlog.Filter) ([]requestlog.Entry, error) {
	for _, within := range []time.Duration{mostEndWithin, allEndWithin} {
		parts, err := c.deps.Requests.Requests(ctx, requestlog.Range{
			Filter: requestlog.Filter{State: f.State, Operation: f.Operation, Code: f.Code}, Owner: of, Since: at.Add(-requestlog.Span - movement.ClockSkew), Until: at.Add(within), Most: requestlog.AllParts,
		})
		if err != nil {
			return nil, err
		}
		if found, err := c.requestLog().All(parts, f.Fits); err != nil || len(found) > 0 {
			return found, err
		}
	}
	return nil, nil
}

// keptOf is an owner's call with an id, or with a decision's; nil where it was not kept.
func (c *Console) keptOf(ctx context.Context, of requestlog.Owner, id string, now time.Time) (*requestlog.Entry, error) {
	at, told := c.toldBy(id, now)
	if !told {
		return nil, nil //nolint:nilnil // none
	}
	found, err := c.keptAt(ctx, of, at, requestlog.Filter{ID: id})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// decisionOf is the id of the decision on a request, "" where the request's id tells no time or the call was not kept.
func (c *Console) decisionOf(ctx context.Context, id string, of movement.Owner, now time.Time) (string, error) {
	at, ok := madeAt(id)
	if !ok {
		return "", nil
	}
	if of != (movement.Owner{}) {
		e, err := c.keptOf(ctx, requestlog.Owner{Merchant: of.MerchantID, Mode: of.Mode}, id, now)
		if err != nil || e == nil {
			return "", err
		}
		return e.DecisionID, nil
	}
	parts, err := c.deps.Requests.RequestsBetween(ctx, at.Add(-requestlog.Span-movement.ClockSkew), at.Add(mostEndWithin))
	if err != nil {
		return "", err
	}
	found, err := c.requestLog().All(parts, requestlog.Filter{ID: id}.Fits)
	if err != nil || len(found) == 0 {
		return "", err
	}
	return found[0].DecisionID, nil
}
