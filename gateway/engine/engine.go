package engine

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/maypok86/otter/v2"

	"github.com/seed-f006e74d/gerbang/gateway/cache"
	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Movements is where intent is written before the act, and read again.
type Movements interface {
	Commits
	Supplements
	Register
}

// Commits change movements, each in one commit. A Claim that the merchant's
// balance does not pay is store.ErrInsufficient, one beyond a limit of money out a
// *store.LimitError. A Move that returns false changed nothing because the
// movement no longer stood where the caller saw it. Promise records that a creation
// was answered before its outcome was known, and returns the movement as it then
// stands. Deliver notes that a movement's answer has reached its caller.
type Commits interface {
	Reserve(ctx context.Context, m movement.Movement) (movement.Movement, bool, error)
	Move(ctx context.Context, now time.Time, move store.Move) (bool, error)
	Complete(ctx context.Context, move store.Move) error
	Acknowledge(ctx context.Context, m movement.Movement, answer json.RawMessage) (movement.Movement, error)
	Deliver(ctx context.Context, id movement.ID) error
}

// Supplements adds to the result of a movement that is done, where it still has the
// one that the caller saw.
type Supplements interface {
	Supplement(ctx context.Context, now time.Time, move store.Move) (bool, error)
}

// Register finds movements: by their own id, as their merchant names them, or the
// newest of those with a stem. Where there is none it is store.ErrNotFound.
type Register interface {
	MovementByKey(ctx context.Context, key movement.Key) (movement.Movement, error)
	MovementByID(ctx context.Context, id movement.ID) (movement.Movement, error)
	LastEqual(ctx context.Context, owner movement.Owner, kind manifest.Kind, stem string) (movement.Movement, error)
}

// Inquiries says who may ask the provider about a movement, over all replicas.
type Inquiries interface {
	Poll(ctx context.Context, m movement.Movement, now, before, next time.Time) (bool, error)
	Miss(ctx context.Context, m movement.Movement, next time.Time) (int, error)
}

// Records keeps the facts that change no state. Note counts a fact that is told
// again.
type Records interface {
	PaidLate(ctx context.Context, now time.Time, r store.Record) (bool, error)
	Reversed(ctx context.Context, now time.Time, r store.Record) (bool, error)
	AddException(ctx context.Context, a movement.Exception) (bool, error)
	Note(ctx context.Context, now time.Time, m movement.Movement, event, detail string) error
}

// Balances are what merchants have with the platform.
type Balances interface {
	Balance(ctx context.Context, owner movement.Owner) (ledger.Balance, error)
}

// Shared keeps the answers of queries for all who ask the same, on every
// replica. Fetch is called by one at a time, when an answer is older than maxAge.
type Shared interface {
	Get(ctx context.Context, key cache.Key, maxAge time.Duration, fetch func(context.Context) (json.RawMessage, error)) (cache.Answer, error)
}

// Events is what merchants' lists of events are read from: the oldest first, of
// one merchant in one mode, after an event (nil UUID: from the beginning) and
// none younger than before. Where there is no such event to go on after, it is
// store.ErrNotFound.
type Events interface {
	Events(ctx context.Context, owner movement.Owner, after uuid.UUID, before time.Time, most int) ([]movement.ListedEvent, error)
}

// Statements reads the books of providers' accounts. It never fails: what went
// wrong is in the report.
type Statements interface {
	Statement(ctx context.Context, provider string, s sdk.Statement, timeout time.Duration) sdk.StatementPage
}

// Books is how far the books of accounts were read. PollStatement says who may read on,
// over all replicas. Enter keeps rows together with the cursor behind them, or
// nothing where somebody else was faster. Book is store.ErrNotFound for an account
// on which nothing was collected.
type Books interface {
	Statement(ctx context.Context, account movement.AccountID) (movement.Statement, error)
	PollStatement(ctx context.Context, account movement.AccountID, now, before time.Time) (bool, error)
	Import(ctx context.Context, now time.Time, b movement.Statement, entries []movement.ImportedLine, next string, through time.Time) (bool, error)
	ReleaseAmount(ctx context.Context, m movement.Movement) error
}

// Settlements are the payments that books tell of. Judge gives payments to their
// collections, once for both, and returns those that it decided: on the others
// somebody else was faster. Settled closes those whose collections have learned of
// them.
type Settlements interface {
	OpenLines(ctx context.Context, account movement.AccountID, after string, most int) ([]movement.StatementLine, error)
	Candidates(ctx context.Context, b movement.Statement, amounts []money.Amount, earliest, latest time.Time) ([]movement.Candidate, error)
	Match(ctx context.Context, now time.Time, b movement.Statement, verdicts []movement.Match) (decided []string, err error)
	LinesNamed(ctx context.Context, account movement.AccountID, payments []string) ([]movement.StatementLine, error)
	CloseLines(ctx context.Context, account movement.AccountID, done []movement.StatementLine) error
}

// Providers are the plugins. Quote, Call and Lookup never fail: what went wrong
// is in the outcome. Available is asked before a claim.
type Providers interface {
	Quote(ctx context.Context, provider string, quote sdk.Quote, timeout time.Duration) sdk.Quoted
	Call(ctx context.Context, provider string, call sdk.Call, timeout time.Duration) sdk.Result
	Lookup(ctx context.Context, provider string, lookup sdk.Lookup, timeout time.Duration) sdk.StatusUpdate
	Notify(ctx context.Context, provider string, n sdk.Notification, timeout time.Duration) (sdk.Acknowledgement, error)
	Available(provider, mode string) error
}

