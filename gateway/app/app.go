package app

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/seed-f006e74d/gerbang/gateway/admission"
	"github.com/seed-f006e74d/gerbang/gateway/cache"
	"github.com/seed-f006e74d/gerbang/gateway/callback"
	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/clock"
	"github.com/seed-f006e74d/gerbang/gateway/console"
	"github.com/seed-f006e74d/gerbang/gateway/edge"
	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/kind"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/limit"
	"github.com/seed-f006e74d/gerbang/gateway/mail"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/override"
	"github.com/seed-f006e74d/gerbang/gateway/query"
	"github.com/seed-f006e74d/gerbang/gateway/queue"
	"github.com/seed-f006e74d/gerbang/gateway/reconcile"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// App is one gateway, ready to serve.
type App struct {
	config     Config
	log        *slog.Logger
	store      *store.Store
	host       *host.Host
	cache      *cache.Cache
	quotas     *limit.Batcher
	directory  *tenants.Directory
	vault      *tenants.Vault
	policy     *policy.Active
	edge       *edge.Edge
	console    *console.Console
	poller     *lifecycle.Poller
	dispatcher *callback.Dispatcher
	sender     *callback.Sender
	lifecycle  *lifecycle.Lifecycle
	payments   *kind.Payment
	transfers  *kind.Transfer
	queries    *query.Queries
	reconciler *reconcile.Reconciler
	overrides  *override.Overrides
	outbox     *mail.Outbox // nil where no mails are sent
	reader     *reconcile.Reader
	clock      *clock.Clock
	metrics    *console.Metrics // made before what reports to it

	merchants net.Listener // taken at once, so that the addresses are known before anything runs
	operators net.Listener
}

// Run makes a gateway and runs it until the context ends.
func Run(ctx context.Context, c Config, log *slog.Logger) error {
	a, err := New(ctx, c, log)
	if err != nil {
		return err
	}
	return a.Run(ctx)
}

