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
	if err := deps.Metrics.watch(deps.Plugins, &exceptionCollector{list: deps.Exceptions, now: deps.Now, log: deps.Log}, deps.Clock,
		&policyCollector{following: deps.Following, version: func() string { return string(deps.Policy().Version()) }, now: deps.Now}); err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	c.routes()
	return c, nil
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
	for pattern, handle := range c.handlers() {
		c.mux.HandleFunc(pattern, c.admin(handle))
		c.acts[pattern] = adminapi.Act{Route: pattern, Takes: permissions[pattern], Platform: ofPlatform[pattern]}
	}
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
	c.mux.HandleFunc("POST "+impactPath, c.tryOnPast)
	c.acts["POST "+impactPath] = adminapi.Act{Route: "POST " + impactPath, Takes: adminapi.ChangePolicy}
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

// handlers are the routes that answer with data. What each needs of an operator's role
// stands in permissions.
func (c *Console) handlers() map[string]func(*call) (any, error) {
	return map[string]func(*call) (any, error){
		"GET /admin/recovery":                                            c.showRecovery,
		"POST /admin/recovery/open":                                      body(c.openRecovery),
		"POST /admin/merchants":                                          body(c.createMerchant),
		"GET /admin/merchants":                                           c.listMerchants,
		"GET /admin/merchants/{merchant}":                                c.showMerchant,
		"POST /admin/merchants/{merchant}/suspend":                       body(c.suspend),
		"POST /admin/merchants/{merchant}/resume":                        body(c.resume),
		"POST /admin/merchants/{merchant}/tier":                          body(c.setTier),
		"POST /admin/merchants/{merchant}/labels":                        body(c.setLabels),
		"POST /admin/merchants/{merchant}/keys":                          body(c.createKey),
		"POST /admin/merchants/{merchant}/keys/{key}/rotate":             body(c.rotateKey),
		"POST /admin/merchants/{merchant}/keys/{key}/revoke":             body(c.revokeKey),
		"PUT /admin/merchants/{merchant}/connections/{provider}":         body(c.setConnection),
		"GET /admin/merchants/{merchant}/audit":                          c.listAudit,
		"GET /admin/merchants/{merchant}/callbacks":                      c.listCallbacks,
		"GET /admin/merchants/{merchant}/callbacks/{event}":              c.showCallback,
		"POST /admin/merchants/{merchant}/callbacks/resend":              body(c.resendCallbacks),
		"POST /admin/merchants/{merchant}/callbacks/test":                body(c.testCallback),
		"PUT /admin/merchants/{merchant}/callbacks/url":                  body(c.setCallbackURL),
		"POST /admin/merchants/{merchant}/callbacks/secret":              body(c.changeCallbackSecret),
		"POST /admin/merchants/{merchant}/credit":                        body(c.credit),
		"POST /admin/merchants/{merchant}/debit":                         body(c.debit),
		"GET /admin/merchants/{merchant}/balance":                        c.showBalance,
		"GET /admin/merchants/{merchant}/account-statement":              c.listAccountStatement,
		"GET /admin/merchants/{merchant}/quotas":                         c.listQuotas,
		"GET /admin/merchants/{merchant}/limits":                         c.listLimits,
		"GET /admin/merchants/{merchant}/requests":                       c.listRequests,
		"GET /admin/merchants/{merchant}/refusals":                       c.listRefusals,
		"GET /admin/merchants/{merchant}/find":                           c.findOf,
		"POST /admin/merchants/{merchant}/limits":                        body(c.setLimits),
		"POST /admin/merchants/{merchant}/limits/{limit}/remove":         body(c.removeLimit),
		"GET /admin/waiting":                                             c.listAllWaiting,
		"GET /admin/traffic":                                             c.showTraffic,
		"GET /admin/ledger/waiting":                                      c.listWaiting,
		"POST /admin/ledger/approve":                                     body(c.approve),
		"POST /admin/ledger/reject":                                      body(c.reject),
		"GET /admin/ledger/check":                                        c.checkLedger,
		"POST /admin/merchants/{merchant}/connections/{provider}/remove": body(c.removeConnection),
		"GET /admin/exceptions":                                          c.listExceptions,
		"POST /admin/exceptions/resolve":                                 body(c.resolveException),
		"GET /admin/keyset":                                              c.showKeyset,
		"POST /admin/keyset/reseal":                                      body(c.reseal),
		"GET /admin/plugins":                                             c.listPlugins,
		"GET /admin/plugins/{provider}":                                  c.showPlugin,
		"GET /admin/plugins/{provider}/connection-fields":                c.listConnectionFields,
		"GET /admin/plugin-approvals":                                    c.listApprovals,
		"POST /admin/plugin-approvals":                                   body(c.approvePlugin),
		"POST /admin/plugin-approvals/{approval}/confirm":                body(c.confirmPlugin),
		"POST /admin/plugins/{provider}/activate":                        body(c.activatePlugin),
		"POST /admin/plugins/{provider}/rollback":                        body(c.rollBackPlugin),
		"POST /admin/plugins/{provider}/remove":                          body(c.removePlugin),
		"POST /admin/plugins/{provider}/restart":                         body(c.restartPlugin),
		"GET /admin/movements/{movement}":                                c.showMovement,
		"POST /admin/movements/{movement}/override":                      body(c.overrideMovement),
		"POST /admin/policy/test":                                        c.judged(body(c.testPolicy)),
		"POST /admin/policy/try":                                         c.judged(body(c.tryPolicy)),
		"GET /admin/find":                                                c.find,
		"GET /admin/replicas":                                            c.listReplicas,
		"GET /admin/policies":                                            c.listPolicies,
		"POST /admin/policies":                                           c.judged(body(c.pushPolicy)),
		"GET /admin/policies/{version}":                                  c.showPolicy,
		"GET /admin/policies/{version}/diff/{other}":                     c.diffPolicies,
		"POST /admin/policies/{version}/activate":                        body(c.activatePolicy),
		"POST /admin/policies/rollback":                                  body(c.rollBackPolicy),
		"GET /admin/policies/activations/{activation}":                   c.showActivation,
	}
}

