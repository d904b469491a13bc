package identity

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/seed-f006e74d/gerbang/tenants"
)

// What a person is told when the provider does not prove who they are.
var (
	ErrDown       = errors.New("identity: the identity provider can't be reached; sign in with your password, or try again in a minute")
	ErrFlow       = errors.New("identity: this sign-in was not begun in this browser, has taken more than ten minutes or was used already; begin again")
	ErrDenied     = errors.New("identity: the identity provider did not let you in; ask whoever runs it")
	ErrUnproven   = errors.New("identity: the identity provider's answer is not valid; begin again, and if that does not help, ask whoever runs this gateway: its log says why")
	ErrUnverified = errors.New("identity: the identity provider has not verified your email address; verify it there and begin again")
	ErrForeign    = errors.New("identity: the identity provider is not believed about addresses of this domain; sign in with your password")
	ErrStale      = errors.New("identity: the identity provider did not ask you anew who you are; use a code of your authenticator app")
)

const (
	callWait = 5 * time.Second
	flowLife = 10 * time.Minute
	// clockSkew is how far the provider's clock may be behind.
	clockSkew = time.Minute
	// failureLife is how long a provider that can't be looked up is not asked again.
	failureLife = 5 * time.Second
)

// Config is a provider as the operator of a gateway has registered with it.
type Config struct {
	Name         string // for people
	Issuer       string
	ClientID     string
	ClientSecret tenants.Secret
	RedirectURL  string
	Domains      []string // of the email addresses that the provider is believed about
}

// Provider proves who somebody is. It is safe for concurrent use.
type Provider struct {
	config Config
	now    func() time.Time
	client *http.Client
	found  atomic.Pointer[oidc.Provider]
	asking chan struct{} // holds whoever looks the provider up, and what is below
	failed error         // of the last look-up
	tried  time.Time
}

// New makes a Provider and asks it nothing.
func New(c Config, now func() time.Time) *Provider {
	return &Provider{config: c, now: now, client: &http.Client{Timeout: callWait}, asking: make(chan struct{}, 1)}
}

// Name is the provider's, for people.
func (p *Provider) Name() string { return p.config.Name }

// Flow is a sign-in that has begun. It is kept where the browser that began it finds it
// alone, and is good once.
type Flow struct {
	State, Nonce, Verifier string
	At                     time.Time
	Fresh                  bool // the person must prove anew who they are
}

// Begin begins a sign-in, which goes on at a URL of the provider.
func (p *Provider) Begin(ctx context.Context, fresh bool) (Flow, string, error) {
	provider, err := p.discover(ctx)
	if err != nil {
		return Flow{}, "", err
	}
	f := Flow{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), At: p.now(), Fresh: fresh}
	options := []oauth2.AuthCodeOption{oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier)}
	if fresh {
		options = append(options, oauth2.SetAuthURLParam("prompt", "login"), oauth2.SetAuthURLParam("max_age", "0"))
	}
	return f, p.registered(provider).AuthCodeURL(f.State, options...), nil
}

// Proven is what the provider has proven of a person.
type Proven struct {
	Subject string // who they are for ever, with the issuer
	Email   string
}

// End ends a sign-in by what the provider's redirect says.
func (p *Provider) End(ctx context.Context, f Flow, answer url.Values) (Proven, error) {
	right := subtle.ConstantTimeCompare([]byte(f.State), []byte(answer.Get("state"))) == 1
	if f.State == "" || !right || p.now().Sub(f.At) > flowLife {
		return Proven{}, ErrFlow
	}
	if issuer := answer.Get("iss"); issuer != "" && issuer != p.config.Issuer {
		return Proven{}, fmt.Errorf("%w: it is of the issuer %q", ErrUnproven, issuer)
	}
	if refusal := answer.Get("error"); refusal != "" {
		return Proven{}, fmt.Errorf("%w: %q", ErrDenied, refusal)
	}
	provider, err := p.discover(ctx)
	if err != nil {
		return Proven{}, err
	}
	ctx = oidc.ClientContext(ctx, p.client)
	tokens, err := p.registered(provider).Exchange(ctx, answer.Get("code"), oauth2.VerifierOption(f.Verifier))
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.Response.StatusCode < http.StatusInternalServerError {
		return Proven{}, fmt.Errorf("%w: %w", ErrUnproven, err)
	} else if err != nil {
		return Proven{}, fmt.Errorf("%w: %w", ErrDown, err)
	}
	raw, _ := tokens.Extra("id_token").(string)
	token, err := provider.Verifier(&oidc.Config{ClientID: p.config.ClientID, Now: p.now}).Verify(ctx, raw)
	if err != nil {
		return Proven{}, fmt.Errorf("%w: %w", ErrUnproven, err)
	}
	return p.judge(f, token)
}

// judge reads the claims of a token that is the provider's, for us and not expired.
func (p *Provider) judge(f Flow, token *oidc.IDToken) (Proven, error) {
	var claims struct {
		Email    string `json:"email"`
		Verified bool   `json:"email_verified"`
		AuthTime int64  `json:"auth_time"`
		Party    string `json:"azp"`
	}
	if err := token.Claims(&claims); err != nil {
		return Proven{}, fmt.Errorf("%w: %w", ErrUnproven, err)
	}
	email := strings.ToLower(claims.Email)
	_, domain, _ := strings.Cut(email, "@")
	switch {
	case subtle.ConstantTimeCompare([]byte(f.Nonce), []byte(token.Nonce)) != 1:
		return Proven{}, fmt.Errorf("%w: it has another nonce", ErrUnproven)
	case claims.Party != "" && claims.Party != p.config.ClientID:
		return Proven{}, fmt.Errorf("%w: it was given to %q", ErrUnproven, claims.Party)
	case strings.ContainsFunc(claims.Email, func(r rune) bool { return r > unicode.MaxASCII }):
		return Proven{}, fmt.Errorf("%w: its email address is not ASCII", ErrUnproven) // the Kelvin sign's small letter is k
	case !claims.Verified:
		return Proven{}, ErrUnverified
	case !slices.ContainsFunc(p.config.Domains, func(d string) bool { return strings.EqualFold(d, domain) }):
		return Proven{}, ErrForeign
	case f.Fresh && time.Unix(claims.AuthTime, 0).Before(f.At.Add(-clockSkew)):
		return Proven{}, ErrStale
	}
	return Proven{token.Issuer + " " + token.Subject, email}, nil
}

// discover reads what the provider publishes of itself, until that has worked once. One
// visitor asks for all who wait, and does so for them though it goes.
func (p *Provider) discover(ctx context.Context) (*oidc.Provider, error) {
	if found := p.found.Load(); found != nil {
		return found, nil
	}
	select {
	case p.asking <- struct{}{}:
		defer func() { <-p.asking }()
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrDown, ctx.Err())
	}
	if found := p.found.Load(); found != nil {
		return found, nil
	}
	if p.failed != nil && p.now().Sub(p.tried) < failureLife {
		return nil, p.failed
	}
	found, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), p.client), p.config.Issuer)
	if err != nil {
		p.failed, p.tried = fmt.Errorf("%w: %w", ErrDown, err), p.now()
		return nil, p.failed
	}
	p.found.Store(found)
	return found, nil
}

func (p *Provider) registered(provider *oidc.Provider) *oauth2.Config {
	return &oauth2.Config{
		ClientID: p.config.ClientID, ClientSecret: p.config.ClientSecret.Reveal(), Endpoint: provider.Endpoint(), RedirectURL: p.config.RedirectURL,
		Scopes: []string{oidc.ScopeOpenID, "email"},
	}
}
