package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/approval"
	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/gateway/trouble"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

func (a *App) startPlugins(ctx context.Context) error {
	specs := make([]host.Spec, len(a.config.Plugins))
	for i, p := range a.config.Plugins {
		specs[i] = p.spec()
		specs[i].Manifest = a.keptManifest(ctx, p)
	}
	var err error
	a.approvals, specs, err = approval.Open(ctx, approval.Dependencies{
		Store: a.store, Vault: a.vault, Files: a.files, Self: a.self(), Configured: specs, Proof: a.proof, Offers: offered, SecondOperator: a.config.PluginSecondOperator,
		Alone: a.config.alone, SetAside: a.config.setAside, Report: a.follower.Report, Now: a.clock.Now, Log: a.log,
	})
	if err != nil {
		return err
	}
	config := host.Config{Specs: specs, Log: a.log, Observe: a.metrics.ObserveCall, Offers: offered, Now: a.clock.Now}
	if a.sandbox != nil {
		config.Simulator = a.sandbox.Reach
	}
	a.host, err = host.Start(ctx, config)
	if err == nil && a.config.needPlugins {
		err = a.host.Down()
	}
	return err
}

func (p PluginConfig) spec() host.Spec {
	return host.Spec{
		Name: p.Name, Path: p.Path, SHA256: p.SHA256, ManifestDigest: p.ManifestDigest, Ports: p.Ports, Read: p.Read, Memory: p.MemoryMB << 20, User: p.User,
	}
}

// offered is the error of manifests that can't be offered together.
func offered(manifests []*manifest.Manifest) error {
	_, err := catalog.Build(manifests)
	return err
}

// keptManifest is a plugin's approved manifest as an earlier start has kept it, nil
// where none has.
func (a *App) keptManifest(ctx context.Context, p PluginConfig) *manifest.Manifest {
	if p.ManifestDigest == "" { // development only; nothing is approved
		return nil
	}
	kept, err := a.store.Manifest(ctx, p.ManifestDigest)
	if err != nil {
		a.log.WarnContext(ctx, "the kept manifest of a plugin can't be read", "plugin", p.Name, "error", err)
	}
	return kept
}

// offer makes what serves what the plugins' manifests declare, from the next request on
// after it is taken.
func (a *App) offer(manifests []*manifest.Manifest) (take func(), err error) {
	manifests = a.approvals.InOrder(manifests)
	snapshot, err := catalog.Build(manifests)
	if err != nil {
		return nil, err
	}
	for _, m := range manifests {
		if a.approvals.Newcomer(m.Name) {
			snapshot.MustBeNamed(m.Name)
		}
	}
	route, err := a.edge.Prepare(snapshot)
	if err != nil {
		return nil, err
	}
	show, err := a.console.Prepare(manifests)
	if err != nil {
		return nil, err
	}
	return func() {
		a.operations.Swap(snapshot) // before the routes: who follows a new one finds its operation
		route()
		show()
	}, nil
}

const (
	// attendEvery is how often the plugins are looked at.
	attendEvery = 5 * time.Second
	// steady is how long a plugin has not run when it is taken for broken: one that ends
	// is usually there again in a moment.
	steady = 3 * time.Second
	// mended is how long it has run when it is taken for mended. One that ends again and
	// again is one exception, not a new one for each end.
	mended = time.Minute
	// repeatEvery is how often a plugin that stays down is listed again, as an operator may
	// have resolved its exception, and how often a replica on which it runs looks whether
	// one is left that another has listed, and is gone.
	repeatEvery = time.Minute
)

