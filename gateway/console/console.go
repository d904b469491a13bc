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
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/jsonbody"
	"github.com/seed-f006e74d/gerbang/gateway/limit"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Operator is a person or program that may use the admin API. The token itself
// is not kept.
type Operator struct {
	Name      string
	TokenHash [32]byte // SHA-256
	Role      Role
	// Inputs lets the operator read what refused requests asked for, and what rules did
	// with it.
	Inputs bool
}

// Access is who may come in, and what one operator may do alone.
type Access struct {
	Operators []Operator
	Allow     []netip.Prefix // loopback alone when empty
	// Trusted are the proxies whose word on where a request comes from is believed in the
	// audit. Who may come in, and who guesses tokens, is judged by the connection.
	Trusted []netip.Prefix
	// ApprovalAbove is the sum above which operators' claims on money wait for a second
	// operator, DefaultApprovalAbove when zero.
	ApprovalAbove money.Amount
}

// Config is who may come in at first, and how the gateway is reached.
type Config struct {
	Access
	Svc       string // in header names, Svc when empty
	PublicURL string // of the merchants' listener, where notifications arrive
	// AllowHTTPCallbacks lets callback URLs be http and local. It is for
	// development alone.
	AllowHTTPCallbacks bool
	// Location is the zone of the hours that policies see, and of merchants that name no other; Jakarta's when nil.
	Location *time.Location
}

// Console answers operators. Any number of goroutines may use it.
type Console struct {
	config   Config
	access   atomic.Pointer[Access]
	deps     Dependencies
	log      *slog.Logger
	failures *limit.Failures
	mux      *http.ServeMux
	acts     map[string]adminapi.Act // by route
	offered  atomic.Pointer[offered]
	pages    http.Handler
	version  string     // name of the header of the contract's version
	trying   sync.Mutex // held while a policy is tried on the past
	judging  sync.Mutex // held while a policy is compiled for a push or one case
}

// offered is what the console knows of the providers.
type offered struct {
	schemas  map[tenants.Provider]*catalog.ConnectionSchema
	owners   map[tenants.Provider]tenants.Owner // whose account a provider's operations use
	verifies map[tenants.Provider]bool          // who can be asked about credentials
}

// New makes a console. An operator without a name or a token is an error, and
// so are two of one name.
func New(config Config, deps Dependencies) (*Console, error) {
	if config.Svc == "" {
		config.Svc = "Svc"
	}
	c := &Console{
		config: config, deps: deps, log: deps.Log, failures: limit.NewFailures(), mux: http.NewServeMux(), acts: map[string]adminapi.Act{},
		version: "X-" + config.Svc + "-Version",
	}
	if err := c.Admit(config.Access); err != nil {
		return nil, err
	}
	offer, err := c.Prepare(deps.Plugins.Manifests())
	if err != nil {
		return nil, err
	}
	offer()
	if err := c.watch(); err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	c.routes()
	return c, nil
}

// watch adds to the metrics what is asked at each scrape.
func (c *Console) watch() error {
	policies := &policyCollector{following: c.deps.Following, version: func() string { return string(c.deps.Policy().Version()) }, now: c.deps.Now}
	for _, of := range []prometheus.Collector{pluginCollector{c.deps.Plugins}, clockCollector{c.deps.Clock}, stateCollector{c}, c.readings(), policies} {
		if err := c.deps.Metrics.registry.Register(of); err != nil {
			return err
		}
	}
	return nil
}

// Prepare makes what the console knows of the providers from the moment on in which use
// is called.
func (c *Console) Prepare(manifests []*manifest.Manifest) (use func(), err error) {
	o := &offered{
		schemas: map[tenants.Provider]*catalog.ConnectionSchema{}, owners: map[tenants.Provider]tenants.Owner{}, verifies: map[tenants.Provider]bool{},
	}
	for _, m := range manifests {
		schema, err := catalog.NewConnectionSchema(m)
		if err != nil {
			return nil, fmt.Errorf("console: %w", err)
		}
		o.schemas[tenants.Provider(m.Name)] = schema
		o.verifies[tenants.Provider(m.Name)] = m.Verifies
		o.owners[tenants.Provider(m.Name)] = cmp.Or(tenants.Owner(m.Owner), tenants.OwnerMerchant)
	}
	return func() { c.offered.Store(o) }, nil
}

