package app

import (
	"context"

	"github.com/seed-f006e74d/gerbang/gateway/host"
)

// SwapPlugin has a plugin go on with another binary under load. It is for development:
// nobody approves the binary, and what it does is not proven.
func (a *App) SwapPlugin(ctx context.Context, p PluginConfig) error {
	return a.host.Put(ctx, host.Spec{Name: p.Name, Path: p.Path, SHA256: p.SHA256, Ports: p.Ports, Read: p.Read, Memory: p.MemoryMB << 20, User: p.User}, nil)
}
