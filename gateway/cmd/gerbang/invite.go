package main

import (
	"context"

	"github.com/seed-f006e74d/gerbang/gateway/app"
	"github.com/seed-f006e74d/gerbang/tenants"
)

type operatorInvite struct {
	Email  string `arg:"" help:"Whom to invite."`
	Role   string `required:"" enum:"read,support,finance,policy,admin" help:"read, support, finance, policy or admin."`
	Config string `required:"" placeholder:"FILE" help:"The gateway's configuration: its database and its keyset are needed."`
}

// Run prints a link to the operators' console.
func (c *operatorInvite) Run(ctx context.Context, p *program) error {
	return p.invite(ctx, c.Config, tenants.Platform, c.Role, c.Email)
}

type personCommands struct {
	Recover personRecover `cmd:"" help:"Print a link by which somebody sets a new password, with a code of their authenticator app or a recovery code."`
	Remove  personRemove  `cmd:"" help:"Forget somebody who signs in to the consoles, so that they can be invited anew."`
}

type personRecover struct {
	Email  string `arg:"" help:"Who has forgotten their password."`
	Config string `required:"" placeholder:"FILE" help:"The gateway's configuration: its database and its keyset are needed."`
}

// Run prints the link.
func (c *personRecover) Run(ctx context.Context, p *program) error {
	config, err := app.LoadConfig(c.Config, p.getenv)
	if err != nil {
		return err
	}
	made, err := app.Recover(ctx, config, c.Email)
	if err != nil {
		return err
	}
	return p.show(made,
		[]string{"Send this link to " + c.Email + ". It is good once, until " + made.ExpiresAt.Local().Format("15:04:05") + ", and wants a code, too:"},
		[]string{made.URL})
}

type personRemove struct {
	Email  string `arg:"" help:"Whom to forget: password, second factor, recovery codes and roles."`
	Config string `required:"" placeholder:"FILE" help:"The gateway's configuration: its database is needed."`
	confirmed
}

// Run removes and says so.
func (c *personRemove) Run(ctx context.Context, p *program) error {
	if err := c.confirm(p, "Remove "+c.Email+" from every merchant and from the platform, with password, second factor and recovery codes"); err != nil {
		return err
	}
	config, err := app.LoadConfig(c.Config, p.getenv)
	if err != nil {
		return err
	}
	if err := app.RemovePerson(ctx, config, c.Email); err != nil {
		return err
	}
	return p.show(map[string]string{"removed": c.Email}, []string{c.Email + " is removed everywhere, and all sessions are ended."})
}

type merchantInvite struct {
	Merchant string `arg:"" help:"Id of the merchant."`
	Email    string `arg:"" help:"Whom to invite."`
	Role     string `default:"owner" enum:"owner,developer,finance,viewer" help:"owner (default), developer, finance or viewer."`
	Config   string `required:"" placeholder:"FILE" help:"The gateway's configuration: its database and its keyset are needed."`
}

// Run prints a link to the merchants' console.
func (c *merchantInvite) Run(ctx context.Context, p *program) error {
	return p.invite(ctx, c.Config, tenants.MerchantID(c.Merchant), c.Role, c.Email)
}

func (p *program) invite(ctx context.Context, file string, to tenants.MerchantID, role, email string) error {
	config, err := app.LoadConfig(file, p.getenv)
	if err != nil {
		return err
	}
	invited, err := app.Invite(ctx, config, to, tenants.Role(role), email)
	if err != nil {
		return err
	}
	return p.show(invited,
		[]string{"Send this link to " + invited.Email + ". It is good once, until " + invited.ExpiresAt.Local().Format("2 January 15:04") + ":"},
		[]string{invited.URL})
}