// Admit changes who may come in, from the next request on. On an error nothing changes.
func (c *Console) Admit(a Access) error {
	if len(a.Allow) == 0 {
		a.Allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	}
	names := map[string]bool{}
	for _, o := range a.Operators {
		if o.Name == "" || o.TokenHash == [32]byte{} || names[o.Name] {
			return fmt.Errorf("console: operator %q: a name of its own and a token must be given", o.Name)
		}
		if _, err := ParseRole(string(o.Role)); err != nil {
			return fmt.Errorf("console: operator %q: role: %w", o.Name, err)
		}
		names[o.Name] = true
	}
	a.ApprovalAbove = cmp.Or(a.ApprovalAbove, DefaultApprovalAbove)
	c.access.Store(&a)
	return nil
}

func (c *Console) routes() {
	c.mux.HandleFunc("GET /healthz", c.alive)
	c.mux.HandleFunc("GET /readyz", c.ready)
	c.mux.Handle("GET /metrics", c.deps.Metrics.handler)
	serve(c, adminapi.ListLists, c.listLists)
	serve(c, adminapi.ShowList, c.showList)
	serve(c, adminapi.FindInList, c.findInList)
	serve(c, adminapi.AddToList, c.addToList)
	serve(c, adminapi.RemoveFromList, c.removeFromList)
	serve(c, adminapi.ListPauses, c.listPauses)
	serve(c, adminapi.SetPause, c.setPause)
	serve(c, adminapi.EndPause, c.endPause)
	serve(c, adminapi.ListOperatorTokens, c.listOperatorTokens)
	serve(c, adminapi.CreateOperatorToken, c.createOperatorToken)
	serve(c, adminapi.RotateOperatorToken, c.rotateOperatorToken)
	serve(c, adminapi.RevokeOperatorTokens, c.revokeOperatorTokens)
	serve(c, adminapi.ListStatementLines, c.listStatementLines)
	serve(c, adminapi.AssignStatementLine, c.assignStatementLine)
	serve(c, adminapi.RefundPayment, c.refundPayment)
	serve(c, adminapi.PlayMovement, c.playMovement)
	serve(c, adminapi.ShowRecovery, c.showRecovery)
	serve(c, adminapi.OpenRecovery, c.openRecovery)
	serve(c, adminapi.CreateMerchant, c.createMerchant)
	serve(c, adminapi.ListMerchants, c.listMerchants)
	serve(c, adminapi.ShowMerchant, c.showMerchant)
	serve(c, adminapi.SuspendMerchant, c.suspend)
	serve(c, adminapi.ResumeMerchant, c.resume)
	serve(c, adminapi.SetTier, c.setTier)
	serve(c, adminapi.SetLabels, c.setLabels)
	serve(c, adminapi.CreateKey, c.createKey)
	serve(c, adminapi.RotateKey, c.rotateKey)
	serve(c, adminapi.RenameKey, c.renameKey)
	serve(c, adminapi.RevokeKey, c.revokeKey)
	serve(c, adminapi.InvitePerson, c.invitePerson)
	serve(c, adminapi.ListInvitations, c.listInvitations)
	serve(c, adminapi.RevokeInvitation, c.revokeInvitation)
	serve(c, adminapi.SetConnection, c.setConnection)
	serve(c, adminapi.ListAudit, c.listAudit)
	serve(c, adminapi.ListAudits, c.listAudits)
	serve(c, adminapi.ExportAudit, c.exportAudit)
	serve(c, adminapi.VerifyAudit, c.verifyAudit)
	serve(c, adminapi.ListCallbacks, c.listCallbacks)
	serve(c, adminapi.ShowCallback, c.showCallback)
	serve(c, adminapi.ResendCallbacks, c.resendCallbacks)
	serve(c, adminapi.TestCallback, c.testCallback)
	serve(c, adminapi.VerifyCallback, c.verifyCallback)
	serve(c, adminapi.SetCallbackURL, c.setCallbackURL)
	serve(c, adminapi.ChangeCallbackSecret, c.changeCallbackSecret)
	serve(c, adminapi.Credit, c.credit)
	serve(c, adminapi.Debit, c.debit)
	serve(c, adminapi.ShowBalance, c.showBalance)
	serve(c, adminapi.ListAccountStatement, c.listAccountStatement)
	serve(c, adminapi.ShowQuotas, c.listQuotas)
	serve(c, adminapi.ListLimits, c.listLimits)
	serve(c, adminapi.ListRequests, c.listRequests)
	serve(c, adminapi.ListRequestLog, c.listRequestLog)
	serve(c, adminapi.ShowLoggedRequest, c.showLoggedRequest)
	serve(c, adminapi.FindOf, c.findOf)
	serve(c, adminapi.SetLimits, c.setLimits)
	serve(c, adminapi.RemoveLimit, c.removeLimit)
	serve(c, adminapi.ListWaiting, c.listAllWaiting)
	serve(c, adminapi.ShowTraffic, c.showTraffic)
	serve(c, adminapi.ListAdjustments, c.listWaiting)
	serve(c, adminapi.ApproveAdjustment, c.approve)
	serve(c, adminapi.RejectAdjustment, c.reject)
	serve(c, adminapi.CheckLedger, c.checkLedger)
	serve(c, adminapi.RemoveConnection, c.removeConnection)
	serve(c, adminapi.ListExceptions, c.listExceptions)
	serve(c, adminapi.ResolveException, c.resolveException)
	serve(c, adminapi.ShowKeyset, c.showKeyset)
	serve(c, adminapi.ResealKeyset, c.reseal)
	serve(c, adminapi.ListPlugins, c.listPlugins)
	serve(c, adminapi.ShowPlugin, c.showPlugin)
	serve(c, adminapi.ListConnectionFields, c.listConnectionFields)
	serve(c, adminapi.ListApprovals, c.listApprovals)
	serve(c, adminapi.ApprovePlugin, c.approvePlugin)
	serve(c, adminapi.ConfirmPlugin, c.confirmPlugin)
	serve(c, adminapi.ActivatePlugin, c.activatePlugin)
	serve(c, adminapi.RollBackPlugin, c.rollBackPlugin)
	serve(c, adminapi.RemovePlugin, c.removePlugin)
	serve(c, adminapi.RestartPlugin, c.restartPlugin)
	serve(c, adminapi.ListMovements, c.listMovements)
	serve(c, adminapi.ShowFigures, c.showFigures)
	serve(c, adminapi.ShowCallbackFigures, c.showCallbackFigures)
	serve(c, adminapi.ShowMovement, c.showMovement)
	serve(c, adminapi.OverrideMovement, c.overrideMovement)
	serve(c, adminapi.TestPolicy, judged(c, c.testPolicy))
	serve(c, adminapi.TryPolicy, judged(c, c.tryPolicy))
	serve(c, adminapi.Find, c.find)
	serve(c, adminapi.ListReplicas, c.listReplicas)
	serve(c, adminapi.ListPolicies, c.listPolicies)
	serve(c, adminapi.PushPolicy, judged(c, c.pushPolicy))
	serve(c, adminapi.ShowPolicy, c.showPolicy)
	serve(c, adminapi.DiffPolicies, c.diffPolicies)
	serve(c, adminapi.ActivatePolicy, c.activatePolicy)
	serve(c, adminapi.RollBackPolicy, c.rollBackPolicy)
	serve(c, adminapi.ShowActivation, c.showActivation)
	c.mux.HandleFunc(adminapi.TryOnPast.Route, c.tryOnPast)
	c.acts[adminapi.TryOnPast.Route] = adminapi.TryOnPast
	c.mux.HandleFunc(nowhere, c.nothingHere)
}

