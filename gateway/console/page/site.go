package page

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/identity"
	"github.com/seed-f006e74d/gerbang/gateway/limit"
	"github.com/seed-f006e74d/gerbang/gateway/signin"
	"github.com/seed-f006e74d/gerbang/tenants"
)

const (
	sessionLife = 12 * time.Hour
	sessionIdle = time.Hour
	// confirmedFor is how long a fresh code is good for what needs one.
	confirmedFor = 10 * time.Minute
	largestForm  = 1 << 20
	// strangersForm is how large the form of somebody is who has not signed in.
	strangersForm = 16 << 10
)

// Config is what one console is.
type Config struct {
	Name   string // of its sessions and in titles: merchants or operators
	Title  string
	URL    string // as people reach it: links in mails lead there
	Secure bool   // it is reached by HTTPS
	// Trusted are the proxies whose X-Forwarded-For is believed at the moment; nil for
	// none.
	Trusted   func() []netip.Prefix
	Location  *time.Location
	Templates fs.FS // the console's own pages, *.html
	// Provider proves who visitors are, besides passwords; nil for none.
	Provider *identity.Provider
	// Belongs tells whether somebody may use this console at all.
	Belongs func(signin.Present) bool
}

// Dependencies is what every page needs.
type Dependencies struct {
	SignIn   *signin.SignIn
	Sessions scs.Store
	Now      func() time.Time
	Log      *slog.Logger
}

// Site is a console's pages. It is safe for concurrent use once its pages are added.
type Site struct {
	config   Config
	deps     Dependencies
	sessions *scs.SessionManager
	pages    *pages
	begun    *limit.Failures // visits to the identity provider
	mux      *http.ServeMux
	handler  http.Handler
	turns    *limit.Turns // at reads for those whom this replica does not know
	known    known
}

// New makes a site with the pages for signing in.
func New(config Config, deps Dependencies) (*Site, error) {
	if config.Trusted == nil {
		config.Trusted = func() []netip.Prefix { return nil }
	}
	p, err := newPages(config)
	if err != nil {
		return nil, fmt.Errorf("console %s: %w", config.Name, err)
	}
	s := &Site{config: config, deps: deps, pages: p, mux: http.NewServeMux(), sessions: scs.New(), begun: limit.NewFailures(), turns: limit.NewTurns()}
	s.sessions.Store, s.sessions.HashTokenInStore = deps.Sessions, true
	s.sessions.Lifetime, s.sessions.IdleTimeout = sessionLife, sessionIdle
	s.sessions.Cookie.Name, s.sessions.Cookie.Secure = "gerbang_"+config.Name, config.Secure
	s.sessions.Cookie.SameSite, s.sessions.Cookie.Persist = http.SameSiteLaxMode, false
	if config.Secure {
		s.sessions.Cookie.Name = "__Host-" + s.sessions.Cookie.Name
	}
	s.sessions.ErrorFunc = func(w http.ResponseWriter, r *http.Request, err error) {
		deps.Log.ErrorContext(r.Context(), "the consoles' sessions can't be read or kept", "error", err)
		http.Error(w, "The console can't be used at this moment. The API is not touched by this.", http.StatusServiceUnavailable)
	}
	outside := http.NewServeMux()
	outside.HandleFunc("GET /assets/{name}", s.asset) // with no session's cookie: these are kept by caches
	outside.HandleFunc("/", s.inSession)
	s.handler = http.NewCrossOriginProtection().Handler(outside)
	s.signingIn()
	if config.Provider != nil {
		s.vouching()
	}
	return s, nil
}

// ServeHTTP answers one request.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := uuid.NewString()
	h := w.Header()
	h.Set("X-Request-Id", id)
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "+
		"form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if s.config.Secure {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
	r.Body = http.MaxBytesReader(w, r.Body, largestForm)
	s.handler.ServeHTTP(w, r.WithContext(tenants.From(r.Context(), tenants.Origin(limit.ClientAddress(r, s.config.Trusted()).String()))))
}

