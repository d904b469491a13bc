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

	reporting sync.Mutex

	confirmed atomic.Pointer[time.Time] // when the head was last read
	lag       atomic.Pointer[Lag]
	members   atomic.Pointer[membership]
	// paused says that no gateway has put the head in force, or that nothing that was in
	// force can be loaded.
	paused atomic.Bool

	mu       sync.Mutex // held by a look
	compiled map[policy.Version]*policy.Set
	seen     int64                   // how often the head had changed, at most
	proposal store.Activation        // the last one that a gateway has proposed
	answered uuid.UUID               // the proposal that this replica has answered
	behind   map[policy.Version]bool // that this replica could not run, and that may have exceptions
	refused  refusal                 // of the head
	endAt    time.Time               // when it is looked again whether all replicas run the head

	listed    map[policy.Version]bool // whose rows are not right; of the heartbeat alone
	whole     map[policy.Version]bool // whose files were read; of the heartbeat alone
	inspected time.Time
}

// membership is who was live at a heartbeat.
type membership struct {
	live   int
	others []time.Time // since when each other replica runs
	read   time.Time
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

// distrust says why the head is not believed, "" where it is: a gateway with this keyset
// has written it, and not before one that this replica has seen.
func (f *Follower) distrust(head store.PolicyHead) (why string) {
	switch {
	case head.Activation == uuid.Nil:
		return "the row in policy_head is gone; put it back from a backup, or empty policy_versions and policy_activations, too, and start anew"
	case f.deps.Vault.VerifyPolicy(head.MAC, head.Digest()) != nil:
		return "no gateway with this keyset has put it in force: the MAC of the head is not valid; put the row in policy_head back, or activate a version"
	case head.Changes < f.seen:
		return fmt.Sprintf("an older row was put back in policy_head: its change %d, after change %d; after a restore, start this replica anew", head.Changes, f.seen)
	}
	f.seen = head.Changes
	return ""
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
	return !f.paused.Load() && f.Age(now) <= freshFor && (lag == nil || now.Sub(lag.Since) <= behindFor)
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
func (f *Follower) Members() int {
	if m := f.members.Load(); m != nil {
		return m.live
	}
	return 0
}

// Others tells since when each other replica has run that was live at the last heartbeat,
// and when that was; a zero time before the first. Any goroutine may ask.
func (f *Follower) Others() (started []time.Time, read time.Time) {
	if m := f.members.Load(); m != nil {
		return m.others, m.read
	}
	return nil, time.Time{}
}

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
	if errors.Is(err, store.ErrNotFound) {
		f.refuseHead(ctx, head, f.distrust(head))
	}
	if err != nil {
		return false, err
	}
	if head.Proposal != uuid.Nil && head.Changes >= f.seen {
		failed := f.attend(ctx, head)
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

// attend answers and decides what is proposed.
func (f *Follower) attend(ctx context.Context, head store.PolicyHead) error {
	a, err := f.proposed(ctx, head)
	if forged, ok := errors.AsType[*unusable](err); ok {
		return f.withdraw(ctx, head, forged.why)
	}
	if err != nil {
		return err
	}
	// Whoever can't answer still decides: a proposal has an end.
	return errors.Join(f.answer(ctx, head), f.decide(ctx, head, a))
}

// proposed is the activation that the head proposes, once it is clear that a gateway has
// taken it from an operator, and for this head.
func (f *Follower) proposed(ctx context.Context, head store.PolicyHead) (a store.Activation, err error) {
	if a = f.proposal; a.ID != head.Proposal {
		a, err = f.deps.Store.Activation(ctx, head.Proposal)
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		return a, &unusable{"nobody has asked for it: there is no such activation"}
	case err != nil:
		return a, err
	case a.State != store.ActivationProposed, a.Version != head.Proposed, a.Replaces != head.Version, a.Changes != head.Changes,
		f.deps.Vault.VerifyPolicy(a.MAC, a.Digest()) != nil:
		return a, &unusable{"no gateway with this keyset has proposed it instead of the version in force: the MAC of the activation is not valid"}
	}
	f.proposal = a
	return a, nil
}

// withdraw ends a proposal that no gateway has made. It does nothing where the proposal
// was decided meanwhile.
func (f *Follower) withdraw(ctx context.Context, head store.PolicyHead, why string) error {
	audit := store.Audit{Operator: "gateway", Action: "policy.withdrawn", At: f.deps.Now(), Detail: subjectOf(head.Proposed) + ": " + why}
	withdrawn, err := f.deps.Store.WithdrawProposal(ctx, audit, head, why)
	if withdrawn {
		f.except(ctx, head.Proposed, "proposal", why)
	}
	return err
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
func (f *Follower) decide(ctx context.Context, head store.PolicyHead, a store.Activation) error {
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
		a.State, a.Detail = store.ActivationDone, detail
		if a.MAC, err = f.deps.Vault.SealPolicy(a.Digest()); err != nil {
			return err
		}
		audit.Action = "policy.active"
		_, err = f.deps.Store.MovePolicyHead(ctx, audit, head, next, a)
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
	if why := f.distrust(head); why != "" {
		f.refuseHead(ctx, head, why)
		return nil
	}
	if f.active.Set().Version() == head.Version && !f.paused.Load() {
		return f.caughtUp(ctx, head)
	}
	if f.refused.key == failureOf(head) && f.deps.Now().Before(f.refused.again) {
		return nil
	}
	set, err := f.load(ctx, head.Version)
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
	f.paused.Store(false)
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
		return r.ID != f.deps.Self.ID && r.Told() && r.Policy != head.Version
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