// New builds everything and opens the listeners; nothing is served yet. If it
// fails, it ends what it has started.
func New(ctx context.Context, c Config, log *slog.Logger) (_ *App, err error) {
	a := &App{config: c, log: log, metrics: console.NewMetrics()}
	defer func() {
		if err != nil {
			a.close()
		}
	}()
	for _, step := range []func(context.Context) error{a.openStore, a.openPolicy, a.startPlugins, a.listen, a.wire} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func (a *App) openStore(ctx context.Context) error {
	if a.config.Migrate {
		if err := store.Migrate(ctx, a.config.DatabaseURL, a.log); err != nil {
			return err
		}
	}
	var err error
	a.store, err = store.Open(ctx, a.config.DatabaseURL, store.Options{MaxConns: a.config.DatabaseConns, OwnCommits: a.config.OwnCommits})
	return err
}

func (a *App) openPolicy(ctx context.Context) error {
	source := policy.Default()
	if a.config.PolicyDir != "" {
		var err error
		if source, err = policy.LoadDir(a.config.PolicyDir); err != nil {
			return err
		}
	}
	set, err := policy.Compile(ctx, source)
	if err != nil {
		return err
	}
	a.policy = policy.NewActive(set)
	return nil
}

func (a *App) startPlugins(ctx context.Context) error {
	specs := make([]host.Spec, len(a.config.Plugins))
	for i, p := range a.config.Plugins {
		specs[i] = host.Spec{
			Name: p.Name, Path: p.Path, SHA256: p.SHA256, ManifestDigest: p.ManifestDigest,
			Ports: p.Ports, Read: p.Read, Memory: p.MemoryMB << 20, User: p.User,
		}
	}
	var err error
	a.host, err = host.Start(ctx, host.Config{Specs: specs, Log: a.log, Observe: a.metrics.ObserveCall})
	return err
}

// wire makes the parts of a request's path, from the ground up.
func (a *App) wire(ctx context.Context) error {
	keyset, err := a.config.keyset()
	if err != nil {
		return fmt.Errorf("config: %w", err)
	}
	vault, err := tenants.OpenVault(ctx, keyset, a.log)
	if err != nil {
		return err
	}
	a.vault = vault
	zone, err := time.LoadLocation(a.config.Zone)
	if err != nil {
		return fmt.Errorf("config: time_zone: %w", err)
	}
	snapshot, err := catalog.Build(a.host.Manifests())
	if err != nil {
		return err
	}
	a.directory = tenants.NewDirectory(a.store, a.log)
	a.cache = cache.New(a.store, time.Now, a.log)
	a.quotas = limit.NewBatcher(a.store, a.log)
	a.clock = clock.New(a.store, time.Now, a.log)
	a.clock.Compare(ctx) // a clock that is wrong is known before anything is served, and does not keep us from starting
	replica := uuid.NewString()
	mailed, err := a.wireOutbox(replica)
	if err != nil {
		return err
	}
	names, err := readNameKey(ctx, a.store, vault)
	if err != nil {
		return err
	}
	a.wireMoney(vault, catalog.New(snapshot), names, mailed)
	a.poller = lifecycle.NewPoller(a.store, a.lifecycle, a.leases("polls", replica), a.log)
	a.reader = reconcile.NewReader(a.store, a.reconciler.Read, a.log)
	if err := a.wireDispatcher(vault, replica); err != nil {
		return err
	}
	if err := a.wireConsole(vault, zone); err != nil {
		return err
	}
	trusted, err := prefixes(a.config.TrustedProxies)
	if err != nil {
		return err
	}
	a.edge, err = edge.New(
		edge.Config{Svc: a.config.Service, TrustedProxies: trusted, AllowHTTPCallbacks: a.config.AllowHTTPCallbacks},
		edge.Dependencies{
			Movements: a.lifecycle, Queries: a.queries, Deliveries: a.transfers, Notifier: a.lifecycle, Checkouts: a.payments, Authenticator: a.directory,
			Admitter: admission.New(a.policy, limit.New(), a.quotas, admission.Config{Location: zone, Log: a.log}),
			Failures: limit.NewFailures(), Observer: a.metrics, Log: a.log,
		}, snapshot)
	return err
}

// wireMoney makes the lifecycle of movements, its kinds, and what stands beside it.
func (a *App) wireMoney(vault *tenants.Vault, operations *catalog.Catalog, names movement.NameKey, mailed func()) {
	a.lifecycle = lifecycle.New(lifecycle.Dependencies{
		Store: a.store, Providers: a.host, Accounts: a.directory, Vault: vault, Catalog: operations, Names: names,
		ForeignNotified: a.metrics.ObserveForeign, CallbackCommitted: func() { a.dispatcher.Wake() }, MailCommitted: mailed,
		ClockFault: a.clock.Fault, Now: time.Now, Log: a.log,
	})
	a.queries = query.New(a.lifecycle, a.cache, a.store)
	a.reconciler = reconcile.New(a.lifecycle, a.host, a.store, a.store)
	a.overrides = override.New(a.lifecycle, a.store)
	a.payments = kind.AddPayment(a.lifecycle, a.config.PublicURL)
	kind.AddCollection(a.lifecycle, a.reconciler)
	kind.AddOrder(a.lifecycle, a.queries)
	a.transfers = kind.AddTransfer(a.lifecycle, a.store, reconcile.NewAbsences(a.lifecycle, a.host, a.store))
}

// leases are this replica's buckets of a queue.
func (a *App) leases(name, replica string) *queue.Leases {
	return queue.NewLeases(a.store, name, replica, movement.Buckets)
}

func (a *App) listen(ctx context.Context) error {
	var listening net.ListenConfig
	var err error
	if a.merchants, err = listening.Listen(ctx, "tcp", a.config.Listen); err != nil {
		return fmt.Errorf("listen for merchants: %w; another address can be given with listen (serve) or --listen (dev)", err)
	}
	if a.operators, err = listening.Listen(ctx, "tcp", a.config.Console); err != nil {
		return fmt.Errorf("listen for operators: %w; another address can be given with console (serve) or --console (dev)", err)
	}
	if a.config.PublicURL == "" { // development only; a file must name it
		a.config.PublicURL = a.APIURL()
	}
	return nil
}

// APIURL is where the merchants' listener is on this machine.
func (a *App) APIURL() string { return "http://" + a.merchants.Addr().String() }

// ConsoleURL is where the operators' listener is on this machine.
func (a *App) ConsoleURL() string { return "http://" + a.operators.Addr().String() }

// Engine is the database product that the gateway runs on.
func (a *App) Engine() string { return string(a.store.Engine()) }

// stopWithin bounds how long requests under way may take when a gateway stops.
const stopWithin = 10 * time.Second

// Run serves until the context ends or something fails, and then ends
// everything in order: requests first, plugins and database last.
func (a *App) Run(ctx context.Context) error {
	defer a.close()
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error { return a.directory.Run(running) })
	group.Go(func() error { return a.vault.Run(running) })
	group.Go(func() error { return a.poller.Run(running) })
	group.Go(func() error { return a.reader.Run(running) })
	group.Go(func() error { return a.clock.Run(running) })
	group.Go(func() error { return a.dispatcher.Run(running) })
	group.Go(func() error { return limit.NewRetention(a.store, time.Now, a.log).Run(running) })
	if a.outbox != nil {
		group.Go(func() error { return a.outbox.Run(running) })
	}
	if a.config.PolicyDir != "" {
		group.Go(func() error {
			policy.Watch(running, a.config.PolicyDir, a.policy, a.log, nil)
			return nil
		})
	}
	serve(group, running, edge.NewServer(a.edge, a.log), a.merchants)
	serve(group, running, &http.Server{Handler: a.console, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second, IdleTimeout: time.Minute}, a.operators)
	a.log.InfoContext(ctx, "gateway is serving", "merchants", a.merchants.Addr().String(), "console", a.operators.Addr().String(),
		"engine", string(a.store.Engine()), "policy", string(a.policy.Set().Version()))
	return group.Wait()
}

// farewell is how long a gateway that stops still answers on open connections. Each
// learns from its answer that the connection closes; closing one between two
// requests could cut the next.
const farewell = time.Second

func serve(group *errgroup.Group, ctx context.Context, server *http.Server, on net.Listener) { //nolint:revive // the group's context comes with the group
	answers := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-ctx.Done():
			w.Header().Set("Connection", "close")
		default:
		}
		answers.ServeHTTP(w, r)
	})
	group.Go(func() error {
		if err := server.Serve(on); ctx.Err() == nil {
			return err
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		_ = on.Close() // nobody new is let in
		<-time.After(farewell)
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
		defer cancel()
		if err := server.Shutdown(stopping); err != nil {
			return server.Close() // open requests are cut; their movements are polled
		}
		return nil
	})
}

// close ends what was started, the last first.
func (a *App) close() {
	for _, l := range []net.Listener{a.merchants, a.operators} {
		if l != nil {
			_ = l.Close() // the server has closed it already when it ran
		}
	}
	if a.cache != nil {
		a.cache.Close()
	}
	if a.host != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		if err := a.host.Close(ctx); err != nil {
			a.log.Warn("plugins did not end in order", "error", err)
		}
	}
	if a.sender != nil {
		a.sender.Close()
	}
	if a.quotas != nil {
		a.quotas.Close()
	}
	if a.store != nil {
		a.store.Close()
	}
}
