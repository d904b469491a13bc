package console

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/approval"
	"github.com/seed-f006e74d/gerbang/gateway/audit"
	"github.com/seed-f006e74d/gerbang/gateway/callback"
	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/kind"
	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/list"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/override"
	"github.com/seed-f006e74d/gerbang/gateway/reconcile"
	"github.com/seed-f006e74d/gerbang/gateway/rollout"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Merchants keeps merchants' records and their audit. Reads are the store's own,
// not a cache's: an operator sees the present record. Each change is committed
// with its audit entry; NoteAudit writes the entry of what changes no record,
// before it is done.
type Merchants interface {
	AccountByID(ctx context.Context, id tenants.MerchantID) (*tenants.Account, error)
	Merchants(ctx context.Context, after tenants.MerchantID, most int) ([]tenants.Merchant, error)
	CreateMerchant(ctx context.Context, audit store.Audit, m tenants.Merchant, keys []tenants.Key, secrets []tenants.CallbackSecret) error
	SetStatus(ctx context.Context, audit store.Audit, id tenants.MerchantID, status tenants.Status) error
	SetTier(ctx context.Context, audit store.Audit, id tenants.MerchantID, tier tenants.Tier) error
	SetLabels(ctx context.Context, audit store.Audit, id tenants.MerchantID, change func(m *tenants.Merchant) error) error
	SetLimits(ctx context.Context, audit store.Audit, id tenants.MerchantID, limits []tenants.Limit) error
	RemoveLimit(ctx context.Context, audit store.Audit, id tenants.MerchantID, name string) error
	AuditOf(ctx context.Context, r store.AuditRange) ([]store.Audit, error)
	AuditLinks(ctx context.Context, span store.AuditSpan) ([]store.AuditLink, error)
	NoteAudit(ctx context.Context, audit store.Audit, id tenants.MerchantID) error
}

// Secrets keeps keys, connections and callback secrets. Each change is committed
// with its audit entry. A connection that exists keeps its notification route; the
// one returned is what is stored. SetCallbackSecret is refused (store.ErrConflict)
// where the account has another version than the one given, and Reseal stores
// nothing that somebody else has replaced meanwhile.
type Secrets interface {
	AddKey(ctx context.Context, audit store.Audit, key tenants.Key) error
	EndKey(ctx context.Context, audit store.Audit, key tenants.Key) error
	RenameKey(ctx context.Context, audit store.Audit, key tenants.Key) error
	ReplaceKey(ctx context.Context, audit store.Audit, next, retiring tenants.Key) error
	PutConnection(ctx context.Context, audit store.Audit, c tenants.Connection) (tenants.Connection, error)
	SetCallbackSecret(ctx context.Context, audit store.Audit, secret tenants.CallbackSecret, version int64) error
	SealedAfter(ctx context.Context, after tenants.MerchantID, most int) ([]store.Sealed, error)
	Reseal(ctx context.Context, audit store.Audit, was, becomes store.Sealed) (int64, error)
}

// Pauses keeps what operators have paused. Each change is committed with its audit
// entry. EndPause is store.ErrNotFound where nothing is paused, RemoveConnection where
// the connection is not.
type Pauses interface {
	SetPause(ctx context.Context, audit store.Audit, p tenants.Pause) error
	EndPause(ctx context.Context, audit store.Audit, p tenants.Pause) error
	Pauses(ctx context.Context, most int) ([]tenants.Pause, error)
	RemoveConnection(ctx context.Context, audit store.Audit, c tenants.Connection, leaveOpen bool) error
}

