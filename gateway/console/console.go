package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/limit"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Merchants reads and makes merchants. Both reads are the store's own, not a
// cache's: an operator sees what is.
type Merchants interface {
	AccountByID(ctx context.Context, id tenants.MerchantID) (*tenants.Account, error)
	Merchants(ctx context.Context, after tenants.MerchantID, most int) ([]tenants.Merchant, error)
	CreateMerchant(ctx context.Context, audit store.Audit, m tenants.Merchant, keys []tenants.Key, secrets []tenants.CallbackSecret) error
	AuditOf(ctx context.Context, id tenants.MerchantID, most int) ([]store.Audit, error)
}

// Standing changes what a merchant may do. Each change is committed with its
// audit entry.
type Standing interface {
	SetStatus(ctx context.Context, audit store.Audit, id tenants.MerchantID, status tenants.Status) error
	SetTier(ctx context.Context, audit store.Audit, id tenants.MerchantID, tier tenants.Tier) error
}

// Keys changes a merchant's keys. Each change is committed with its audit entry.
type Keys interface {
	AddKey(ctx context.Context, audit store.Audit, key tenants.Key) error
	EndKey(ctx context.Context, audit store.Audit, key tenants.Key) error
	ReplaceKey(ctx context.Context, audit store.Audit, next, retiring tenants.Key) error
}

// Connections keeps accounts at providers. A connection that exists keeps its
// notification route; the one returned is what is stored.
type Connections interface {
	PutConnection(ctx context.Context, audit store.Audit, c tenants.Connection) (tenants.Connection, error)
}

// Verifier asks a provider whether it takes an account's credentials before
// they are stored: Done says yes, Refused or blame for the account no, anything
// else that it could not be asked. Only providers whose manifest says that they
// verify are asked.
type Verifier interface {
	Verify(ctx context.Context, provider string, c sdk.Connection, timeout time.Duration) sdk.Result
}

// AttentionList is what waits for an operator. ExceptionsOf reads what was settled,
// too; CountExceptions is how many entries are open, by reason.
type AttentionList interface {
	ExceptionsOf(ctx context.Context, owner movement.Owner, subject string) ([]movement.Exception, error)
	OpenExceptions(ctx context.Context, most int) ([]movement.Exception, error)
	ResolveException(ctx context.Context, now time.Time, a movement.Exception, operator, resolution string) error
	CountExceptions(ctx context.Context) (map[string]int64, error)
}

// Movements reads movements with their stories.
type Movements interface {
	MovementByID(ctx context.Context, id movement.ID) (movement.Movement, error)
	History(ctx context.Context, id movement.ID) ([]movement.HistoryEntry, error)
}

// Callbacks reads callbacks with their tries.
type Callbacks interface {
	Callback(ctx context.Context, key movement.CallbackKey) (movement.Callback, error)
	Callbacks(ctx context.Context, r movement.CallbackRange) ([]movement.Callback, error)
	Attempts(ctx context.Context, key movement.CallbackKey) ([]movement.CallbackAttempt, error)
}

// Outbox makes callbacks due, which the courier then finds by itself. The audit
// of a command is noted before.
type Outbox interface {
	AddCallback(ctx context.Context, now time.Time, owner movement.Owner, t movement.CallbackEvent) error
	Resend(ctx context.Context, now time.Time, key movement.CallbackKey) (bool, error)
	PostponeCallback(ctx context.Context, key movement.CallbackKey, until time.Time) error
	NoteAudit(ctx context.Context, audit store.Audit, id tenants.MerchantID) error
}

// CallbackSecrets changes how callbacks of a merchant are signed and where they
// go, unless the account has another version than the one given.
type CallbackSecrets interface {
	SetCallbackSecret(ctx context.Context, audit store.Audit, secret tenants.CallbackSecret, version int64) error
}

// Database answers, or it does not.
type Database interface {
	Ping(ctx context.Context) error
}

// Clock is this replica's, compared with the database's. Its fault is what operators
// are told; there is none while nothing is known.
type Clock interface {
	Skew() (ahead time.Duration, known bool)
	Fault() error
}

// Directory is told of changes, so that they hold here at once; other replicas
// learn by themselves.
type Directory interface {
	Invalidate(id tenants.MerchantID)
	Fresh(now time.Time) bool
}

// Vault seals what must not be readable in the database.
type Vault interface {
	SealCredentials(m tenants.MerchantID, mode tenants.Mode, p tenants.Provider, credentials []byte) ([]byte, error)
	OpenCredentials(c tenants.Connection) ([]byte, error)
	SealCallbackSecret(m tenants.MerchantID, mode tenants.Mode, s tenants.Secret) (tenants.CallbackSecret, error)
}

// Plugins are the providers' processes.
type Plugins interface {
	Status() []host.Status
	Manifests() []*manifest.Manifest
}

