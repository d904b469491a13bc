package approval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/rollout"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

const (
	// lookEvery is how often a replica reads the heads.
	lookEvery   = time.Second
	lookTimeout = 5 * time.Second
	// changeTime bounds one change: the start of a process and its proof.
	changeTime = 2 * time.Minute
	// retryAfter is when a version that could not be put into use is tried again.
	retryAfter = 15 * time.Second
)

// Approvals are the plugins that operators have approved, and this replica's part in it.
// Any goroutine may use it.
type Approvals struct {
	deps Dependencies
	host Host // nil until [Approvals.Follow]
	wake chan struct{}

	reading   sync.Mutex         // held while the heads are read, so that nobody goes by what another has read before
	mu        sync.Mutex         // held for moments
	followed  map[string]*follow // by plugin
	following sync.WaitGroup
}

// follow is how far this replica follows one plugin's head.
type follow struct {
	busy     bool // a change is under way, which nobody else's waits for
	known    bool // what runs is
	runs     uuid.UUID
	changes  int64 // of the head, as last seen
	failed   failure
	told     bool      // an exception of before is resolved
	newcomer bool      // an approval alone has brought the plugin here
	approved time.Time // first, zero where that is not known
}

// failure is a head that this replica could not follow.
type failure struct {
	head  string
	again time.Time
}

// Open reads what is in force. The specs are what the host is to start with: the
// configuration fills only the names that no head has.
func Open(ctx context.Context, deps Dependencies) (*Approvals, []host.Spec, error) {
	a := &Approvals{deps: deps, wake: make(chan struct{}, 1), followed: map[string]*follow{}}
	heads, err := deps.Store.PluginHeads(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("approval: %w", err)
	}
	slices.SortFunc(heads, func(x, y store.PluginHead) int { return x.ChangedAt.Compare(y.ChangedAt) })
	named := map[string]bool{}
	var specs []host.Spec
	for _, head := range heads {
		named[head.Provider] = true
		if slices.Contains(deps.SetAside, head.Provider) && head.Approval != Configured {
			if head, err = a.setAside(ctx, head); err != nil {
				return nil, nil, fmt.Errorf("approval: %w", err)
			}
		}
		spec, err := a.first(ctx, head)
		if err != nil {
			return nil, nil, fmt.Errorf("approval: %w", err)
		}
		if spec.Name != "" {
			specs = append(specs, spec)
		}
	}
	all := make([]host.Spec, 0, len(deps.Configured)+len(specs))
	for _, spec := range deps.Configured {
		if !named[spec.Name] {
			all = append(all, spec)
		}
	}
	return a, a.withoutClashes(ctx, all, specs), nil
}

// setAside puts in force what the configuration names.
func (a *Approvals) setAside(ctx context.Context, was store.PluginHead) (store.PluginHead, error) {
	a.deps.Log.WarnContext(ctx, "what was approved is set aside: the configuration's file runs, until another activation", "plugin", was.Provider)
	return a.move(ctx, store.Audit{Operator: "gateway", Action: "plugin.set_aside"}, was, store.PluginHead{Provider: was.Provider, Approval: Configured}, "what the configuration names")
}

// withoutClashes adds what heads ask for to what the configuration does. One that can't be
// offered beside those before it is refused, as by a replica that runs already: a replica
// that does not start would serve none of them.
func (a *Approvals) withoutClashes(ctx context.Context, all, specs []host.Spec) []host.Spec {
	var known []*manifest.Manifest
	for _, spec := range all { // the host keeps those of them out that clash among themselves
		if spec.Manifest != nil && (a.deps.Offers == nil || a.deps.Offers(append(slices.Clone(known), spec.Manifest)) == nil) {
			known = append(known, spec.Manifest)
		}
	}
	for _, spec := range specs {
		if spec.Manifest != nil && a.deps.Offers != nil {
			if err := a.deps.Offers(append(slices.Clone(known), spec.Manifest)); err != nil {
				why := "what it declares can't be offered beside the other plugins: " + err.Error()
				a.deps.Log.ErrorContext(ctx, "plugin refused", "plugin", spec.Name, "problem", why)
				a.except(ctx, spec.Name, why)
				spec.Refused, spec.Manifest = why, nil
				a.note(spec.Name, func(f *follow) { f.known, f.runs = false, uuid.Nil }) // it is tried again
			} else {
				known = append(known, spec.Manifest)
			}
		}
		all = append(all, spec)
	}
	return all
}

// first is what a replica that starts runs of a plugin, without a name for nothing. What
// is not believed is not started, and what it declares stays known as far as it is.
func (a *Approvals) first(ctx context.Context, head store.PluginHead) (host.Spec, error) {
	w, err := a.wanted(ctx, head)
	if bad, ok := errors.AsType[*Refusal](err); ok {
		a.deps.Log.ErrorContext(ctx, "plugin refused", "plugin", head.Provider, "problem", bad.Why)
		a.except(ctx, head.Provider, bad.Why)
		return host.Spec{Name: head.Provider, Refused: bad.Why, Manifest: w.spec.Manifest}, nil
	}
	if err != nil {
		return host.Spec{}, err
	}
	a.note(head.Provider, func(f *follow) { f.known, f.runs = true, w.id })
	return w.spec, nil
}

