// Package query answers what moves no money: queries through a plugin or from shared
// answers, a merchant's balance, and its list of events. It finds products for orders.
// It must not change a movement.
package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	listings  *otter.Cache[edition, *catalog.Listing]
	views     *otter.Cache[view, *catalog.Finished]
	recent    *otter.Cache[edition, *catalog.Listing] // of answers that are not shared, whose version is their text
}

// New makes queries.
func New(l *lifecycle.Lifecycle, shared Shared, records Records) *Queries {
	return &Queries{
		lifecycle: l, shared: shared, records: records,
		recent: otter.Must(&otter.Options[edition, *catalog.Listing]{MaximumSize: mostRecent}),
		listings: otter.Must(&otter.Options[edition, *catalog.Listing]{
			MaximumWeight: mostOfListings,
			Weigher:       func(_ edition, l *catalog.Listing) uint32 { return uint32(min(l.Size(), mostOfListings)) + own }, //nolint:gosec // a size is no negative number
		}),
		views: otter.Must(&otter.Options[view, *catalog.Finished]{
			MaximumWeight: mostOfViews,
			Weigher: func(of view, f *catalog.Finished) uint32 {
				return uint32(min(len(f.Plain)+len(of.filtered)+len(of.prices), mostOfViews)) + own
			},
		}),
	}
}

// edition is one content of a shared answer, the same for all whose provider answers the same.
type edition struct {
	op      *catalog.Operation
	version string
}

// view is what some callers see of an edition: the same items at the same prices.
type view struct {
	edition

	filtered string
	prices   string
}

const (
	// mostOfListings and mostOfViews bound the memory for what was read, and for finished
	// answers, not counting what is packed.
	mostOfListings = 128 << 20
	mostOfViews    = 128 << 20
	own            = 256 // bytes of an entry itself
	// mostRecent is how many answers that are not shared are kept, each of smallAnswer bytes at most.
	mostRecent  = 256
	smallAnswer = 4 << 10
)

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
	c, err := q.lifecycle.Connected(ctx, r.Operation, r.Identity.Account, string(r.Identity.Mode))
	if err != nil {
		return lifecycle.Answer{}, err
	}
	found, err := q.find(ctx, r, r.Operation, r.Body, c)
	if err != nil {
		// Of this error itself: it may also be about a list that was needed first.
		_, refused := errors.Unwrap(fault.From(err)).(lifecycle.SaidNo) //nolint:errorlint // as said
		return lifecycle.Answer{Refused: refused}, err
	}
	finished, err := q.finished(ctx, found, r, lifecycle.Added(r, c.Owner))
	if err != nil {
		return lifecycle.Answer{}, err
	}
	return lifecycle.Answer{Finished: finished}, nil
}

// finished is an answer as a caller sees it, from those that are kept where it is shared.
func (q *Queries) finished(ctx context.Context, a answer, r lifecycle.Request, added catalog.Added) (*catalog.Finished, error) {
	of := view{a.edition, r.Operation.Filtered(r.Body), added.Name()}
	if a.shared() {
		if known, ok := q.views.GetIfPresent(of); ok {
			return known, nil
		}
	}
	listing, err := q.read(ctx, a)
	if err != nil {
		return nil, err
	}
	data, err := listing.Show(r.Body, added)
	if err != nil {
		return nil, err
	}
	made := catalog.Finish(data, a.shared())
	if a.shared() {
		made, _ = q.views.SetIfAbsent(of, made)
	}
	return made, nil
}

// answer is what a query was answered. One that is not shared has no version.
type answer struct {
	edition

	body json.RawMessage
}

func (a answer) shared() bool { return a.version != "" }

// read reads an answer, once for each content that is shared. What a provider answers to one may be the same for a while,
// too, such as a rate: a small one is not read again.
func (q *Queries) read(ctx context.Context, a answer) (*catalog.Listing, error) {
	kept, of := q.listings, a.edition
	switch {
	case a.shared():
	case len(a.body) > smallAnswer:
		return read(a)
	default:
		kept, of = q.recent, edition{a.op, string(a.body)}
	}
	return kept.Get(ctx, of, otter.LoaderFunc[edition, *catalog.Listing](func(context.Context, edition) (*catalog.Listing, error) {
		return read(a)
	}))
}

