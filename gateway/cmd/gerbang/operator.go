package main

import (
	"context"
	"strconv"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
)

type operatorCommands struct {
	Invite operatorInvite        `cmd:"" help:"Print a link by which somebody comes into the operators' console."`
	Token  operatorTokenCommands `cmd:"" help:"Create, list, rotate and revoke operators' tokens, effective at once on every replica."`
}

type operatorTokenCommands struct {
	Create operatorCreate `cmd:"" help:"Make somebody an operator, with a token that is shown this once."`
	List   operatorList   `cmd:"" help:"List the tokens of all operators but those of the configuration."`
	Rotate operatorRotate `cmd:"" help:"Replace an operator's token by a new one, which is shown this once."`
	Revoke operatorRevoke `cmd:"" help:"End all tokens of an operator now."`
}

type operatorCreate struct {
	Name    string         `required:"" help:"Of a person or a program, as the audit will show it."`
	Role    string         `required:"" enum:"read,support,finance,policy,admin" help:"read, support, finance, policy or admin."`
	Inputs  bool           `help:"May read what refused requests asked for: gerbang find ID --trace."`
	Expires *time.Duration `placeholder:"720h" help:"How long the token is valid; for ever unless given."`
}

// Run prints the token.
func (c *operatorCreate) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	wanted := adminapi.NewOperatorToken{Name: c.Name, Role: c.Role, Inputs: c.Inputs}
	if c.Expires != nil {
		wanted.Expires = c.Expires.String()
	}
	return p.showOperatorToken(adminapi.CreateOperatorToken.Call(ctx, admin, wanted))
}

type operatorList struct{}

// Run prints a row for each token.
func (*operatorList) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	return p.showOperatorTokens(adminapi.ListOperatorTokens.Call(ctx, admin, adminapi.None{}))
}

type operatorRotate struct {
	Name    string        `arg:"" help:"The operator's name."`
	Overlap time.Duration `default:"24h" help:"How long the old token stays valid; 0s ends it now (${default})."`
	confirmed
}

// Run prints the next token.
func (c *operatorRotate) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	if c.Overlap == 0 {
		if err := c.confirm(p, "End the old tokens of "+c.Name); err != nil {
			return err
		}
	}
	return p.showOperatorToken(adminapi.RotateOperatorToken.Call(ctx, admin, adminapi.OperatorRotation{Name: c.Name, Overlap: c.Overlap.String()}))
}

type operatorRevoke struct {
	adminapi.OperatorRevocation
	confirmed
}

// Run ends the tokens and prints them.
func (c *operatorRevoke) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	if err := c.confirm(p, "Revoke all tokens of "+c.Name); err != nil {
		return err
	}
	return p.showOperatorTokens(adminapi.RevokeOperatorTokens.Call(ctx, admin, c.OperatorRevocation))
}

func (p *program) showOperatorToken(t adminapi.CreatedOperatorToken, err error) error {
	if err != nil {
		return err
	}
	return p.show(t, []string{"name", t.Name}, []string{"role", t.Role}, []string{"inputs", strconv.FormatBool(t.Inputs)},
		[]string{"expires", timeText(t.ExpiresAt)}, []string{"token", t.Token})
}

func (p *program) showOperatorTokens(tokens []adminapi.OperatorToken, err error) error {
	if err != nil {
		return err
	}
	rows := [][]string{{"NAME", "ROLE", "INPUTS", "STATE", "CREATED", "BY", "EXPIRES", "REVOKED"}}
	for _, t := range tokens {
		rows = append(rows, []string{
			t.Name, t.Role, strconv.FormatBool(t.Inputs), tokenState(t), timeText(&t.CreatedAt), t.CreatedBy, timeText(t.ExpiresAt), timeText(t.RevokedAt),
		})
	}
	return p.show(tokens, rows...)
}

func tokenState(t adminapi.OperatorToken) string {
	switch {
	case t.Unsigned:
		return "not signed"
	case t.Usable:
		return "usable"
	case t.RevokedAt != nil:
		return "revoked"
	}
	return "expired"
}
