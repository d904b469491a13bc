package app

import (
	"context"
	"fmt"
	"net"

	"github.com/seed-f006e74d/gerbang/gateway/console"
	"github.com/seed-f006e74d/gerbang/gateway/edge"
	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/queue"
	"github.com/seed-f006e74d/gerbang/gateway/sandbox"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// openSandbox makes the simulators of test mode ready to begin. Plugins learn at their start
// where they reach them.
func (a *App) openSandbox(ctx context.Context) error {
	a.directory = tenants.NewDirectory(a.store, a.clock.Now, a.log)
	if !a.config.Sandbox {
		return nil
	}
	c := sandbox.Config{
		Dir: a.config.SandboxDir, Secret: a.names[:], Away: a.config.SandboxURL, Own: a.config.simulators,
		Approved: func(provider string) (host.Spec, bool) { return a.host.Approved(provider) },
		Callback: a.reached, Public: func() string { return a.config.PublicURL }, Store: a.store, Vault: a.vault, Directory: a.directory, Now: a.clock.Now, Log: a.log,
	}
	if a.config.SandboxURL == "" && !a.config.alone {
		c.Leases = queue.NewLeases(a.store, "simulators", a.replica.String(), 1, a.clock.Now)
	}
	a.sandbox = sandbox.New(c)
	if a.config.SandboxListen == "" {
		return nil
	}
	var listening net.ListenConfig
	var err error
	if a.replicas, err = listening.Listen(ctx, "tcp", a.config.SandboxListen); err != nil {
		return fmt.Errorf("listen for other replicas: %w; another address can be given with sandbox_listen", err)
	}
	return nil
}

// reached is where simulators reach this gateway: those of another replica as merchants do.
func (a *App) reached() string {
	if a.config.SandboxURL != "" {
		return a.config.PublicURL
	}
	return a.APIURL()
}

func (a *App) simulators() lifecycle.Simulators {
	if a.sandbox == nil {
		return nil
	}
	return a.sandbox
}

func (a *App) controlRoom() console.Simulators {
	if a.sandbox == nil {
		return nil
	}
	return a.sandbox
}

func (a *App) plays() func(context.Context, movement.Movement) ([]sandbox.Play, error) {
	if a.sandbox == nil {
		return nil
	}
	return a.sandbox.Plays
}

// runSandbox ends the simulators with the gateway.
func (a *App) runSandbox(ctx context.Context) error {
	if a.sandbox == nil {
		return nil
	}
	if a.replicas != nil {
		a.sandbox.Claim()
		go func() {
			if err := serve(ctx, edge.NewServer(a.sandbox.Handler(), a.log), a.replicas); err != nil {
				a.log.ErrorContext(ctx, "simulators are served to other replicas no more", "error", err)
			}
		}()
	}
	return a.sandbox.Run(ctx)
}