// of is how far a plugin's head is followed.
func (a *Approvals) of(provider string) follow {
	a.mu.Lock()
	defer a.mu.Unlock()
	if f := a.followed[provider]; f != nil {
		return *f
	}
	return follow{}
}

// note changes how far a plugin's head is followed.
func (a *Approvals) note(provider string, change func(f *follow)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.followed[provider] == nil {
		a.followed[provider] = &follow{}
	}
	change(a.followed[provider])
}

// want is what a head asks of this replica.
type want struct {
	id   uuid.UUID
	spec host.Spec // without a name: nothing runs
}

// wanted is what a head asks of this replica. A *Refusal says why that is not believed.
func (a *Approvals) wanted(ctx context.Context, head store.PluginHead) (w want, err error) {
	w.id = head.On(a.deps.Self.ID)
	if w.id != uuid.Nil && w.id != Configured {
		var approved store.PluginApproval
		approved, err = a.deps.Store.PluginApproval(ctx, w.id)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return w, err
		}
		if why := a.invalid(approved, head.Provider); why != "" {
			if errors.Is(err, store.ErrNotFound) {
				why = "its approval is gone from the database"
			}
			return w, &Refusal{why}
		}
		w.spec = a.spec(ctx, approved)
	}
	if err := a.learnApproved(ctx, head.Provider); err != nil {
		return w, err
	}
	if _, configured := a.configured(head.Provider); !configured {
		a.note(head.Provider, func(f *follow) { f.newcomer = true })
	}
	switch known := a.of(head.Provider).changes; {
	case a.deps.Vault.VerifyPolicy(head.MAC, head.Digest()) != nil:
		return w, refuse("which approval is in force was not written by a gateway with this keyset: the MAC of the row in plugin_heads is not valid; gerbang plugin activate writes another")
	case head.Changes < known:
		return w, refuse("an older row was put back in plugin_heads: its change %d, after change %d", head.Changes, known)
	}
	a.note(head.Provider, func(f *follow) { f.changes = head.Changes })
	if w.id == Configured {
		w.spec, _ = a.configured(head.Provider)
	}
	return w, nil
}

// learnApproved reads when a plugin was first approved, by the approvals that are believed.
func (a *Approvals) learnApproved(ctx context.Context, provider string) error {
	if !a.of(provider).approved.IsZero() {
		return nil
	}
	all, err := a.deps.Store.PluginApprovals(ctx)
	if err != nil {
		return err
	}
	for _, approved := range slices.Backward(all) { // the oldest first
		if approved.Provider == provider && a.Signed(approved) {
			a.note(provider, func(f *follow) { f.approved = approved.ApprovedAt })
			return nil
		}
	}
	return nil
}

// InOrder are manifests in the order in which providers of one path are tried, which is
// the same on every replica, however its plugins have come: those that the configuration
// names, as it has them, then the others by their first approval.
func (a *Approvals) InOrder(manifests []*manifest.Manifest) []*manifest.Manifest {
	place := func(m *manifest.Manifest) int {
		i := slices.IndexFunc(a.deps.Configured, func(spec host.Spec) bool { return spec.Name == m.Name })
		if i < 0 {
			return len(a.deps.Configured)
		}
		return i
	}
	return slices.SortedStableFunc(slices.Values(manifests), func(x, y *manifest.Manifest) int {
		return cmp.Or(cmp.Compare(place(x), place(y)), a.of(x.Name).approved.Compare(a.of(y.Name).approved), cmp.Compare(x.Name, y.Name))
	})
}

// Follow has this replica's host follow the heads from now on.
func (a *Approvals) Follow(h Host) { a.host = h }

// Newcomer tells whether the configuration does not name a plugin, so that an approval
// alone has brought it here.
func (a *Approvals) Newcomer(provider string) bool { return a.of(provider).newcomer }

