package app

import (
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/console"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// wireConsole makes the operators' listener.
func (a *App) wireConsole(vault *tenants.Vault, zone *time.Location) error {
	allow, err := prefixes(a.config.ConsoleAllow)
	if err != nil {
		return err
	}
	operators := make([]console.Operator, len(a.config.Operators))
	for i, o := range a.config.Operators {
		operators[i] = console.Operator{Name: o.Name, TokenHash: o.tokenHash}
	}
	a.console, err = console.New(
		console.Config{
			Operators: operators, Allow: allow, Svc: a.config.Service, PublicURL: a.config.PublicURL,
			AllowHTTPCallbacks: a.config.AllowHTTPCallbacks, ApprovalAbove: money.Amount(a.config.ApprovalAbove), Location: zone,
		},
		console.Dependencies{
			Merchants: a.store, Secrets: a.store, Movements: a.store, Exceptions: a.store, Callbacks: a.store, Ledger: a.store, Statements: a.store,
			Override: a.overrides.Override, Assign: a.reconciler.Assign, Usage: a.store.Usage, Ping: a.store.Ping, Policy: a.policy.Set,
			Clock: a.clock, Directory: a.directory, Vault: vault, Plugins: a.host, Metrics: a.metrics, Now: a.clock.Now, Log: a.log,
		})
	return err
}
