package main

import (
	"context"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
)

type keyCommands struct {
	Create keyCreate `cmd:"" help:"Create another key for a merchant, which is shown this once."`
	Rotate keyRotate `cmd:"" help:"Replace a key by a new one, which is shown this once."`
	Rename keyRename `cmd:"" help:"Give a key another name."`
	Revoke keyRevoke `cmd:"" help:"Revoke a key now."`
}

type keyCreate struct{ adminapi.NewKey }

// Run prints the new key.
func (c *keyCreate) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	return p.showKey(adminapi.CreateKey.Call(ctx, admin, c.NewKey))
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
	return p.showKey(adminapi.RotateKey.Call(ctx, admin, adminapi.KeyRotation{Merchant: c.Merchant, Key: c.Key, Overlap: c.Overlap.String()}))
}

func (p *program) showKey(k adminapi.CreatedKey, err error) error {
	if err != nil {
		return err
	}
	return p.show(k, []string{"key_id", k.KeyID}, []string{"name", k.Name}, []string{"mode", k.Mode}, []string{"secret_key", k.SecretKey})
}

type keyRename struct{ adminapi.KeyName }

// Run names the key.
func (c *keyRename) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	k, err := adminapi.RenameKey.Call(ctx, admin, c.KeyName)
	if err != nil {
		return err
	}
	return p.show(k, []string{"key_id", k.KeyID}, []string{"name", k.Name})
}

type keyRevoke struct {
	adminapi.KeyRevocation
	confirmed
}

// Run revokes the key.
func (c *keyRevoke) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	if err := c.confirm(p, "Revoke the key "+c.Key+" of "+c.Merchant+": who still uses it is refused from now on"); err != nil {
		return err
	}
	k, err := adminapi.RevokeKey.Call(ctx, admin, c.KeyRevocation)
	if err != nil {
		return err
	}
	return p.show(k, []string{"key_id", k.KeyID}, []string{"revoked", timeText(k.RevokedAt)})
}
