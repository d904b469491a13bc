package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/limit"
	"github.com/seed-f006e74d/gerbang/gateway/signin"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Invited is an invitation with its link, which is good once.
type Invited struct {
	URL       string       `json:"url"`
	Email     string       `json:"email"`
	Role      tenants.Role `json:"role"`
	ExpiresAt time.Time    `json:"expires_at"`
}

// RemovePerson forgets somebody on the database of a configuration, so that they can be
// invited anew: it is the way back for who has lost phone and recovery codes.
func RemovePerson(ctx context.Context, c Config, email string) error {
	s, err := store.Open(ctx, c.DatabaseURL, store.Options{MaxConns: 2})
	if err != nil {
		return err
	}
	defer s.Close()
	address, err := signin.Email(email)
	if err != nil {
		return fault.Invalid("email", "must be an email address")
	}
	if err := s.RemovePerson(tenants.From(ctx, tenants.CommandLine), "gerbang", address, time.Now()); errors.Is(err, tenants.ErrNotFound) {
		return fault.New(fault.NotFound, "Nobody signs in with this address.")
	} else if err != nil {
		return err
	}
	return nil
}

// Invite makes an invitation to a merchant, or to the platform, on the database and the
// keyset of a configuration, whether or not a gateway runs there: who has both may do
// anything, and this is how the first one comes in.
func Invite(ctx context.Context, c Config, to tenants.MerchantID, role tenants.Role, email string) (Invited, error) {
	s, err := store.Open(ctx, c.DatabaseURL, store.Options{MaxConns: 2})
	if err != nil {
		return Invited{}, err
	}
	defer s.Close()
	source, err := c.keyset()
	if err != nil {
		return Invited{}, err
	}
	vault, err := tenants.OpenVault(ctx, source, slog.New(slog.DiscardHandler))
	if err != nil {
		return Invited{}, err
	}
	if _, err := readNameKey(ctx, s, vault, time.Now()); err != nil { // it is this database's keyset
		return Invited{}, err
	}
	in, err := signin.New(s, vault, limit.NewFailures(), time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		return Invited{}, err
	}
	base := c.MerchantsConsoleURL
	if to == tenants.Platform {
		base = c.OperatorsConsoleURL
	}
	if base == "" {
		return Invited{}, errors.New("merchants_console_url, or operators_console_url for operators, must be in the configuration: the link leads there")
	}
	return invite(ctx, in, base, "gerbang invite", to, role, email)
}

// Invite makes an invitation on a running gateway.
func (a *App) Invite(ctx context.Context, by string, to tenants.MerchantID, role tenants.Role, email string) (Invited, error) {
	base := a.config.MerchantsConsoleURL
	if to == tenants.Platform {
		base = a.config.OperatorsConsoleURL
	}
	return invite(ctx, a.SignIn, base, by, to, role, email)
}

func invite(ctx context.Context, in *signin.SignIn, base, by string, to tenants.MerchantID, role tenants.Role, email string) (Invited, error) {
	secret, i, err := in.Invite(tenants.From(ctx, tenants.CommandLine), by, to, role, email)
	if errors.Is(err, tenants.ErrNotFound) {
		return Invited{}, fault.New(fault.NotFound, "There is no such merchant.")
	}
	if err != nil {
		return Invited{}, fmt.Errorf("invite: %w", err)
	}
	return Invited{URL: base + "/invitations/" + url.PathEscape(secret), Email: i.Email, Role: i.Role, ExpiresAt: i.ExpiresAt}, nil
}