// Movements reads movements and what is kept of them, and finds them by the names
// that others have given them: merchants over all merchants; requests, decisions
// and providers in a span of time. The newest come first.
type Movements interface {
	MovementByID(ctx context.Context, id movement.ID) (movement.Movement, error)
	MovementByKey(ctx context.Context, key movement.Key) (movement.Movement, error)
	Movements(ctx context.Context, l movement.Listing) ([]movement.Movement, error)
	Figures(ctx context.Context, l movement.Listing, spans []time.Time) (movement.Figures, error)
	MovementsByReference(ctx context.Context, reference string, most int) ([]movement.Movement, error)
	MovementsByOthersID(ctx context.Context, id string, since, before time.Time, most int) ([]movement.Movement, error)
	History(ctx context.Context, id movement.ID) ([]movement.HistoryEntry, error)
	NotesOf(ctx context.Context, id movement.ID) ([]movement.Note, error)
	OverridesOf(ctx context.Context, id movement.ID) ([]movement.Override, error)
	WaitingOverrides(ctx context.Context, most int) ([]store.WaitingOverride, error)
	PostingsOf(ctx context.Context, owner movement.Owner, id movement.ID) ([]ledger.Transaction, error)
	CallbacksOfMovement(ctx context.Context, owner movement.Owner, id movement.ID, history []movement.HistoryEntry) ([]movement.Callback, error)
}

// Exceptions is the list of exceptions. ExceptionsOf reads the resolved ones, too;
// CountExceptions counts the open ones by reason.
type Exceptions interface {
	ExceptionsOf(ctx context.Context, owner movement.Owner, subject string) ([]movement.Exception, error)
	OpenExceptions(ctx context.Context, most int) ([]movement.Exception, error)
	ResolveException(ctx context.Context, now time.Time, e movement.Exception, operator, resolution string) error
	CountExceptions(ctx context.Context) (map[string]int64, error)
}

// Callbacks reads callbacks with their attempts, adds them and makes them due; the
// dispatcher then finds them by itself.
type Callbacks interface {
	Callback(ctx context.Context, key movement.CallbackKey) (movement.Callback, error)
	Callbacks(ctx context.Context, r movement.CallbackRange) ([]movement.Callback, error)
	CallbackFigures(ctx context.Context, owner movement.Owner, spans []time.Time, most int) (movement.Figures, error)
	Attempts(ctx context.Context, key movement.CallbackKey) ([]movement.CallbackAttempt, error)
	AddCallback(ctx context.Context, now time.Time, owner movement.Owner, e movement.CallbackEvent) error
	Resend(ctx context.Context, now time.Time, key movement.CallbackKey) (bool, error)
	PostponeCallback(ctx context.Context, key movement.CallbackKey, until time.Time) error
}

// Database tells of the connections, and what was last found out by asking: all but Backlog
// ask no database. Problem is that of the last probe, "" for none.
type Database interface {
	Pools() []store.Pool
	Outcomes() map[string]int64
	SchemaVersion() int64
	Problem() string
	Backlog(ctx context.Context, now time.Time) (store.Backlog, error)
	Oldest(ctx context.Context, now time.Time) (store.Oldest, error)
}

// Ledger credits and debits balances by hand, reads and checks them. Each change is
// committed with its audit entry; its errors are store.ErrAdjusted,
// store.ErrSameOperator, movement.ErrInsufficient and store.ErrNotFound.
type Ledger interface {
	Adjust(ctx context.Context, audit store.Audit, a store.Adjustment, limit money.Amount) (store.Adjustment, error)
	DecideAdjustment(ctx context.Context, audit store.Audit, owner movement.Owner, reference string, approve bool) (store.Adjustment, error)
	Adjustments(ctx context.Context, state store.AdjustmentState, most int) ([]store.Adjustment, error)
	Balance(ctx context.Context, owner movement.Owner) (ledger.Balance, error)
	BalanceAt(ctx context.Context, owner movement.Owner, at time.Time) (ledger.Balance, error)
	PlatformAt(ctx context.Context, mode string, at time.Time) ([]store.PlatformBalance, error)
	AccountStatement(ctx context.Context, owner movement.Owner, from, to time.Time, after *store.Entry, most int) ([]store.Entry, error)
	CheckLedger(ctx context.Context, scope store.LedgerScope) (store.LedgerReport, error)
}

