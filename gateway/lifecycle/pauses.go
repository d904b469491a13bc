package lifecycle

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// paused is the error of a provider or an account that operators have paused, nil for
// neither. What both are read from is in memory.
func (l *Lifecycle) paused(ctx context.Context, r Request, c Connection) error {
	platform, err := l.ofAll(ctx)
	if err != nil {
		return err
	}
	holder, provider, mode := r.Identity.Account, tenants.Provider(r.Operation.Provider), r.Identity.Mode
	if c.Owner == manifest.OwnerPlatform {
		holder = platform
	}
	if p, is := pauseOf(platform, tenants.PauseProvider, provider, mode); is {
		return refusedBy(p, "The provider is")
	}
	if p, is := pauseOf(holder, tenants.PauseConnection, provider, mode); is {
		return refusedBy(p, "The provider is")
	}
	return nil
}

// Paused is the error of what operators have paused for the request's merchant or for all,
// nil where it goes on. Words say what it is: "Transfers are".
func (l *Lifecycle) Paused(ctx context.Context, r Request, what tenants.Pausable, words string) error {
	platform, err := l.ofAll(ctx)
	if err != nil {
		return err
	}
	for _, account := range []*tenants.Account{platform, r.Identity.Account} {
		if p, is := pauseOf(account, what, "", r.Identity.Mode); is {
			return refusedBy(p, words)
		}
	}
	return nil
}

// ofAll is the platform's account, on which stands what is paused for all merchants;
// nil where there is none.
func (l *Lifecycle) ofAll(ctx context.Context) (*tenants.Account, error) {
	platform, err := l.Accounts.Account(ctx, tenants.Platform)
	if errors.Is(err, tenants.ErrNotFound) {
		return nil, nil //nolint:nilnil // then nothing is paused
	}
	return platform, err
}

func pauseOf(account *tenants.Account, what tenants.Pausable, provider tenants.Provider, mode tenants.Mode) (tenants.Pause, bool) {
	if account == nil {
		return tenants.Pause{}, false
	}
	return account.Paused(what, provider, mode)
}

func refusedBy(p tenants.Pause, what string) error {
	return fault.Newf(fault.ProviderUnavailable, "%s not available at the moment. Nothing was sent.", what).
		Because(fmt.Errorf("%s has paused the %s: %s", p.SetBy, p.What, p.Reason))
}
