package app

import (
	"context"
	"encoding/json"
	"net"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console"
	"github.com/seed-f006e74d/gerbang/gateway/console/merchants"
	"github.com/seed-f006e74d/gerbang/gateway/console/operators"
	"github.com/seed-f006e74d/gerbang/gateway/console/page"
	"github.com/seed-f006e74d/gerbang/gateway/limit"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/signin"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// wireSignIn makes what people sign in with. Mailed wakes the outbox; it is nil where no
// mails are sent.
func (a *App) wireSignIn(vault *tenants.Vault, mailed func()) {
	links := signin.Links{Merchants: a.config.MerchantsConsoleURL}
	if a.operatorsReachable() {
		links.Operators = a.config.OperatorsConsoleURL
	}
	a.SignIn = signin.New(signin.Dependencies{
		Store: a.store, Vault: vault, Failures: a.metrics.CountFailures(limit.NewFailures()), Asks: limit.NewFailures(), Links: links, Mailed: mailed, Now: a.clock.Now, Log: a.log,
	})
	a.directory.NoteRefusals(a.SignIn.KeyRefused)
}

// wirePeople makes the consoles' pages.
func (a *App) wirePeople(zone *time.Location) error {
	shared := page.Dependencies{SignIn: a.SignIn, Sessions: a.store.Sessions(), Now: a.clock.Now, Log: a.log}
	of, err := operators.New(operators.Config{
		URL: a.config.OperatorsConsoleURL, Trusted: a.console.Trusted, Location: zone, Provider: a.config.IdentityProvider.provider(a.config.OperatorsConsoleURL, a.clock.Now),
	}, operators.Dependencies{
		Dependencies: shared,
		Admin: func(by string, role tenants.Role) *adminapi.Client {
			return adminapi.NewClientOver(a.console.As(console.Identity{Name: by, Role: console.Role(role)}))
		},
	})
	if err != nil {
		return err
	}
	a.pages = of
	if a.operatorsReachable() {
		a.console.Serve(of)
	}
	if a.config.MerchantsConsole == "" {
		return nil
	}
	a.people, err = merchants.New(
		merchants.Config{URL: a.config.MerchantsConsoleURL, APIURL: a.config.PublicURL, Trusted: a.console.Trusted, Location: zone},
		merchants.Dependencies{
			Dependencies: shared, Records: a.store, Manifests: a.host.Manifests, Plays: a.plays(),
			Standing: func(m movement.Movement) (json.RawMessage, error) { return a.lifecycle.Standing(m) }, // which is made later
			Refundable: func(ctx context.Context, m movement.Movement) (money.Amount, error) {
				return a.refunds.Refundable(ctx, m)
			},
			Admin: func(by string, of tenants.MerchantID) *adminapi.Client {
				// The page has judged what its visitor may do there.
				return adminapi.NewClientOver(a.console.As(console.Identity{Name: by, Role: console.RoleAdmin, Of: of}))
			},
		})
	return err
}

// operatorsReachable tells whether operators may sign in: where their URL is not given they
// do so on this machine alone, lest a session travels without TLS.
func (a *App) operatorsReachable() bool {
	address, ok := a.operators.Addr().(*net.TCPAddr)
	return a.config.OperatorsConsoleURL != a.ConsoleURL() || ok && address.IP.IsLoopback()
}

// sessionsEvery is how often sessions that are over are forgotten.
const sessionsEvery = 10 * time.Minute

// forgetSessions forgets the consoles' sessions that are over, some at a time.
func (a *App) forgetSessions(ctx context.Context) error {
	tick := time.NewTicker(sessionsEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			for more := true; more; {
				var err error
				if more, err = a.store.Sessions().Forget(ctx, a.clock.Now()); err != nil && ctx.Err() == nil {
					a.log.WarnContext(ctx, "sessions that are over can't be forgotten", "error", err)
				}
			}
		}
	}
}
