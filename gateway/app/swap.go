package app

import (
	"context"
	"errors"

	"github.com/seed-f006e74d/gerbang/gateway/host"
)

// SwapPlugin has a plugin go on with another binary under load. It is for development:
// nobody approves the binary, and what it does is not proven. One whose approval is in
// force is not swapped: what runs would be another file than operators are told.
func (a *App) SwapPlugin(ctx context.Context, p PluginConfig) error {
	approved, err := a.approvals.InForce(ctx, p.Name)
	if err != nil {
		return err
	}
	if approved {
		return errors.New("an approval of it is in force; start gerbang dev anew to run the file of --plugin")
	}
	return a.host.Put(ctx, host.Spec{Name: p.Name, Path: p.Path, SHA256: p.SHA256, Ports: p.Ports, Read: p.Read, Memory: p.MemoryMB << 20, User: p.User}, nil)
}