// Wake has this replica look at once.
func (a *Approvals) Wake() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// Run follows the heads until the context ends. A plugin that hangs while it is changed
// delays no other.
func (a *Approvals) Run(ctx context.Context) error {
	defer a.following.Wait()
	failing := false
	for {
		_, err := a.begin(ctx)
		if now := err != nil; now != failing && ctx.Err() == nil {
			failing = now
			a.deps.Log.WarnContext(ctx, "which approvals of plugins are in force can be read", "yes", !failing, "error", err)
		}
		timer := time.NewTimer(lookEvery)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-a.wake:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// Look reads the heads once, and has the host run what they say. What can't be done is
// told, tried again, and leaves what runs as it is. The error is of reading alone.
func (a *Approvals) Look(ctx context.Context) error {
	begun, err := a.begin(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, ended := range begun {
		failed = append(failed, <-ended)
	}
	return errors.Join(failed...)
}

// begin reads the heads once, and begins to do what they say: each plugin by itself, and
// one change of a plugin at a time. It returns the ends of what it has begun.
func (a *Approvals) begin(ctx context.Context) (begun []<-chan error, err error) {
	a.reading.Lock()
	defer a.reading.Unlock()
	bounded, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	heads, err := a.deps.Store.PluginHeads(bounded)
	if err != nil {
		return nil, err
	}
	for _, head := range heads {
		if !a.begins(head) {
			continue
		}
		ended := make(chan error, 1)
		begun = append(begun, ended)
		a.following.Go(func() {
			err := a.follow(ctx, head)
			a.note(head.Provider, func(f *follow) { f.busy = false })
			if err != nil && ctx.Err() == nil {
				a.deps.Log.WarnContext(ctx, "the approval of a plugin can't be followed", "plugin", head.Provider, "error", err)
			}
			ended <- err
		})
	}
	return begun, nil
}

// begins tells whether there is something to do about a head, and takes that up where
// nobody does it already.
func (a *Approvals) begins(head store.PluginHead) (ours bool) {
	a.note(head.Provider, func(f *follow) {
		again := f.failed.head == keyOf(head) && a.deps.Now().Before(f.failed.again)
		done := f.runs == head.On(a.deps.Self.ID) && f.changes == head.Changes && f.told
		ours = !f.busy && !again && !done
		f.busy = f.busy || ours
	})
	return ours
}

// keyOf tells one state of a head from another.
func keyOf(head store.PluginHead) string { return string(head.Digest()) + string(head.MAC) }

// follow does what one head says.
func (a *Approvals) follow(ctx context.Context, head store.PluginHead) error {
	before := a.of(head.Provider)
	changing, cancel := context.WithTimeout(ctx, changeTime)
	defer cancel()
	w, err := a.wanted(changing, head)
	if _, refused := errors.AsType[*Refusal](err); err != nil && !refused {
		return err
	}
	if err == nil && (!before.known || before.runs != w.id) {
		err = a.change(changing, head, w)
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil // the gateway ends
		}
		a.note(head.Provider, func(f *follow) {
			f.told, f.failed = false, failure{head: keyOf(head), again: a.deps.Now().Add(retryAfter)}
		})
		a.deps.Log.ErrorContext(ctx, "the approved version of a plugin is not put into use; what runs stays", "plugin", head.Provider, "error", err)
		a.except(ctx, head.Provider, err.Error())
		return nil
	}
	told := a.resolve(ctx, head.Provider)
	a.note(head.Provider, func(f *follow) { f.failed, f.known, f.runs, f.told = failure{}, true, w.id, told })
	if a.deps.Report != nil {
		return a.deps.Report(ctx)
	}
	return nil
}

// change has the host run what is wanted. What one may go back to was proven, or nothing
// was before it; so is only what takes another's place.
func (a *Approvals) change(ctx context.Context, head store.PluginHead, w want) error {
	switch {
	case w.spec.Name == "" && w.id == Configured:
		if a.of(head.Provider).known {
			return refuse("the configuration of this gateway names no plugin %s, which is to run again", head.Provider)
		}
		return nil // another replica tries a plugin that was not there
	case w.spec.Name == "":
		if head.Approval != uuid.Nil { // another replica tries it now, and nobody has asked what is open
			if err := a.keepsOpen(ctx, head.Provider, &manifest.Manifest{}); err != nil {
				return err
			}
		}
		return a.host.Remove(ctx, head.Provider)
	}
	// Movements may have been made since an operator's change saw that none are open.
	if a.of(head.Provider).runs != uuid.Nil && w.spec.Manifest != nil {
		if err := a.keepsOpen(ctx, head.Provider, w.spec.Manifest); err != nil {
			return err
		}
	}
	var proof host.Proof
	if !a.nothing(head.Provider, head.Before) && a.deps.Proof != nil && w.spec.Manifest != nil {
		proof = a.deps.Proof(w.spec.Manifest)
	}
	return a.host.Put(ctx, w.spec, proof)
}

// except tells operators why a plugin's approved version does not run here: again where
// that was resolved, by another gateway of this machine or by hand, and is as before.
func (a *Approvals) except(ctx context.Context, provider, why string) {
	const most = 1000
	detail := "on " + rollout.Name(a.deps.Self) + ": " + why
	if _, err := a.deps.Store.AddException(ctx, movement.Exception{
		Owner: ofPlugins, Subject: a.subjectOf(provider), Reason: movement.ReasonPlugin, Provider: provider,
		Detail: detail[:min(len(detail), most)], At: a.deps.Now(), Lasting: true,
	}); err != nil {
		a.deps.Log.ErrorContext(ctx, "a plugin that is not put into use can't be listed as an exception", "plugin", provider, "error", err)
	}
}

// resolve ends the exception of a plugin whose approved version runs here, and is false
// where that failed.
func (a *Approvals) resolve(ctx context.Context, provider string) bool {
	err := a.deps.Store.ResolveExceptions(ctx, a.deps.Now(), ofPlugins, a.subjectOf(provider), []string{movement.ReasonPlugin}, "gateway",
		"the version in force is used by "+rollout.Name(a.deps.Self))
	if err != nil {
		a.deps.Log.WarnContext(ctx, "the exception of a plugin can't be resolved", "plugin", provider, "error", err)
	}
	return err == nil
}
