package merchants

import (
	"context"
	"embed"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console/page"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/sandbox"
	"github.com/seed-f006e74d/gerbang/gateway/signin"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

//go:embed templates/*.html
var templates embed.FS

// Records is what pages read besides the admin API.
type Records interface {
	MovementByKey(ctx context.Context, key movement.Key) (movement.Movement, error)
	MovementByID(ctx context.Context, id movement.ID) (movement.Movement, error)
	KeyUses(ctx context.Context, id tenants.MerchantID) ([]tenants.KeyUse, error)
}

// Config is how the console is reached.
type Config struct {
	URL      string                // as people reach it
	APIURL   string                // of the merchants' API
	Trusted  func() []netip.Prefix // proxies whose X-Forwarded-For is believed at the moment
	Location *time.Location
}

// Dependencies is what the console reads and acts through.
type Dependencies struct {
	page.Dependencies

	Records Records
	// Admin is the admin API for a person, by whose name it audits.
	// It reaches nothing of another merchant's.
	Admin func(by string, of tenants.MerchantID) *adminapi.Client
	// Standing is what a status call tells of a movement as it is known, nil for nothing.
	Standing func(m movement.Movement) (json.RawMessage, error)
	// Refundable is how much of a payment can be given back now, 0 for nothing.
	Refundable func(ctx context.Context, m movement.Movement) (money.Amount, error)
	// Plays are what can happen to a test movement at its provider's simulator, none where
	// that is a real provider; nil where test mode has no simulators.
	Plays func(ctx context.Context, m movement.Movement) ([]sandbox.Play, error)
	// Manifests are the providers that are offered.
	Manifests func() []*manifest.Manifest
}

// Console is the pages. It is safe for concurrent use.
type Console struct {
	*page.Site

	config Config
	deps   Dependencies
}

// New makes the console.
func New(config Config, deps Dependencies) (*Console, error) {
	own, err := fs.Sub(templates, "templates")
	if err != nil {
		return nil, err
	}
	c := &Console{config: config, deps: deps}
	c.Site, err = page.New(page.Config{
		Name: "merchants", Title: "Gerbang", URL: config.URL, Secure: strings.HasPrefix(config.URL, "https://"), Trusted: config.Trusted, Location: config.Location,
		Templates: own, Belongs: func(p signin.Present) bool { return len(merchantsOf(p)) > 0 },
	}, deps.Dependencies)
	if err != nil {
		return nil, err
	}
	c.Handle("GET /{$}", c.first)
	for _, of := range c.routes() {
		c.add(of)
	}
	return c, nil
}

// room is a page's merchant and mode, and who is there.
type room struct {
	*page.Visit

	Member tenants.Member
	Mode   tenants.Mode
	admin  *adminapi.Client
}

func (r *room) id() string { return string(r.Member.MerchantID) }

func (r *room) owner() movement.Owner {
	return movement.Owner{MerchantID: r.id(), Mode: string(r.Mode)}
}

// Path is a path of this merchant in this mode.
func (r *room) Path(rest string) string { return "/" + r.id() + "/" + string(r.Mode) + rest }

// add adds a page of a merchant in a mode.
func (c *Console) add(of route) {
	method, path, _ := strings.Cut(of.pattern, " ")
	c.Handle(method+" /{merchant}/{mode}"+path, func(v *page.Visit) error {
		r, err := c.enter(v, of.may)
		if err != nil {
			return err
		}
		if of.fresh {
			if err := page.Fresh(v); err != nil {
				return err
			}
		}
		return of.handle(r)
	})
}

// enter finds the merchant that a page is of. Somebody who is none of its people, or may
// not do this, learns nothing more than that there is no such page.
func (c *Console) enter(v *page.Visit, may tenants.Permission) (*room, error) {
	member, ok := v.Who.At(tenants.MerchantID(v.Request.PathValue("merchant")))
	mode, err := tenants.ParseMode(v.Request.PathValue("mode"))
	if !ok || err != nil || member.MerchantID == tenants.Platform || !member.Role.May(may) {
		return nil, tenants.ErrNotFound
	}
	if member.Suspended && v.Request.Method != http.MethodGet {
		return nil, fault.New(fault.ScopeMissing, v.T("This merchant is suspended. Nothing can be changed here until an operator ends that."))
	}
	r := &room{Visit: v, Member: member, Mode: mode, admin: c.deps.Admin(v.By(), member.MerchantID)}
	c.furnish(r)
	return r, nil
}

// beside is a link beside every page, for those who may use it.
type beside struct {
	path, text string
	may        tenants.Permission
}

var pages = []beside{
	{"/", "Overview", tenants.MayLook},
	{"/payments", "Payments", tenants.MayLook},
	{"/refunds", "Refunds", tenants.MayLook},
	{"/collections", "Collections", tenants.MayLook},
	{"/orders", "Orders", tenants.MayLook},
	{"/transfers", "Transfers", tenants.MayLook},
	{"/requests", "Requests", tenants.MayLook},
	{"/callbacks", "Callbacks", tenants.MayLook},
	{"/numbers", "Numbers", tenants.MayLook},
	{"/balance", "Balance", tenants.MayMoney},
	{"/keys", "Developer API keys", tenants.MayKeys},
	{"/connections", "Connections", tenants.MayConnect},
	{"/members", "Members", tenants.MayMembers},
	{"/audit", "Audit", tenants.MayMembers},
}

// furnish adds what stands around the page.
func (c *Console) furnish(r *room) {
	around := page.Around{Home: r.Path("/"), Mode: string(r.Mode), Place: r.Member.Merchant}
	rest := strings.TrimPrefix(r.Request.URL.Path, r.Path(""))
	section := rest
	if i := strings.Index(rest[min(1, len(rest)):], "/"); i >= 0 {
		section = rest[:i+1]
	}
	for _, p := range pages {
		if r.Member.Role.May(p.may) {
			around.Links = append(around.Links, page.Link{Path: r.Path(p.path), Text: p.text, Here: p.path == section})
		}
	}
	for _, mode := range []tenants.Mode{tenants.Live, tenants.Test} {
		other := "/" + r.id() + "/" + string(mode) + "/"
		if slices.ContainsFunc(pages, func(p beside) bool { return p.path == section }) {
			other = "/" + r.id() + "/" + string(mode) + section
		}
		text := map[tenants.Mode]string{tenants.Live: "Live", tenants.Test: "Test"}[mode]
		around.Modes = append(around.Modes, page.Link{Path: other, Text: text, Here: mode == r.Mode})
	}
	for _, m := range merchantsOf(r.Who) {
		around.Places = append(around.Places, page.Link{Path: "/" + string(m.MerchantID) + "/" + string(r.Mode) + "/", Text: m.Merchant, Here: m.MerchantID == r.Member.MerchantID})
	}
	if r.Member.Suspended {
		around.Problem = "This merchant is suspended: its keys are refused, and only what was begun goes on."
	}
	r.Around = around
}

// merchantsOf are the merchants that somebody belongs to.
func merchantsOf(p signin.Present) []tenants.Member {
	return slices.DeleteFunc(slices.Clone(p.Members), func(m tenants.Member) bool { return m.MerchantID == tenants.Platform })
}

// first leads to the overview of the first merchant, in test mode: nothing there costs.
func (c *Console) first(v *page.Visit) error {
	m := merchantsOf(v.Who)[0]
	return v.Go("/"+string(m.MerchantID)+"/test/", "")
}

// route is a page or a form, the permission it needs, and whether it needs a fresh code.
type route struct {
	pattern string
	may     tenants.Permission
	handle  func(*room) error
	fresh   bool
}

// routes are all that this console does.
func (c *Console) routes() []route {
	all := []route{
		{"GET /{$}", tenants.MayLook, c.overview, false},
		{"GET /movements/{movement}", tenants.MayLook, c.movement, false},
		{"POST /movements/{movement}/play", tenants.MayCallback, c.play, false},
		{"GET /refund/{movement}", tenants.MayRefund, c.askRefund, true},
		{"POST /refund/{movement}", tenants.MayRefund, c.refund, true},
		{"GET /find", tenants.MayLook, c.find, false},
		{"GET /requests", tenants.MayLook, c.requests, false},
		{"GET /requests/{request}", tenants.MayLook, c.request, false},
		{"GET /numbers", tenants.MayLook, c.numbers, false},
		{"GET /callbacks", tenants.MayLook, c.callbacks, false},
		{"GET /callbacks/{event}", tenants.MayLook, c.callback, false},
		{"POST /callbacks/{event}/resend", tenants.MayCallback, c.resend, false},
		{"POST /callbacks/test", tenants.MayCallback, c.testCallback, false},
		{"POST /callbacks/verify", tenants.MayCallback, c.verifyCallback, false},
		{"POST /callbacks/url", tenants.MayCallback, c.setURL, true},
		{"POST /callbacks/secret", tenants.MayCallback, c.changeSecret, true},
		{"GET /keys", tenants.MayKeys, c.keys, false},
		{"GET /keys/new", tenants.MayKeys, c.newKey, true},
		{"POST /keys", tenants.MayKeys, c.createKey, true},
		{"GET /keys/{key}/rotate", tenants.MayKeys, c.askRotation, true},
		{"POST /keys/{key}/rotate", tenants.MayKeys, c.rotateKey, true},
		{"POST /keys/{key}/name", tenants.MayKeys, c.renameKey, true},
		{"POST /keys/{key}/revoke", tenants.MayKeys, c.revokeKey, true},
		{"GET /balance", tenants.MayMoney, c.balance, false},
		{"GET /balance/statement.csv", tenants.MayMoney, c.statementCSV, false},
		{"GET /connections", tenants.MayConnect, c.connections, false},
		{"GET /connections/{provider}", tenants.MayConnect, c.connection, true},
		{"POST /connections/{provider}", tenants.MayConnect, c.setConnection, true},
		{"GET /members", tenants.MayMembers, c.members, false},
		{"POST /members", tenants.MayMembers, c.invite, true},
		{"POST /members/invitations/revoke", tenants.MayMembers, c.uninvite, true},
		{"POST /members/{person}/role", tenants.MayMembers, c.setRole, true},
		{"POST /members/{person}/remove", tenants.MayMembers, c.removeMember, true},
		{"GET /audit", tenants.MayMembers, c.audit, false},
	}
	for _, kind := range movement.Kinds() {
		all = append(all, route{"GET " + pathOf(kind), tenants.MayLook, func(r *room) error { return c.list(r, kind) }, false},
			route{"GET " + pathOf(kind) + "/export.csv", tenants.MayLook, func(r *room) error { return c.export(r, kind) }, false})
	}
	return all
}
