package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
)

type connectionCommands struct {
	Set    connectionSet              `cmd:"" help:"Set a merchant's account at a provider, or the platform's."`
	Fields connectionFields           `cmd:"" help:"Explain each field of the credentials that a provider asks for."`
	List   connectionList             `cmd:"" help:"List a merchant's connections, or everything that is paused."`
	Pause  pausing[pausedConnection]  `cmd:"" help:"Pause a connection: nothing new is sent on it."`
	Resume resuming[pausedConnection] `cmd:"" help:"Let a connection go on."`
	Remove connectionRemove           `cmd:"" help:"Forget a paused connection with its credentials."`
}

type connectionSet struct {
	Merchant        string `arg:"" help:"The merchant's id, or platform for the account that all merchants use."`
	Provider        string `arg:"" help:"The provider's name."`
	Mode            string `required:"" enum:"live,test" help:"live or test."`
	CredentialsFile string `name:"credentials-file" placeholder:"FILE" help:"Credentials as JSON; - reads standard input. gerbang connection fields PROVIDER explains what belongs into it."`
	Unverified      bool   `help:"Store the credentials also when the provider can't be asked about them. Credentials that it refuses are never stored."`
	Owner           string `enum:",merchant,platform" default:"" help:"Whose account it is: merchant or platform. It follows from the first argument and is checked where given."`
}

// Run sets the connection, which the provider is asked about first where it can
// be, and prints where it must send its notifications.
func (c *connectionSet) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	credentials, err := c.credentials(p)
	if err != nil {
		return err
	}
	set, err := adminapi.SetConnection.Call(ctx, admin, adminapi.ConnectionSpec{
		Merchant: c.Merchant, Provider: c.Provider,
		Mode: c.Mode, Owner: c.Owner, Unverified: c.Unverified, Credentials: credentials,
	})
	if err != nil {
		return err
	}
	rows := [][]string{
		{"provider", set.Provider}, {"mode", set.Mode}, {"owner", set.Owner},
		{"version", strconv.FormatInt(set.Version, 10)}, {"notify_url", set.NotifyURL},
	}
	if set.Verified != "" {
		rows = append(rows, []string{"verified", set.Verified})
	}
	if set.Account != "" {
		rows = append(rows, []string{"account", printable(set.Account)})
	}
	return p.show(set, rows...)
}

type connectionFields struct{ adminapi.ProviderName }

// Run prints a row for each field, the required ones first.
func (c *connectionFields) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	fields, err := adminapi.ListConnectionFields.Call(ctx, admin, c.ProviderName)
	if err != nil {
		return err
	}
	rows := [][]string{{"FIELD", "", "", "VALUES", "EXAMPLE", "WHAT IT IS"}}
	for _, f := range fields {
		need, secret := "optional", ""
		if f.Required {
			need = "required"
		}
		if f.Secret {
			secret = "secret"
		}
		what := f.Description
		if f.Title != "" && what != "" {
			what = f.Title + ": " + what
		}
		rows = append(rows, []string{
			f.Name, need, secret, dash(cmp.Or(strings.Join(f.Choices, ", "), f.Pattern)), dash(f.Example), dash(printable(cmp.Or(what, f.Title))),
		})
	}
	return p.show(fields, rows...)
}

// credentials are those of the file, none where no file is named: the gateway then
// refuses the connection and tells what the provider asks for.
func (c *connectionSet) credentials(p *program) (json.RawMessage, error) {
	if c.CredentialsFile == "" {
		return nil, nil
	}
	credentials, err := p.readFile(c.CredentialsFile)
	if err == nil && !json.Valid(credentials) {
		err = errors.New("the credentials are not valid JSON") // nothing of them belongs into a message
	}
	return credentials, err
}

type connectionRemove struct {
	pausedConnection
	LeaveOpen bool `help:"Remove it also where movements are open on it: nobody can ask the provider about them until the account is connected again."`
	confirmed
}

// Run forgets the connection and shows those that are left.
func (c *connectionRemove) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	if err := c.confirm(p, fmt.Sprintf("Remove the connection of %s to %s in mode %s, with its credentials", c.Merchant, c.Provider, c.Mode)); err != nil {
		return err
	}
	m, err := adminapi.RemoveConnection.Call(ctx, admin, adminapi.ConnectionRemoval{Merchant: string(c.Merchant), Provider: string(c.Provider), Mode: string(c.Mode), Reason: c.Reason, LeaveOpen: c.LeaveOpen})
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
		pauses, err := adminapi.ListPauses.Call(ctx, admin, adminapi.None{})
		if err != nil {
			return err
		}
		if err := p.show(pauses, table(pauses)...); err != nil || len(pauses) < adminapi.MostListed {
			return err
		}
		_, err = fmt.Fprintf(p.err, "the first %d are shown; there may be more: name a merchant to see its own\n", adminapi.MostListed)
		return err
	}
	m, err := adminapi.ShowMerchant.Call(ctx, admin, adminapi.MerchantID{Merchant: c.Merchant})
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

// maxInput is more than the console takes.
const maxInput = 1 << 20

func readAll(from io.Reader) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(from, maxInput+1))
	if err == nil && len(content) > maxInput {
		err = errors.New("it is larger than 1 MiB")
	}
	return content, err
}
