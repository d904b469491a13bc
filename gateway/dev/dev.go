package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-f006e74d/gerbang/gateway/app"
	"github.com/seed-f006e74d/gerbang/gateway/database"
	"github.com/seed-f006e74d/gerbang/gateway/sandbox"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Options are the flags of `gerbang dev`.
type Options struct {
	Data    string // directory for everything that is kept
	Listen  string // merchants' listener; host:port on loopback, port 0 for any
	Console string // operators' listener
	Sandbox string // the sandbox's own door
	// MerchantsConsole is the listener of merchants' people.
	MerchantsConsole string
	DatabaseURL      string   // a server that runs already, or ""
	PolicyDir        string   // whose edits are in force at once, or ""
	ReadyFile        string   // written once everything answers, or ""
	JSON             bool     // Out is told what the ready file is
	PluginPorts      []uint16 // that plugins may connect to, beside their simulators'
	PluginRead       []string // what plugins may read, beside their simulators' state
	PluginDir        string   // "" for plugins/ beside the binary
	Plugins          []string // a developer's own binaries, before those of the directory

	Out     io.Writer // the banner
	Log     *slog.Logger
	Install database.InstallOptions
}

// tree is everything that one run has started.
type tree struct {
	Options
	state     *state
	database  *database.Server
	sandboxes []*simulator
	gateway   *app.App
	door      net.Listener
	inbox     *inbox
	mails     *mails
	catcher   *catcher

	connecting sync.Mutex // held while accounts at simulators are opened
	connected  bool       // provision has opened them all

	ownerURL, operatorURL string // where people sign in to the consoles
}

// Run builds the tree, prints how to use it, and keeps it until the context ends or a
// part of it fails. Nothing is left behind when it returns.
func Run(ctx context.Context, o Options) (err error) {
	for flag, address := range map[string]string{"--listen": o.Listen, "--console": o.Console, "--sandbox": o.Sandbox, "--merchants-console": o.MerchantsConsole} {
		if err := onLoopback(address); err != nil {
			return fmt.Errorf("%s %s: %w", flag, address, err)
		}
	}
	t := &tree{Options: o, inbox: newInbox(), mails: newMails()}
	if t.state, err = openState(o.Data); err != nil {
		return err
	}
	defer t.state.release()
	// A file of an earlier run has addresses at which nobody answers.
	if err := forget(o.ReadyFile); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, forget(o.ReadyFile)) }()
	// What is started must outlive the signal that stops it, to end in order.
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer t.end()
	if err := t.start(ctx, running); err != nil {
		return err
	}
	return t.run(ctx)
}

// start brings up the parts in the order in which they need one another.
func (t *tree) start(ctx, running context.Context) error {
	if err := t.openDatabase(ctx); err != nil {
		return err
	}
	plugins, err := findPlugins(t.PluginDir)
	if err != nil {
		return err
	}
	if plugins, err = withOwn(ctx, t.Plugins, plugins, t.Log); err != nil {
		return err
	}
	if t.sandboxes, err = t.startSandboxes(ctx, running, plugins); err != nil {
		return err
	}
	if t.catcher, err = openCatcher(ctx, t.mails); err != nil {
		return fmt.Errorf("listen for mails: %w", err)
	}
	var listening net.ListenConfig
	if t.door, err = listening.Listen(ctx, "tcp", t.Sandbox); err != nil {
		return fmt.Errorf("listen for the sandbox's door: %w; another address can be given with --sandbox", err)
	}
	config, err := t.config(plugins)
	if err != nil {
		return err
	}
	if t.gateway, err = app.New(running, config, t.Log); err != nil {
		return err
	}
	return nil
}

