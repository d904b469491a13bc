package console

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/requestlog"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Requests reads the log of requests. Requests reads a merchant's parts, the last first, RequestOwners who has any, and
// RequestsDropped counts a merchant's calls that were not kept.
type Requests interface {
	Requests(ctx context.Context, r requestlog.Range) ([]requestlog.Part, error)
	RequestOwners(ctx context.Context, since, until time.Time) ([]requestlog.Owner, error)
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
	if wanted.State != "" && wanted.State != requestlog.Succeeded && wanted.State != requestlog.Failed {
		return out, fault.Invalid("state", "must be succeeded or failed")
	}
	for field, text := range map[string]string{"operation": wanted.Operation, "code": wanted.Code, "id": wanted.ID} {
		if !plain(text, 0, maxAnyID) {
			return out, fault.Invalid(field, "must have at most 255 characters, without control characters")
		}
	}
	from := requestlog.Place{At: x.now.Add(movement.ClockSkew)}
	if wanted.After != "" {
		if from, err = requestlog.ParsePlace(wanted.After); err != nil || from.At.After(x.now.Add(ahead)) {
			return out, fault.Invalid("after", "must be the next of the page before")
		}
	}
	out = adminapi.RequestLog{MerchantID: of.Merchant, Mode: of.Mode, Since: x.now.Add(-decision.Kept), Requests: []adminapi.LoggedRequest{}}
	filter := requestlog.Filter{State: wanted.State, Operation: wanted.Operation, Code: wanted.Code, Own: wanted.ID}
	var own *requestlog.Entry
	if wanted.After == "" { // on the first page, once
		if out.NotKept, err = c.deps.Requests.RequestsDropped(ctx, of, x.now.Add(-time.Hour)); err == nil {
			own, err = c.ownAt(ctx, of, filter, x.now)
		}
		if err != nil {
			return out, err
		}
	}
	if own != nil {
		out.Requests = append(out.Requests, loggedDocument(account, of.Mode, *own))
		return out, nil
	}
	filter.ID, filter.Own = wanted.ID, ""
	found, err := c.requestLog().Page(ctx, of, filter, from, out.Since, cmp.Or(wanted.Limit, defaultPage))
	if err != nil {
		return out, err
	}
	out.Unread = found.Unread
	if found.Next != (requestlog.Place{}) {
		out.Next, out.Since = found.Next.String(), found.Next.At
	}
	for _, e := range found.Entries {
		out.Requests = append(out.Requests, loggedDocument(account, of.Mode, e))
	}
	return out, nil
}

func (c *Console) showLoggedRequest(x *call, wanted adminapi.LoggedRequestID) (out adminapi.LoggedRequest, err error) {
	account, of, err := c.logOwner(x, wanted.Mode)
	if err != nil {
		return out, err
	}
	e, err := c.ownAt(x.request.Context(), of, requestlog.Filter{Own: wanted.Request}, x.now)
	if err != nil {
		return out, err
	}
	if e == nil {
		return out, fault.New(fault.NotFound, "There is no such request in the log.")
	}
	return shownDocument(account, of.Mode, *e), nil
}

// shownDocument is a call as it is shown alone.
func shownDocument(account *tenants.Account, mode string, e requestlog.Entry) adminapi.LoggedRequest {
	out := loggedDocument(account, mode, e)
	out.Address, out.Agent, out.Sent, out.Retry = e.Address, e.Agent, e.Sent, e.Retry
	out.Asked, out.Answered, out.AskedBytes, out.AnsweredBytes = json.RawMessage(e.Asked), json.RawMessage(e.Answered), e.AskedBytes, e.AnsweredBytes
	return out
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

// Within what time most calls end, and all.
const (
	mostEndWithin = 20 * time.Second
	allEndWithin  = 10 * time.Minute
)

// timesOf are the times within the log at which an id may have been made: as a request's, and as a decision's.
func (c *Console) timesOf(id string, now time.Time) (times []time.Time) {
	if at, ok := madeAt(id, now); ok {
		times = append(times, at)
	}
	if facts, err := c.deps.Decisions.Key.Open(id, now); err == nil {
		times = append(times, facts.At)
	}
	return slices.DeleteFunc(times, func(at time.Time) bool { return at.Before(now.Add(-decision.Kept - allEndWithin)) })
}

// mostPages bounds the search for one call about its time.
const mostPages = 8

// ownAt is an owner's call that a filter names by an id of the gateway's own, about the time that the id tells; nil where there is none.
func (c *Console) ownAt(ctx context.Context, of requestlog.Owner, f requestlog.Filter, now time.Time) (*requestlog.Entry, error) {
	for _, at := range c.timesOf(f.Own, now) {
		for _, within := range []time.Duration{mostEndWithin, allEndWithin} {
			if e, err := c.ownWithin(ctx, of, f, at, within); err != nil || e != nil {
				return e, err
			}
		}
	}
	return nil, nil //nolint:nilnil // none
}

func (c *Console) ownWithin(ctx context.Context, of requestlog.Owner, f requestlog.Filter, at time.Time, within time.Duration) (*requestlog.Entry, error) {
	next := requestlog.Place{At: at.Add(within)}
	for range mostPages {
		found, err := c.requestLog().Page(ctx, of, f, next, at.Add(-requestlog.Span-movement.ClockSkew), 1)
		if err != nil {
			return nil, err
		}
		if len(found.Entries) > 0 {
			return &found.Entries[0], nil
		}
		if next = found.Next; next == (requestlog.Place{}) {
			break
		}
	}
	return nil, nil //nolint:nilnil // none
}

// anyOwn is anybody's call with an id of the gateway's own; nil where there is none that ended soon.
func (c *Console) anyOwn(ctx context.Context, id string, now time.Time) (*requestlog.Entry, error) {
	for _, at := range c.timesOf(id, now) {
		owners, err := c.deps.Requests.RequestOwners(ctx, at.Add(-requestlog.Span-movement.ClockSkew), at.Add(mostEndWithin))
		if err != nil {
			return nil, err
		}
		for _, of := range owners {
			if e, err := c.ownWithin(ctx, of, requestlog.Filter{Own: id}, at, mostEndWithin); err != nil || e != nil {
				return e, err
			}
		}
	}
	return nil, nil //nolint:nilnil // none
}
