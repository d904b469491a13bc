// Package query answers what moves no money: queries through a plugin or from shared
// answers, a merchant's balance, and its list of events. It finds products for orders.
// It must not change a movement.
package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/maypok86/otter/v2"

	"github.com/seed-f006e74d/gerbang/gateway/cache"
	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
)

// Shared keeps the answers of queries for all who ask the same, on every replica.
// Fetch is called by one at a time, when an answer is older than maxAge.
type Shared interface {
	Get(ctx context.Context, key cache.Key, maxAge time.Duration, fetch func(context.Context) (json.RawMessage, error)) (cache.Answer, error)
}

// Records is what a merchant's lists and balance are read from. Events are
// the oldest first, after one (nil UUID: from the beginning) and none younger than an
// age by the database's clock; movement.ErrNotFound where there is no such event to go on after.
type Records interface {
	Movements(ctx context.Context, l movement.Listing) ([]movement.Movement, error)
	Balance(ctx context.Context, owner movement.Owner) (ledger.Balance, error)
	Events(ctx context.Context, owner movement.Owner, after uuid.UUID, age time.Duration, most int) ([]movement.ListedEvent, error)
}

// Queries answers queries. It is safe for concurrent use and keeps no state but lists
// that were read already.
type Queries struct {
	lifecycle *lifecycle.Lifecycle
	shared    Shared
	records   Records
	listings  *otter.Cache[edition, *reading]
	views     *otter.Cache[view, *catalog.Finished]
}

// New makes queries.
func New(l *lifecycle.Lifecycle, shared Shared, records Records) *Queries {
	return &Queries{
		lifecycle: l, shared: shared, records: records,
		listings: otter.Must(&otter.Options[edition, *reading]{MaximumSize: mostListings}),
		views: otter.Must(&otter.Options[view, *catalog.Finished]{
			MaximumWeight: mostOfViews,
			Weigher: func(of view, f *catalog.Finished) uint32 {
				const own = 256 // the entry itself
				return uint32(min(len(f.Plain)+len(of.filtered)+len(of.prices), mostOfViews)) + own
			},
		}),
	}
}

// edition is one content of a shared answer, read for one purpose: it is the same for
// all whose provider answers the same.
type edition struct {
	op      *catalog.Operation
	version string
	key     string // the property by which its items are found
}

// view is what some callers see of a listing: the same items at the same prices.
type view struct {
	listing  *catalog.Listing
	filtered string
	prices   string
}

// mostOfViews bounds the memory for finished answers, not counting what is packed.
const mostOfViews = 128 << 20

// reading is an edition that is read once, whoever asks for it first.
type reading struct {
	once    sync.Once
	listing *catalog.Listing
	err     error
}

// mostListings bounds the readings that are kept.
const mostListings = 256

// Run runs a query. Its error is always a *fault.Error; beside it an answer tells only
// what it is about.
func (q *Queries) Run(ctx context.Context, r lifecycle.Request) (lifecycle.Answer, error) {
	run := q.query
	switch {
	case !r.Operation.Own():
	case r.Operation.Lists != nil:
		run = q.movements
	case r.Operation.Path == catalog.EventsPath:
		run = q.events
	case r.Operation.Path == catalog.BalancePath:
		run = q.balance
	default:
		return lifecycle.Answer{}, fault.From(fmt.Errorf("query: nothing answers %s", r.Operation.Path))
	}
	answer, err := run(ctx, r)
	if err != nil {
		return lifecycle.Answer{Refused: answer.Refused}, fault.From(err)
	}
	return answer, nil
}

// query answers by one call of the plugin, or by none where the answer is shared.
func (q *Queries) query(ctx context.Context, r lifecycle.Request) (lifecycle.Answer, error) {
	c, err := q.lifecycle.Connect(ctx, r.Operation, r.Identity.Account, string(r.Identity.Mode))
	if err != nil {
		return lifecycle.Answer{}, err
	}
	listing, err := q.listing(ctx, r, r.Operation, r.Body, c, "")
	if err != nil {
		// Of this error itself: it may also be about a list that was needed first.
		_, refused := errors.Unwrap(fault.From(err)).(lifecycle.SaidNo) //nolint:errorlint // as said
		return lifecycle.Answer{Refused: refused}, err
	}
	finished, err := q.finished(listing, r, lifecycle.Added(r, c))
	if err != nil {
		return lifecycle.Answer{}, err
	}
	return lifecycle.Answer{Finished: finished}, nil
}