// serve has an endpoint answered by a function.
func serve[In, Out any](c *Console, e adminapi.Endpoint[In, Out], handle func(*call, In) (Out, error)) {
	c.acts[e.Route] = e.Act
	c.mux.HandleFunc(e.Route, c.admin(func(x *call) (any, error) {
		var content []byte
		if x.request.Method != http.MethodGet {
			var err error
			if content, err = readBody(x); err != nil {
				return nil, err
			}
		}
		in, err := e.Decode(x.request, content)
		if err != nil {
			return nil, err
		}
		return handle(x, in)
	}))
}

// requestID is the header that every answer carries.
const requestID = "X-Request-Id"

// Elsewhere refuses an address that may not come in.
func Elsewhere() *fault.Error {
	return fault.New(fault.ScopeMissing, "This address may not use the console.")
}

// ServeHTTP answers one request from the network: of an address that may come in, and
// under /admin/ of an operator with a token.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := c.begin(w)
	address := peer(r)
	if !c.allowed(address) {
		w.Header().Set("Connection", "close")
		c.fail(w, r, id, Elsewhere())
		return
	}
	origin := limit.ClientAddress(r, c.access.Load().Trusted)
	r = r.WithContext(tenants.From(r.Context(), tenants.Origin(origin.String())))
	if ofOperators(r) {
		operator, err := c.authenticate(r, address)
		if err != nil {
			c.fail(w, r, id, err)
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), identityKey{}, operator))
	}
	c.answer(w, r, id)
}

