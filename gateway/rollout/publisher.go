package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/policy"
)

// Record keeps versions and what operators want of them.
type Record interface {
	PolicyHead(ctx context.Context) (store.PolicyHead, error)
	PolicyVersion(ctx context.Context, version policy.Version) (store.PolicyVersion, error)
	PolicyVersions(ctx context.Context) ([]store.PolicyVersion, error)
	PushPolicy(ctx context.Context, audit store.Audit, v store.PolicyVersion) (store.PolicyVersion, bool, error)
	Activate(ctx context.Context, audit store.Audit, a store.Activation) (store.Activation, error)
	WaitingActivation(ctx context.Context, version, replaces policy.Version) (store.Activation, error)
	Activation(ctx context.Context, id uuid.UUID) (store.Activation, error)
}

// Publisher takes versions from operators and proposes them. Any number of goroutines
// may use it.
type Publisher struct {
	Record Record
	Vault  Vault
	// Judge says what is wrong with a set before it is kept; policy.Refused says whether
	// that refuses it. Nil is the gate without any facts.
	Judge func(ctx context.Context, source policy.Source) ([]policy.Finding, error)
	// Meaning says what of a version does not fit the merchants and operations of now, before
	// it is proposed. Nil finds nothing.
	Meaning func(ctx context.Context, source policy.Source) ([]policy.Finding, error)
	// SecondOperator has each activation confirmed by another operator.
	SecondOperator bool
	Wake           func()            // the replica at hand
	Refused        func(what string) // counts
	Now            func() time.Time
	Log            *slog.Logger
}

// Push is a set that an operator wants to be a version.
type Push struct {
	Source  policy.Source // without rules it takes those of the version in force
	Author  string
	Message string
	Force   string // why what is wrong with its meaning is overruled, "" where it is not
	// Replaces is the version that the set was edited from, "" where nobody knows. Anyway takes the set whatever is in force.
	Replaces policy.Version
	Anyway   bool
}

var (
	// ErrNothingBack says that there is no activation to go back to.
	ErrNothingBack = errors.New("rollout: there is no version before it to go back to")
	// ErrForged says that the activation that another one rests on was not written by a
	// gateway with this keyset.
	ErrForged = errors.New("rollout: the MAC of an activation is not valid")
	// ErrAmbiguous says that several versions begin with what was given.
	ErrAmbiguous = errors.New("rollout: several versions begin so")
)

// Push judges a set and keeps it, as pushed or refused. What was pushed before stays as
// it is, and pushed is false. The error is *Overtaken where another version is in force than
// the set was edited from.
func (p *Publisher) Push(ctx context.Context, push Push) (v store.PolicyVersion, pushed bool, err error) {
	head, err := p.Record.PolicyHead(ctx)
	if err != nil {
		return v, false, err
	}
	if push.Source, err = p.whole(ctx, push.Source, head.Version); err != nil {
		return v, false, err
	}
	version := push.Source.Version()
	if version != head.Version && !push.Anyway {
		if err := p.overtaken(ctx, head.Version, push.Replaces, push.Author); err != nil {
			return v, false, err
		}
	}
	v, err = p.Record.PolicyVersion(ctx, version)
	if err == nil && v.State != store.PolicyRefused || err != nil && !errors.Is(err, store.ErrNotFound) {
		return v, false, err
	}
	findings, err := p.judge(ctx, push.Source)
	if err != nil {
		return v, false, err
	}
	v = store.PolicyVersion{
		Version: version, Source: push.Source, Author: push.Author, Message: push.Message, Predecessor: head.Version,
		PushedAt: p.Now().UTC().Truncate(time.Microsecond), State: store.PolicyPushed, Findings: findings,
	}
	action := "policy.push"
	switch {
	case policy.Refused(findings, push.Force != ""):
		v.State, action = store.PolicyRefused, "policy.push_refused"
		p.Refused("push")
		p.Log.WarnContext(ctx, "pushed policy refused", "version", version, "author", push.Author, "findings", findings)
	case policy.Refused(findings, false):
		v.Forced, action = push.Force, "policy.push_forced"
	}
	if v.MAC, err = p.Vault.SealPolicy(v.Digest()); err != nil {
		return v, false, err
	}
	detail := subjectOf(version) + ": " + cmp.Or(v.Forced, push.Message)
	return p.Record.PushPolicy(ctx, store.Audit{Operator: push.Author, Action: action, Detail: fitted(detail), At: v.PushedAt}, v)
}

// whole gives a set without rules those of the version in force, tests included.
func (p *Publisher) whole(ctx context.Context, source policy.Source, head policy.Version) (policy.Source, error) {
	if source.HasRules() {
		return source, nil
	}
	active, err := p.Record.PolicyVersion(ctx, head)
	if err != nil {
		return nil, err
	}
	if err := p.Vault.VerifyPolicy(active.MAC, active.Digest()); err != nil || active.Source.Version() != head {
		return nil, fmt.Errorf("rollout: the rules of the version in force: %w", errUnsigned)
	}
	all := active.Source.Rules()
	maps.Copy(all, source)
	return all, nil
}

// judge holds a set against what there is, before it becomes a version.
func (p *Publisher) judge(ctx context.Context, source policy.Source) ([]policy.Finding, error) {
	if p.Judge != nil {
		return p.Judge(ctx, source)
	}
	judging, cancel := context.WithTimeout(ctx, judgeTime)
	defer cancel()
	_, findings, err := policy.Gate(judging, source, policy.Facts{})
	return findings, err
}

