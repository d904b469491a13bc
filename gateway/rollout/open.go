package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/policy"
)

// Open makes a follower that runs the version in force, or, where that can't be loaded,
// the newest one before it that can. Where none ever was in force the first set is.
func Open(ctx context.Context, deps Dependencies) (*Follower, error) {
	if deps.Compile == nil {
		deps.Compile = policy.Compile
	}
	if deps.Refused == nil {
		deps.Refused = func(string) {}
	}
	if deps.Plugins == nil {
		deps.Plugins = func() map[string]string { return nil }
	}
	if deps.Files == nil {
		deps.Files = func() []string { return nil }
	}
	f := &Follower{deps: deps, wake: make(chan struct{}, 1), behind: map[policy.Version]bool{}, listed: map[policy.Version]bool{}, whole: map[policy.Version]bool{}}
	asked := deps.Now()
	head, err := deps.Store.PolicyHead(ctx)
	if errors.Is(err, store.ErrNotFound) {
		if err = f.first(ctx); err == nil {
			head, err = deps.Store.PolicyHead(ctx)
		} else if errors.Is(err, store.ErrPolicyHeadGone) {
			err = nil // the head stays zero, which nobody trusts
		}
	}
	if err != nil {
		return nil, fmt.Errorf("rollout: %w", err)
	}
	set, err := f.lastGood(ctx, head)
	if err != nil {
		return nil, err
	}
	f.active = policy.NewActive(set)
	f.confirmed.Store(&asked)
	return f, nil
}

// firstAuthor is whose the set of the first start is.
const firstAuthor = "gerbang"

// first puts the first set in force; another replica may be faster.
func (f *Follower) first(ctx context.Context) error {
	now := f.deps.Now().UTC().Truncate(time.Microsecond)
	set, err := f.deps.Compile(ctx, f.deps.First)
	if err != nil {
		return err
	}
	v := store.PolicyVersion{
		Version: set.Version(), Source: f.deps.First, Author: firstAuthor, Message: f.deps.FirstMessage, PushedAt: now,
	}
	done := store.Activation{ID: uuid.New(), Version: v.Version, RequestedBy: v.Author, State: store.ActivationDone}
	head := store.PolicyHead{Activation: done.ID, Version: v.Version, Changes: 1}
	if v.MAC, err = f.deps.Vault.SealPolicy(v.Digest()); err != nil {
		return err
	}
	if done.MAC, err = f.deps.Vault.SealPolicy(done.Digest()); err != nil {
		return err
	}
	if head.MAC, err = f.deps.Vault.SealPolicy(head.Digest()); err != nil {
		return err
	}
	f.keep(v.Version, set)
	audit := store.Audit{Operator: "gerbang", Action: "policy.first", Detail: subjectOf(v.Version) + ": " + f.deps.FirstMessage, At: now}
	return f.deps.Store.FirstPolicy(ctx, audit, v, head, done)
}

// mostBack is how many activations are looked through for a version that can be loaded.
const mostBack = 1000

// lastGood loads the newest version that was in force and can be loaded. Where there is
// none it is the set that the program brings along. No money is taken on that, nor while
// no gateway has put the head in force.
func (f *Follower) lastGood(ctx context.Context, head store.PolicyHead) (*policy.Set, error) {
	if why := f.distrust(head); why != "" {
		f.refuseHead(ctx, head, why)
		f.deps.Log.ErrorContext(ctx, "which policy version is in force is not known: no money is moved", "problem", why)
		f.paused.Store(true)
		head = store.PolicyHead{} // nothing of it is used
	} else {
		set, err := f.load(ctx, head.Version)
		if err == nil {
			return set, nil
		}
		why, broken := errors.AsType[*unusable](err)
		if !broken {
			return nil, fmt.Errorf("rollout: %w", err)
		}
		f.refuseHead(ctx, head, why.why)
	}
	before, err := f.before(ctx, head)
	if err != nil {
		return nil, fmt.Errorf("rollout: %w", err)
	}
	until := time.Now().Add(searchTime)
	for _, version := range before {
		if time.Now().After(until) {
			break
		}
		set, err := f.load(ctx, version)
		if err == nil {
			f.deps.Log.WarnContext(ctx, "an older policy version is used", "version", version, "in_force", head.Version)
			return set, nil
		}
		if _, broken := errors.AsType[*unusable](err); !broken {
			return nil, fmt.Errorf("rollout: %w", err)
		}
	}
	f.deps.Log.ErrorContext(ctx, "no policy version that was in force can be loaded: the default policy is used, and no money is moved")
	f.paused.Store(true)
	return f.deps.Compile(ctx, policy.Default())
}

// before are the versions that were in force, by activations that gateways have written:
// those that rollbacks would go back to, and then all others, the newest first.
func (f *Follower) before(ctx context.Context, head store.PolicyHead) (versions []policy.Version, err error) {
	all, err := f.deps.Store.Activations(ctx, mostBack)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(a store.Activation) bool { return !wasDone(f.deps.Vault, a) })
	slices.SortStableFunc(all, func(a, b store.Activation) int { return cmp.Compare(b.Changes, a.Changes) })
	byID := map[uuid.UUID]store.Activation{}
	for _, a := range all {
		byID[a.ID] = a
	}
	tried := map[policy.Version]bool{head.Version: true}
	add := func(version policy.Version) {
		if !tried[version] {
			tried[version] = true
			versions = append(versions, version)
		}
	}
	for a, ok := byID[byID[head.Activation].Back]; ok; a, ok = byID[a.Back] {
		add(a.Version)
		delete(byID, a.ID) // no row can lead around in a circle
	}
	for _, a := range all {
		add(a.Version)
	}
	return versions, nil
}

// wasDone tells whether a gateway has put an activation in force.
func wasDone(vault Vault, a store.Activation) bool {
	return a.State == store.ActivationDone && vault.VerifyPolicy(a.MAC, a.Digest()) == nil
}
