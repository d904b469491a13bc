package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/tracing"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Dependencies is what a lifecycle is made of. All are required but where it is said.
type Dependencies struct {
	Store     Store
	Providers Providers
	Accounts  Accounts
	Vault     Vault
	Catalog   *catalog.Catalog
	Names     movement.NameKey
	// Simulators stand in for accounts of test mode that nobody has connected; nil where
	// there are none.
	Simulators Simulators

	CallbackCommitted func()                // called after a callback event was committed; nil for nobody
	MailCommitted     func()                // called after a mail was committed; nil where none can be sent, and none is made
	Moved             func(movement.Change) // called after a movement's state was changed; nil for nobody
	ForeignNotified   func(provider string) // called after a notification named nothing of ours; nil for nobody
	ClockFault        func() error          // why the times that Now tells can't be relied on, if so; nil where nobody measures
	Recovering        func() error          // why no money may be moved, if so: nobody has opened the gateway since a restore; nil where there are none
	Unfit             func() error          // why the database can't take what a movement writes, if so; nil where nobody looks
	Restored          func() time.Time      // when the last recovery began, zero for none; nil where there are none
	PassedOver        slog.Level            // at which it is logged that a provider was not tried, and the next one was
	Now               func() time.Time
	Tracer            *tracing.Tracer // of what nobody waits for; nil for no traces
	Log               *slog.Logger
}

// Lifecycle runs movements of all kinds that were added to it. It is safe for
// concurrent use and keeps no state.
type Lifecycle struct {
	Dependencies
	kinds map[manifest.Kind]Kind
	// decided applies what operators have decided of a movement, and tells whether nothing
	// is left to ask for now.
	decided func(ctx context.Context, op *catalog.Operation, m movement.Movement) (movement.Movement, bool, error)

	Patience Patience // with which what has happened is committed
}

// New makes a lifecycle without kinds.
func New(d Dependencies) *Lifecycle {
	return &Lifecycle{
		Dependencies: d, kinds: map[manifest.Kind]Kind{}, Patience: Patience{applyTimeout, rand.IntN},
		decided: func(_ context.Context, _ *catalog.Operation, m movement.Movement) (movement.Movement, bool, error) {
			return m, false, nil
		},
	}
}

// DecidedBy has decisions of operators found that were made and not applied yet: polls
// apply them, and nothing is sent again after them. It must be called before anything else.
func (l *Lifecycle) DecidedBy(
	decided func(ctx context.Context, op *catalog.Operation, m movement.Movement) (_ movement.Movement, over bool, err error),
) {
	l.decided = decided
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
	policy.Ticket  // by which admission has let it run
	// Left reads what the quotas leave, for an answer that has to tell it of a request
	// that is not counted; nil where none is.
	Left func(ctx context.Context) *int64
	// Reconsider asks the policy again with a quote; nil where it is not asked.
	Reconsider func(ctx context.Context, quote map[string]any) error
}

// Owner is whose movement the request makes or asks for.
func (r Request) Owner() movement.Owner {
	return movement.Owner{MerchantID: string(r.Identity.Account.ID()), Mode: string(r.Identity.Mode)}
}

// Use is what the request uses its provider for.
func (r Request) Use() host.Use {
	return host.Use{
		Provider: r.Operation.Provider, MerchantID: string(r.Identity.Account.ID()), Money: r.Operation.Money(), Declared: r.Operation.Declared(),
	}
}

// NamesReference tells whether the request itself names a reference.
func (r Request) NamesReference() bool { return r.IdempotencyKey+r.Operation.ReferenceOf(r.Body) != "" }

// Answer is what a merchant gets: the envelope's data, with message and status at
// the top where the contract puts them.
type Answer struct {
	Data     any
	Finished *catalog.Finished // instead of data: of a query, all that is sent
	Message  string
	Status   string
	Replayed bool // an earlier request under this reference was answered so
	// Earlier says that this is about what an earlier request has made, also where it
	// is an error: it has used its quota then, and uses none again.
	Earlier bool
	// Refused says of a query's error that the provider was asked and has refused: its
	// no is an answer, which uses a quota.
	Refused bool
}

