package dev

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// The demo merchants: one for each end of the default policy's tiers.
var demo = []adminapi.NewMerchant{
	{Name: "Toko Contoh Besar", Tier: "scale"},
	{Name: "Warung Contoh", Tier: "starter"},
}

var modes = []string{"live", "test"}

// provision makes sure, through the admin API, that the demo merchants exist,
// that connections lead to the simulators where these are now, and that there
// is a balance to buy from.
func (t *tree) provision(ctx context.Context) error {
	admin := adminapi.NewClient(t.gateway.ConsoleURL(), t.state.AdminToken)
	if err := t.ready(ctx, admin); err != nil {
		return err
	}
	t.connecting.Lock()
	defer t.connecting.Unlock()
	if err := t.createMerchants(ctx, admin); err != nil {
		return fmt.Errorf("demo merchants: %w", err)
	}
	t.inbox.know(t.state.Merchants)
	if err := t.connectAll(ctx, admin, t.gateway.APIURL(), t.sandboxes...); err != nil {
		return err
	}
	t.connected = true
	return t.credit(ctx, admin)
}

// reconnect opens the accounts at one simulator anew: a plugin that was built anew may ask
// for other credentials than before. Until provision has been through, that is its own.
func (t *tree) reconnect(ctx context.Context, s *simulator) error {
	t.connecting.Lock()
	defer t.connecting.Unlock()
	if !t.connected {
		return nil
	}
	return t.connectAll(ctx, adminapi.NewClient(t.gateway.ConsoleURL(), t.state.AdminToken), t.gateway.APIURL(), s)
}

// connectAll opens the accounts that the simulators' providers use.
func (t *tree) connectAll(ctx context.Context, admin *adminapi.Client, api string, sandboxes ...*simulator) error {
	plugins, err := adminapi.ListPlugins.Call(ctx, admin, adminapi.None{})
	if err != nil {
		return err
	}
	for _, s := range sandboxes {
		for _, p := range t.parties(owner(plugins, s.plugin.name)) {
			for _, mode := range modes {
				if err := connect(ctx, admin, s, p, mode, api); err != nil {
					return fmt.Errorf("connect %s to the simulator of %s: %w", p.id, s.plugin.name, err)
				}
			}
		}
	}
	return nil
}

// party is the owner of an account at a simulator.
type party struct{ id, name string }

// parties are the merchants if each has an account of its own, else the platform.
func (t *tree) parties(owner tenants.Owner) []party {
	if owner == tenants.OwnerPlatform {
		return []party{{string(tenants.Platform), "Platform"}}
	}
	all := make([]party, len(t.state.Merchants))
	for i, m := range t.state.Merchants {
		all[i] = party{m.MerchantID, demo[i].Name}
	}
	return all
}

func owner(plugins []adminapi.Plugin, name string) tenants.Owner {
	for _, p := range plugins {
		if p.Provider == name {
			return tenants.Owner(p.Owner)
		}
	}
	return tenants.OwnerMerchant
}

// opening is each demo merchant's first balance, in each mode.
const opening money.Amount = 10_000_000

// credit gives the demo merchants their first balance. Its reference makes sure that
// they get it once.
func (t *tree) credit(ctx context.Context, admin *adminapi.Client) error {
	for _, m := range t.state.Merchants {
		for _, mode := range modes {
			order := adminapi.NewAdjustment{Merchant: m.MerchantID, Mode: mode, Amount: opening, Reason: "to try orders with", Reference: "opening balance"}
			if _, err := adminapi.Credit.Call(ctx, admin, order); err != nil {
				return fmt.Errorf("credit %s: %w", m.MerchantID, err)
			}
		}
	}
	return nil
}

func (t *tree) ready(ctx context.Context, admin *adminapi.Client) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	reported := time.Now()
	for {
		err := admin.Ready(ctx)
		if err == nil {
			return nil
		}
		if time.Since(reported) > time.Second {
			reported = time.Now()
			t.Log.Info("waiting for the gateway", "because", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// createMerchants creates the demo merchants that the database does not have. Keys
// are shown once, so they are saved before anything else happens.
func (t *tree) createMerchants(ctx context.Context, admin *adminapi.Client) error {
	for i, wanted := range demo {
		if i < len(t.state.Merchants) {
			_, err := adminapi.ShowMerchant.Call(ctx, admin, adminapi.MerchantID{Merchant: t.state.Merchants[i].MerchantID})
			if err == nil {
				continue
			}
			if failure, ok := errors.AsType[*adminapi.Failure](err); !ok || failure.Status != http.StatusNotFound {
				return err
			}
			t.state.Merchants = t.state.Merchants[:i] // the database is a new one
		}
		made, err := adminapi.CreateMerchant.Call(ctx, admin, wanted)
		if err != nil {
			return err
		}
		t.state.Merchants = append(t.state.Merchants, merchant{
			MerchantID: made.MerchantID, Tier: wanted.Tier, LiveKey: made.LiveKey, TestKey: made.TestKey,
			CallbackSecret: made.CallbackSecret, TestCallbackSecret: made.TestCallbackSecret,
		})
		if err := t.state.save(); err != nil {
			return err
		}
	}
	return nil
}

// connect opens an account at a simulator, stores it as its party's connection, and
// gives the simulator the address for its notifications.
func connect(ctx context.Context, admin *adminapi.Client, s *simulator, p party, mode, api string) error {
	var opened struct {
		Account       string          `json:"account"`
		CallbackToken string          `json:"callback_token"`
		Credentials   json.RawMessage `json:"credentials"`
	}
	if _, err := s.Control(ctx, "connect", map[string]string{"merchant": p.id, "mode": mode}, &opened); err != nil {
		return err
	}
	connection, err := adminapi.SetConnection.Call(ctx, admin, adminapi.ConnectionSpec{Merchant: p.id, Provider: s.plugin.name, Mode: mode, Credentials: opened.Credentials})
	if err != nil {
		return err
	}
	_, err = s.Control(ctx, "hooks", map[string]string{
		"account": opened.Account, "name": p.name,
		"callback_url": api + connection.NotifyPath, "callback_token": opened.CallbackToken,
	}, nil)
	return err
}
