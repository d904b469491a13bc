package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// Candidate is a plugin that runs beside the one in use, and that nobody calls yet.
type Candidate interface {
	// Verify is [Host.Verify], of this process.
	Verify(ctx context.Context, c sdk.Connection, timeout time.Duration) sdk.Result
}

// Proof tells whether a plugin that runs beside the one in use works. Nil proves nothing.
type Proof func(ctx context.Context, c Candidate) error

// candidate is a process of a version that is not in use.
type candidate struct {
	of      *provider
	version *version
	running *process
}

// Verify asks the process about the credentials of a connection.
func (c *candidate) Verify(ctx context.Context, with sdk.Connection, timeout time.Duration) sdk.Result {
	c.of.secrets.learn(with)
	ctx, cancel := context.WithTimeout(ctx, orDefault(timeout))
	defer cancel()
	result, err := c.running.wire.Verify(ctx, with)
	if err != nil {
		return sdk.DontKnow(sdk.BlameNone, "plugin transport: "+c.running.suspect(err).Error())
	}
	return result
}

// prepare starts a process by a spec, beside what is in use, and proves it.
func (h *Host) prepare(ctx context.Context, p *provider, spec Spec, proof Proof) (_ *candidate, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.life, cancel)()
	c := &candidate{of: p, version: newVersion(spec)}
	if c.running, err = p.launch(ctx, c.version); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.running.end(0)
			err = fmt.Errorf("plugin %s: %w", p.name, err)
		}
	}()
	if !c.running.healthy(ctx, h.tune.start) {
		return nil, errors.New("it does not answer its health check")
	}
	if proof != nil {
		err = proof(ctx, c)
	}
	return c, err
}

// change waits until nobody else tries, replaces, adds or removes the plugin of a name.
// Changes of other plugins are not waited for: one that hangs delays its own alone.
func (h *Host) change(ctx context.Context, name string) (done func(), err error) {
	turn, _ := h.changes.LoadOrStore(name, make(chan struct{}, 1))
	taken := turn.(chan struct{}) //nolint:forcetypeassert // nothing else is stored there
	select {
	case taken <- struct{}{}:
		return func() { <-taken }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("plugin %s: another change of it is under way: %w", name, context.Cause(ctx))
	}
}

// Try starts a plugin by a spec beside the one in use, proves it, and ends it. The error
// says why [Host.Put] would not take it.
func (h *Host) Try(ctx context.Context, spec Spec, proof Proof) error {
	done, err := h.change(ctx, spec.Name)
	if err != nil {
		return err
	}
	defer done()
	p, there := h.plugin(spec.Name)
	if !there {
		p = h.newProvider(spec)
	}
	c, err := h.prepare(ctx, p, spec, proof)
	if err != nil {
		return err
	}
	defer c.running.end(h.tune.graceful)
	h.learning.Lock()
	defer h.learning.Unlock()
	all := h.roster.Load()
	if !there {
		all = all.with(p)
	}
	_, err = h.build(all.manifests(p, c.running.manifest))
	return err
}

// Put replaces a plugin by another binary or manifest of it, or adds one. The new process
// runs beside the old one until it is proven; then new calls go to it, what it declares is
// offered in the same moment, and the old one ends once its own calls have. So no call
// fails. After an error everything is as it was. A plugin that is added, and whose
// manifest the spec has, is there also while it can't be started, as after [Start].
func (h *Host) Put(ctx context.Context, spec Spec, proof Proof) error {
	done, err := h.change(ctx, spec.Name)
	if err != nil {
		return err
	}
	defer done()
	p, there := h.plugin(spec.Name)
	if !there {
		return h.add(ctx, h.newProvider(spec), spec, proof)
	}
	return h.replace(ctx, p, spec, proof)
}

// replace does what Put does for a plugin that is there.
func (h *Host) replace(ctx context.Context, p *provider, spec Spec, proof Proof) error {
	c, err := h.prepare(ctx, p, spec, proof)
	if err != nil {
		return err
	}
	if err := h.swap(c); err != nil {
		c.running.end(0)
		return fmt.Errorf("plugin %s: %w", p.name, err)
	}
	h.supervise(p, c.version, c.running)
	p.log.Info("plugin replaced", "pid", c.running.program.ID(), "version", c.running.manifest.Version, "sha256", spec.SHA256)
	return nil
}