// Statements reads which merchant an account belongs to, nobody's
// (store.ErrNotFound) until its first collection, and the statement lines that wait
// for an operator, the newest first. WaitingClaims are assignments and refunds that wait for another one.
type Statements interface {
	Statement(ctx context.Context, account movement.AccountID) (movement.Statement, error)
	ListLines(ctx context.Context, r movement.LineRange) ([]movement.ListedLine, error)
	WaitingClaims(ctx context.Context, most int) ([]movement.Claim, error)
}

// Recovery keeps whether a restore waits to be opened; its end is committed with its
// audit entry, and is store.ErrNotFound where none has begun.
type Recovery interface {
	LastRecovery(ctx context.Context) (*store.Recovery, error)
	EndRecovery(ctx context.Context, audit store.Audit) error
}

// Audit verifies the chain over all audit entries.
type Audit interface {
	Verify(ctx context.Context, exported *audit.Anchor) (store.AuditReport, error)
}

// Policies reads policy versions, what is in force, and which replicas run. A version or
// an activation that is not there is store.ErrNotFound.
type Policies interface {
	PolicyHead(ctx context.Context) (store.PolicyHead, error)
	PolicyVersion(ctx context.Context, version policy.Version) (store.PolicyVersion, error)
	PolicyVersions(ctx context.Context) ([]store.PolicyVersion, error)
	Activation(ctx context.Context, id uuid.UUID) (store.Activation, error)
	WaitingActivations(ctx context.Context, most int) ([]store.Activation, error)
	LiveReplicas(ctx context.Context, now time.Time) ([]store.Replica, error)
	ReplicasSeen(ctx context.Context, since time.Time) ([]store.Replica, error)
}

// Following is how this replica follows the policy version in force: whether money may
// be taken on what it knows, why it does not run it, if so, when it last read which one
// it is, and how many replicas there are.
type Following interface {
	Fresh(now time.Time) bool
	Lag() *rollout.Lag
	Age(now time.Time) time.Duration
	Members() int
}

// Clock is this replica's, compared with the database's. Its fault is shown to
// operators; there is none while nothing is known.
type Clock interface {
	Skew() (ahead time.Duration, known bool)
	Fault() error
}

// Directory learns of changes here at once; other replicas learn by themselves.
type Directory interface {
	Invalidate(id tenants.MerchantID)
	Fresh(now time.Time) bool
}

// Vault seals what must not be readable in the database, knows the keys in force,
// seals with the primary key what another has sealed, and makes and verifies MACs.
type Vault interface {
	SealCredentials(m tenants.MerchantID, mode tenants.Mode, p tenants.Provider, credentials []byte) ([]byte, error)
	OpenCredentials(c tenants.Connection) ([]byte, error)
	OpenRequests(id tenants.MerchantID, mode tenants.Mode, sealed []byte) ([]byte, error)
	SealCallbackSecret(m tenants.MerchantID, mode tenants.Mode, s tenants.Secret) (tenants.CallbackSecret, error)
	Keys() []tenants.SealingKey
	ResealConnection(c tenants.Connection) (tenants.Connection, bool, error)
	ResealCallbackSecret(s tenants.CallbackSecret) (tenants.CallbackSecret, bool, error)
	ResealNameKey(sealed []byte) ([]byte, bool, error)
	ResealPolicy(mac []byte) ([]byte, bool, error)
	SealPolicy(digest []byte) ([]byte, error)
	VerifyPolicy(mac, digest []byte) error
	ResealTOTP(person string, sealed []byte) ([]byte, bool, error)
}

// Plugins are the providers' processes. Verify asks a provider whether it takes an
// account's credentials before they are stored: Done says yes, Refused or blame for
// the account no, anything else that it could not be asked. Only providers whose
// manifest says that they verify are asked.
type Plugins interface {
	Status() []host.Status
	Manifests() []*manifest.Manifest
	Verify(ctx context.Context, provider string, c sdk.Connection, timeout time.Duration) sdk.Result
	Restart(ctx context.Context, provider string) error
}

