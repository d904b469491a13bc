package engine

import (
	"context"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// connection is an opened account at a provider.
type connection struct {
	sdk.Connection
	owner   manifest.Owner
	account string // its name at the provider, "" where the manifest names none
}

// connect opens the account that a merchant's operations use: its own at the
// provider, or else the platform's, where the provider's operations run on that.
func (e *Engine) connect(ctx context.Context, op *catalog.Operation, account *tenants.Account, mode string) (connection, error) {
	own, ok := account.Connection(tenants.Mode(mode), tenants.Provider(op.Provider))
	switch {
	case ok:
		return e.open(op, own, manifest.OwnerMerchant)
	case op.Manifest.Owner == manifest.OwnerPlatform:
		return e.platform(ctx, op, mode)
	}
	return connection{}, fault.New(fault.ProviderUnavailable, "This merchant has no connection to the provider in this mode yet.")
}

func (e *Engine) platform(ctx context.Context, op *catalog.Operation, mode string) (connection, error) {
	account, err := e.Accounts.Account(ctx, tenants.Platform)
	if err != nil {
		return connection{}, err
	}
	shared, ok := account.Connection(tenants.Mode(mode), tenants.Provider(op.Provider))
	if !ok {
		return connection{}, fault.New(fault.ProviderUnavailable, "The provider is not connected in this mode yet.")
	}
	return e.open(op, shared, manifest.OwnerPlatform)
}

// reconnect opens the account that a movement was sent on, as it is now.
func (e *Engine) reconnect(ctx context.Context, op *catalog.Operation, m movement.Movement) (connection, error) {
	if m.ConnectionOwner == manifest.OwnerPlatform {
		return e.platform(ctx, op, m.Owner.Mode)
	}
	account, err := e.accountOf(ctx, m)
	if err != nil {
		return connection{}, err
	}
	own, ok := account.Connection(tenants.Mode(m.Owner.Mode), tenants.Provider(op.Provider))
	if !ok {
		return connection{}, fault.New(fault.ProviderUnavailable, "This merchant has no connection to the provider in this mode any more.")
	}
	return e.open(op, own, manifest.OwnerMerchant)
}

func (e *Engine) open(op *catalog.Operation, c tenants.Connection, owner manifest.Owner) (connection, error) {
	opened, err := e.unseal(c)
	if err != nil {
		return connection{}, err
	}
	return connection{Connection: opened, owner: owner, account: op.Manifest.AccountIn(opened.Credentials)}, nil
}

func (e *Engine) unseal(c tenants.Connection) (sdk.Connection, error) {
	credentials, err := e.Vault.OpenCredentials(c)
	if err != nil {
		return sdk.Connection{}, fault.New(fault.ProviderUnavailable, "The connection to the provider can't be used.").Because(err)
	}
	return sdk.Connection{MerchantID: string(c.MerchantID), Mode: string(c.Mode), Version: c.Version, Credentials: credentials}, nil
}

// sameAccount tells whether a connection still reaches the account at the
// provider that a movement was sent on. Where the manifest does not name
// accounts, other credentials may be another account.
func (c connection) sameAccount(op *catalog.Operation, m movement.Movement) bool {
	if op.Manifest.AccountField() != "" {
		return c.account == m.ConnectionAccount
	}
	return c.Version == m.ConnectionVersion
}
