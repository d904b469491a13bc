package app

import (
	"context"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/console"
	"github.com/seed-f006e74d/gerbang/gateway/list"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// wireConsole makes the operators' listener.
func (a *App) wireConsole(vault *tenants.Vault, zone *time.Location) error {
	access, err := a.config.access()
	if err != nil {
		return err
	}
	a.console, err = console.New(
		console.Config{
			Access: access, Svc: a.config.Service, PublicURL: a.config.PublicURL,
			AllowHTTPCallbacks: a.config.AllowHTTPCallbacks, Location: zone,
		},
		console.Dependencies{
			Merchants: a.store, Secrets: a.store, Operators: a.store, People: a.SignIn, Pauses: a.store, Lists: a.store, Listing: a.lists, ListKey: list.NewKey(a.names), Movements: a.store, Exceptions: a.store, Callbacks: a.store, Requests: a.store, Challenge: a.dispatcher.Challenge, Ledger: a.store, Statements: a.store, Database: a.store,
			Finder: a.store, Override: a.overrides.Override, Assign: a.reconciler.Assign, Refund: a.refunds.Order, Simulators: a.controlRoom(), Usage: a.store.Usage, Policy: a.policy.Set,
			Probe:     func(ctx context.Context) (string, error) { return a.store.Probe(ctx, a.replica, a.clock.Now()) },
			Decisions: a.explaining(), Decided: a.decidedOf, Traffic: a.traffic,
			Policies: a.store, Publisher: a.publisher, Following: a.follower, Replica: a.replica,
			Stopping: a.stopping.Load, Recovery: a.store, Audit: a.audits, Recovering: a.recovery.Begun, Said: a.absences.Said,
			Approvals: a.approvals, Clock: a.clock, Directory: a.directory, Vault: vault, Plugins: a.host, Catalog: a.operations, Metrics: a.metrics, Now: a.clock.Now, Log: a.log,
		})
	return err
}

// access is who may use the console.
func (c *Config) access() (console.Access, error) {
	allow, err := prefixes(c.ConsoleAllow)
	if err != nil {
		return console.Access{}, err
	}
	trusted, err := prefixes(c.TrustedProxies)
	if err != nil {
		return console.Access{}, err
	}
	operators := make([]console.Operator, len(c.Operators))
	for i, o := range c.Operators {
		role, err := o.role()
		if err != nil {
			return console.Access{}, err
		}
		operators[i] = console.Operator{Name: o.Name, TokenHash: o.tokenHash, Role: role, Inputs: o.Inputs}
	}
	return console.Access{Operators: operators, Allow: allow, Trusted: trusted, ApprovalAbove: money.Amount(c.ApprovalAbove)}, nil
}

// Reload takes over what of another configuration can change while a gateway runs:
// operators and their tokens, console_allow, approval_above and trusted_proxies. On an
// error nothing changes. It is called by one goroutine at a time.
func (a *App) Reload(c Config) error {
	access, err := c.access()
	if err != nil {
		return err
	}
	if err := a.console.Admit(access); err != nil {
		return err
	}
	a.edge.Trust(access.Trusted)
	return nil
}
