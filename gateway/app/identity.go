package app

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/console/page"
	"github.com/seed-f006e74d/gerbang/gateway/identity"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// IdentityConfig is an OpenID Connect provider at which operators may sign in.
type IdentityConfig struct {
	Name             string   `koanf:"name"` // for people: Sign in with ...
	Issuer           string   `koanf:"issuer"`
	ClientID         string   `koanf:"client_id"`
	ClientSecretFile string   `koanf:"client_secret_file"`
	Domains          []string `koanf:"domains"` // of the email addresses that it is believed about
	secret           tenants.Secret
}

func (c *IdentityConfig) given() bool {
	return c.Name != "" || c.Issuer != "" || c.ClientID != "" || c.ClientSecretFile != "" || len(c.Domains) > 0
}

// check judges the setting, and reads the secret.
func (c *IdentityConfig) check(console string) error {
	if !c.given() {
		return nil
	}
	var faults []error
	if c.Name == "" || c.ClientID == "" || len(c.Domains) == 0 || c.ClientSecretFile == "" {
		faults = append(faults, errors.New("identity_provider: name, issuer, client_id, client_secret_file and domains must be given"))
	}
	if u, err := url.Parse(c.Issuer); err != nil || !forSessions(u.Scheme+"://"+u.Host) {
		faults = append(faults, errors.New("identity_provider: issuer: must be an https URL"))
	}
	if console == "" {
		faults = append(faults, errors.New("identity_provider: operators_console_url must be given, too: the provider sends people back there"))
	}
	if c.ClientSecretFile != "" {
		text, err := readSecretFile(c.ClientSecretFile)
		if err != nil {
			faults = append(faults, fmt.Errorf("identity_provider: client_secret_file: %w", err))
		}
		c.secret = tenants.NewSecret(text)
	}
	return errors.Join(faults...)
}

// provider is the one of the setting, nil for none. It is asked nothing yet.
func (c *IdentityConfig) provider(console string, now func() time.Time) *identity.Provider {
	if !c.given() {
		return nil
	}
	return identity.New(identity.Config{
		Name: c.Name, Issuer: c.Issuer, ClientID: c.ClientID, ClientSecret: c.secret, Domains: c.Domains, RedirectURL: console + page.CallbackPath,
	}, now)
}
