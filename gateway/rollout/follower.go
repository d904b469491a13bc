package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/policy"
)

// Follower keeps one replica's active set equal to the head. One goroutine looks at a
// time; what others may ask is said at each method.
type Follower struct {
	deps   Dependencies
	active *policy.Active
	wake   chan struct{}

	confirmed atomic.Pointer[time.Time] // when the head was last read
	lag       atomic.Pointer[Lag]
	members   atomic.Int64
	builtIn   atomic.Bool // nothing that was in force can be loaded

	mu       sync.Mutex // held by a look
	compiled map[policy.Version]*policy.Set
	answered uuid.UUID               // the proposal that this replica has answered
	behind   map[policy.Version]bool // that this replica could not run, and that may have exceptions
	refused  refusal                 // of the head
	endAt    time.Time               // when it is looked again whether all replicas run the head

	forged    map[policy.Version]bool // that were listed; of the heartbeat alone
	inspected time.Time
}

// Lag says that a replica does not run the version in force, why, and since when it has
// run none that was.
type Lag struct {
	Head  policy.Version
	Why   string
	Since time.Time
}

// refusal is a head that this replica could not run.
type refusal struct {
	key    string
	again  time.Time // when it is tried again
	listed time.Time
}

// Open makes a follower that runs the version in force, or, where that can't be loaded,
// the newest one before it that can. Where none ever was in force the first set is.
func Open(ctx context.Context, deps Dependencies) (*Follower, error) {
	if deps.compile == nil {
		deps.compile = policy.Compile
	}
	if deps.Refused == nil {
		deps.Refused = func(string) {}
	}
	if deps.Plugins == nil {
		deps.Plugins = func() map[string]string { return nil }
	}
	f := &Follower{deps: deps, wake: make(chan struct{}, 1), behind: map[policy.Version]bool{}, forged: map[policy.Version]bool{}}
	asked := deps.Now()
	head, err := deps.Store.PolicyHead(ctx)
	if errors.Is(err, store.ErrNotFound) {
		if err = f.first(ctx); err == nil {
			head, err = deps.Store.PolicyHead(ctx)
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

// first puts the first set in force; another replica may be faster.
func (f *Follower) first(ctx context.Context) error {
	now := f.deps.Now().UTC().Truncate(time.Microsecond)
	set, err := f.deps.compile(ctx, f.deps.First)
	if err != nil {
		return err
	}
	v := store.PolicyVersion{
		Version: set.Version(), Source: f.deps.First, Author: "gerbang", Message: f.deps.FirstMessage, PushedAt: now,
	}
	if v.MAC, err = f.deps.Vault.SealPolicy(v.Digest()); err != nil {
		return err
	}
	head := store.PolicyHead{Activation: uuid.New(), Version: v.Version, Changes: 1}
	if head.MAC, err = f.deps.Vault.SealPolicy(head.Digest()); err != nil {
		return err
	}
	f.keep(v.Version, set)
	audit := store.Audit{Operator: "gerbang", Action: "policy.first", Detail: subjectOf(v.Version) + ": " + f.deps.FirstMessage, At: now}
	return f.deps.Store.FirstPolicy(ctx, audit, v, head)
}

// mostBack is how many activations are looked through for a version that can be loaded.
const mostBack = 1000

// lastGood loads the newest version that was in force and can be loaded. Where there is
// none it is the set that the program brings along, and no money is taken on it.
func (f *Follower) lastGood(ctx context.Context, head store.PolicyHead) (*policy.Set, error) {
	set, err := f.loadHead(ctx, head)
	if err == nil {
		return set, nil
	}
	why, broken := errors.AsType[*unusable](err)
	if !broken {
		return nil, fmt.Errorf("rollout: %w", err)
	}
	f.refuseHead(ctx, head, why.why)
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
	f.builtIn.Store(true)
	return f.deps.compile(ctx, policy.Default())
}

// before are the versions that were in force: those that rollbacks would go back to, and
// then all others, the newest first.
func (f *Follower) before(ctx context.Context, head store.PolicyHead) (versions []policy.Version, err error) {
	all, err := f.deps.Store.Activations(ctx, mostBack)
	if err != nil {
		return nil, err
	}
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
		if a.State == store.ActivationDone {
			add(a.Version)
		}
	}
	return versions, nil
}

// loadHead loads the version in force, if a gateway with this keyset said that it is.
func (f *Follower) loadHead(ctx context.Context, head store.PolicyHead) (*policy.Set, error) {
	if err := f.deps.Vault.VerifyPolicy(head.MAC, head.Digest()); err != nil {
		return nil, &unusable{"no gateway with this keyset has put it in force: the MAC of the head is not valid"}
	}
	return f.load(ctx, head.Version)
}

// refuseHead tells that the version in force does not run here, once a minute as an
// operator may have resolved its exception, and when it is tried again.
func (f *Follower) refuseHead(ctx context.Context, head store.PolicyHead, why string) {
	now, key := f.deps.Now(), failureOf(head)
	if f.refused.key != key {
		f.except(ctx, head.Version, "head", why)
		f.refused = refusal{key: key, listed: now}
	} else if now.Sub(f.refused.listed) >= repeatEvery && f.list(ctx, subjectOf(head.Version), Name(f.deps.Self), f.refusal("head", why)) {
		f.refused.listed = now
	}
	f.refused.again = now.Add(retryAfter)
	f.fallBehind(head, why)
}

// fallBehind notes that the version in force does not run here.
func (f *Follower) fallBehind(head store.PolicyHead, why string) {
	lag := &Lag{Head: head.Version, Why: why, Since: f.deps.Now()}
	if before := f.lag.Load(); before != nil {
		lag.Since = before.Since
	}
	f.lag.Store(lag)
	f.endAt = time.Time{}
}

// failureOf names a head that could not be loaded, the words of others included.
func failureOf(head store.PolicyHead) string { return string(head.Digest()) + string(head.MAC) }

// Active holds the set that this replica runs. Any goroutine may ask.
func (f *Follower) Active() *policy.Active { return f.active }

// Fresh reports whether money may be taken on what this replica runs: it has read within
// 30 seconds which version is in force, and runs it, or ran it five minutes ago. Any
// goroutine may ask.
func (f *Follower) Fresh(now time.Time) bool {
	lag := f.lag.Load()
	return !f.builtIn.Load() && f.Age(now) <= freshFor && (lag == nil || now.Sub(lag.Since) <= behindFor)
}

// Age is how long ago the head was read. Any goroutine may ask.
func (f *Follower) Age(now time.Time) time.Duration {
	last := *f.confirmed.Load()
	return max(0, now.Sub(last), now.Round(0).Sub(last.Round(0)))
}

// Lag is why this replica does not run the version in force, nil where it does, as far
// as it has read. Any goroutine may ask.
func (f *Follower) Lag() *Lag { return f.lag.Load() }

// Members is how many replicas were live at the last heartbeat. Any goroutine may ask.
func (f *Follower) Members() int { return int(f.members.Load()) }

// Wake has the follower look at once. Any goroutine may call it.
func (f *Follower) Wake() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// Run follows the head until the context ends.
func (f *Follower) Run(ctx context.Context) error {
	failing := false
	for {
		open, err := f.Look(ctx)
		if failed := err != nil; failed != failing && ctx.Err() == nil {
			failing = failed
			f.logLooking(ctx, err)
		}
		pause := lookEvery
		if open && err == nil {
			pause = lookSoon
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-f.wake:
			timer.Stop()
		case <-timer.C:
		}
	}
}

func (f *Follower) logLooking(ctx context.Context, err error) {
	if err != nil {
		f.deps.Log.WarnContext(ctx, "which policy version is in force can't be read", "error", err)
		return
	}
	f.deps.Log.InfoContext(ctx, "which policy version is in force is read again")
}

// Look reads the head once, and does what it asks of this replica: to compile what is
// proposed, to decide it when all have answered, to run what is in force. It tells
// whether a proposal is open.
func (f *Follower) Look(ctx context.Context) (open bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, lookTimeout+compileTime)
	defer cancel()
	head, err := f.read(ctx)
	if err != nil {
		return false, err
	}
	if head.Proposal != uuid.Nil {
		// Whoever can't answer still decides: a proposal has an end.
		failed := errors.Join(f.answer(ctx, head), f.decide(ctx, head))
		if head, err = f.read(ctx); err != nil {
			return true, errors.Join(failed, err)
		}
		err = failed
	}
	return head.Proposal != uuid.Nil, errors.Join(err, f.adopt(ctx, head))
}

// read reads the head, which confirms what this replica runs.
func (f *Follower) read(ctx context.Context) (store.PolicyHead, error) {
	asked := f.deps.Now()
	reading, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	head, err := f.deps.Store.PolicyHead(reading)
	if err == nil {
		f.confirmed.Store(&asked)
	}
	return head, err
}

// answer compiles what is proposed, and says whether it can run here.
func (f *Follower) answer(ctx context.Context, head store.PolicyHead) error {
	if f.answered == head.Proposal {
		return nil
	}
	answer := store.PolicyAnswer{Replica: f.deps.Self.ID, Compiled: true}
	_, err := f.load(ctx, head.Proposed)
	why, broken := errors.AsType[*unusable](err)
	switch {
	case broken:
		f.except(ctx, head.Proposed, "proposal", why.why)
		answer.Compiled, answer.Reason = false, fitted(why.why)
	case err != nil:
		return err
	}
	answer.At = f.deps.Now()
	if err := f.deps.Store.AnswerPolicy(ctx, head.Proposal, answer); err != nil {
		return err
	}
	f.answered = head.Proposal
	return nil
}

// decide ends the proposal where its time has come; another replica may be faster.
func (f *Follower) decide(ctx context.Context, head store.PolicyHead) error {
	answers, err := f.deps.Store.PolicyAnswers(ctx, head.Proposal)
	if err != nil {
		return err
	}
	now := f.deps.Now()
	live, err := f.deps.Store.LiveReplicas(ctx, now)
	if err != nil {
		return err
	}
	var alone uuid.UUID
	if f.deps.Alone {
		alone = f.deps.Self.ID
	}
	v, detail := judge(head, answers, live, alone, now)
	audit := store.Audit{Operator: "gateway", At: now, Detail: subjectOf(head.Proposed) + " instead of " + Short(head.Version)}
	if detail != "" {
		audit.Detail += ": " + detail
	}
	switch v {
	case moves:
		next := store.PolicyHead{Activation: head.Proposal, Version: head.Proposed, Changes: head.Changes + 1}
		if next.MAC, err = f.deps.Vault.SealPolicy(next.Digest()); err != nil {
			return err
		}
		audit.Action = "policy.active"
		_, err = f.deps.Store.MovePolicyHead(ctx, audit, head, next, detail)
	case refuses:
		audit.Action = "policy.refused"
		_, err = f.deps.Store.RefuseProposal(ctx, audit, head, detail, []policy.Finding{{Check: policy.CheckCompile, Reason: detail}})
	case withdraws:
		audit.Action = "policy.withdrawn"
		_, err = f.deps.Store.WithdrawProposal(ctx, audit, head, detail)
	case waits:
	}
	return err
}

// adopt runs the version in force.
func (f *Follower) adopt(ctx context.Context, head store.PolicyHead) error {
	if f.active.Set().Version() == head.Version && !f.builtIn.Load() {
		return f.caughtUp(ctx, head)
	}
	if f.refused.key == failureOf(head) && f.deps.Now().Before(f.refused.again) {
		return nil
	}
	set, err := f.loadHead(ctx, head)
	if why, broken := errors.AsType[*unusable](err); broken {
		f.refuseHead(ctx, head, why.why)
		return nil
	}
	if err != nil {
		f.fallBehind(head, "it can't be loaded at the moment")
		f.deps.Log.WarnContext(ctx, "the policy version in force can't be loaded; the old one stays", "version", head.Version, "error", err)
		return err
	}
	old := f.active.Swap(set)
	f.builtIn.Store(false)
	f.deps.Log.InfoContext(ctx, "policy in force", "version", set.Version(), "replaces", old.Version())
	if err := f.Report(ctx); err != nil {
		return err
	}
	return f.caughtUp(ctx, head)
}

// caughtUp ends the exceptions of versions in force that replicas could not run, once
// every live replica runs the one that is. It looks again each minute: the last that
// could not may be gone.
func (f *Follower) caughtUp(ctx context.Context, head store.PolicyHead) error {
	if lag := f.lag.Swap(nil); lag != nil {
		f.behind[lag.Head] = true
	}
	f.refused = refusal{}
	now := f.deps.Now()
	if now.Before(f.endAt) {
		return nil
	}
	live, err := f.deps.Store.LiveReplicas(ctx, now)
	if err != nil {
		return err
	}
	f.endAt = now.Add(repeatEvery)
	if slices.ContainsFunc(live, func(r store.Replica) bool {
		return r.ID != f.deps.Self.ID && r.Policy != "" && r.Policy != head.Version
	}) {
		return nil
	}
	f.behind[head.Version] = true
	for version := range f.behind {
		if err := f.deps.Store.ResolveExceptions(ctx, now, ofPlatform, subjectOf(version), []string{movement.ReasonPolicy}, "gateway",
			"every replica runs the version in force, "+Name(f.deps.Self)+" too"); err != nil {
			return err
		}
		delete(f.behind, version)
	}
	return nil
}

// Report writes this replica's row, which is its heartbeat. Any goroutine may call it.
func (f *Follower) Report(ctx context.Context) error {
	self := f.deps.Self
	self.Policy, self.Plugins, self.SeenAt = f.active.Set().Version(), f.deps.Plugins(), f.deps.Now()
	return f.deps.Store.ReportReplica(ctx, self)
}

// Beat says that this replica lives, every few seconds until the context ends, and then
// that it ends.
func (f *Follower) Beat(ctx context.Context) error {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		if err := f.beat(ctx); err != nil && ctx.Err() == nil {
			f.deps.Log.WarnContext(ctx, "this replica's heartbeat can't be written", "error", err)
		}
		select {
		case <-ctx.Done():
			f.end(ctx)
			return nil
		case <-tick.C:
		}
	}
}

// end says that this replica ends; where it can't, it is taken to run for half a minute.
func (f *Follower) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := f.deps.Store.EndReplica(ctx, f.deps.Self.ID, f.deps.Now()); err != nil {
		f.deps.Log.WarnContext(ctx, "other replicas can't be told that this one ends", "error", err)
	}
}

func (f *Follower) beat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, beatEvery)
	defer cancel()
	if err := f.Report(ctx); err != nil {
		return err
	}
	live, err := f.deps.Store.LiveReplicas(ctx, f.deps.Now())
	if err != nil {
		return err
	}
	f.members.Store(int64(len(live)))
	if now := f.deps.Now(); now.Sub(f.inspected) >= inspectEvery {
		f.inspected = now
		return f.Inspect(ctx)
	}
	return nil
}
