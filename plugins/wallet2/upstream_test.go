package main

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/seed-f006e74d/gerbang/plugins/wallet2/sandbox"
	"github.com/seed-f006e74d/gerbang/sdk"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
	"github.com/seed-f006e74d/gerbang/sdk/sdktest"
)

// upstream is the simulator as the conformance suite wants to see it.
type upstream struct {
	t         *testing.T
	env       *kit.Env
	simulator *sandbox.Simulator
}

func openUpstream(options sandbox.Options) func(*testing.T) sdktest.Upstream {
	return func(t *testing.T) sdktest.Upstream {
		t.Helper()
		u := &upstream{t: t}
		var err error
		if u.env, err = kit.Open(kit.Config{Provider: "wallet2", StateDir: t.TempDir(), Token: "t"}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := u.env.Close(); err != nil {
				t.Error(err)
			}
		})
		if u.simulator, err = sandbox.New(u.env, options); err != nil {
			t.Fatal(err)
		}
		return u
	}
}

// Connect opens the account, or finds it again.
func (u *upstream) Connect(merchant, mode string) sdk.Connection {
	opened := u.simulator.Connect(fmt.Sprintf("%s/%s", merchant, mode), "", "")
	credentials, err := json.Marshal(opened.Credentials)
	if err != nil {
		u.t.Error(err)
	}
	return sdk.Connection{MerchantID: merchant, Mode: mode, Version: 1, Credentials: credentials}
}

// Movements are none: the wallet never hears a reference of ours.
func (u *upstream) Movements(string) []sdktest.Movement { return nil }

// Requests are none: the plugin reads files.
func (u *upstream) Requests() int { return 0 }

// Fail is never asked for: nothing is sent.
func (u *upstream) Fail(sdktest.Fault) { u.t.Error("there is no call that could go wrong") }

// Hang is never asked for either.
func (u *upstream) Hang() <-chan struct{} {
	u.t.Error("there is no call that could hang")
	return nil
}

// Earn pays a code; the report comes at once.
func (u *upstream) Earn(ctx context.Context, c sdk.Connection, result json.RawMessage) error {
	var code struct {
		QRString string `json:"qr_string"`
	}
	if err := json.Unmarshal(result, &code); err != nil {
		return err
	}
	if _, err := u.simulator.Pay(kit.PayRequest{QRString: code.QRString}); err != nil {
		return fmt.Errorf("%s/%s: %w", c.MerchantID, c.Mode, err)
	}
	return ctx.Err()
}

var _ sdktest.Earner = (*upstream)(nil)