// Policy holds the rules in force, which know the tiers.
type Policy interface {
	Set() *policy.Set
}

// Operator is a person or program that may use the admin API. The token itself
// is not kept.
type Operator struct {
	Name      string
	TokenHash [32]byte // SHA-256
}

// Config is who may come in, and how the gateway is reached.
type Config struct {
	Operators []Operator
	Allow     []netip.Prefix // loopback alone when empty
	Svc       string         // in header names, Svc when empty
	PublicURL string         // of the merchants' listener, where notifications arrive
	// AllowHTTPCallbacks lets callback URLs be http and local. It is for
	// development alone.
	AllowHTTPCallbacks bool
	// ApprovalAbove is the amount above which a credit or debit waits for a second
	// operator, DefaultApprovalAbove when zero.
	ApprovalAbove money.Amount
	// Location is the zone of merchants that name no other, Jakarta's when nil.
	Location *time.Location
}

// Dependencies are the rooms that the console looks into.
type Dependencies struct {
	Merchants   Merchants
	Standing    Standing
	Keys        Keys
	Connections Connections
	Verifier    Verifier
	Sealed      SealedValues
	Keyring     Keyring
	Attention   AttentionList
	Movements   Movements
	Around      Around
	Finder      Finder
	Decider     Decider
	Database    Database
	Clock       Clock

	Callbacks       Callbacks
	Outbox          Outbox
	CallbackSecrets CallbackSecrets

	Adjustments Adjustments
	Books       Books
	Proof       Proof
	Usage       Usage
	Limits      Limits
	Settlements Settlements
	Assigner    Assigner

	Directory Directory
	Vault     Vault
	Plugins   Plugins
	Policy    Policy
	Metrics   *Metrics
	Now       func() time.Time
	Log       *slog.Logger
}

// Console answers operators. Any number of goroutines may use it.
type Console struct {
	config   Config
	deps     Dependencies
	log      *slog.Logger
	failures *limit.Failures
	mux      *http.ServeMux
	schemas  map[tenants.Provider]*catalog.ConnectionSchema
	owners   map[tenants.Provider]tenants.Owner // whose account a provider's operations use
	verifies map[tenants.Provider]bool          // who can be asked about credentials
	version  string                             // the name of the header that tells the contract's version
}

// New makes a console. An operator without a name or a token is an error, and
// so are two of one name.
func New(config Config, deps Dependencies) (*Console, error) {
	if len(config.Allow) == 0 {
		config.Allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	}
	names := map[string]bool{}
	for _, o := range config.Operators {
		if o.Name == "" || o.TokenHash == [32]byte{} || names[o.Name] {
			return nil, fmt.Errorf("console: operator %q: a name of its own and a token must be given", o.Name)
		}
		names[o.Name] = true
	}
	if config.Svc == "" {
		config.Svc = "Svc"
	}
	if config.ApprovalAbove == 0 {
		config.ApprovalAbove = DefaultApprovalAbove
	}
	c := &Console{
		config: config, deps: deps, log: deps.Log, failures: limit.NewFailures(), mux: http.NewServeMux(),
		schemas: map[tenants.Provider]*catalog.ConnectionSchema{}, owners: map[tenants.Provider]tenants.Owner{},
		verifies: map[tenants.Provider]bool{},
		version:  "X-" + config.Svc + "-Version",
	}
	for _, m := range deps.Plugins.Manifests() {
		schema, err := catalog.NewConnectionSchema(m)
		if err != nil {
			return nil, fmt.Errorf("console: %w", err)
		}
		c.schemas[tenants.Provider(m.Name)] = schema
		c.verifies[tenants.Provider(m.Name)] = m.Verifies
		c.owners[tenants.Provider(m.Name)] = cmp.Or(tenants.Owner(m.Owner), tenants.OwnerMerchant)
	}
	if err := deps.Metrics.watch(deps.Plugins, &attentionCollector{list: deps.Attention, now: deps.Now, log: deps.Log}, deps.Clock); err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	c.routes()
	return c, nil
}