func read(a answer) (*catalog.Listing, error) {
	listing, err := a.op.Read(a.body)
	if err != nil {
		return nil, fault.New(fault.ProviderTimeout, "The provider's answer can't be used.").Because(err)
	}
	return listing, nil
}

// find gets the answer to a query, from the provider or from what is shared.
func (q *Queries) find(ctx context.Context, r lifecycle.Request, op *catalog.Operation, asked catalog.Document, c lifecycle.Sealed) (answer, error) {
	encoded, err := op.Asked(asked)
	if err != nil {
		return answer{}, err
	}
	body := movement.BodyOf(encoded, op.Path) // the same bytes for whoever is asked
	if op.Cache == 0 {
		product, _, err := q.product(ctx, r, c) // before the target, which only the provider can judge
		if err != nil {
			return answer{}, err
		}
		data, err := q.ask(ctx, r, op, question{body, product}, c)
		return answer{edition{op: op}, data}, err
	}
	fetch := func(ctx context.Context) (answer, error) {
		data, err := q.ask(ctx, r, op, question{body: body}, c)
		if err != nil {
			return answer{}, err
		}
		fetched := answer{edition{op, cache.VersionOf(data)}, data}
		_, err = q.read(ctx, fetched) // what does not fit is not shared
		return fetched, err
	}
	name := cache.Key{
		Provider: op.Provider, Manifest: op.Manifest.Digest(), Mode: string(c.Mode), Path: op.Path, Body: string(encoded),
	}
	if !op.Common {
		name.Connection = c.SharedBy()
	}
	shared, err := q.shared.Get(ctx, name, time.Duration(op.Cache), func(ctx context.Context) (json.RawMessage, error) {
		fetched, err := fetch(ctx)
		return fetched.body, err
	})
	switch {
	case err == nil:
		return answer{edition{op, shared.Version}, shared.Body}, nil
	case !op.Common:
		return answer{}, err
	}
	// It may be another's account that could not be asked, which is not this one's fault.
	return fetch(ctx)
}

// listing is the answer to a query, read.
func (q *Queries) listing(ctx context.Context, r lifecycle.Request, op *catalog.Operation, asked catalog.Document, c lifecycle.Sealed) (*catalog.Listing, error) {
	found, err := q.find(ctx, r, op, asked, c)
	if err != nil {
		return nil, err
	}
	return q.read(ctx, found)
}

// question is what a plugin is asked, with the product that it is about.
type question struct {
	body, product json.RawMessage
}

// ask calls the plugin with a query. The account is opened only now: what is shared needs
// none of its credentials.
func (q *Queries) ask(ctx context.Context, r lifecycle.Request, op *catalog.Operation, asked question, sealed lifecycle.Sealed) (json.RawMessage, error) {
	c, err := q.lifecycle.Unseal(op, sealed)
	if err != nil {
		return nil, err
	}
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
	return q.product(ctx, r, c.Sealed())
}

func (q *Queries) product(ctx context.Context, r lifecycle.Request, c lifecycle.Sealed) (item json.RawMessage, name string, err error) {
	op := r.Operation
	if op.Product == nil {
		return nil, "", nil
	}
	name, _ = r.Body[op.Product.RequestField()].(string)
	list, err := q.listing(ctx, r, op.Products, nil, c)
	if err != nil {
		// Unlike that of the list itself, nothing of this request may have been sent.
		return nil, "", fault.New(fault.ProviderUnavailable, "The provider's products can't be read at the moment. Nothing was sent.").Because(err)
	}
	item, listed := list.Find(op.Product.KeyField(), name)
	if !listed {
		return nil, "", fault.Invalid(op.Product.RequestField(), "is not in the list of products ("+op.Products.Path+")")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(item, &fields); err != nil || string(fields[op.Product.AvailableField()]) != "true" {
		return nil, "", fault.New(fault.ProductUnavailable, "This product is switched off at the moment.")
	}
	return item, name, nil
}