// Notification is an inbound request on a connection's notification route.
type Notification struct {
	Route     Route
	RequestID string
	Method    string
	Query     string
	Header    http.Header
	Body      []byte
}

// Account is the merchant of a movement.
func (l *Lifecycle) Account(ctx context.Context, m movement.Movement) (*tenants.Account, error) {
	return l.Accounts.Account(ctx, tenants.MerchantID(m.Owner.MerchantID))
}

// Operation is the operation that made a movement, as its provider serves it.
func (l *Lifecycle) Operation(m movement.Movement) (*catalog.Operation, error) {
	op, err := l.Shown(m)
	if err == nil {
		err = servedBy(op, m)
	}
	if err != nil {
		return nil, err
	}
	return op, nil
}

// servedBy is an error where an operation is not of a movement's provider.
func servedBy(op *catalog.Operation, m movement.Movement) error {
	if !op.Routed() && op.Provider == m.Provider {
		return nil
	}
	return fmt.Errorf("lifecycle: movement %s is at provider %s, which does not offer %s now", m.ID, m.Provider, m.Operation)
}

// Shown is the operation by which a movement is told: that of its provider, and where
// that one serves the path no more and others do, theirs. It is not for asking a provider,
// nor for judging what one says.
func (l *Lifecycle) Shown(m movement.Movement) (*catalog.Operation, error) {
	op, ok := l.Catalog.Current().ByPath(m.Operation)
	if !ok {
		return nil, fmt.Errorf("lifecycle: movement %s: nobody offers %s now", m.ID, m.Operation)
	}
	return op.Shown(m.Provider), nil
}

// clockFault is why times of ours can't be relied on now. All replicas judge by
// them: whether a request can still be under way, whether a payment is for a
// collection, whether an amount is free.
func (l *Lifecycle) clockFault() error {
	if l.ClockFault == nil {
		return nil
	}
	return l.ClockFault()
}

// barred is the refusal of what could move money while a restored database is not opened,
// because what it does not know may have been made, and while it is not fit for what a
// movement writes: another one's schema, or a database that takes no writes.
func (l *Lifecycle) barred() error {
	if l.Recovering != nil {
		if err := l.Recovering(); err != nil {
			return fault.New(fault.ProviderUnavailable, "Nothing can be created or cancelled at the moment. Nothing was sent.").Because(err)
		}
	}
	if l.Unfit != nil {
		if err := l.Unfit(); err != nil {
			return fault.New(fault.Internal, "Nothing can be created or cancelled at the moment because of a fault on our side. Nothing was sent.").Because(err)
		}
	}
	return nil
}

// Patience is how long a write is tried, and what draws its pauses: a number below n.
type Patience struct {
	For  time.Duration
	Draw func(n int) int
}

// pauses grow, and are drawn: those who failed together do not try again together.
type pauses struct {
	backoff.ExponentialBackOff
	draw func(n int) int
}

// NextBackOff is from a half of the pause to one and a half.
func (p *pauses) NextBackOff() time.Duration {
	pause := p.ExponentialBackOff.NextBackOff()
	return pause/2 + time.Duration(p.draw(int(pause)))
}

// UseBy is what a movement uses its provider for, by an operation of that provider.
func UseBy(m movement.Movement, op *catalog.Operation) host.Use {
	use := host.UseOf(m)
	if op.Provider == m.Provider {
		use.Declared = op.Declared()
	}
	return use
}

