package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Kind is all that is particular to one kind of movement.
type Kind interface {
	// Draft completes the movement that a request would make: its amount, and a
	// reference where the request names none. Nothing is asked of the provider.
	Draft(ctx context.Context, r Request, draft *movement.Movement) error
	// Prepare asks what must be known before the reservation: a price, a recipient.
	// Its error means that nothing was sent. The remark is for operators, once the
	// movement is reserved.
	Prepare(ctx context.Context, r Request, draft *movement.Movement, c Connection) (remark string, err error)
	// Reserve runs the reservation of a draft, completed by what only this kind
	// takes, and says in its merchant's words why there is none.
	Reserve(ctx context.Context, op *catalog.Operation, draft movement.Movement, reserve Reserving) (movement.Movement, bool, error)
	// Kept is a draft's request as it would have been kept where an earlier one under
	// its reference was: two equal ones are the same request.
	Kept(op *catalog.Operation, draft, earlier movement.Movement) json.RawMessage
	// Answer is what a creation is answered, as the movement stands.
	Answer(op *catalog.Operation, m movement.Movement) (Answer, error)
	// Describe is what a status or a cancel tells, by the operation that is asked and the
	// one that made the movement.
	Describe(asked, op *catalog.Operation, m movement.Movement) Answer
	// Event is the data of a callback event at a time.
	Event(op *catalog.Operation, m movement.Movement, at time.Time) *Object
}

// Reserving reserves a draft.
type Reserving func(ctx context.Context, draft movement.Movement) (movement.Movement, bool, error)

// OfferChecker is a kind whose offers must have the form that was asked for.
type OfferChecker interface {
	CheckOffer(m movement.Movement, data json.RawMessage) error
}

// Canceller is a kind whose pending movements a merchant can end.
type Canceller interface {
	Cancel(ctx context.Context, r Request, m movement.Movement) (movement.Movement, error)
}

// StatementFed is a kind whose movements are ended by statements. Refresh reads what
// is new in the statement of a movement's account and returns the movement as it
// stands then.
type StatementFed interface {
	Refresh(ctx context.Context, op *catalog.Operation, m movement.Movement, c Connection) (movement.Movement, error)
}

// Finder is a kind whose movements a status may name otherwise than by reference.
type Finder interface {
	Find(ctx context.Context, r Request) (movement.Movement, error)
}

// Receipter is a kind whose payers are mailed a receipt; nil for none.
type Receipter interface {
	Receipt(ctx context.Context, m movement.Movement) *movement.Mail
}

// Store is where movements are kept. Each write is one commit.
//
// The calls come in this order: Reserve; then Acknowledge where the outcome is not
// known in time; then Apply for each fact, and Poll and Miss for each question.
type Store interface {
	// Reserve takes the reference of a draft and what it takes besides. It returns
	// the movement as reserved, and true; or the movement that has the reference, and
	// false. It is movement.ErrInsufficient, a *movement.LimitError or a
	// *movement.NoAmountError where there is no room. Any error means that the
	// reservation must not be acted upon.
	Reserve(ctx context.Context, draft movement.Movement) (movement.Movement, bool, error)
	// Acknowledge records that a merchant is answered pending before the outcome is
	// known, and returns the movement as it then stands: from then on its reference
	// is never free again.
	Acknowledge(ctx context.Context, m movement.Movement, answer json.RawMessage) (movement.Movement, error)
	// Apply commits a transition with its history, posting, callback and mail. It is
	// false, and nothing has changed, when the movement no longer stands where it was
	// seen.
	Apply(ctx context.Context, c movement.Change) (bool, error)
	// Poll takes the right to ask the provider about a movement, over all replicas, if
	// nobody did since before.
	Poll(ctx context.Context, m movement.Movement, now, before, next time.Time) (bool, error)
	// Miss counts a "not found", and returns how many came in a row; 0 where it is not
	// unknown any more.
	Miss(ctx context.Context, m movement.Movement, next time.Time) (int, error)
	// ReleaseAmount gives back the reserved amount of a collection that nobody was
	// told of.
	ReleaseAmount(ctx context.Context, m movement.Movement) error
	Register
	Records
}

// Register finds movements: by their own id, or as their merchant names them. Where
// there is none it is movement.ErrNotFound.
type Register interface {
	MovementByKey(ctx context.Context, key movement.Key) (movement.Movement, error)
	MovementByID(ctx context.Context, id movement.ID) (movement.Movement, error)
}

// Records keeps what changes no movement. AddException is false where the same
// exception stands already; Note counts what is said again.
type Records interface {
	AddException(ctx context.Context, x movement.Exception) (bool, error)
	Note(ctx context.Context, now time.Time, m movement.Movement, event, detail string) error
}

// Providers are the plugins. Call and Lookup never fail: what went wrong is in the
// outcome. Available is asked before a reservation.
type Providers interface {
	Quote(ctx context.Context, provider string, quote sdk.Quote, timeout time.Duration) sdk.Quoted
	Call(ctx context.Context, provider string, call sdk.Call, timeout time.Duration) sdk.Result
	Lookup(ctx context.Context, provider string, lookup sdk.Lookup, timeout time.Duration) sdk.StatusUpdate
	Notify(ctx context.Context, provider string, n sdk.Notification, timeout time.Duration) (sdk.Acknowledgement, error)
	Available(provider, mode string) error
}

// Dependencies is what a lifecycle is made of. All are required but where it is said.
type Dependencies struct {
	Store     Store
	Providers Providers
	Accounts  Accounts
	Vault     Vault
	Catalog   *catalog.Catalog

	CallbackCommitted func()       // called after a callback event was committed; nil for nobody
	MailCommitted     func()       // called after a mail was committed; nil where none can be sent, and none is made
	ClockFault        func() error // why the times that Now tells can't be relied on, if so; nil where nobody measures
	Now               func() time.Time
	Log               *slog.Logger
}