// Accounts finds merchants' accounts, from memory.
type Accounts interface {
	Account(ctx context.Context, id tenants.MerchantID) (*tenants.Account, error)
	ByNotifyToken(ctx context.Context, now time.Time, provider tenants.Provider, token tenants.NotifyToken) (*tenants.Account, tenants.Connection, error)
}

// Vault opens sealed credentials.
type Vault interface {
	OpenCredentials(c tenants.Connection) ([]byte, error)
}

// Dependencies is what an engine is made of. All are required.
type Dependencies struct {
	Movements   Movements
	Inquiries   Inquiries
	Records     Records
	Decisions   Decisions
	Events      Events
	Balances    Balances
	Shared      Shared
	Books       Books
	Settlements Settlements
	Assignments Assignments
	Providers   Providers
	Statements  Statements
	Accounts    Accounts
	Vault       Vault
	Catalog     *catalog.Catalog
	CheckoutURL func(id movement.ID) string
	Committed   func() // called after a callback was committed; nil for nobody
	Mailed      func() // called after a mail was committed; nil where none can be sent, and none is made
	// ClockFault says why the times that Now tells can't be relied on, if so; nil
	// where nobody compares them.
	ClockFault func() error
	Now        func() time.Time
	Log        *slog.Logger
}

// Engine runs operations. It is safe for concurrent use and keeps no state but
// lists that were read already.
type Engine struct {
	Dependencies
	patience time.Duration   // settleTimeout, except in tests
	draw     func(n int) int // a number below n, at random except in tests
	listings *otter.Cache[edition, *reading]
}

// New makes an engine.
func New(d Dependencies) *Engine {
	return &Engine{
		Dependencies: d, patience: settleTimeout, draw: rand.IntN,
		listings: otter.Must(&otter.Options[edition, *reading]{MaximumSize: mostListings}),
	}
}

const (
	// sendWindow is how long after its claim a movement may still be sent, and so
	// how long a claim may take.
	sendWindow = 5 * time.Second
	// lookupTimeout bounds one look at the provider.
	lookupTimeout = 5 * time.Second
	// settleTimeout bounds each commit of what has happened already, which is
	// tried until then.
	settleTimeout = 10 * time.Second
	// tryTimeout bounds one try of it.
	tryTimeout = 5 * time.Second
	// notifyTimeout bounds a plugin's verification of a notification.
	notifyTimeout = 5 * time.Second
)

// Run runs an operation. Its error is always a *fault.Error; beside it an answer
// tells only what it is about, and its receipt.
func (e *Engine) Run(ctx context.Context, r Request) (Answer, error) {
	answer, err := e.run(ctx, r)
	if err != nil {
		return Answer{Replayed: answer.Replayed, Earlier: answer.Earlier, Asked: answer.Asked, Receipt: answer.Receipt}, fault.From(err)
	}
	return answer, nil
}

func (e *Engine) run(ctx context.Context, r Request) (Answer, error) {
	switch {
	case r.Operation.Own():
		return e.own(ctx, r)
	case r.Operation.StatusOf != "":
		answer, err := e.status(ctx, r)
		return withRemaining(ctx, r, answer), err
	case r.Operation.CancelOf != "":
		return e.cancel(ctx, r)
	case r.Operation.Kind == manifest.Query:
		return e.query(ctx, r)
	}
	answer, err := e.create(ctx, r)
	return withRemaining(ctx, r, answer), err
}

// Stored answers a request from an earlier one under the same reference, for a
// request that admission refuses: a retry of something that exists gets its
// answer all the same. It is false when there is no earlier one.
func (e *Engine) Stored(ctx context.Context, r Request) (Answer, bool, error) {
	if !r.Operation.Money() || !namesReference(r) {
		return Answer{}, false, nil
	}
	draft, err := e.draft(r)
	if err != nil {
		return Answer{}, false, fault.From(err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longest(r.Operation)) // what is open may be looked at
	defer cancel()
	existing, err := e.Movements.MovementByKey(ctx, draft.Key)
	if errors.Is(err, store.ErrNotFound) || err == nil && existing.State == movement.NotSubmitted {
		return Answer{}, false, nil
	}
	if err != nil {
		return Answer{}, false, unjudged(r, draft, err)
	}
	answer, err := e.replay(ctx, r.Operation, draft, existing)
	if err != nil {
		return Answer{Replayed: answer.Replayed, Earlier: answer.Earlier}, true, fault.From(err)
	}
	return withRemaining(ctx, r, answer), true, nil
}

func namesReference(r Request) bool { return r.IdempotencyKey+r.Operation.ReferenceOf(r.Body) != "" }

// unjudged is the error of a request that ended before its reference could be
// looked up. This request sent nothing, but an earlier one under a reference of
// the merchant's may have.
func unjudged(r Request, draft movement.Movement, err error) *fault.Error {
	f := fault.From(err).WithReference(nameFor(draft))
	if namesReference(r) {
		return f.Unknown()
	}
	return f
}
