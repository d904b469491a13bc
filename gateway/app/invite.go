package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	s, _, err := openSealed(ctx, c)
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

// openSignIn opens what people sign in with on the database and the keyset of a
// configuration, whether or not a gateway runs there: who has both may do anything, and this
// is how the first one comes in. It mails nothing.
func openSignIn(ctx context.Context, c Config) (in *signin.SignIn, done func(), err error) {
	s, vault, err := openSealed(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	in = signin.New(signin.Dependencies{
		Store: s, Vault: vault, Failures: limit.NewFailures(), Asks: limit.NewFailures(), Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Links: signin.Links{Merchants: c.MerchantsConsoleURL, Operators: c.OperatorsConsoleURL},
	})
	return in, s.Close, nil
}

// openSealed opens the database of a configuration, with the keyset that belongs to it.
func openSealed(ctx context.Context, c Config) (*store.Store, *tenants.Vault, error) {
	source, err := c.keyset()
	if err != nil {
		return nil, nil, err
	}
	vault, err := tenants.OpenVault(ctx, source, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, nil, err
	}
	s, err := store.Open(ctx, c.DatabaseURL, store.Options{MaxConns: 2, Seal: vault.SealAudit})
	if err != nil {
		return nil, nil, err
	}
	if _, err = readNameKey(ctx, s, vault, time.Now()); err != nil { // it is this database's keyset
		s.Close()
		return nil, nil, err
	}
	return s, vault, nil
}

// Invite makes an invitation to a merchant, or to the platform, on the database and the
// keyset of a configuration. Its link is for whoever asks to hand over.
func Invite(ctx context.Context, c Config, to tenants.MerchantID, role tenants.Role, email string) (Invited, error) {
	in, done, err := openSignIn(ctx, c)
	if err != nil {
		return Invited{}, err
	}
	defer done()
	return invite(ctx, in, "gerbang invite", to, role, email)
}

// Recovered is a link by which somebody sets a new password, with their second factor.
type Recovered struct {
	URL       string    `json:"url"`
	ExpiresAt time.Time `json:"expires_at"`
}

// Recover makes such a link.
func Recover(ctx context.Context, c Config, email string) (Recovered, error) {
	in, done, err := openSignIn(ctx, c)
	if err != nil {
		return Recovered{}, err
	}
	defer done()
	link, until, err := in.Recover(tenants.From(ctx, tenants.CommandLine), email)
	if errors.Is(err, tenants.ErrNotFound) {
		return Recovered{}, fault.New(fault.NotFound, "Nobody signs in with this address.")
	}
	return Recovered{link, until}, err
}

// Invite makes an invitation on a running gateway, which is not mailed.
func (a *App) Invite(ctx context.Context, by string, to tenants.MerchantID, role tenants.Role, email string) (Invited, error) {
	return invite(ctx, a.SignIn, by, to, role, email)
}

func invite(ctx context.Context, in *signin.SignIn, by string, to tenants.MerchantID, role tenants.Role, email string) (Invited, error) {
	url, i, err := in.Invite(tenants.From(ctx, tenants.CommandLine), by, to, role, email, "")
	if errors.Is(err, tenants.ErrNotFound) {
		return Invited{}, fault.New(fault.NotFound, "There is no such merchant.")
	}
	if err != nil {
		return Invited{}, fmt.Errorf("invite: %w", err)
	}
	return Invited{URL: url, Email: i.Email, Role: i.Role, ExpiresAt: i.ExpiresAt}, nil
}
