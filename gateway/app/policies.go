package app

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/seed-f006e74d/gerbang/gateway/judge"
	"github.com/seed-f006e74d/gerbang/gateway/rollout"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/gateway/version"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// openVault reads the keyset, by which also policy versions are signed.
func (a *App) openVault(ctx context.Context) error {
	keyset, err := a.config.keyset()
	if err != nil {
		return fmt.Errorf("config: %w", err)
	}
	a.vault, err = tenants.OpenVault(ctx, keyset, a.log)
	return err
}

// openPolicy takes the policy version in force, or the set that the first start of all
// begins with.
func (a *App) openPolicy(ctx context.Context) error {
	first, message := policy.Default(), "the default policy of the first start"
	if dir := a.config.FirstPolicyDir; dir != "" {
		var err error
		if first, err = policy.LoadDir(dir); err != nil {
			return err
		}
		message = "the policy of the first start, from " + dir
	}
	a.judge = judge.New(a.log)
	var err error
	a.follower, err = rollout.Open(ctx, rollout.Dependencies{
		Store: a.store, Vault: a.vault, Self: a.self(), Plugins: a.pluginDigests, Files: a.files.List, Alone: a.config.alone, First: first, FirstMessage: message,
		Refused: a.metrics.ObservePolicyRefused, Compile: a.judge.Compile, Now: a.clock.Now, Log: a.log,
	})
	if err != nil {
		return err
	}
	a.policy = a.follower.Active()
	a.publisher = &rollout.Publisher{
		Record: a.store, Vault: a.vault, Judge: a.judgePolicy, Meaning: a.meaningOfPolicy, SecondOperator: a.config.PolicySecondOperator,
		Wake: a.follower.Wake, Refused: a.metrics.ObservePolicyRefused, Now: a.clock.Now, Log: a.log,
	}
	if runs := a.policy.Set().Version(); a.config.FirstPolicyDir != "" && runs != first.Version() {
		a.log.InfoContext(ctx, "first_policy_dir is not followed: the database has policy versions; gerbang policy push makes another one", "in_force", runs)
	}
	return a.openPolicyDir(ctx)
}

// openPolicyDir has what the development's directory holds in force before anybody asks.
func (a *App) openPolicyDir(ctx context.Context) error {
	if a.config.policyDir == "" {
		return nil
	}
	source, err := policy.LoadDir(a.config.policyDir)
	if err != nil {
		return err
	}
	if err := a.publishDir(ctx, source); err != nil {
		return err
	}
	_, err = a.follower.Look(ctx)
	return err
}

const asMeant = "edits in development are taken as they are meant"

// publishDir makes an edit of the development's directory a version, and proposes it.
func (a *App) publishDir(ctx context.Context, source policy.Source) error {
	v, _, err := a.publisher.Push(ctx, rollout.Push{
		Source: source, Author: rollout.Editor, Message: "an edit in " + a.config.policyDir, Force: asMeant, Anyway: true,
	})
	if err != nil {
		return err
	}
	if v.State == store.PolicyRefused {
		return rollout.Problems(v)
	}
	for _, f := range v.Findings {
		a.log.WarnContext(ctx, "policy edit: "+f.Reason, "file", f.File, "line", f.Line)
	}
	_, err = a.publisher.Activate(ctx, v.Version, rollout.Wish{Operator: rollout.Editor, Force: true, Yes: true, Reason: asMeant})
	if errors.Is(err, store.ErrPolicyActive) {
		return nil
	}
	return err
}

// watchPolicyDir follows the development's directory.
func (a *App) watchPolicyDir(ctx context.Context) error {
	if a.config.policyDir != "" {
		policy.Watch(ctx, a.config.policyDir, a.policy, a.log, a.publishDir)
	}
	return nil
}

// self is this replica as others know it.
func (a *App) self() store.Replica {
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	return store.Replica{
		ID: a.replica, Tag: replicaNumber(a.replica), Host: host, Binary: version.Of().String(), StartedAt: a.clock.Now(),
	}
}

// pluginDigests are the plugins of this replica, once they are started, with no digest
// for one that is down.
func (a *App) pluginDigests() map[string]string {
	digests := map[string]string{}
	if a.host == nil {
		return digests
	}
	for _, s := range a.host.Status() {
		if digests[s.Provider] = ""; s.Running {
			digests[s.Provider] = s.SHA256
		}
	}
	return digests
}