// run serves until the context ends, which is the usual end and no error.
func (t *tree) run(ctx context.Context) error {
	t.inbox.know(t.state.Merchants) // from an earlier run: their callbacks may come before provision has run
	group, serving := errgroup.WithContext(ctx)
	group.Go(func() error { return t.gateway.Run(serving) })
	group.Go(func() error { return t.catcher.serve(serving) })
	group.Go(func() error {
		select {
		case <-serving.Done():
			return nil
		case <-t.database.Done():
			return errors.New("the database ended")
		}
	})
	for _, s := range t.sandboxes {
		group.Go(func() error { return s.supervise(serving) })
		if s.plugin.own {
			group.Go(func() error {
				return t.swap(serving, s, func(ctx context.Context, p plugin) error {
					confined, err := t.confined(s, p)
					if err != nil {
						return err
					}
					return t.gateway.SwapPlugin(ctx, confined)
				})
			})
		}
	}
	door := &http.Server{Handler: t.newDoor(), ReadHeaderTimeout: 5 * time.Second}
	group.Go(func() error {
		if err := door.Serve(t.door); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	group.Go(func() error {
		<-serving.Done()
		return door.Close()
	})
	group.Go(func() error { return t.open(serving) })
	if err := group.Wait(); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// open makes the demo merchants usable and prints how to use them.
func (t *tree) open(ctx context.Context) error {
	if err := t.provision(ctx); err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // stopped before it was ready
		}
		return err
	}
	if err := t.invite(ctx); err != nil {
		return err
	}
	if err := t.writeReadyFile(); err != nil {
		return err
	}
	return t.banner()
}

// invite makes the links by which the developer comes into both consoles: as the owner of
// the first merchant, and as an operator.
func (t *tree) invite(ctx context.Context) error {
	for _, one := range []struct {
		to    tenants.MerchantID
		role  tenants.Role
		email string
		url   *string
	}{
		{tenants.MerchantID(t.state.Merchants[0].MerchantID), tenants.RoleOwner, "owner@gerbang.test", &t.ownerURL},
		{tenants.Platform, "admin", "operator@gerbang.test", &t.operatorURL},
	} {
		invited, err := t.gateway.Invite(ctx, "dev", one.to, one.role, one.email)
		if err != nil {
			return err
		}
		*one.url = invited.URL
	}
	return nil
}

func (t *tree) openDatabase(ctx context.Context) error {
	var err error
	t.database, err = database.OpenOrInstall(ctx, database.Options{
		URL: t.DatabaseURL, Dir: filepath.Join(t.Data, "database"), Log: t.Log,
		Progress: func(message string) { t.Log.Info(message) },
	}, t.Install)
	if err != nil {
		return err
	}
	merchants := make([]string, len(t.state.Merchants))
	for i, m := range t.state.Merchants {
		merchants[i] = m.MerchantID
	}
	err = store.MarkDevelopment(ctx, t.database.URL(), merchants)
	if errors.Is(err, store.ErrNotDevelopment) {
		return errors.New("gerbang dev opens only databases that it made, and this one has tables of somebody else: nothing was written to it; " +
			"give an empty database with --database-url or " + database.URLVariable + ", or neither for one of its own below --data, which may be removed where an earlier start did not come to its end")
	}
	return err
}

func (t *tree) config(plugins []plugin) (app.Config, error) {
	keyset := filepath.Join(t.Data, "keyset.json")
	if err := tenants.CreateKeysetFile(keyset); err != nil && !errors.Is(err, os.ErrExist) {
		return app.Config{}, err
	}
	config := app.Defaults()
	config.PluginsDir = filepath.Join(t.Data, "plugins")
	if err := os.MkdirAll(config.PluginsDir, 0o700); err != nil {
		return app.Config{}, err
	}
	config.Listen, config.Console, config.MerchantsConsole = t.Listen, t.Console, t.MerchantsConsole
	config.DatabaseURL, config.KeysetFile = t.database.URL(), keyset
	config.AllowHTTPCallbacks, config.StopWait = true, 0
	config.NeedPlugins()
	config.Alone()
	running := map[string]*sandbox.Simulator{}
	for _, s := range t.sandboxes {
		running[s.plugin.name] = s.Simulator
	}
	config.Simulators(running)
	config.SandboxDir = filepath.Join(t.Data, "sandbox") // of those that are approved later
	config.FollowPolicyDir(t.PolicyDir)
	config.SMTP = app.SMTPConfig{Host: "127.0.0.1", Port: t.catcher.port(), From: "Gerbang <receipts@gerbang.test>", TLS: "none"}
	operator := app.OperatorConfig{Name: "dev"}
	operator.SetToken(t.state.AdminToken)
	config.Operators = []app.OperatorConfig{operator}
	config.Plugins = make([]app.PluginConfig, len(plugins))
	var own []string
	for i, s := range t.sandboxes { // in the order of the plugins
		confined, err := t.confined(s, plugins[i])
		if err != nil {
			return app.Config{}, err
		}
		config.Plugins[i] = confined
		if plugins[i].own {
			own = append(own, plugins[i].name)
		}
	}
	config.SetAside(own)
	config.WarnOfPassedOver()
	return config, nil
}

// confined is a plugin with what it may reach: its simulator, and what the flags say.
func (t *tree) confined(s *simulator, p plugin) (app.PluginConfig, error) {
	port, err := s.port()
	return app.PluginConfig{
		Name: p.name, Path: p.path, SHA256: p.sha256,
		Ports: append([]uint16{httpsPort, port}, t.PluginPorts...), Read: append(slices.Clone(t.PluginRead), s.dir),
	}, err
}

// end stops what is not ended by the group: the last that the others needed.
func (t *tree) end() {
	if t.door != nil {
		_ = t.door.Close() // closed already when it served
	}
	if t.catcher != nil {
		_ = t.catcher.listener.Close() // likewise
	}
	for _, s := range t.sandboxes {
		s.End()
	}
	if t.database != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
		defer cancel()
		if err := t.database.Close(ctx); err != nil {
			t.Log.Warn("the database did not end in order", "error", err)
		}
	}
}

// onLoopback refuses an address that others could reach: the demo's keys are
// printed on the screen.
func onLoopback(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if host == "localhost" {
		return nil
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return errors.New("gerbang dev listens on loopback alone; use gerbang serve to be reached from elsewhere")
	}
	return nil
}
