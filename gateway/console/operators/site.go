package operators

import (
	"embed"
	"io/fs"
	"net/netip"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console/page"
	"github.com/seed-f006e74d/gerbang/gateway/signin"
	"github.com/seed-f006e74d/gerbang/tenants"
)

//go:embed templates/*.html
var templates embed.FS

// Config is how the console is reached.
type Config struct {
	URL      string
	Trusted  []netip.Prefix
	Location *time.Location
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
}

// New makes the console.
func New(config Config, deps Dependencies) (*Console, error) {
	own, err := fs.Sub(templates, "templates")
	if err != nil {
		return nil, err
	}
	c := &Console{config: config, deps: deps}
	c.Site, err = page.New(page.Config{
		Name: "operators", Title: "Gerbang operators", Secure: strings.HasPrefix(config.URL, "https://"), Trusted: config.Trusted, Location: config.Location,
		Templates: own, Words: words, Belongs: func(p signin.Present) bool { _, ok := p.At(tenants.Platform); return ok },
	}, deps.Dependencies)
	if err != nil {
		return nil, err
	}
	c.routes()
	return c, nil
}

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
}

func (c *Console) furnish(r *room) {
	around := page.Around{Home: "/"}
	for _, p := range pages {
		here := p.path == r.Request.URL.Path || p.path != "/" && strings.HasPrefix(r.Request.URL.Path, p.path+"/")
		around.Links = append(around.Links, page.Link{Path: p.path, Text: p.text, Here: here})
	}
	r.Around = around
}

func (c *Console) routes() {
	c.at("GET /{$}", c.overview)
}

func (c *Console) overview(r *room) error {
	exceptions, err := r.admin.Exceptions(r.Request.Context())
	if err != nil {
		return err
	}
	return r.Show("overview.html", r.T("Overview"), map[string]any{"Exceptions": exceptions})
}