// swap puts a candidate in the place of what is in use.
func (h *Host) swap(c *candidate) error {
	h.learning.Lock()
	defer h.learning.Unlock()
	p, m := c.of, c.running.manifest
	take, err := h.build(h.roster.Load().manifests(p, m))
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	take() // while every call waits for the process that goes with it
	old, replaced := p.version, p.current
	p.version, p.manifest, c.version.manifest, p.lastFault = c.version, m, m, ""
	p.run(c.running)
	if replaced != nil {
		replaced.retire()
	}
	old.end()
	return nil
}

// add takes a plugin in that was not there.
func (h *Host) add(ctx context.Context, p *provider, spec Spec, proof Proof) error {
	c, failed := h.prepare(ctx, p, spec, proof)
	if failed != nil && spec.Manifest == nil {
		return failed
	}
	m := spec.Manifest
	if failed == nil {
		m = c.running.manifest
	}
	if err := h.admit(p, m, c); err != nil {
		if failed == nil {
			c.running.end(0)
		}
		return fmt.Errorf("plugin %s: %w", p.name, err)
	}
	if failed != nil {
		p.fail(p.version, failed.Error())
		h.supervise(p, p.version, nil)
		return failed
	}
	h.supervise(p, c.version, c.running)
	p.log.Info("plugin added", "pid", c.running.program.ID(), "version", m.Version, "sha256", spec.SHA256)
	return nil
}

// admit offers what a plugin declares that was not there, with its process where it has
// one.
func (h *Host) admit(p *provider, m *manifest.Manifest, c *candidate) error {
	h.learning.Lock()
	defer h.learning.Unlock()
	next := h.roster.Load().with(p)
	take, err := h.build(next.manifests(p, m))
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.manifest, p.version.manifest = m, m
	if c != nil {
		c.version.manifest, p.version = m, c.version
		p.run(c.running)
	}
	h.roster.Store(next)
	take()
	return nil
}

// Remove ends a plugin: what it declares is offered no more, its calls come to their ends,
// and the rest is not sent. It is for one that nobody needs; there may be none.
func (h *Host) Remove(ctx context.Context, name string) error {
	done, err := h.change(ctx, name)
	if err != nil {
		return err
	}
	defer done()
	p, there := h.plugin(name)
	if !there {
		return nil
	}
	if err := h.dismiss(p); err != nil {
		return fmt.Errorf("plugin %s: %w", name, err)
	}
	p.shutDown()
	ctx, cancel := context.WithTimeout(ctx, h.tune.drain)
	defer cancel()
	err = p.drained(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current != nil {
		p.current.retire()
	}
	p.version.end()
	p.log.Info("plugin removed")
	return err
}

// dismiss takes a plugin out of what is offered.
func (h *Host) dismiss(p *provider) error {
	h.learning.Lock()
	defer h.learning.Unlock()
	next := h.roster.Load().without(p)
	take, err := h.build(next.manifests(nil, nil))
	if err != nil {
		return err
	}
	take()
	h.roster.Store(next)
	return nil
}

// Restart has a plugin go on in a new process, as [Host.Put] does: no call fails. Where
// another change is under way, it is what came of that that goes on.
func (h *Host) Restart(ctx context.Context, name string) error {
	done, err := h.change(ctx, name)
	if err != nil {
		return err
	}
	defer done()
	p, there := h.plugin(name)
	if !there {
		return fmt.Errorf("plugin %s: there is none", name)
	}
	return h.replace(ctx, p, p.approved(), nil)
}

// approved is the spec that is in use.
func (p *provider) approved() Spec {
	p.mu.Lock()
	defer p.mu.Unlock()
	spec := p.version.spec
	if spec.ManifestDigest == "" && p.manifest != nil {
		spec.ManifestDigest = p.manifest.Digest() // of the first start; a restart must show it again
	}
	return spec
}
