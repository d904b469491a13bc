package dev

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/console"
)

// The demo merchants: one for each end of the default policy's tiers.
var demo = []console.NewMerchant{
	{Name: "Toko Contoh Besar", Tier: "scale"},
	{Name: "Warung Contoh", Tier: "starter"},
}

var modes = []string{"live", "test"}

// provision makes sure, through the admin API, that the demo merchants exist
// and that their connections lead to the simulators where these are now.
func (t *tree) provision(ctx context.Context) error {
	admin := console.NewClient(t.gateway.ConsoleURL(), t.state.AdminToken)
	if err := t.ready(ctx, admin); err != nil {
		return err
	}
	if err := t.createMerchants(ctx, admin); err != nil {
		return fmt.Errorf("demo merchants: %w", err)
	}
	t.inbox.know(t.state.Merchants)
	for i, m := range t.state.Merchants {
		for _, mode := range modes {
			for _, s := range t.sandboxes {
				if err := t.connect(ctx, admin, s, m.MerchantID, demo[i].Name, mode); err != nil {
					return fmt.Errorf("connect %s to the simulator of %s: %w", m.MerchantID, s.plugin.name, err)
				}
			}
		}
	}
	return nil
}

func (t *tree) ready(ctx context.Context, admin *console.Client) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	told := time.Now()
	for {
		err := admin.Ready(ctx)
		if err == nil {
			return nil
		}
		if time.Since(told) > time.Second {
			told = time.Now()
			t.Log.Info("waiting for the gateway", "because", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// createMerchants makes those that the database does not have. Keys are told
// once, so they are written down before anything else happens.
func (t *tree) createMerchants(ctx context.Context, admin *console.Client) error {
	for i, wanted := range demo {
		if i < len(t.state.Merchants) {
			_, err := admin.Merchant(ctx, t.state.Merchants[i].MerchantID)
			if err == nil {
				continue
			}
			if failure, ok := errors.AsType[*console.Failure](err); !ok || failure.Status != http.StatusNotFound {
				return err
			}
			t.state.Merchants = t.state.Merchants[:i] // the database is a new one
		}
		made, err := admin.CreateMerchant(ctx, wanted)
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

// connect opens an account at a simulator and gives it to the merchant, and
// tells the simulator where its notifications go.
func (t *tree) connect(ctx context.Context, admin *console.Client, s *sandbox, merchantID, name, mode string) error {
	var opened struct {
		Account       string          `json:"account"`
		CallbackToken string          `json:"callback_token"`
		Credentials   json.RawMessage `json:"credentials"`
	}
	if _, err := s.control(ctx, "connect", map[string]string{"merchant": merchantID, "mode": mode}, &opened); err != nil {
		return err
	}
	connection, err := admin.SetConnection(ctx, merchantID, s.plugin.name, console.ConnectionSpec{Mode: mode, Credentials: opened.Credentials})
	if err != nil {
		return err
	}
	_, err = s.control(ctx, "hooks", map[string]string{
		"account": opened.Account, "name": name,
		"callback_url": t.gateway.APIURL() + connection.NotifyPath, "callback_token": opened.CallbackToken,
	}, nil)
	return err
}