// Persist runs a write of what has happened already: it does not end with its
// caller, and a database that is away for a moment is waited for.
func Persist[T any](ctx context.Context, patience Patience, write func(context.Context) (T, error)) (T, error) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), patience.For)
	defer stop()
	pause := &pauses{backoff.ExponentialBackOff{InitialInterval: 50 * time.Millisecond, MaxInterval: time.Second, Multiplier: 1.5}, patience.Draw}
	var last error
	done, err := backoff.Retry(ctx, func() (T, error) {
		trying, stop := context.WithTimeout(ctx, TryTimeout)
		defer stop()
		done, err := write(trying)
		if last = err; err != nil && !passing(err) {
			err = backoff.Permanent(err)
		}
		return done, err
	}, backoff.WithBackOff(pause), backoff.WithMaxElapsedTime(0)) // patience alone ends it, and not its 15 minutes
	if err != nil && !errors.Is(err, last) {
		err = errors.Join(err, last) // patience ended; the reason is the last try's
	}
	return done, err
}

// lasting are the classes of SQLSTATE that no waiting mends: wrong data, broken
// constraints, wrong statements.
var lasting = []string{"22", "23", "42"}

// passing tells whether what failed may succeed a moment later. A verdict of our own never does; an unknown error may,
// because the write is of what has happened already.
func passing(err error) bool {
	type coded interface {
		error
		SQLState() string
	}
	if movement.Verdict(err) || errors.Is(err, tenants.ErrNotFound) {
		return false
	}
	named, ok := errors.AsType[coded](err)
	return !ok || len(named.SQLState()) < 2 || !slices.Contains(lasting, named.SQLState()[:2])
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

// Connection is an opened account at a provider.
type Connection struct {
	sdk.Connection
	Owner   manifest.Owner
	Account string // its name at the provider, "" where the manifest names none
	// ReportsLate is how late lines of its statement may be, where there is one.
	ReportsLate time.Duration

	sealed    Sealed
	simulated bool // by this gateway
}

// Sealed is the account as it was before it was opened.
func (c Connection) Sealed() Sealed { return c.sealed }

// SameAccount tells whether a connection still reaches the account at the provider
// that a movement was sent on. Where nothing names one of them, other credentials may
// be another account.
func (c Connection) SameAccount(m movement.Movement) bool {
	if c.Account != "" && m.ConnectionAccount != "" {
		return c.Account == m.ConnectionAccount
	}
	return c.Version == m.ConnectionVersion
}

// anotherAccount tells whether a connection surely reaches another account than the one
// that a movement was sent on.
func (c Connection) anotherAccount(m movement.Movement) bool {
	return c.Account != "" && m.ConnectionAccount != "" && c.Account != m.ConnectionAccount
}

// Simulators play providers for merchants in test mode.
type Simulators interface {
	// Connect opens the account of a merchant, or of the platform, at a provider's
	// simulator, and stores it. It is false where the provider has none.
	Connect(ctx context.Context, provider tenants.Provider, owner tenants.Owner, id tenants.MerchantID) (tenants.Connection, bool, error)
	// TopUp credits a merchant's balance of test mode.
	TopUp(ctx context.Context, owner movement.Owner) error
	// Tell has notifications of a connection at a simulator come to this gateway.
	Tell(ctx context.Context, c tenants.Connection) error
	// Reached are credentials as a plugin reaches the simulator that they name, and
	// whether they name one.
	Reached(credentials []byte) (reached []byte, simulated bool, err error)
}

// ErrNotConnected is the reason of an error of Connect where there is no connection,
// and not one that can't be used now.
var ErrNotConnected = errors.New("lifecycle: not connected")

// Sealed is an account at a provider that is not opened yet.
type Sealed struct {
	tenants.Connection
	Owner manifest.Owner
}

// SharedBy names who shares answers: those who use a connection as it is now. Other
// credentials may be another account, to which nothing of this one applies.
func (s Sealed) SharedBy() string {
	return string(s.MerchantID) + "@" + strconv.FormatInt(s.Version, 10)
}

// Connected finds the account that a merchant's operations use: its own at the provider,
// or else the platform's, where the provider's operations run on that.
func (l *Lifecycle) Connected(ctx context.Context, op *catalog.Operation, account *tenants.Account, mode string) (Sealed, error) {
	own, ok := account.Connection(tenants.Mode(mode), tenants.Provider(op.Provider))
	switch {
	case ok:
		return Sealed{own, manifest.OwnerMerchant}, nil
	case op.Manifest.Owner == manifest.OwnerPlatform:
		return l.platform(ctx, op, mode)
	}
	if simulated, ok, err := l.simulated(ctx, op, mode, account.ID(), tenants.OwnerMerchant); ok || err != nil {
		return simulated, err
	}
	return Sealed{}, unconnected(op.Provider, mode).Because(ErrNotConnected)
}

func unsimulated(provider string, err error) *fault.Error {
	return fault.Newf(fault.ProviderUnavailable, "The simulator of the provider %s can't be reached at the moment.", provider).Because(err)
}

// ToppedUp tells whether a merchant's balance has become larger because it was too small,
// which is so in test mode alone.
func (l *Lifecycle) ToppedUp(ctx context.Context, owner movement.Owner) bool {
	if l.Simulators == nil || tenants.Mode(owner.Mode) != tenants.Test {
		return false
	}
	err := l.Simulators.TopUp(ctx, owner)
	if err != nil {
		l.Log.WarnContext(ctx, "a balance of test mode is not topped up", "merchant_id", owner.MerchantID, "error", err)
	}
	return err == nil
}

// simulated opens an account at the provider's simulator for who has none in test mode.
func (l *Lifecycle) simulated(ctx context.Context, op *catalog.Operation, mode string, id tenants.MerchantID, owner tenants.Owner) (Sealed, bool, error) {
	if l.Simulators == nil || tenants.Mode(mode) != tenants.Test {
		return Sealed{}, false, nil
	}
	c, ok, err := l.Simulators.Connect(ctx, tenants.Provider(op.Provider), owner, id)
	if err != nil {
		return Sealed{}, false, unsimulated(op.Provider, err)
	}
	return Sealed{c, manifest.Owner(owner)}, ok, nil
}

// unconnected is the error where a merchant has no account of its own at a provider.
func unconnected(provider, mode string) *fault.Error {
	return fault.Newf(fault.NoConnection, "No account of this merchant at the provider %s is connected in %s mode. "+
		"An owner or developer of the merchant can connect one in the console, and so can the gateway's operator.", provider, mode)
}

// Connect opens the account that a merchant's operations use.
func (l *Lifecycle) Connect(ctx context.Context, op *catalog.Operation, account *tenants.Account, mode string) (Connection, error) {
	sealed, err := l.Connected(ctx, op, account, mode)
	if err != nil {
		return Connection{}, err
	}
	c, err := l.Unseal(op, sealed)
	if err != nil || !c.simulated {
		return c, err
	}
	if err := l.Simulators.Tell(ctx, sealed.Connection); err != nil { // nothing is sent yet
		return Connection{}, unsimulated(op.Provider, err)
	}
	return c, nil
}

// Reconnect opens the account that a movement was sent on, as it is now. The operation
// must be its provider's: no other is ever asked about it.
func (l *Lifecycle) Reconnect(ctx context.Context, op *catalog.Operation, m movement.Movement) (Connection, error) {
	if err := servedBy(op, m); err != nil {
		return Connection{}, fault.New(fault.ProviderUnavailable, "The provider is not available at the moment.").Because(err)
	}
	if m.ConnectionOwner == manifest.OwnerPlatform {
		sealed, err := l.platform(ctx, op, m.Owner.Mode)
		if err != nil {
			return Connection{}, err
		}
		return l.Unseal(op, sealed)
	}
	account, err := l.Account(ctx, m)
	if err != nil {
		return Connection{}, err
	}
	own, ok := account.Connection(tenants.Mode(m.Owner.Mode), tenants.Provider(m.Provider))
	if !ok {
		return Connection{}, unconnected(m.Provider, m.Owner.Mode)
	}
	return l.Unseal(op, Sealed{own, manifest.OwnerMerchant})
}

func (l *Lifecycle) platform(ctx context.Context, op *catalog.Operation, mode string) (Sealed, error) {
	account, err := l.Accounts.Account(ctx, tenants.Platform)
	if err != nil {
		return Sealed{}, err
	}
	shared, ok := account.Connection(tenants.Mode(mode), tenants.Provider(op.Provider))
	if !ok {
		if simulated, ok, err := l.simulated(ctx, op, mode, tenants.Platform, tenants.OwnerPlatform); ok || err != nil {
			return simulated, err
		}
		return Sealed{}, fault.Newf(fault.NoConnection, "The platform's account at the provider %s is not connected in %s mode. The gateway's operator can connect it.", op.Provider, mode)
	}
	return Sealed{shared, manifest.OwnerPlatform}, nil
}

// Unseal opens an account for an operation of its provider.
func (l *Lifecycle) Unseal(op *catalog.Operation, s Sealed) (Connection, error) {
	c, err := l.Open(s.Connection)
	if err != nil {
		return Connection{}, err
	}
	c.sealed, c.Owner = s, s.Owner
	c.Account, c.ReportsLate = op.Manifest.AccountIn(c.Credentials), op.Manifest.ReportsLateIn(c.Credentials)
	return c, nil
}

// Open opens an account as it is stored, for whoever only asks about it.
func (l *Lifecycle) Open(c tenants.Connection) (Connection, error) {
	opened, err := unseal(l.Vault, c)
	if err != nil || l.Simulators == nil || c.Mode != tenants.Test {
		return Connection{Connection: opened}, err
	}
	reached, simulated, err := l.Simulators.Reached(opened.Credentials)
	if err != nil {
		return Connection{}, fault.New(fault.ProviderUnavailable, "The provider's simulator can't be reached.").Because(err)
	}
	opened.Credentials = reached
	return Connection{Connection: opened, simulated: simulated}, nil
}

func unseal(vault Vault, c tenants.Connection) (sdk.Connection, error) {
	credentials, err := vault.OpenCredentials(c)
	if err != nil {
		return sdk.Connection{}, fault.New(fault.ProviderUnavailable, "The connection to the provider can't be used.").Because(err)
	}
	return sdk.Connection{MerchantID: string(c.MerchantID), Mode: string(c.Mode), Version: c.Version, Credentials: credentials}, nil
}

// Plain is what a kind has that adds nothing: the amount of the request, no question
// before the reservation, and a reservation that takes the reference alone.
type Plain struct{}

// Draft takes the amount of the request.
func (Plain) Draft(_ context.Context, r Request, draft *movement.Movement) (err error) {
	if draft.Amount, err = r.Operation.AmountOf(r.Body); err != nil {
		return err
	}
	return Named(r, draft)
}

// Prepare asks nothing.
func (Plain) Prepare(context.Context, Request, *movement.Movement, Connection) (string, error) {
	return "", nil
}

// Reserve takes the reference and nothing else.
func (Plain) Reserve(ctx context.Context, _ *catalog.Operation, draft movement.Movement, take Reserving) (movement.Movement, bool, error) {
	return take(ctx, draft)
}

// Kept is the request as it is.
func (Plain) Kept(_ *catalog.Operation, draft, _ movement.Movement) json.RawMessage {
	return draft.Request
}

// Named completes a draft that has no reference with a random one, and keeps its
// request.
func Named(r Request, draft *movement.Movement) (err error) {
	if draft.Reference == "" {
		draft.Reference = uuid.NewString()
		r.Body[r.Operation.ReferenceField()] = draft.Reference
	}
	draft.Request, err = r.Operation.Canonical(r.Body)
	return err
}
