package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/cache"
	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// edition is one version of a shared answer, read for one purpose.
type edition struct {
	name    cache.Key
	version string
	key     string // the property by which its items are found
}

// reading is an edition that is read once, whoever asks for it first.
type reading struct {
	once    sync.Once
	listing *catalog.Listing
	err     error
}

// mostListings bounds the readings that are kept.
const mostListings = 256

// query answers what moves no money: one call of the plugin, or none where the
// answer is shared.
func (e *Engine) query(ctx context.Context, r Request) (Answer, error) {
	c, err := e.connect(ctx, r.Operation, r.Identity.Account, string(r.Identity.Mode))
	if err != nil {
		return Answer{}, err
	}
	listing, err := e.listing(ctx, r, r.Operation, r.Body, c, "")
	if err != nil {
		// Of this error itself: it may also be about a list that was needed first.
		_, asked := errors.Unwrap(fault.From(err)).(saidNo) //nolint:errorlint // as said
		return Answer{Asked: asked}, err
	}
	data, err := listing.Show(r.Body, added(r, c))
	if err != nil {
		return Answer{}, err
	}
	return Answer{Data: data}, nil
}

// listing is the answer to a query, from the provider or from what is shared.
// Key is the property by which its items will be found.
func (e *Engine) listing(ctx context.Context, r Request, op *catalog.Operation, asked catalog.Document, c connection, key string) (*catalog.Listing, error) {
	body := op.Question(asked)
	encoded, err := op.Canonical(body)
	if err != nil {
		return nil, err
	}
	if op.Cache == 0 {
		product, _, err := e.product(ctx, r, c) // before the target, which only the provider can judge
		if err != nil {
			return nil, err
		}
		data, err := e.ask(ctx, r.RequestID, op, question{body, product}, c)
		if err != nil {
			return nil, err
		}
		return read(op, data, key)
	}
	name := cache.Key{Provider: op.Provider, Mode: c.Mode, Connection: c.sharing(), Path: op.Path, Body: string(encoded)}
	answer, err := e.Shared.Get(ctx, name, time.Duration(op.Cache), func(ctx context.Context) (json.RawMessage, error) {
		data, err := e.ask(ctx, r.RequestID, op, question{body: body}, c)
		if err == nil {
			_, err = read(op, data, key) // what does not fit is not shared
		}
		return data, err
	})
	if err != nil {
		return nil, err
	}
	return e.remembered(op, name, answer, key)
}

// sharing names who shares answers: those who use a connection as it is now. Other
// credentials may be another account, to which nothing of this one applies.
func (c connection) sharing() string { return c.MerchantID + "@" + strconv.FormatInt(c.Version, 10) }

// remembered reads a shared answer, once for each version.
func (e *Engine) remembered(op *catalog.Operation, name cache.Key, answer cache.Answer, key string) (*catalog.Listing, error) {
	of := edition{name, answer.Version, key}
	known, ok := e.listings.GetIfPresent(of)
	if !ok {
		known, _ = e.listings.SetIfAbsent(of, &reading{})
	}
	known.once.Do(func() { known.listing, known.err = read(op, answer.Body, key) })
	return known.listing, known.err
}

func read(op *catalog.Operation, data json.RawMessage, key string) (*catalog.Listing, error) {
	listing, err := op.Read(data, key)
	if err != nil {
		return nil, fault.New(fault.ProviderTimeout, "The provider's answer can't be used.").Because(err)
	}
	return listing, nil
}

// question is what a plugin is asked, with the product that it is about.
type question struct {
	body    catalog.Document
	product json.RawMessage
}

// ask calls the plugin with a query.
func (e *Engine) ask(ctx context.Context, requestID string, op *catalog.Operation, asked question, c connection) (json.RawMessage, error) {
	encoded, err := json.Marshal(maps.Clone(asked.body))
	if err != nil {
		return nil, fmt.Errorf("engine: query: %w", err)
	}
	if err := e.available(op.Provider, c.Mode); err != nil {
		return nil, err
	}
	result := e.Providers.Call(ctx, op.Provider, sdk.Call{
		Operation: op.Path, RequestID: requestID, Connection: c.Connection, Body: encoded, Product: asked.product,
	}, time.Duration(op.Timeout))
	if result.Outcome == sdk.Done {
		return result.Data, nil
	}
	return nil, e.unanswered(ctx, op, c, result)
}

// saidNo is why something was refused, by a provider that was asked.
type saidNo struct{ error }

// unanswered is the error of a query or a quote that the provider did not
// answer with what was asked for. Nothing was sent that moves money.
func (e *Engine) unanswered(ctx context.Context, op *catalog.Operation, c connection, result sdk.Result) error {
	if result.Blame == sdk.BlameAccount {
		e.alert(ctx, op.Provider, c, result.Detail)
	}
	cause := errors.New(result.Outcome.String() + ": " + result.Detail)
	switch result.Outcome {
	case sdk.Refused:
		refusal := inquired(result.Refusal)
		if result.Blame == sdk.BlameUpstream {
			cause = saidNo{cause}
		}
		return refusal.Because(cause)
	case sdk.NotSent:
		return fault.New(fault.ProviderUnavailable, "The provider is not available at the moment. Nothing was sent.").Because(cause)
	case sdk.Done, sdk.Pending, sdk.Unknown:
	}
	if op.Money() {
		what := "what it costs"
		if op.Kind == manifest.Transfer {
			what = "who the receiver is"
		}
		return fault.Newf(fault.ProviderUnavailable, "The provider could not tell %s. Nothing was sent.", what).Because(cause)
	}
	return fault.New(fault.ProviderTimeout, "The provider did not answer in time.").Because(cause)
}

// inquired is a provider's no to a question: nothing was sent, and the same
// reference may be used again with something else.
func inquired(r sdk.Refusal) *fault.Error {
	kept := refusalOf(r)
	if r.Code == sdk.RefuseRequest {
		e := fault.New(fault.InvalidRequest, orElse(kept.Message, "The request is invalid."))
		for _, f := range kept.Fields {
			e.Fields = append(e.Fields, fault.Field(f))
		}
		return e
	}
	e := refusalError(kept)
	e.Sent, e.Retry = fault.SentNo, fault.RetryAfterChange
	if e.Code == fault.ProductUnavailable {
		e.Retry = fault.RetryLater
	}
	return e
}

func orElse(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}
