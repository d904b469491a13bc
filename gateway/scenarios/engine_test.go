package scenarios

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/kind"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/override"
	"github.com/seed-f006e74d/gerbang/gateway/query"
	"github.com/seed-f006e74d/gerbang/gateway/reconcile"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// The names that tests use of several packages.
type (
	Request    = lifecycle.Request
	Answer     = lifecycle.Answer
	Checkout   = kind.Checkout
	Decision   = override.Request
	Decided    = override.Result
	Assignment = reconcile.Assignment
)

// Engine is all that runs movements, put together as the program does.
type Engine struct {
	*lifecycle.Lifecycle
	payments   *kind.Payment
	transfers  *kind.Transfer
	refunds    *kind.Refund
	queries    *query.Queries
	reconciler *reconcile.Reconciler
	overrides  *override.Overrides
	made       Dependencies
}

// Dependencies are what an engine is made of; those that a test does not need are nil.
type Dependencies struct {
	Store      lifecycle.Store
	Transfers  kind.TransferRegister
	Refunds    kind.RefundRegister
	Records    query.Records
	Shared     query.Shared
	Overrides  override.Records
	Statements reconcile.Statements
	Lines      reconcile.Lines
	Providers  lifecycle.Providers
	Books      reconcile.Provider
	PaidOut    reconcile.PaidOut
	Accounts   lifecycle.Accounts
	Vault      lifecycle.Vault
	Catalog    *catalog.Catalog
	Committed  func()
	Mailed     func()
	ClockFault func() error
	Foreign    func(provider string)
	Now        func() time.Time
	Log        *slog.Logger
}

// The bounds that tests wait for, as the packages have them.
const (
	sendWindow    = 5 * time.Second
	lookupTimeout = 5 * time.Second
	applyTimeout  = 10 * time.Second
	statusLookup  = 3 * time.Second
	longestLook   = lifecycle.LongestPoll
	missGap       = 10 * time.Second
	unresolvable  = 10 * time.Minute
	readEvery     = movement.ReadEvery
	pageSize      = 1000
	longestName   = 255
	longestReport = 4 << 10
)

// ourNames are the properties by which a transfer's status may be asked.
var ourNames = []string{"refId", "txId", "ref_id", "tx_id"}

// New makes an engine.
func New(d Dependencies) *Engine {
	l := lifecycle.New(lifecycle.Dependencies{
		Store: d.Store, Providers: d.Providers, Accounts: d.Accounts, Vault: d.Vault, Catalog: d.Catalog,
		CallbackCommitted: d.Committed, MailCommitted: d.Mailed, ClockFault: d.ClockFault, ForeignNotified: d.Foreign, Now: d.Now, Log: d.Log,
	})
	e := &Engine{made: d, Lifecycle: l, queries: query.New(l, d.Shared, d.Records)}
	e.reconciler = reconcile.New(l, d.Books, d.Statements, d.Lines)
	if d.Overrides != nil {
		e.overrides = override.New(l, d.Overrides)
	}
	e.payments = kind.AddPayment(l, "https://gate.example")
	kind.AddCollection(l, e.reconciler)
	kind.AddOrder(l, e.queries)
	e.refunds = kind.AddRefund(l, d.Refunds)
	e.transfers = kind.AddTransfer(l, d.Transfers, reconcile.NewAbsences(l, d.Books, d.PaidOut))
	return e
}

// Run runs an operation where the edge would.
func (e *Engine) Run(ctx context.Context, r Request) (Answer, error) {
	if r.Operation.Own() || r.Operation.Kind == manifest.Query {
		return e.queries.Run(ctx, r)
	}
	return e.Lifecycle.Run(ctx, r)
}

func (e *Engine) Decide(ctx context.Context, d Decision) (Decided, error) {
	return e.overrides.Override(ctx, d)
}

func (e *Engine) Assign(ctx context.Context, a Assignment) (reconcile.Assigned, error) {
	return e.reconciler.Assign(ctx, a)
}

func (e *Engine) ReadStatement(ctx context.Context, s movement.Statement) error {
	return e.reconciler.Read(ctx, s)
}

func (e *Engine) Checkout(ctx context.Context, id string) (Checkout, error) {
	return e.payments.Checkout(ctx, id)
}

// decidesWith has operators' decisions kept by another store.
func (e *Engine) decidesWith(records override.Records) {
	e.overrides = override.New(e.Lifecycle, records)
}

// readsFrom has statements read from another provider.
func (e *Engine) readsFrom(p reconcile.Provider, k keeper) {
	e.reconciler = reconcile.New(e.Lifecycle, p, k, k)
	kind.AddCollection(e.Lifecycle, e.reconciler)
}

// settle applies a status update without data as a notification's.
func (e *Engine) settle(ctx context.Context, op *catalog.Operation, m movement.Movement, u sdk.StatusUpdate, source movement.Source) (movement.Movement, error) {
	says := map[sdk.Status]movement.Says{
		sdk.StatusPending: movement.SaysPending, sdk.StatusDone: movement.SaysSucceeded,
		sdk.StatusFailed: movement.SaysFailed, sdk.StatusExpired: movement.SaysExpired,
	}[u.Status]
	return e.Apply(ctx, op, m, movement.Fact{
		Source: source, Says: says, Reference: u.Reference, ProviderReference: u.ProviderReference, EventID: u.EventID,
		Amount: u.Amount, Currency: u.Currency, At: u.At, ExpiresAt: u.ExpiresAt,
	})
}

// notifyAt sends a provider's notification to the route of a token.
func (e *Engine) notifyAt(ctx context.Context, provider tenants.Provider, token tenants.NotifyToken) (sdk.Acknowledgement, error) {
	route, err := e.RouteOf(ctx, provider, token)
	if err != nil {
		return sdk.Acknowledgement{}, err
	}
	return e.Notify(ctx, lifecycle.Notification{Route: route, Method: http.MethodPost})
}
