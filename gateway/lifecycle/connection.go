package lifecycle

import (
	"context"
	"strconv"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Accounts finds merchants' accounts, from memory.
type Accounts interface {
	Account(ctx context.Context, id tenants.MerchantID) (*tenants.Account, error)
	ByNotifyToken(ctx context.Context, now time.Time, provider tenants.Provider, token tenants.NotifyToken) (*tenants.Account, tenants.Connection, error)
}

// Vault opens sealed credentials.
type Vault interface {
	OpenCredentials(c tenants.Connection) ([]byte, error)
}

// Connection is an opened account at a provider.
type Connection struct {
	sdk.Connection
	Owner   manifest.Owner
	Account string // its name at the provider, "" where the manifest names none
}

// SharedBy names who shares answers: those who use a connection as it is now. Other
// credentials may be another account, to which nothing of this one applies.
func (c Connection) SharedBy() string { return c.MerchantID + "@" + strconv.FormatInt(c.Version, 10) }

// SameAccount tells whether a connection still reaches the account at the provider
// that a movement was sent on. Where the manifest does not name accounts, other
// credentials may be another account.
func (c Connection) SameAccount(op *catalog.Operation, m movement.Movement) bool {
	if op.Manifest.AccountField() != "" {
		return c.Account == m.ConnectionAccount
	}
	return c.Version == m.ConnectionVersion
}

// Connect opens the account that a merchant's operations use: its own at the
// provider, or else the platform's, where the provider's operations run on that.
func (l *Lifecycle) Connect(ctx context.Context, op *catalog.Operation, account *tenants.Account, mode string) (Connection, error) {
	own, ok := account.Connection(tenants.Mode(mode), tenants.Provider(op.Provider))
	switch {
	case ok:
		return l.open(op, own, manifest.OwnerMerchant)
	case op.Manifest.Owner == manifest.OwnerPlatform:
		return l.platform(ctx, op, mode)
	}
	return Connection{}, fault.New(fault.ProviderUnavailable, "This merchant has no connection to the provider in this mode yet.")
}

// Reconnect opens the account that a movement was sent on, as it is now.
func (l *Lifecycle) Reconnect(ctx context.Context, op *catalog.Operation, m movement.Movement) (Connection, error) {
	if m.ConnectionOwner == manifest.OwnerPlatform {
		return l.platform(ctx, op, m.Owner.Mode)
	}
	account, err := l.Account(ctx, m)
	if err != nil {
		return Connection{}, err
	}
	own, ok := account.Connection(tenants.Mode(m.Owner.Mode), tenants.Provider(op.Provider))
	if !ok {
		return Connection{}, fault.New(fault.ProviderUnavailable, "This merchant has no connection to the provider in this mode any more.")
	}
	return l.open(op, own, manifest.OwnerMerchant)
}

func (l *Lifecycle) platform(ctx context.Context, op *catalog.Operation, mode string) (Connection, error) {
	account, err := l.Accounts.Account(ctx, tenants.Platform)
	if err != nil {
		return Connection{}, err
	}
	shared, ok := account.Connection(tenants.Mode(mode), tenants.Provider(op.Provider))
	if !ok {
		return Connection{}, fault.New(fault.ProviderUnavailable, "The provider is not connected in this mode yet.")
	}
	return l.open(op, shared, manifest.OwnerPlatform)
}

func (l *Lifecycle) open(op *catalog.Operation, c tenants.Connection, owner manifest.Owner) (Connection, error) {
	opened, err := unseal(l.Vault, c)
	if err != nil {
		return Connection{}, err
	}
	return Connection{Connection: opened, Owner: owner, Account: op.Manifest.AccountIn(opened.Credentials)}, nil
}

func unseal(vault Vault, c tenants.Connection) (sdk.Connection, error) {
	credentials, err := vault.OpenCredentials(c)
	if err != nil {
		return sdk.Connection{}, fault.New(fault.ProviderUnavailable, "The connection to the provider can't be used.").Because(err)
	}
	return sdk.Connection{MerchantID: string(c.MerchantID), Mode: string(c.Mode), Version: c.Version, Credentials: credentials}, nil
}