// Invitations are open invitations as layout.html lists them, with where they are revoked,
// "" for who may not.
type Invitations struct {
	Rows   any // of tenants or of the admin API
	Revoke string
}

// Handler answers a visit. What it returns is shown to the visitor: a *fault.Error or an
// *adminapi.Failure with its own words, and anything else as a fault of ours.
type Handler func(*Visit) error

// Rule says before a handler runs whether it may: the visitor is sent elsewhere, or told
// why not, by an error.
type Rule func(*Visit) error

// Public adds a page for everybody.
func (s *Site) Public(pattern string, h Handler) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		v := s.visit(w, r)
		v.done(h(v))
	})
}

// Handle adds a page for those who have signed in and belong to this console.
func (s *Site) Handle(pattern string, h Handler, rules ...Rule) {
	s.Public(pattern, func(v *Visit) error {
		if err := v.identify(); err != nil {
			return err
		}
		for _, rule := range rules {
			if err := rule(v); err != nil {
				return err
			}
		}
		return h(v)
	})
}

// What a session holds.
const (
	keySite      = "site"
	keyPerson    = "person"
	keyEpoch     = "epoch"
	keyConfirmed = "confirmed" // Unix seconds of the last fresh code or proof
	keyCode      = "code"      // Unix seconds of the last fresh code
	keyJoined    = "joined"    // Unix seconds of when somebody has joined
	keyFactor    = "factor"    // that is being set up, sealed
	keyFlow      = "flow"      // at the identity provider
	keyNotice    = "notice"    // for the next page
	keyForm      = "form"      // that its sender will find filled again, without secrets
)

// errSignIn and errConfirm send a visitor to another page first.
var (
	errSignIn  = errors.New("page: not signed in")
	errConfirm = errors.New("page: a fresh code is needed")
)

// identify finds who visits, or sends them to sign in.
func (v *Visit) identify() error {
	present, err := v.site.present(v)
	if errors.Is(err, tenants.ErrNotFound) || err == nil && !v.site.config.Belongs(present) {
		if v.site.sessions.Exists(v.ctx(), keyPerson) {
			if err := v.site.sessions.Destroy(v.ctx()); err != nil {
				return err
			}
		}
		return errSignIn
	}
	v.Who = present
	return err
}

// present is who has signed in with this session, or tenants.ErrNotFound.
func (s *Site) present(v *Visit) (signin.Present, error) {
	id, err := uuid.Parse(s.sessions.GetString(v.ctx(), keyPerson))
	if err != nil || s.sessions.GetString(v.ctx(), keySite) != s.config.Name {
		return signin.Present{}, tenants.ErrNotFound
	}
	return s.deps.SignIn.Who(v.ctx(), id, s.sessions.GetInt64(v.ctx(), keyEpoch))
}

// Fresh is the rule of what needs a code that was given in the last ten minutes.
func Fresh(v *Visit) error {
	if !v.since(keyConfirmed) {
		return errConfirm
	}
	return nil
}

// since tells whether what a session holds the time of was in the last ten minutes.
func (v *Visit) since(key string) bool {
	at := time.Unix(v.site.sessions.GetInt64(v.ctx(), key), 0)
	return v.site.deps.Now().Sub(at) <= confirmedFor
}

// begin makes a session of somebody. Nothing of the one before is left: it may have been
// somebody else's.
func (v *Visit) begin(p tenants.Person) error {
	if err := v.site.sessions.Clear(v.ctx()); err != nil {
		return err
	}
	if err := v.site.sessions.RenewToken(v.ctx()); err != nil {
		return err
	}
	v.site.sessions.Put(v.ctx(), keySite, v.site.config.Name)
	v.site.sessions.Put(v.ctx(), keyPerson, p.ID.String())
	v.site.sessions.Put(v.ctx(), keyEpoch, p.Epoch)
	return nil
}

// address is where the visitor comes from.
func (v *Visit) address() netip.Addr { return limit.ClientAddress(v.Request, v.site.config.Trusted()) }

func (v *Visit) ctx() context.Context { return v.Request.Context() }
