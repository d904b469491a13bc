package main

import (
	"context"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
)

type keyCommands struct {
	Create keyCreate `cmd:"" help:"Create another key for a merchant, which is shown this once."`
	Rotate keyRotate `cmd:"" help:"Replace a key by a new one, which is shown this once."`
	Revoke keyRevoke `cmd:"" help:"Revoke a key now."`
}

type keyCreate struct {
	Merchant string   `arg:"" help:"The merchant's id."`
	Mode     string   `required:"" enum:"live,test" help:"live or test."`
	Scope    []string `help:"read, collect, order or transfer; all unless given."`
	IP       []string `name:"ip" help:"Address or prefix that may use the key; all unless given."`
}

// Run prints the new key.
func (c *keyCreate) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	return p.showKey(admin.CreateKey(ctx, c.Merchant, adminapi.NewKey{Mode: c.Mode, Scopes: c.Scope, IPs: c.IP}))
}

type keyRotate struct {
	Merchant string        `arg:"" help:"The merchant's id."`
	Key      string        `arg:"" help:"The key's id."`
	Overlap  time.Duration `default:"24h" help:"How long the old key stays valid; 0s ends it now (${default})."`
	confirmed
}

// Run prints the next key.
func (c *keyRotate) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	if c.Overlap == 0 {
		if err := c.confirm(p, "End the key "+c.Key+" of "+c.Merchant+": who still uses it is refused from now on"); err != nil {
			return err
		}
	}
	return p.showKey(admin.RotateKey(ctx, c.Merchant, c.Key, adminapi.Rotation{Overlap: c.Overlap.String()}))
}

func (p *program) showKey(k adminapi.CreatedKey, err error) error {
	if err != nil {
		return err
	}
	return p.show(k, []string{"key_id", k.KeyID}, []string{"mode", k.Mode}, []string{"secret_key", k.SecretKey})
}

type keyRevoke struct {
	Merchant string `arg:"" help:"The merchant's id."`
	Key      string `arg:"" help:"The key's id."`
	Reason   string `help:"Why; kept in the audit."`
	confirmed
}

// Run revokes the key.
func (c *keyRevoke) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	if err := c.confirm(p, "Revoke the key "+c.Key+" of "+c.Merchant+": who still uses it is refused from now on"); err != nil {
		return err
	}
	k, err := admin.RevokeKey(ctx, c.Merchant, c.Key, c.Reason)
	if err != nil {
		return err
	}
	return p.show(k, []string{"key_id", k.KeyID}, []string{"revoked", timeText(k.RevokedAt)})
}