// Lifecycle runs movements of all kinds that were added to it. It is safe for
// concurrent use and keeps no state.
type Lifecycle struct {
	Dependencies
	kinds map[manifest.Kind]Kind

	Patience time.Duration   // how long a commit of what has happened is tried
	Draw     func(n int) int // a number below n
}

// New makes a lifecycle without kinds.
func New(d Dependencies) *Lifecycle {
	return &Lifecycle{Dependencies: d, kinds: map[manifest.Kind]Kind{}, Patience: applyTimeout, Draw: rand.IntN}
}

// Add has a kind's movements run. It must be called before anything else.
func (l *Lifecycle) Add(name manifest.Kind, k Kind) { l.kinds[name] = k }

const (
	// sendWindow is how long after its reservation a movement may still be sent, and so
	// how long a reservation may take.
	sendWindow = 5 * time.Second
	// lookupTimeout bounds one poll.
	lookupTimeout = 5 * time.Second
	// applyTimeout bounds each commit of what has happened already, which is tried
	// until then.
	applyTimeout = 10 * time.Second
	// TryTimeout bounds one try of it.
	TryTimeout = 5 * time.Second
)

// Request is a merchant's request after authentication, with a body that the
// operation's schema has accepted.
type Request struct {
	Identity       tenants.Identity
	Operation      *catalog.Operation
	Body           catalog.Document // without credentials, null and ""
	IdempotencyKey string           // of the header, or ""
	CallbackURL    string           // checked, or ""
	RequestID      string
	PolicyVersion  string
	DecisionID     string
	Remaining      *int64         // what the request's quota leaves, nil where none counts it
	Limits         policy.Limits  // what the policy answered for the merchant
	Zone           *time.Location // whose days payout limits are counted by
	// Left reads what the quotas leave, for an answer that has to tell it of a request
	// that is not counted; nil where none is.
	Left func(ctx context.Context) *int64
	// Reconsider asks the policy again with what a quote has told; nil where it is not
	// asked.
	Reconsider func(ctx context.Context, told map[string]any) error
}

// Owner is whose movement the request makes or asks for.
func (r Request) Owner() movement.Owner {
	return movement.Owner{MerchantID: string(r.Identity.Account.ID()), Mode: string(r.Identity.Mode)}
}

// NamesReference tells whether the request itself names a reference.
func (r Request) NamesReference() bool { return r.IdempotencyKey+r.Operation.ReferenceOf(r.Body) != "" }

// Answer is what a merchant gets: the envelope's data, with message and status at
// the top where the contract puts them.
type Answer struct {
	Data     any
	Message  string
	Status   string
	Replayed bool // an earlier request under this reference was answered so
	// Earlier says that this is about what an earlier request has made, also where it
	// is an error: it has used its quota then, and uses none again.
	Earlier bool
	// Refused says of a query's error that the provider was asked and has refused: its
	// no is an answer, which uses a quota.
	Refused bool
	// Receipt is the movement whose answer's delivery is to be noted once it has
	// reached its caller, where it is set.
	Receipt movement.ID
}

// Notification is an inbound request on a connection's notification route.
type Notification struct {
	Provider  tenants.Provider
	Token     tenants.NotifyToken
	RequestID string
	Method    string
	Query     string
	Header    http.Header
	Body      []byte
}

// Run runs an operation about a movement: a creation, a status, a cancel. Its error
// is always a *fault.Error; beside it an answer tells only what it is about.
func (l *Lifecycle) Run(ctx context.Context, r Request) (Answer, error) {
	run := l.create
	switch {
	case r.Operation.StatusOf != "":
		run = l.status
	case r.Operation.CancelOf != "":
		run = l.cancel
	}
	answer, err := run(ctx, r)
	if err != nil {
		return Answer{Replayed: answer.Replayed, Earlier: answer.Earlier, Receipt: answer.Receipt}, fault.From(err)
	}
	if r.Operation.CancelOf != "" {
		return answer, nil
	}
	return withRemaining(ctx, r, answer), nil
}

// Stored answers a request from an earlier one under the same reference, for a
// request that admission refuses: a retry of something that exists gets its answer
// all the same. It is false when there is no earlier one.
func (l *Lifecycle) Stored(ctx context.Context, r Request) (Answer, bool, error) {
	if !r.Operation.Money() || !r.NamesReference() {
		return Answer{}, false, nil
	}
	draft, err := l.draft(ctx, r)
	if err != nil {
		return Answer{}, false, fault.From(err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longest(r.Operation)) // what is open may be polled
	defer cancel()
	existing, err := l.Store.MovementByKey(ctx, draft.Key)
	if errors.Is(err, movement.ErrNotFound) || err == nil && existing.State == movement.NotSubmitted {
		return Answer{}, false, nil
	}
	if err != nil {
		return Answer{}, false, Unjudged(r, draft, err)
	}
	answer, err := l.replay(ctx, r.Operation, draft, existing)
	if err != nil {
		return Answer{Replayed: answer.Replayed, Earlier: answer.Earlier}, true, fault.From(err)
	}
	return withRemaining(ctx, r, answer), true, nil
}

// operationOf is the operation that made a movement, with its kind.
func (l *Lifecycle) operationOf(m movement.Movement) (*catalog.Operation, error) {
	return Operation(l.Catalog, m)
}

// Account is the merchant of a movement.
func (l *Lifecycle) Account(ctx context.Context, m movement.Movement) (*tenants.Account, error) {
	return l.Accounts.Account(ctx, tenants.MerchantID(m.Owner.MerchantID))
}