func (c *Console) routes() {
	c.mux.HandleFunc("GET /healthz", c.alive)
	c.mux.HandleFunc("GET /readyz", c.ready)
	c.mux.Handle("GET /metrics", c.deps.Metrics.handler)
	for pattern, handle := range map[string]func(*call) (any, error){
		"POST /admin/merchants":                                  c.createMerchant,
		"GET /admin/merchants":                                   c.listMerchants,
		"GET /admin/merchants/{merchant}":                        c.showMerchant,
		"POST /admin/merchants/{merchant}/suspend":               c.suspend,
		"POST /admin/merchants/{merchant}/resume":                c.resume,
		"POST /admin/merchants/{merchant}/tier":                  c.setTier,
		"POST /admin/merchants/{merchant}/keys":                  c.createKey,
		"POST /admin/merchants/{merchant}/keys/{key}/rotate":     c.rotateKey,
		"POST /admin/merchants/{merchant}/keys/{key}/revoke":     c.revokeKey,
		"PUT /admin/merchants/{merchant}/connections/{provider}": c.setConnection,
		"GET /admin/merchants/{merchant}/audit":                  c.listAudit,
		"GET /admin/merchants/{merchant}/callbacks":              c.listCallbacks,
		"GET /admin/merchants/{merchant}/callbacks/{event}":      c.showCallback,
		"POST /admin/merchants/{merchant}/callbacks/resend":      c.resendCallbacks,
		"POST /admin/merchants/{merchant}/callbacks/test":        c.testCallback,
		"PUT /admin/merchants/{merchant}/callbacks/url":          c.setCallbackURL,
		"POST /admin/merchants/{merchant}/callbacks/secret":      c.changeCallbackSecret,
		"POST /admin/merchants/{merchant}/credit":                c.credit,
		"POST /admin/merchants/{merchant}/debit":                 c.debit,
		"GET /admin/merchants/{merchant}/balance":                c.showBalance,
		"GET /admin/merchants/{merchant}/statement":              c.listStatement,
		"GET /admin/merchants/{merchant}/quotas":                 c.listQuotas,
		"GET /admin/merchants/{merchant}/limits":                 c.listLimits,
		"POST /admin/merchants/{merchant}/limits":                c.setLimits,
		"POST /admin/merchants/{merchant}/limits/{limit}/remove": c.removeLimit,
		"GET /admin/merchants/{merchant}/settlements":            c.listSettlements,
		"POST /admin/movements/{movement}/settlement":            c.assignSettlement,
		"GET /admin/ledger/waiting":                              c.listWaiting,
		"POST /admin/ledger/approve":                             c.approve,
		"POST /admin/ledger/reject":                              c.reject,
		"GET /admin/ledger/check":                                c.checkLedger,
		"GET /admin/attention":                                   c.listAttention,
		"POST /admin/attention/resolve":                          c.resolveAttention,
		"GET /admin/keyset":                                      c.showKeyset,
		"POST /admin/keyset/reseal":                              c.reseal,
		"GET /admin/plugins":                                     c.listPlugins,
		"GET /admin/movements/{movement}":                        c.showMovement,
		"POST /admin/movements/{movement}/settle":                c.settleMovement,
		"GET /admin/find":                                        c.find,
	} {
		c.mux.HandleFunc(pattern, c.admin(handle))
	}
	c.mux.HandleFunc("/", c.nothingHere)
}

// requestID is the header that every answer carries.
const requestID = "X-Request-Id"

// ServeHTTP answers one request.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := uuid.NewString()
	w.Header().Set(requestID, id)
	w.Header().Set(c.version, catalog.APIVersion)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	address := peer(r)
	if !slices.ContainsFunc(c.config.Allow, func(p netip.Prefix) bool { return p.Contains(address) }) {
		c.fail(w, r, id, fault.New(fault.ScopeMissing, "This address may not use the console."))
		return
	}
	if r.URL.Path == "/admin" || strings.HasPrefix(r.URL.Path, "/admin/") {
		operator, err := c.authenticate(r, address)
		if err != nil {
			c.fail(w, r, id, err)
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), operatorKey{}, operator))
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	c.mux.ServeHTTP(w, r)
}

// operatorKey is the context's place for the operator's name.
type operatorKey struct{}

// admin makes a handler of one that answers with data.
func (c *Console) admin(handle func(*call) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		operator, _ := r.Context().Value(operatorKey{}).(string)
		x := &call{request: r, id: w.Header().Get(requestID), operator: operator, now: c.deps.Now()}
		if x.merchant() == tenants.Platform && !ofPlatform[r.Pattern] {
			c.fail(w, r, x.id, platformRefused())
			return
		}
		data, err := handle(x)
		if err != nil {
			c.fail(w, r, x.id, err)
			return
		}
		write(w, http.StatusOK, success{Success: true, Data: data})
	}
}

// nothingHere answers what has no route, or not with this method.
func (c *Console) nothingHere(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := c.mux.Handler(other); pattern != "/" {
			allowed = append(allowed, method)
		}
	}
	id := w.Header().Get(requestID)
	if len(allowed) == 0 {
		c.fail(w, r, id, fault.New(fault.NotFound, "There is no such path."))
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	c.fail(w, r, id, fault.New(fault.MethodNotAllowed, "This path does not take "+r.Method+"."))
}

// notFound makes the store's and the tenants' word for a missing row an answer.
func notFound(err error, what string) error {
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, tenants.ErrNotFound) {
		return fault.New(fault.NotFound, "There is no such "+what+".")
	}
	return err
}
