package app

import (
	"context"
	"fmt"
	"strings"

	"github.com/seed-f006e74d/gerbang/gateway/callback"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// wireDispatcher makes what delivers callbacks.
func (a *App) wireDispatcher(vault *tenants.Vault, replica string) error {
	deny, err := prefixes(a.config.CallbackDeny)
	if err != nil {
		return err
	}
	if a.config.AllowHTTPCallbacks && strings.HasPrefix(a.config.PublicURL, "https://") {
		a.log.Warn("allow_http_callbacks lets every merchant's callbacks reach this machine's own listeners; it is meant for development")
	}
	sender, err := callback.New(callback.Config{Service: a.config.Service, Now: a.clock.Now, AllowLocal: a.config.AllowHTTPCallbacks, Deny: deny})
	if err != nil {
		return err
	}
	a.sender = sender
	a.dispatcher = callback.NewDispatcher(callback.Dependencies{
		Queue: a.store, Leases: a.leases("callbacks", replica), Send: sender.Send,
		Secrets: callbackSecrets{a.directory, vault}.of, Observe: a.metrics.ObserveCallback, Dead: a.SignIn.CallbackDead, Tracer: a.tracer(), Log: a.log,
	})
	return nil
}

// callbackSecrets opens merchants' callback secrets, which are in memory sealed.
type callbackSecrets struct {
	directory *tenants.Directory
	vault     *tenants.Vault
}

// of finds what a merchant's callbacks are signed with in a mode.
func (s callbackSecrets) of(ctx context.Context, owner movement.Owner) (callback.Secrets, error) {
	account, err := s.directory.Account(ctx, tenants.MerchantID(owner.MerchantID))
	if err != nil {
		return callback.Secrets{}, err
	}
	sealed, ok := account.CallbackSecret(tenants.Mode(owner.Mode))
	if !ok {
		return callback.Secrets{}, fmt.Errorf("merchant %s has no callback secret in mode %s", owner.MerchantID, owner.Mode)
	}
	current, err := s.vault.OpenCallbackSecret(sealed)
	if err != nil {
		return callback.Secrets{}, err
	}
	next, err := s.vault.OpenNextCallbackSecret(sealed)
	if err != nil {
		return callback.Secrets{}, err
	}
	secrets := callback.Secrets{Current: callback.Secret(current.Reveal()), SignWithNext: sealed.NextSigns}
	if !next.IsZero() {
		secrets.Next = callback.Secret(next.Reveal())
	}
	return secrets, nil
}