// Approvals keeps which plugins operators have approved, and which approval is in force.
// What it refuses for an operator to mend is an *approval.Refusal.
type Approvals interface {
	Approve(ctx context.Context, operator string, w approval.Wanted) (store.PluginApproval, error)
	Confirm(ctx context.Context, operator string, id uuid.UUID) (store.PluginApproval, error)
	Find(ctx context.Context, provider, sha256 string) (store.PluginApproval, error)
	Activate(ctx context.Context, operator string, approved store.PluginApproval, replica uuid.UUID) (store.PluginHead, error)
	Rollback(ctx context.Context, operator, provider string) (store.PluginHead, error)
	Remove(ctx context.Context, operator, provider string, leaveOpen bool) (store.PluginHead, error)
	Known(ctx context.Context) (map[string]approval.Known, error)
	List(ctx context.Context) ([]store.PluginApproval, error)
	Signed(approved store.PluginApproval) bool
	Waits(approved store.PluginApproval) bool
	Dir() string
}

// Dependencies is everything that the console reads and changes.
type Dependencies struct {
	Merchants  Merchants
	Secrets    Secrets
	Operators  OperatorTokens
	People     People
	Pauses     Pauses
	Lists      Lists
	Listing    Listing
	ListKey    list.Key
	Movements  Movements
	Exceptions Exceptions
	Callbacks  Callbacks
	// Challenge finds out whether a receiver of callbacks verifies signatures.
	Challenge  func(ctx context.Context, owner movement.Owner, receiver string, body []byte) (callback.Challenge, error)
	Requests   Requests
	Ledger     Ledger
	Audit      Audit
	Statements Statements
	Database   Database

	// Override takes an operator's decision on a movement whose outcome nobody knows,
	// with an audit entry. Assign gives a statement line to a collection, Refund a payment
	// back. The errors of all are *fault.Error.
	Override func(ctx context.Context, d override.Request) (override.Result, error)
	Assign   func(ctx context.Context, a reconcile.Assignment) (reconcile.Assigned, error)
	Refund   func(ctx context.Context, o kind.RefundOrder) (kind.RefundOrdered, error)
	// Simulators are nil where test mode has none.
	Simulators Simulators

	Usage  func(ctx context.Context, owner movement.Owner, period string) ([]store.Used, error) // of quotas
	Probe  func(ctx context.Context) (problem string, cause error)                              // asks the database, and writes to it
	Policy func() *policy.Set                                                                   // that this replica runs

	Policies  Policies
	Publisher *rollout.Publisher // takes versions and activations
	Following Following
	Replica   uuid.UUID // this process

	// Recovery is a restore that nobody has opened the gateway after, and Recovering what
	// this replica knows of it: why it moves no money, nil where it does. Said is what
	// providers' own lists say of a merchant's accounts since a moment.
	Recovery   Recovery
	Recovering func() error
	Said       func(ctx context.Context, account *tenants.Account, since time.Time) ([]reconcile.Said, error)

	// Decisions explains decisions, and Decided is what was decided on a merchant's
	// requests in the last hour: since a minute.
	Decisions Decisions
	Decided   func(ctx context.Context, id tenants.MerchantID) (sums []decision.Sum, since time.Time, err error)

	// Traffic is what was decided in the last minutes on all replicas. It is shared: it is
	// not to be changed.
	Traffic func(ctx context.Context) (*decision.Window, error)

	// Stopping tells whether the gateway has been told to stop.
	Stopping func() bool

	Approvals Approvals

	Finder    Finder
	Clock     Clock
	Directory Directory
	Vault     Vault
	Plugins   Plugins
	Catalog   *catalog.Catalog // what is offered now
	Metrics   *Metrics
	Now       func() time.Time
	Log       *slog.Logger
}