// finished is a listing as a caller sees it, from those that are kept where it is shared.
func (q *Queries) finished(listing *catalog.Listing, r lifecycle.Request, added catalog.Added) (*catalog.Finished, error) {
	shared := r.Operation.Cache > 0
	of := view{listing, listing.Filtered(r.Body), added.Name()}
	if shared {
		if known, ok := q.views.GetIfPresent(of); ok {
			return known, nil
		}
	}
	data, err := listing.Show(r.Body, added)
	if err != nil {
		return nil, err
	}
	made := catalog.Finish(data, shared)
	if shared {
		made, _ = q.views.SetIfAbsent(of, made)
	}
	return made, nil
}

// listing is the answer to a query, from the provider or from what is shared. Key is
// the property by which its items will be found.
func (q *Queries) listing(ctx context.Context, r lifecycle.Request, op *catalog.Operation, asked catalog.Document, c lifecycle.Connection, key string) (*catalog.Listing, error) {
	encoded, err := op.Canonical(op.Question(asked))
	if err != nil {
		return nil, err
	}
	body := movement.BodyOf(encoded, op.Path) // the same bytes for whoever is asked
	if op.Cache == 0 {
		product, _, err := q.Product(ctx, r, c) // before the target, which only the provider can judge
		if err != nil {
			return nil, err
		}
		data, err := q.ask(ctx, r, op, question{body, product}, c)
		if err != nil {
			return nil, err
		}
		return read(op, data, key)
	}
	name := cache.Key{
		Provider: op.Provider, Manifest: op.Manifest.Digest(), Mode: c.Mode, Connection: c.SharedBy(), Path: op.Path, Body: string(encoded),
	}
	if op.Common {
		name.Connection = ""
	}
	answer, err := q.shared.Get(ctx, name, time.Duration(op.Cache), func(ctx context.Context) (json.RawMessage, error) {
		data, err := q.ask(ctx, r, op, question{body: body}, c)
		if err == nil {
			_, err = read(op, data, key) // what does not fit is not shared
		}
		return data, err
	})
	switch {
	case err == nil:
		return q.remembered(op, answer, key)
	case !op.Common:
		return nil, err
	}
	// It may be another's account that could not be asked, which is not this one's fault.
	data, err := q.ask(ctx, r, op, question{body: body}, c)
	if err != nil {
		return nil, err
	}
	return read(op, data, key)
}

// remembered reads a shared answer, once for each content.
func (q *Queries) remembered(op *catalog.Operation, answer cache.Answer, key string) (*catalog.Listing, error) {
	of := edition{op, answer.Version, key}
	known, ok := q.listings.GetIfPresent(of)
	if !ok {
		known, _ = q.listings.SetIfAbsent(of, &reading{})
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
	body, product json.RawMessage
}

// ask calls the plugin with a query.
func (q *Queries) ask(ctx context.Context, r lifecycle.Request, op *catalog.Operation, asked question, c lifecycle.Connection) (json.RawMessage, error) {
	if err := q.lifecycle.Available(ctx, r, c); err != nil {
		return nil, err
	}
	use := r.Use()
	use.Declared = op.Declared() // of the list, where the request is an order
	result := q.lifecycle.Providers.Call(ctx, use, sdk.Call{
		Operation: op.Path, RequestID: r.RequestID, Connection: c.Connection, Body: asked.body, Product: asked.product,
	}, time.Duration(op.Timeout))
	if result.Outcome == sdk.Done {
		return result.Data, nil
	}
	return nil, q.lifecycle.Unanswered(ctx, op, c, result, "")
}

// Product finds what a request names in the list of what can be bought. The list is
// shared and some minutes old; what has changed since, the provider refuses.
func (q *Queries) Product(ctx context.Context, r lifecycle.Request, c lifecycle.Connection) (item json.RawMessage, name string, err error) {
	op := r.Operation
	if op.Product == nil {
		return nil, "", nil
	}
	name, _ = r.Body[op.Product.RequestField()].(string)
	list, err := q.listing(ctx, r, op.Products, nil, c, op.Product.KeyField())
	if err != nil {
		// Unlike that of the list itself, nothing of this request may have been sent.
		return nil, "", fault.New(fault.ProviderUnavailable, "The provider's products can't be read at the moment. Nothing was sent.").Because(err)
	}
	item, listed := list.Find(name)
	if !listed {
		return nil, "", fault.Invalid(op.Product.RequestField(), "is not in the list of products ("+op.Products.Path+")")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(item, &fields); err != nil || string(fields[op.Product.AvailableField()]) != "true" {
		return nil, "", fault.New(fault.ProductUnavailable, "This product is switched off at the moment.")
	}
	return item, name, nil
}
