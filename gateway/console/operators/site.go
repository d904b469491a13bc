package operators

import (
	"context"
	"embed"
	"io/fs"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console/page"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/identity"
	"github.com/seed-f006e74d/gerbang/gateway/signin"
	"github.com/seed-f006e74d/gerbang/tenants"
)

//go:embed templates/*.html
var templates embed.FS

// Config is how the console is reached.
type Config struct {
	URL      string
	Trusted  func() []netip.Prefix // proxies whose X-Forwarded-For is believed at the moment
	Location *time.Location
	Provider *identity.Provider // that proves who operators are, besides passwords; nil for none
}

// Dependencies is what the console acts through.
type Dependencies struct {
	page.Dependencies

	// Admin is the admin API for a person with a role.
	Admin func(by string, role tenants.Role) *adminapi.Client
}

// Console is the pages. It is safe for concurrent use.
type Console struct {
	*page.Site

	config Config
	deps   Dependencies
	trials *trials
}

// New makes the console.
func New(config Config, deps Dependencies) (*Console, error) {
	own, err := fs.Sub(templates, "templates")
	if err != nil {
		return nil, err
	}
	c := &Console{config: config, deps: deps, trials: newTrials(deps.Now)}
	c.Site, err = page.New(page.Config{
		Name: "operators", Title: "Gerbang operators", URL: config.URL, Secure: strings.HasPrefix(config.URL, "https://"), Trusted: config.Trusted, Location: config.Location,
		Templates: own, Provider: config.Provider, Belongs: func(p signin.Present) bool { _, ok := p.At(tenants.Platform); return ok },
	}, deps.Dependencies)
	if err != nil {
		return nil, err
	}
	c.routes()
	return c, nil
}

// Run keeps what pages have begun until the context ends, and ends it.
func (c *Console) Run(ctx context.Context) error { return c.trials.run(ctx) }

// room is a page with the operator who visits it.
type room struct {
	*page.Visit

	Role  tenants.Role
	admin *adminapi.Client
}

// at adds a page. What a role may do is judged by the admin API.
func (c *Console) at(pattern string, handle func(*room) error, rules ...page.Rule) {
	c.Handle(pattern, func(v *page.Visit) error {
		for _, rule := range rules {
			if err := rule(v); err != nil {
				return err
			}
		}
		member, _ := v.Who.At(tenants.Platform)
		r := &room{Visit: v, Role: member.Role, admin: c.deps.Admin(v.By(), member.Role)}
		c.furnish(r)
		return handle(r)
	})
}

// pages are the links beside every page.
var pages = []struct{ path, text string }{
	{"/", "Overview"},
	{"/merchants", "Merchants"},
	{"/waiting", "Waiting"},
	{"/traffic", "Traffic"},
	{"/policies", "Policies"},
	{"/providers", "Providers"},
	{"/pauses", "Pauses"},
	{"/replicas", "Replicas"},
	{"/audit", "Audit"},
	{"/people", "People"},
}

func (c *Console) furnish(r *room) {
	around := page.Around{Home: "/", Find: "/find"}
	if r.Request.URL.Path == "/find" {
		around.Find = "" // that page has a larger one
	}
	for _, p := range pages {
		here := p.path == r.Request.URL.Path || p.path != "/" && strings.HasPrefix(r.Request.URL.Path, p.path+"/")
		around.Links = append(around.Links, page.Link{Path: p.path, Text: p.text, Here: here})
	}
	r.Around = around
}