// Trusted are the proxies whose X-Forwarded-For is believed at the moment.
func (c *Console) Trusted() []netip.Prefix { return c.access.Load().Trusted }

// allowed tells whether somebody may come in from an address.
func (c *Console) allowed(address netip.Addr) bool {
	return slices.ContainsFunc(c.access.Load().Allow, func(p netip.Prefix) bool { return p.Contains(address) })
}

// begin sets the headers that every answer carries, and returns the request's id.
func (c *Console) begin(w http.ResponseWriter) string {
	id := uuid.NewString()
	w.Header().Set(requestID, id)
	w.Header().Set(c.version, catalog.APIVersion)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	return id
}

// answer answers a request whose operator is known, if the operator's role has the route.
func (c *Console) answer(w http.ResponseWriter, r *http.Request, id string) {
	largest := int64(jsonbody.Max)
	if ofOperators(r) {
		_, pattern := c.mux.Handler(r)
		who := identityOf(r)
		if c.acts[pattern].Large {
			largest = adminapi.MaxPolicy
		}
		var err error
		if pattern != nowhere {
			err = who.needs(c.acts[pattern].Takes)
		}
		if err == nil && !who.reaches(r.URL.Path) {
			err = fault.New(fault.NotFound, "There is no such path.")
		}
		if err != nil {
			c.fail(w, r, id, err)
			return
		}
	}
	r.Body = http.MaxBytesReader(w, r.Body, largest)
	c.mux.ServeHTTP(w, r)
}

// ofOperators tells the admin API from health and metrics.
func ofOperators(r *http.Request) bool {
	return r.URL.Path == "/admin" || strings.HasPrefix(r.URL.Path, "/admin/")
}

// admin makes a handler of one that answers with data.
func (c *Console) admin(handle func(*call) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		x := c.call(w, r)
		if x.merchant() == tenants.Platform && !c.acts[r.Pattern].Platform {
			c.fail(w, r, x.id, platformRefused())
			return
		}
		if r.Method == http.MethodGet { // a change is in the audit
			c.log.InfoContext(r.Context(), "an operator reads", "request_id", x.id, "operator", x.operator.Name, "path", r.URL.Path)
		}
		data, err := handle(x)
		if err != nil {
			c.fail(w, r, x.id, err)
			return
		}
		write(w, http.StatusOK, success{Success: true, Data: data})
	}
}

// judged makes a handler of one that compiles a policy. One is compiled at a time, since
// that takes memory and a core's time from the merchants.
func judged[In, Out any](c *Console, handle func(*call, In) (Out, error)) func(*call, In) (Out, error) {
	return func(x *call, in In) (out Out, err error) {
		if !c.judging.TryLock() {
			return out, fault.New(fault.InProgress, "Another policy is being pushed or tried at this moment. Nothing was changed; try again in a few seconds.")
		}
		defer c.judging.Unlock()
		return handle(x, in)
	}
}

// Serve has the operators' pages answer on every path that is none of the API, health or
// metrics. It is called before the console serves.
func (c *Console) Serve(pages http.Handler) { c.pages = pages }

// nothingHere answers what has no route, or not with this method.
func (c *Console) nothingHere(w http.ResponseWriter, r *http.Request) {
	if c.pages != nil && !ofOperators(r) {
		c.pages.ServeHTTP(w, r)
		return
	}
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := c.mux.Handler(other); pattern != nowhere {
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
