package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
)

// ofPlatform is whose account holds what is paused for all merchants.
const ofPlatform = "platform"

var errMerchantOrAll = errors.New("name a merchant, or --all")

type providerCommands struct {
	Pause  providerPause  `cmd:"" help:"Pause a provider for all merchants: nothing new is sent to it."`
	Resume providerResume `cmd:"" help:"Let a provider go on."`
}

type pausedProvider struct {
	Provider string `arg:"" help:"The provider's name."`
	Mode     string `enum:",live,test" default:"" help:"live or test; both unless given."`
	Reason   string `help:"Why; kept in the audit of platform."`
}

func (c *pausedProvider) pause() adminapi.Pause {
	return adminapi.Pause{MerchantID: ofPlatform, What: "provider", Provider: c.Provider, Mode: c.Mode, Reason: c.Reason}
}

type providerPause struct{ pausedProvider }

// Run pauses the provider.
func (c *providerPause) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	return p.showPause("paused")(admin.Pause(ctx, c.pause()))
}

type providerResume struct{ pausedProvider }

// Run ends the pause.
func (c *providerResume) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	return p.showPause("resumed")(admin.EndPause(ctx, c.pause()))
}

type transfersCommands struct {
	Pause  transfersPause  `cmd:"" help:"Pause new transfers of a merchant, or of all."`
	Resume transfersResume `cmd:"" help:"Let transfers go on."`
}

type pausedTransfers struct {
	Merchant string `arg:"" optional:"" help:"The merchant's id."`
	All      bool   `help:"The transfers of all merchants."`
	Mode     string `enum:",live,test" default:"" help:"live or test; both unless given."`
	Reason   string `help:"Why; kept in the audit, that of platform for all merchants."`
}

// Validate wants a merchant or all, and not both.
func (c *pausedTransfers) Validate() error {
	if c.All == (c.Merchant != "") {
		return errMerchantOrAll
	}
	return nil
}

func (c *pausedTransfers) pause() adminapi.Pause {
	return adminapi.Pause{MerchantID: cmp.Or(c.Merchant, ofPlatform), What: "transfers", Mode: c.Mode, Reason: c.Reason}
}

type transfersPause struct{ pausedTransfers }

// Run pauses the transfers.
func (c *transfersPause) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	return p.showPause("paused")(admin.Pause(ctx, c.pause()))
}

type transfersResume struct{ pausedTransfers }

// Run ends the pause.
func (c *transfersResume) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	return p.showPause("resumed")(admin.EndPause(ctx, c.pause()))
}

type pausedConnection struct {
	Merchant string `arg:"" help:"The merchant's id, or platform for the account that all merchants use."`
	Provider string `arg:"" help:"The provider's name."`
	Mode     string `required:"" enum:"live,test" help:"live or test."`
	Reason   string `help:"Why; kept in the audit."`
}

func (c *pausedConnection) pause() adminapi.Pause {
	return adminapi.Pause{MerchantID: c.Merchant, What: "connection", Provider: c.Provider, Mode: c.Mode, Reason: c.Reason}
}

type connectionPause struct{ pausedConnection }

// Run pauses the connection.
func (c *connectionPause) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	return p.showPause("paused")(admin.Pause(ctx, c.pause()))
}

type connectionResume struct{ pausedConnection }

// Run ends the pause.
func (c *connectionResume) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	return p.showPause("resumed")(admin.EndPause(ctx, c.pause()))
}

type connectionRemove struct {
	pausedConnection
	confirmed
}

// Run forgets the connection and shows those that are left.
func (c *connectionRemove) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	if err := c.confirm(p, "Remove the connection of "+c.Merchant+" to "+c.Provider+" in mode "+c.Mode+", with its credentials"); err != nil {
		return err
	}
	m, err := admin.RemoveConnection(ctx, c.Merchant, c.Provider, adminapi.ConnectionRemoval{Mode: c.Mode, Reason: c.Reason})
	if err != nil {
		return err
	}
	return p.show(m, connectionRows(m)...)
}

type connectionList struct {
	Merchant string `arg:"" optional:"" help:"The merchant's id, or platform. Without it, everything that is paused is listed."`
}

// Run lists the connections of a merchant, or what is paused.
func (c *connectionList) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	if c.Merchant == "" {
		pauses, err := admin.Pauses(ctx)
		if err != nil {
			return err
		}
		rows := [][]string{pauseHead}
		for _, one := range pauses {
			rows = append(rows, pauseRow(one))
		}
		if err := p.show(pauses, rows...); err != nil || len(pauses) < adminapi.MostListed {
			return err
		}
		_, err = fmt.Fprintf(p.err, "the first %d are shown; there may be more: name a merchant to see its own\n", adminapi.MostListed)
		return err
	}
	m, err := admin.Merchant(ctx, c.Merchant)
	if err != nil {
		return err
	}
	return p.show(m.Connections, connectionRows(m)...)
}

func connectionRows(m adminapi.Merchant) [][]string {
	rows := [][]string{{"PROVIDER", "MODE", "STATE", "OWNER", "VERSION", "NOTIFY_URL"}}
	for _, one := range m.Connections {
		rows = append(rows, []string{one.Provider, one.Mode, stateOf(one), one.Owner, strconv.FormatInt(one.Version, 10), one.NotifyURL})
	}
	return rows
}

func stateOf(c adminapi.Connection) string {
	if c.Paused {
		return "paused"
	}
	return "active"
}

var pauseHead = []string{"MERCHANT", "PAUSED", "PROVIDER", "MODE", "SINCE", "BY", "REASON"}

func pauseRow(p adminapi.Pause) []string {
	return []string{p.MerchantID, p.What, cmp.Or(p.Provider, "-"), cmp.Or(p.Mode, "live, test"), timeText(p.SetAt), p.SetBy, p.Reason}
}

// showPause prints a pause after it began or ended.
func (p *program) showPause(state string) func(adminapi.Pause, error) error {
	return func(one adminapi.Pause, err error) error {
		if err != nil {
			return err
		}
		rows := [][]string{
			{"state", state}, {"what", one.What}, {"merchant_id", one.MerchantID},
			{"provider", cmp.Or(one.Provider, "-")}, {"mode", cmp.Or(one.Mode, "live, test")},
		}
		for _, other := range one.Still {
			rows = append(rows, []string{
				"still paused by", fmt.Sprintf("%s of %s, mode %s", other.What, other.MerchantID, cmp.Or(other.Mode, "live, test")),
			})
		}
		return p.show(one, rows...)
	}
}