func (c *Console) routes() {
	c.at("GET /{$}", c.overview)
	c.at("GET /find", c.find)
	c.at("POST /find", c.trace)

	c.at("GET /merchants", c.merchants)
	c.at("GET /merchants/new", c.newMerchant, page.Fresh)
	c.at("POST /merchants", c.createMerchant, page.Fresh)
	c.at("GET /merchants/{merchant}", c.merchant)
	c.at("POST /merchants/{merchant}/invitations", c.inviteOwner, page.Fresh)
	c.at("POST /merchants/{merchant}/invitations/revoke", c.uninvitePerson, page.Fresh)
	c.at("POST /merchants/{merchant}/suspend", c.suspend, page.Fresh)
	c.at("POST /merchants/{merchant}/resume", c.resume, page.Fresh)
	c.at("POST /merchants/{merchant}/tier", c.setTier, page.Fresh)
	c.at("POST /merchants/{merchant}/labels", c.setLabel, page.Fresh)
	c.at("POST /merchants/{merchant}/limits", c.setLimit, page.Fresh)
	c.at("POST /merchants/{merchant}/limits/{limit}/remove", c.removeLimit, page.Fresh)
	c.at("POST /merchants/{merchant}/keys/{key}/revoke", c.revokeKey, page.Fresh)
	c.at("POST /merchants/{merchant}/pauses", c.pauseOfMerchant, page.Fresh)
	c.at("GET /merchants/{merchant}/money", c.money)
	c.at("POST /merchants/{merchant}/money", c.adjust, page.Fresh)
	c.at("GET /merchants/{merchant}/audit", c.merchantAudit)
	c.at("GET /merchants/{merchant}/callbacks", c.callbacks)
	c.at("GET /merchants/{merchant}/figures", c.figures)
	c.at("GET /merchants/{merchant}/movements", c.movements)
	c.at("GET /merchants/{merchant}/requests", c.requests)
	c.at("GET /merchants/{merchant}/requests/{request}", c.request)
	c.at("GET /merchants/{merchant}/statement-lines", c.statementLines)
	c.at("POST /merchants/{merchant}/statement-lines", c.assign, page.Fresh)

	c.at("GET /traffic", c.traffic)
	c.at("GET /waiting", c.waiting)
	c.at("POST /waiting/exceptions", c.resolve)
	c.at("POST /waiting/adjustments", c.decide, page.Fresh)
	c.at("POST /waiting/overrides", c.confirmOverride, page.Fresh)
	c.at("POST /waiting/refunds", c.confirmRefund, page.Fresh)
	c.at("POST /waiting/approvals", c.confirmProvider, page.Fresh)

	c.at("GET /pauses", c.pauses)
	c.at("POST /pauses", c.setPause, page.Fresh)

	c.at("GET /movements/{movement}", c.movement)
	c.at("POST /movements/{movement}/override", c.override, page.Fresh)
	c.at("POST /movements/{movement}/callbacks/{event}", c.resend)

	c.at("GET /policies", c.policies)
	c.at("GET /policies/numbers", c.numbers)
	c.at("POST /policies", c.push)
	c.at("POST /policies/rollback", c.rollBackPolicy, page.Fresh)
	c.at("GET /policies/{version}", c.policy)
	c.at("GET /policies/{version}/impact", c.impact)
	c.at("POST /policies/{version}/impact", c.tryPolicy)
	c.at("POST /policies/{version}/activate", c.activatePolicy, page.Fresh)
	c.at("GET /activations/{activation}", c.activation)

	c.at("GET /providers", c.providers)
	c.at("GET /providers/{provider}", c.provider)
	c.at("POST /providers/{provider}/activate", c.activateProvider, page.Fresh)
	c.at("POST /providers/{provider}/rollback", c.rollBackProvider, page.Fresh)
	c.at("POST /providers/{provider}/restart", c.restartProvider)
	c.at("POST /providers/{provider}/remove", c.removeProvider, page.Fresh)

	c.at("GET /replicas", c.replicas)
	c.at("GET /audit", c.audit)

	c.at("GET /people", c.people)
	c.at("POST /people", c.invite, page.Fresh)
	c.at("POST /people/invitations/revoke", c.uninvite, page.Fresh)
	c.at("POST /people/{person}/role", c.setRole, page.Fresh)
	c.at("POST /people/{person}/remove", c.removePerson, page.Fresh)
	c.at("POST /tokens", c.createToken, page.Fresh)
	c.at("POST /tokens/{operator}/rotate", c.rotateToken, page.Fresh)
	c.at("POST /tokens/{operator}/revoke", c.revokeToken, page.Fresh)
}

// merchantPath is a page of a merchant.
func merchantPath(id, rest string) string { return "/merchants/" + url.PathEscape(id) + rest }

// did ends a form: what went wrong is shown, and else where the visitor goes.
func (r *room) did(err error, path, notice string) error {
	if err != nil {
		return err
	}
	return r.Go(path, notice)
}

// named is a part of the path.
func (r *room) named(part string) string { return r.Request.PathValue(part) }

// whole is a field's whole number, nil where the field is empty.
func (r *room) whole(field string) (*int64, error) {
	text := r.Form(field)
	if text == "" {
		return nil, nil //nolint:nilnil // nothing is no error
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, fault.Invalid(field, "must be a whole number, without dots")
	}
	return &n, nil
}