// attendant keeps what the database says of this replica's plugins true: an exception
// for each that is down, ended when it runs again, and the manifests of those that run.
type attendant struct {
	plugins   func() []host.Status
	manifests func() []*manifest.Manifest
	store     interface {
		AddException(ctx context.Context, x movement.Exception) (bool, error)
		ResolveExceptions(ctx context.Context, now time.Time, owner movement.Owner, subject string, reasons []string, operator, resolution string) error
		KeepManifest(ctx context.Context, now time.Time, m *manifest.Manifest) error
		LiveReplicas(ctx context.Context, now time.Time) ([]store.Replica, error)
	}
	now     func() time.Time
	log     *slog.Logger
	replica uuid.UUID
	site    string // where this replica runs, for people

	listed map[string]time.Time // when a plugin that is down was last listed
	ended  map[string]time.Time // when it was last seen to that a plugin that runs has no open exception
	kept   map[string]bool      // manifests, by digest

	attending trouble.Spell
}

func (a *App) attendant() *attendant {
	site, err := os.Hostname()
	if err != nil {
		site = "an unnamed machine"
	}
	return &attendant{
		plugins: a.host.Status, manifests: a.host.Manifests, store: a.store, now: a.clock.Now, log: a.log, replica: a.replica, site: site,
		listed: map[string]time.Time{}, ended: map[string]time.Time{}, kept: map[string]bool{},
	}
}

// Run looks at the plugins until the context ends.
func (a *attendant) Run(ctx context.Context) error {
	tick := time.NewTicker(attendEvery)
	defer tick.Stop()
	for {
		a.look(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// look writes what has changed. What can't be written is tried again with the next look.
func (a *attendant) look(ctx context.Context) {
	whole := ctx
	ctx, cancel := context.WithTimeout(ctx, attendEvery)
	defer cancel()
	var failed error
	for _, s := range a.plugins() {
		var err error
		switch now := time.Now(); {
		case s.Running && now.Sub(s.Since) >= mended:
			err = a.end(ctx, s, now)
		case !s.Running && !s.Down.IsZero() && now.Sub(s.Down) >= steady:
			err = a.list(ctx, s, now)
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", s.Provider, err))
		}
	}
	a.attending.Note(whole, a.log, "the exceptions of plugins can't be written", failed)
	for _, m := range a.manifests() {
		if a.kept[m.Digest()] {
			continue
		}
		if err := a.store.KeepManifest(ctx, a.now(), m); err != nil {
			a.log.WarnContext(ctx, "the manifest of a plugin can't be kept", "plugin", m.Name, "error", err)
			continue
		}
		a.kept[m.Digest()] = true
	}
}

// ofPlugins is whose the exceptions of plugins are: a plugin serves all merchants in
// both modes, and one exception tells of it.
var ofPlugins = movement.Owner{MerchantID: string(tenants.Platform), Mode: string(tenants.Live)}

func subjectOf(s host.Status) string { return "plugin " + s.Provider }

func (a *attendant) list(ctx context.Context, s host.Status, now time.Time) error {
	if last, there := a.listed[s.Provider]; there && now.Sub(last) < repeatEvery {
		return nil
	}
	why := s.LastFault
	if why == "" {
		why = "it has not started yet"
	}
	_, err := a.store.AddException(ctx, movement.Exception{
		Owner: ofPlugins, Subject: subjectOf(s), Reason: movement.ReasonPlugin, Provider: s.Provider,
		Detail: lifecycle.Printable("on " + a.site + ": " + why), At: a.now(), Lasting: true,
	})
	if err == nil {
		a.listed[s.Provider] = now
		delete(a.ended, s.Provider)
	}
	return err
}

// end takes a plugin off the list once it is down on no replica that lives.
func (a *attendant) end(ctx context.Context, s host.Status, now time.Time) error {
	if last, there := a.ended[s.Provider]; there && now.Sub(last) < repeatEvery {
		return nil
	}
	replicas, err := a.store.LiveReplicas(ctx, a.now())
	if err != nil {
		return err
	}
	if slices.ContainsFunc(replicas, func(r store.Replica) bool { return r.Down(s.Provider) && r.ID != a.replica }) {
		return nil
	}
	err = a.store.ResolveExceptions(ctx, a.now(), ofPlugins, subjectOf(s), []string{movement.ReasonPlugin}, "gateway", "it runs on every replica, on "+a.site+" too")
	if err == nil {
		delete(a.listed, s.Provider)
		a.ended[s.Provider] = now
	}
	return err
}