// Find is the version that a text names: its beginning, of at least four characters, or
// the whole. It is store.ErrNotFound or ErrAmbiguous where it names none or several.
func (p *Publisher) Find(ctx context.Context, text string) (store.PolicyVersion, error) {
	const least = 4
	text = strings.ToLower(text)
	versions, err := p.Record.PolicyVersions(ctx)
	if err != nil {
		return store.PolicyVersion{}, err
	}
	var found []store.PolicyVersion
	for _, v := range versions {
		if len(text) >= least && strings.HasPrefix(string(v.Version), text) {
			found = append(found, v)
		}
	}
	switch len(found) {
	case 0:
		return store.PolicyVersion{}, store.ErrNotFound
	case 1:
		return found[0], nil
	}
	return store.PolicyVersion{}, ErrAmbiguous
}

// Wish is what an operator wants of an activation or a rollback.
type Wish struct {
	Operator string
	Replaces policy.Version // that has to be in force
	Reason   string
	Force    bool // overrule, for the reason, what does not fit
	Yes      bool // what the version's findings want to be confirmed is meant
}

// Activate proposes a version to replace another one, "" for the one in force now. The
// replicas decide it; the answer says what was asked for. The error is *Unfit where the
// version does not fit, and *Overtaken where it was never in force, was pushed beside another
// one than another operator has put in force since, and the wish does not name that. It is
// *Unconfirmed where the wish does not say that what the version does is meant.
func (p *Publisher) Activate(ctx context.Context, version policy.Version, wish Wish) (store.Activation, error) {
	head, err := p.Record.PolicyHead(ctx)
	if err != nil {
		return store.Activation{}, err
	}
	v, err := p.Record.PolicyVersion(ctx, version)
	meant := slices.DeleteFunc(slices.Clone(v.Findings), func(f policy.Finding) bool { return !f.Confirm })
	if err == nil && len(meant) > 0 && !wish.Yes && version != head.Version {
		return store.Activation{}, &Unconfirmed{Unfit{version, meant}}
	}
	if err == nil && v.State == store.PolicyPushed && v.Predecessor != head.Version && wish.Replaces == "" {
		if err := p.overtaken(ctx, head.Version, "", wish.Operator); err != nil {
			return store.Activation{}, err
		}
	}
	return p.propose(ctx, wish, "policy.activate", head, store.Activation{
		Version: version, Replaces: cmp.Or(wish.Replaces, head.Version), Back: head.Activation, Reason: wish.Reason,
	})
}

// Rollback proposes the version that was in force before the one that it replaces; after
// it the next one goes one further back. The error is as Activate's.
func (p *Publisher) Rollback(ctx context.Context, wish Wish) (store.Activation, error) {
	head, err := p.Record.PolicyHead(ctx)
	if err != nil {
		return store.Activation{}, err
	}
	current, err := p.Record.Activation(ctx, head.Activation)
	if err != nil {
		return store.Activation{}, err
	}
	if !wasDone(p.Vault, current) {
		return store.Activation{}, ErrForged
	}
	before, err := p.Record.Activation(ctx, current.Back)
	if errors.Is(err, store.ErrNotFound) {
		return store.Activation{}, ErrNothingBack
	}
	if err != nil {
		return store.Activation{}, err
	}
	if !wasDone(p.Vault, before) {
		return store.Activation{}, ErrForged
	}
	return p.propose(ctx, wish, "policy.rollback", head, store.Activation{
		Version: before.Version, Replaces: wish.Replaces, Back: before.Back, Reason: wish.Reason,
	})
}

// propose asks the replicas, or where a second operator is wanted has the activation wait
// for one.
func (p *Publisher) propose(ctx context.Context, wish Wish, action string, head store.PolicyHead, a store.Activation) (store.Activation, error) {
	if unfit := p.unfit(ctx, a.Version, head); len(unfit) > 0 {
		if !wish.Force {
			p.Refused("activation")
			return store.Activation{}, &Unfit{a.Version, unfit}
		}
		action += "_forced"
	}
	operator := wish.Operator
	a.ID, a.RequestedBy, a.Changes, a.State = uuid.New(), operator, head.Changes, store.ActivationProposed
	if p.SecondOperator {
		switch waiting, err := p.Record.WaitingActivation(ctx, a.Version, a.Replaces); {
		case errors.Is(err, store.ErrNotFound):
			a.State = store.ActivationWaiting
		case err != nil:
			return store.Activation{}, err
		case p.Vault.VerifyPolicy(waiting.MAC, waiting.Digest()) != nil:
			return store.Activation{}, ErrForged
		case waiting.RequestedBy == operator:
			return waiting, nil // it waits for somebody else
		default:
			reason := a.Reason
			a = waiting
			a.Changes, a.State, a.ConfirmedBy, a.Reason = head.Changes, store.ActivationProposed, operator, reason
		}
	}
	var err error
	if a.MAC, err = p.Vault.SealPolicy(a.Digest()); err != nil {
		return store.Activation{}, err
	}
	detail := subjectOf(a.Version) + " instead of " + Short(head.Version)
	if a.Reason != "" {
		detail += ": " + a.Reason
	}
	made, err := p.Record.Activate(ctx, store.Audit{Operator: operator, Action: action, Detail: fitted(detail), At: p.Now()}, a)
	if err == nil {
		p.Wake()
	}
	return made, err
}
