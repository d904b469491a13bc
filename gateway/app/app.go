package app

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/admission"
	"github.com/seed-f006e74d/gerbang/gateway/approval"
	"github.com/seed-f006e74d/gerbang/gateway/audit"
	"github.com/seed-f006e74d/gerbang/gateway/cache"
	"github.com/seed-f006e74d/gerbang/gateway/callback"
	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/clock"
	"github.com/seed-f006e74d/gerbang/gateway/closing"
	"github.com/seed-f006e74d/gerbang/gateway/console"
	"github.com/seed-f006e74d/gerbang/gateway/console/operators"
	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/gateway/edge"
	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/judge"
	"github.com/seed-f006e74d/gerbang/gateway/kind"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/limit"
	"github.com/seed-f006e74d/gerbang/gateway/list"
	"github.com/seed-f006e74d/gerbang/gateway/mail"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/override"
	"github.com/seed-f006e74d/gerbang/gateway/query"
	"github.com/seed-f006e74d/gerbang/gateway/queue"
	"github.com/seed-f006e74d/gerbang/gateway/reconcile"
	"github.com/seed-f006e74d/gerbang/gateway/requestlog"
	"github.com/seed-f006e74d/gerbang/gateway/rollout"
	"github.com/seed-f006e74d/gerbang/gateway/sandbox"
	"github.com/seed-f006e74d/gerbang/gateway/signin"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/gateway/tracing"
	"github.com/seed-f006e74d/gerbang/gateway/version"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/sdk/uptime"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// App is one gateway, ready to serve.
type App struct {
	config     Config
	log        *slog.Logger
	store      *store.Store
	unfit      bool // for money, as it was logged last
	host       *host.Host
	traces     *tracing.Exporter // nil where none are kept
	sandbox    *sandbox.Sandbox  // nil where test mode has no simulators
	operations *catalog.Catalog
	recovery   *lifecycle.Recovery
	absences   *reconcile.Absences
	cache      *cache.Cache
	quotas     *limit.Batcher
	limiter    *limit.Limiter
	directory  *tenants.Directory
	vault      *tenants.Vault
	names      movement.NameKey
	lists      *list.Lists
	policy     *policy.Active
	follower   *rollout.Follower
	files      *approval.Files
	approvals  *approval.Approvals
	publisher  *rollout.Publisher
	audits     *audit.Keeper
	judge      *judge.Judge
	edge       *edge.Edge
	console    *console.Console
	uses       *tenants.KeyUses
	people     http.Handler // the merchants' console
	pages      *operators.Console
	poller     *lifecycle.Poller
	dispatcher *callback.Dispatcher
	sender     *callback.Sender
	lifecycle  *lifecycle.Lifecycle
	payments   *kind.Payment
	refunds    *kind.Refund
	queries    *query.Queries
	reconciler *reconcile.Reconciler
	overrides  *override.Overrides
	outbox     *mail.Outbox // nil where no mails are sent
	reader     *reconcile.Reader
	clock      *clock.Clock
	SignIn     *signin.SignIn   // people of both consoles
	metrics    *console.Metrics // made before what reports to it
	replica    uuid.UUID        // this process
	decisions  decision.Key
	decided    *decision.Log
	requests   *requestlog.Log
	hour       recent[*decidedHour] // what was decided in the last one
	window     recent[*decision.Window]
	stopping   atomic.Bool

	merchants net.Listener // taken at once, so that the addresses are known before anything runs
	operators net.Listener
	members   net.Listener // of the merchants' console, nil where there is none
	replicas  net.Listener // of the simulators, for other replicas; nil where there is none
}

