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
			Merchants: a.store, Standing: a.store, Keys: a.store, Connections: a.store, Verifier: a.host, Sealed: a.store, Keyring: vault,
			Attention: a.store, Movements: a.store, Around: a.store, Finder: a.store, Decider: a.overrides, Database: a.store, Clock: a.clock,
			Adjustments: a.store, Books: a.store, Proof: a.store, Usage: a.store, Limits: a.store, Settlements: a.store, Assigner: a.reconciler,
			Callbacks: a.store, Outbox: a.store, CallbackSecrets: a.store,
			Directory: a.directory, Vault: vault, Plugins: a.host, Policy: a.policy,
			Metrics: a.metrics, Now: time.Now, Log: a.log,
		})
	return err
}
