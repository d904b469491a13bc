package app

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

const (
	// proofAccounts is how many connections of test mode a new version of a plugin is tried
	// on at most, and proofTimeout how long one takes.
	proofAccounts = 3
	proofTimeout  = 10 * time.Second
)

// proof tries a new version of a plugin on connections of test mode, where there are any
// and it can verify them: it has to take the credentials of one, unless the version in use
// takes none of them either.
func (a *App) proof(m *manifest.Manifest) host.Proof {
	if !m.Verifies {
		return nil
	}
	return func(ctx context.Context, c host.Candidate) error {
		merchants, err := a.store.TestConnections(ctx, m.Name, proofAccounts)
		if err != nil {
			return err
		}
		for _, id := range merchants {
			with, err := a.testConnection(ctx, id, tenants.Provider(m.Name))
			if err != nil { // one merchant's row stops nobody's new version
				a.log.WarnContext(ctx, "a connection of test mode can't be opened to try a new version of a plugin on it", "plugin", m.Name, "merchant_id", id, "error", err)
				continue
			}
			said := c.Verify(ctx, with, proofTimeout)
			if said.Outcome == sdk.Done {
				return nil
			}
			if a.host.Verify(ctx, m.Name, with, proofTimeout).Outcome == sdk.Done {
				return fmt.Errorf("it does not take the test connection of merchant %s, which the version in use takes: %s", id, cmp.Or(said.Refusal.Message, said.Detail, "it does not say why"))
			}
		}
		if len(merchants) > 0 {
			a.log.WarnContext(ctx, "a new version of a plugin was tried on connections of test mode that the version in use does not take either", "plugin", m.Name)
		}
		return nil
	}
}

// testConnection opens the account of a merchant in test mode.
func (a *App) testConnection(ctx context.Context, id tenants.MerchantID, provider tenants.Provider) (sdk.Connection, error) {
	account, err := a.store.AccountByID(ctx, id)
	if err != nil {
		return sdk.Connection{}, err
	}
	connection, ok := account.Connection(tenants.Test, provider)
	if !ok {
		return sdk.Connection{}, fmt.Errorf("merchant %s has disconnected meanwhile", id)
	}
	credentials, err := a.vault.OpenCredentials(connection)
	if err == nil && a.sandbox != nil {
		credentials, _, err = a.sandbox.Reached(credentials)
	}
	if err != nil {
		return sdk.Connection{}, err
	}
	return sdk.Connection{MerchantID: string(id), Mode: string(tenants.Test), Credentials: credentials}, nil
}