// New builds everything and opens the listeners; nothing is served yet. If it
// fails, it ends what it has started.
func New(ctx context.Context, c Config, log *slog.Logger) (_ *App, err error) {
	a := &App{config: c, log: log, metrics: console.NewMetrics(), replica: uuid.New(), files: approval.NewFiles(c.PluginsDir)}
	defer func() {
		if err != nil {
			a.close()
		}
	}()
	for _, step := range []func(context.Context) error{a.openTraces, a.openVault, a.openStore, a.openPolicy, a.openSandbox, a.startPlugins, a.listen, a.wire} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// databaseWait is how long a start waits for a database that doesn't answer: machines
// that come up together do so in any order, and a busy one is slow.
const databaseWait = time.Minute

// awaitStore opens the store once its database answers.
func (a *App) awaitStore(ctx context.Context) (err error) {
	a.store, err = backoff.Retry(ctx, func() (*store.Store, error) {
		s, err := store.Open(ctx, a.config.DatabaseURL, store.Options{MaxConns: a.config.DatabaseConns, OwnCommits: a.config.OwnCommits, Seal: a.vault.SealAudit})
		if err != nil && !store.Unreachable(err) {
			return nil, backoff.Permanent(err)
		}
		return s, err
	}, backoff.WithBackOff(backoff.NewConstantBackOff(time.Second)), backoff.WithMaxElapsedTime(databaseWait),
		backoff.WithNotify(func(err error, _ time.Duration) {
			a.log.WarnContext(ctx, "the database can't be reached: the start waits for it", "at_most", databaseWait, "error", err)
		}))
	return err
}

// openStore opens the database. Nothing is written to one that another keyset belongs to.
func (a *App) openStore(ctx context.Context) error {
	err := a.awaitStore(ctx)
	if err != nil {
		return err
	}
	if err := checkNameKey(ctx, a.store, a.vault); err != nil {
		return err
	}
	if a.config.Migrate {
		if err := store.Migrate(ctx, a.config.DatabaseURL, a.log); err != nil {
			return err
		}
	}
	a.clock = clock.New(a.store, uptime.Now, a.log)
	_ = a.clock.Measure(ctx) // it is logged, and tried again
	if a.names, err = readNameKey(ctx, a.store, a.vault, a.clock.Now()); err != nil {
		return err
	}
	if a.config.recovers {
		if err := a.store.BeginRecovery(ctx, a.clock.Now()); err != nil {
			return err
		}
	}
	a.look(ctx)
	a.recovery = lifecycle.NewRecovery(func(ctx context.Context) (begun time.Time, lasts bool, err error) {
		last, err := a.store.LastRecovery(ctx)
		if err == nil && last != nil {
			begun = last.Begun
		}
		return begun, last.Lasts(), err
	}, a.log)
	if err := a.recovery.Read(ctx); err != nil {
		a.log.WarnContext(ctx, "whether the database waits to be opened after a restore can't be read: no money is moved until it can", "error", err)
	}
	return nil
}

// unlogged is set by the linker alone, for a program without a log of decisions: what the
// log costs is measured beside it.
var unlogged string

// wire makes the parts of a request's path, from the ground up.
func (a *App) wire(ctx context.Context) error {
	vault := a.vault
	zone, err := time.LoadLocation(a.config.Zone)
	if err != nil {
		return fmt.Errorf("config: time_zone: %w", err)
	}
	snapshot, err := catalog.Build(a.host.Manifests())
	if err != nil {
		return err
	}
	a.uses = tenants.NewKeyUses(a.store, a.log)
	a.directory.NoteUses(a.uses)
	a.cache = cache.New(a.store, a.clock.Now, a.log)
	a.quotas, a.limiter = limit.NewBatcher(a.store, a.log), limit.New()
	replica := a.replica.String()
	mailed, err := a.wireOutbox(replica)
	if err != nil {
		return err
	}
	a.decisions = decision.NewKey(a.names[:])
	a.lists = list.New(a.store, list.NewKey(a.names), a.clock.Now, a.log)
	if err := a.lists.Read(ctx); err != nil {
		return err
	}
	a.requests = requestlog.NewLog()
	var kept edge.Requests // nil for nowhere
	if unlogged == "" {
		a.decided, kept = decision.NewLog(), a.requests
	}
	a.metrics.WatchDecisions(a.decided.Dropped)
	a.metrics.WatchRequests(a.requests.Dropped)
	a.metrics.WatchQuotas(func(percent int) int { return a.quotas.Near(a.clock.Now(), percent) })
	a.operations = catalog.New(snapshot)
	a.wireMoney(vault, mailed)
	a.poller = lifecycle.NewPoller(a.store, a.lifecycle, a.leases(pollQueue, replica), a.log)
	a.reader = reconcile.NewReader(a.store, a.reconciler.Read, a.leases("statements", replica), a.log)
	a.wireSignIn(vault, mailed)
	a.audits = audit.New(a.store, vault, a.config.AuditSink.sink(), queue.NewLeases(a.store, "audit", replica, 1, a.clock.Now), a.clock.Now, a.log)
	a.metrics.WatchAudit(a.audits.Figures)
	if err := a.wireDispatcher(vault, replica); err != nil {
		return err
	}
	if err := a.wireConsole(vault, zone); err != nil {
		return err
	}
	if err := a.wirePeople(zone); err != nil {
		return err
	}
	trusted, err := prefixes(a.config.TrustedProxies)
	if err != nil {
		return err
	}
	admitter := admission.New(a.policy, a.limiter, a.quotas, admission.Config{
		Location: zone, Lists: a.lists.Of, Namer: decision.NewNamer(a.decisions, replicaNumber(a.replica)), Decisions: a.decided, Log: a.log,
	})
	a.refunds.Admit = func(ctx context.Context, id tenants.Identity, op *catalog.Operation, body catalog.Document) (policy.Ticket, error) {
		ticket, err := admitter.Admit(ctx, a.clock.Now(), id, op, body)
		return ticket.Ticket, err
	}
	a.edge, err = edge.New(
		edge.Config{Svc: a.config.Service, PublicURL: a.config.PublicURL, ConsoleURL: a.config.MerchantsConsoleURL, TrustedProxies: trusted, AllowHTTPCallbacks: a.config.AllowHTTPCallbacks},
		edge.Dependencies{
			Movements: a.lifecycle, Queries: a.queries, Notifier: a.lifecycle, Checkouts: a.payments, Authenticator: a.directory, PolicyFresh: func(now time.Time) bool { return a.follower.Fresh(now) && a.lists.Fresh(now) },
			Admitter: admitter, Failures: limit.NewFailures(), Observer: a.metrics, Requests: kept, Tracer: a.tracer(), Log: a.log, Now: a.clock.Now,
		}, snapshot)
	if err != nil {
		return err
	}
	a.approvals.Follow(a.host)
	return a.host.Offer(a.offer)
}

// wireMoney makes the lifecycle of movements, its kinds, and what stands beside it.
func (a *App) wireMoney(vault *tenants.Vault, mailed func()) {
	a.lifecycle = lifecycle.New(lifecycle.Dependencies{
		Store: a.store, Providers: a.host, Accounts: a.directory, Vault: vault, Catalog: a.operations, Names: a.names,
		ForeignNotified: a.metrics.ObserveForeign, CallbackCommitted: func() { a.dispatcher.Wake() }, MailCommitted: mailed, Moved: a.metrics.ObserveMoved,
		Tracer: a.tracer(), ClockFault: a.clock.Fault, Recovering: a.recovery.Fault, Unfit: a.store.Unfit, Restored: a.recovery.Restored, Now: a.clock.Now, Log: a.log,
		PassedOver: a.config.passedOver, Simulators: a.simulators(),
	})
	a.queries = query.New(a.lifecycle, a.cache, a.store)
	a.reconciler = reconcile.New(a.lifecycle, a.host, a.store, a.store)
	a.overrides = override.New(a.lifecycle, a.store)
	a.payments = kind.AddPayment(a.lifecycle, a.config.PublicURL)
	kind.AddCollection(a.lifecycle, a.reconciler)
	kind.AddOrder(a.lifecycle, a.queries)
	a.absences = reconcile.NewAbsences(a.lifecycle, a.host, a.store)
	kind.AddTransfer(a.lifecycle, a.store, a.absences)
	a.refunds = kind.AddRefund(a.lifecycle, a.store)
}

// leases are this replica's buckets of a queue.
func (a *App) leases(name, replica string) *queue.Leases {
	return queue.NewLeases(a.store, name, replica, movement.Buckets, a.clock.Now)
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
	if a.config.MerchantsConsole != "" {
		if a.members, err = listening.Listen(ctx, "tcp", a.config.MerchantsConsole); err != nil {
			return fmt.Errorf("listen for merchants' people: %w; another address can be given with merchants_console", err)
		}
		if a.config.MerchantsConsoleURL == "" { // development only, as below
			a.config.MerchantsConsoleURL = a.MerchantsConsoleURL()
		}
	}
	if a.config.OperatorsConsoleURL == "" {
		a.config.OperatorsConsoleURL = a.ConsoleURL()
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

// MerchantsConsoleURL is where the merchants' console is on this machine, "" where there is
// none.
func (a *App) MerchantsConsoleURL() string {
	if a.members == nil {
		return ""
	}
	return "http://" + a.members.Addr().String()
}

// Engine is the database product that the gateway runs on.
func (a *App) Engine() string { return string(a.store.Engine()) }

// Run serves until the context ends or something fails, and then ends
// everything in order: requests first, plugins and database last.
func (a *App) Run(ctx context.Context) error {
	defer a.close()
	served := make(chan struct{})
	during, group := a.begin(ctx, served)
	work := []func(context.Context) error{a.poller.Run, a.reader.Run, a.dispatcher.Run, limit.NewRetention(a.store, a.clock.Now, a.log).Run, a.forgetReplicas,
		closing.New(a.store, a.replica.String(), a.clock.Now, a.log).Run, lifecycle.NewOutages(a.lifecycle, a.host.Outages, a.store).Run}
	if a.outbox != nil {
		work = append(work, a.outbox.Run)
	}
	group.Go(func() error { return a.recovery.WhileOpen(during.work, work) })
	for _, run := range []func(context.Context) error{a.directory.Run, a.lists.Run, a.vault.Run, a.clock.Run, a.decisionWriter().Run, a.requestWriter().Run, a.attendant().Run, a.recovery.Run, a.follower.Run, a.follower.Beat, a.approvals.Run, a.uses.Run, a.SignIn.Run, a.audits.Run, a.pages.Run, a.runSandbox, a.forgetSessions, a.measure, a.probe, a.shareRates, a.watchPolicyDir} {
		group.Go(func() error { return run(during.rest) })
	}
	if ip := a.operators.Addr().(*net.TCPAddr).IP; !ip.IsLoopback() {
		a.log.WarnContext(ctx, "the console is served without TLS beyond this machine: operators' tokens can be read on the way; "+
			"listen on loopback, or put a proxy with TLS in front", "console", a.operators.Addr().String())
	}
	group.Go(func() error {
		defer close(served)
		return serve(during.merchants, edge.NewServer(a.edge, a.log), a.edge.Bound(a.merchants))
	})
	group.Go(func() error {
		server := edge.NewServer(a.console, a.log)
		server.WriteTimeout = 0 // a policy is tried on the past for as long as that takes
		return serve(during.rest, server, a.console.Bound(a.operators))
	})
	if a.members != nil {
		group.Go(func() error {
			if err := serve(during.rest, edge.NewServer(a.people, a.log), a.edge.Bound(a.members)); err != nil {
				a.log.ErrorContext(ctx, "the merchants' console has ended; the API goes on", "error", err)
			}
			return nil
		})
	}
	a.log.InfoContext(ctx, "gateway is serving", "version", version.Of().String(), "merchants", a.merchants.Addr().String(), "console", a.operators.Addr().String(),
		"engine", string(a.store.Engine()), "policy", string(a.policy.Set().Version()))
	return group.Wait()
}

// shareRates holds merchants' rates together with the other replicas.
func (a *App) shareRates(ctx context.Context) error {
	return a.limiter.Run(ctx, limit.Sharing{Buckets: a.store, Others: a.follower.Others, Now: a.clock.Now, Log: a.log})
}

// forgetReplicas forgets, once, the replicas that ended long ago.
func (a *App) forgetReplicas(ctx context.Context) error {
	if err := a.store.ForgetReplicas(ctx, a.clock.Now()); err != nil && ctx.Err() == nil {
		a.log.WarnContext(ctx, "replicas that ended long ago stay listed", "error", err)
	}
	return nil
}

// close ends what was started, the last first.
func (a *App) close() {
	for _, l := range []net.Listener{a.merchants, a.operators, a.members, a.replicas} {
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
	if a.sandbox != nil {
		a.sandbox.Close()
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
	if a.traces != nil {
		ctx, cancel := context.WithTimeout(context.Background(), lastTraces)
		defer cancel()
		if err := a.traces.Close(ctx); err != nil {
			a.log.Warn("the last traces were not sent", "error", err)
		}
	}
}

// pollQueue is not "polls", the queue of gateways before the table of polls: those see
// nothing of what is due there, so they must lease none of its buckets.
const pollQueue = "movement-polls"