// requestID is the header that every answer carries.
const requestID = "X-Request-Id"

// ServeHTTP answers one request from the network: of an address that may come in, and
// under /admin/ of an operator with a token.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := c.begin(w)
	address := peer(r)
	if !c.allowed(address) {
		w.Header().Set("Connection", "close")
		c.fail(w, r, id, fault.New(fault.ScopeMissing, "This address may not use the console."))
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
	if ofOperators(r) {
		_, pattern := c.mux.Handler(r)
		who := identityOf(r)
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
	r.Body = http.MaxBytesReader(w, r.Body, largest(r))
	c.mux.ServeHTTP(w, r)
}

// ofOperators tells the admin API from health and metrics.
func ofOperators(r *http.Request) bool {
	return r.URL.Path == "/admin" || strings.HasPrefix(r.URL.Path, "/admin/")
}

// largest is how large a request's body may be.
func largest(r *http.Request) int64 {
	if slices.Contains([]string{"/admin/policies", "/admin/policy/test", "/admin/policy/try", "/admin/plugin-approvals", impactPath}, r.URL.Path) {
		return adminapi.MaxPolicy
	}
	return jsonbody.Max
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

// body makes a handler of one that takes a body.
func body[T any](handle func(*call, T) (any, error)) func(*call) (any, error) {
	return func(x *call) (any, error) {
		var given T
		if err := decode(x, &given); err != nil {
			return nil, err
		}
		return handle(x, given)
	}
}

// judged makes a handler of one that compiles a policy. One is compiled at a time, since
// that takes memory and a core's time from the merchants.
func (c *Console) judged(handle func(*call) (any, error)) func(*call) (any, error) {
	return func(x *call) (any, error) {
		if !c.judging.TryLock() {
			return nil, fault.New(fault.InProgress, "Another policy is being pushed or tried at this moment. Nothing was changed; try again in a few seconds.")
		}
		defer c.judging.Unlock()
		return handle(x)
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
