package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/tenants"
)

var errMerchantOrAll = errors.New("name a merchant, or --all")

// pausable is what arguments name.
type pausable interface{ pause() tenants.Pause }

// pausing is a command that pauses what its arguments name.
type pausing[A pausable] struct {
	Args A `embed:""`
}

// Run pauses it.
func (c *pausing[A]) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	return p.showPause("paused")(adminapi.SetPause.Call(ctx, admin, c.Args.pause()))
}

// Validate judges the arguments.
func (c *pausing[A]) Validate() error {
	if judged, ok := any(c.Args).(interface{ Validate() error }); ok {
		return judged.Validate()
	}
	return nil
}

// resuming is a command that lets it go on.
type resuming[A pausable] struct{ pausing[A] }

// Run ends the pause.
func (c *resuming[A]) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	return p.showPause("resumed")(adminapi.EndPause.Call(ctx, admin, c.Args.pause()))
}

type providerCommands struct {
	Pause  pausing[pausedProvider]  `cmd:"" help:"Pause a provider for all merchants: nothing new is sent to it."`
	Resume resuming[pausedProvider] `cmd:"" help:"Let a provider go on."`
}

type pausedProvider struct {
	Provider tenants.Provider `arg:"" help:"The provider's name."`
	Mode     tenants.Mode     `enum:",live,test" default:"" help:"live or test; both unless given."`
	Reason   string           `help:"Why; kept in the audit of platform."`
}

func (c pausedProvider) pause() tenants.Pause {
	return tenants.Pause{MerchantID: tenants.Platform, What: tenants.PauseProvider, Provider: c.Provider, Mode: c.Mode, Reason: c.Reason}
}

type transfersCommands struct {
	Pause  pausing[pausedTransfers]  `cmd:"" help:"Pause new transfers of a merchant, or of all."`
	Resume resuming[pausedTransfers] `cmd:"" help:"Let transfers go on."`
}

type pausedTransfers struct {
	Merchant tenants.MerchantID `arg:"" optional:"" help:"The merchant's id."`
	All      bool               `help:"The transfers of all merchants."`
	Mode     tenants.Mode       `enum:",live,test" default:"" help:"live or test; both unless given."`
	Reason   string             `help:"Why; kept in the audit, that of platform for all merchants."`
}

// Validate wants a merchant or all, and not both.
func (c pausedTransfers) Validate() error {
	if c.All == (c.Merchant != "") {
		return errMerchantOrAll
	}
	return nil
}

func (c pausedTransfers) pause() tenants.Pause {
	return tenants.Pause{MerchantID: cmp.Or(c.Merchant, tenants.Platform), What: tenants.PauseTransfers, Mode: c.Mode, Reason: c.Reason}
}

type pausedConnection struct {
	Merchant tenants.MerchantID `arg:"" help:"The merchant's id, or platform for the account that all merchants use."`
	Provider tenants.Provider   `arg:"" help:"The provider's name."`
	Mode     tenants.Mode       `required:"" enum:"live,test" help:"live or test."`
	Reason   string             `help:"Why; kept in the audit."`
}

func (c pausedConnection) pause() tenants.Pause {
	return tenants.Pause{MerchantID: c.Merchant, What: tenants.PauseConnection, Provider: c.Provider, Mode: c.Mode, Reason: c.Reason}
}

// showPause prints a pause after it began or ended.
func (p *program) showPause(state string) func(adminapi.Paused, error) error {
	return func(one adminapi.Paused, err error) error {
		if err != nil {
			return err
		}
		rows := [][]string{
			{"state", state}, {"what", string(one.What)}, {"merchant_id", string(one.MerchantID)},
			{"provider", cmp.Or(string(one.Provider), "-")}, {"mode", cmp.Or(string(one.Mode), "live, test")},
		}
		for _, other := range one.Still {
			rows = append(rows, []string{
				"still paused by", fmt.Sprintf("%s of %s, mode %s", other.What, other.MerchantID, cmp.Or(other.Mode, "live, test")),
			})
		}
		return p.show(one, rows...)
	}
}
