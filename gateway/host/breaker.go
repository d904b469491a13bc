package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// breakers are those of a provider in one mode: its own, and one for each account
// that has failed of late. An account may be dead for reasons of its own (a wrong
// address, a limit), so its failures open its own breaker; only several accounts that
// fail together say that the provider does. The account that merchants share has a
// breaker like any other, and what it says is not held against merchants' own
// accounts, nor the reverse.
type breakers struct {
	tune   tuning
	own    *breaker
	failed failures
	log    func(account, circuit string, from, to gobreaker.State)
	opened struct{ own, accounts atomic.Int64 }

	mu       sync.Mutex // never held while a circuit is asked: what circuits tell of themselves takes it
	accounts map[string]*accountBreaker
	swept    time.Time
}

// accountBreaker is that of an account which has failed of late.
type accountBreaker struct {
	*breaker
	version int64 // of its credentials: others begin anew
	shared  bool  // by merchants
	used    time.Time
}

func newBreakers(tune tuning, log func(account, circuit string, from, to gobreaker.State)) *breakers {
	b := &breakers{tune: tune, accounts: map[string]*accountBreaker{}, log: log, swept: time.Now(), failed: failures{window: tune.window}}
	b.own = newBreaker(tune, breakerMinimum, b.failed.many, b.changed("", &b.opened.own))
	return b
}

// changed logs and counts what becomes of a breaker.
func (b *breakers) changed(account string, opened *atomic.Int64) func(string, gobreaker.State, gobreaker.State) {
	return func(circuit string, from, to gobreaker.State) {
		if circuit == "calls" && from == gobreaker.StateClosed {
			opened.Add(1)
		}
		b.log(account, circuit, from, to)
	}
}

// run makes one call, unless a breaker that it concerns is open. The account is
// shared where it is not that of the merchant who calls.
func (b *breakers) run(with sdk.Connection, shared bool, send func() (sdk.Result, health)) sdk.Result {
	settle, err := b.admit(with, shared)
	if err != nil {
		return sdk.DidNotSend(sdk.BlameUpstream, err.Error())
	}
	var result sdk.Result
	v := neutral // also where it panics
	defer func() { settle(v, result.Detail) }()
	result, v = send()
	return result
}

// admit asks the breaker of the account where it has one, else the provider's: an
// account that has failed of late goes by its own, so that it takes no probe of the
// others away. What is admitted is settled by what came of it.
func (b *breakers) admit(with sdk.Connection, shared bool) (settle func(v health, why string), err error) {
	known := b.find(with)
	proven := known != nil && known.calls.State() != gobreaker.StateClosed
	var done func(error)
	now := time.Now().UnixNano()
	if !shared {
		b.own.called.Store(now)
	}
	switch {
	case known != nil:
		known.called.Store(now)
		if done, err = known.calls.Allow(); err != nil {
			return nil, fmt.Errorf("this account: %w", err)
		}
	case !shared:
		if done, err = b.own.calls.Allow(); err != nil {
			return nil, err
		}
	}
	return func(v health, why string) {
		proven := proven || b.turnsAway(with) // others of the account have failed meanwhile
		bad := b.blame(with, shared, v, why, proven)
		switch {
		case known != nil:
			done(againstAccount(v, shared))
			b.tell(b.own.calls, shared, v, proven)
			return
		case done != nil:
			done(againstProvider(v, proven))
		}
		if bad != nil {
			bad.called.Store(now)
			record(bad.calls, fault)
		}
	}, nil
}

// tell counts what a use on an account that has failed of late says of the provider.
// Its faults open the provider's breaker with others', and never keep it open.
func (b *breakers) tell(own *gobreaker.TwoStepCircuitBreaker[struct{}], shared bool, v health, proven bool) {
	if !shared {
		record(own, againstProvider(v, proven || own.State() != gobreaker.StateClosed))
	}
}

// looked counts a lookup. It comes after the fact, so it refuses nothing.
func (b *breakers) looked(with sdk.Connection, shared bool, v health, why string) {
	known := b.find(with)
	proven := known != nil && known.lookups.State() != gobreaker.StateClosed
	if bad := b.blame(with, shared, v, why, proven); bad != nil {
		known = bad
	}
	if known != nil {
		record(known.lookups, againstAccount(v, shared))
	}
	b.tell(b.own.lookups, shared, v, proven)
}

// againstAccount is what a use says of its account. An account that merchants share
// is not to blame for what one of them asks for.
func againstAccount(v health, shared bool) health {
	if shared && v == accountFault {
		return neutral
	}
	return v
}

// againstProvider is what a use says of the provider. What fails on an account that
// is known to fail says nothing new.
func againstProvider(v health, proven bool) health {
	if v == accountFault || v == fault && proven {
		return neutral
	}
	return v
}

// turnsAway tells whether an account is known to fail.
func (b *breakers) turnsAway(with sdk.Connection) bool {
	known := b.find(with)
	return known != nil && known.calls.State() != gobreaker.StateClosed
}

// blame keeps a failure, and returns the account that failed; nil for no failure. What
// is proven to fail is not counted among the accounts that fail together.
func (b *breakers) blame(with sdk.Connection, shared bool, v health, why string, proven bool) *accountBreaker {
	if against := againstAccount(v, shared); against == nil || against == neutral {
		return nil
	}
	if v == fault && !shared && !proven {
		b.failed.note(with.MerchantID, time.Now())
		b.own.why.Store(&why)
	}
	found := b.failing(with, shared)
	if found != nil {
		found.why.Store(&why)
	}
	return found
}

// find returns the breaker of an account, nil where it has none.
func (b *breakers) find(with sdk.Connection) *accountBreaker {
	b.mu.Lock()
	defer b.mu.Unlock()
	found := b.accounts[with.MerchantID]
	if found == nil || found.version != with.Version {
		return nil
	}
	found.used = time.Now()
	return found
}

// failing returns the breaker of an account that has failed, and makes it at its
// first failure. It is nil for credentials that have been replaced.
func (b *breakers) failing(with sdk.Connection, shared bool) *accountBreaker {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	found := b.accounts[with.MerchantID]
	if found != nil && found.version > with.Version {
		return nil
	}
	if found == nil || found.version < with.Version {
		b.makeRoom(now)
		found = &accountBreaker{version: with.Version, shared: shared, breaker: newBreaker(b.tune, least(shared), nil, b.changed(with.MerchantID, &b.opened.accounts))}
		b.accounts[with.MerchantID] = found
	}
	found.used = now
	return found
}

// least is how many calls say something of an account: one that is a merchant's own
// has few.
func least(shared bool) uint32 {
	if shared {
		return breakerMinimum
	}
	return breakerMinimumOwn
}

// makeRoom drops what nobody has used for long, and the longest unused one where
// there are too many.
func (b *breakers) makeRoom(now time.Time) {
	if now.Sub(b.swept) > time.Minute {
		b.sweep(now)
	}
	if len(b.accounts) < breakersMost {
		return
	}
	idlest := slices.MinFunc(slices.Collect(maps.Keys(b.accounts)), func(x, y string) int {
		return b.accounts[x].used.Compare(b.accounts[y].used)
	})
	delete(b.accounts, idlest)
}

func (b *breakers) sweep(now time.Time) {
	b.swept = now
	maps.DeleteFunc(b.accounts, func(_ string, a *accountBreaker) bool { return now.Sub(a.used) > breakerIdle })
}

// retryAfter is how long calls on an account are turned away, and by which breaker;
// zero when they are not.
func (b *breakers) retryAfter(with sdk.Connection, shared bool) (wait time.Duration, whose string) {
	known := b.find(with)
	switch {
	case known != nil:
		return known.retryAfter(), "of this account"
	case shared:
		return 0, ""
	}
	return b.own.retryAfter(), "of the provider"
}

// known are the accounts that have breakers, by name.
func (b *breakers) known() map[string]*accountBreaker {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sweep(time.Now())
	return maps.Clone(b.accounts)
}

// status is the provider's own state, or that of the account that merchants share
// where that is worse, and how many accounts are turned away.
func (b *breakers) status(mode string) BreakerStatus {
	s := BreakerStatus{Mode: mode, Opened: b.opened.own.Load(), AccountsOpened: b.opened.accounts.Load()}
	calls, lookups := b.own.calls.State(), b.own.lookups.State()
	for _, a := range b.known() {
		if a.shared {
			calls, lookups = worse(calls, a.calls.State()), worse(lookups, a.lookups.State())
		}
		if a.calls.State() == gobreaker.StateOpen {
			s.AccountsOpen++
		}
	}
	s.Calls, s.Lookups = calls.String(), lookups.String()
	return s
}

func worse(a, b gobreaker.State) gobreaker.State {
	severity := map[gobreaker.State]int{gobreaker.StateHalfOpen: 1, gobreaker.StateOpen: 2}
	if severity[b] > severity[a] {
		return b
	}
	return a
}

// Outage is a breaker that is not closed: of an account, named by the merchant whose
// account it is, or the provider's own.
type Outage struct {
	Provider, Mode, Account string
	Since                   time.Time
	Why                     string // the last failure's detail, for operators
}

// Outages are the breakers that are not closed and that calls go by, the longest open
// ones first.
func (h *Host) Outages() []Outage {
	var all []Outage
	for _, p := range h.plugins() {
		for mode, b := range p.modes() {
			add := func(account string, of *breaker) {
				if since := of.since.Load(); since != 0 && !of.idle() {
					why := cmp.Or(of.why.Load(), new(string))
					all = append(all, Outage{Provider: p.name, Mode: mode, Account: account, Since: time.Unix(0, since), Why: *why})
				}
			}
			add("", b.own)
			for name, a := range b.known() {
				add(name, a.breaker)
			}
		}
	}
	slices.SortFunc(all, func(x, y Outage) int { return x.Since.Compare(y.Since) })
	return all
}

// modes are the provider's breakers by mode.
func (p *provider) modes() map[string]*breakers {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.breakers)
}

// in returns the breakers of a mode, and makes them at their first use.
func (p *provider) in(mode string) *breakers {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, ok := p.breakers[mode]
	if !ok {
		found = newBreakers(p.tune, func(account, circuit string, from, to gobreaker.State) {
			p.log.Warn("circuit breaker", "mode", mode, "account", account, "circuit", circuit, "from", from.String(), "to", to.String())
		})
		p.breakers[mode] = found
	}
	return found
}

// failures are the accounts that have failed in the window of a breaker.
type failures struct {
	window time.Duration
	mu     sync.Mutex
	last   map[string]time.Time
}

func (f *failures) note(account string, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last == nil {
		f.last = map[string]time.Time{}
	}
	f.forget(now)
	f.last[account] = now
}

// many tells whether they are so many that the fault is not theirs.
func (f *failures) many() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forget(time.Now())
	return len(f.last) >= breakerAccounts
}

func (f *failures) forget(now time.Time) {
	maps.DeleteFunc(f.last, func(_ string, at time.Time) bool { return now.Sub(at) > f.window })
}

const (
	breakerBuckets    = 10 // of a window
	breakerMinimum    = 20 // calls in the window, before a share of them says anything
	breakerMinimumOwn = 10 // the same, of a merchant's own account
	breakerProbes     = 3  // calls let through half-open, which must all go well to close it
	breakerProbeGap   = time.Second

	breakerAccounts = 5                // that fail in the window, before they say anything of their provider
	breakerIdle     = 10 * time.Minute // after which an account's breaker is dropped
	breakersMost    = 4096             // accounts of a provider in a mode
)

// health is what one use says of the upstream's health.
type health error

// A fault counts against the upstream, nil counts for it, and neutral does not
// count. An account's fault counts against that account alone.
var (
	fault        health = errors.New("upstream fault")
	accountFault health = errors.New("account fault")
	neutral      health = errors.New("says nothing of the upstream")
)

// breaker holds the health of an upstream, or of one account there. Lookups have a
// circuit of their own that stops none of them: an upstream that can't take calls
// must still be asked about money.
type breaker struct {
	calls     *gobreaker.TwoStepCircuitBreaker[struct{}]
	lookups   *gobreaker.TwoStepCircuitBreaker[struct{}]
	open      time.Duration
	openUntil atomic.Int64 // Unix nanoseconds, of calls
	since     atomic.Int64 // when calls failed enough to open it, 0 while it is closed
	called    atomic.Int64 // when the last call went by it, or was turned away
	why       atomic.Pointer[string]
}

// newBreaker makes a breaker that opens where half of at least so many uses fail, and
// more is wrong by a rule of its own (nil for none).
func newBreaker(tune tuning, minimum uint32, more func() bool, changed func(circuit string, from, to gobreaker.State)) *breaker {
	b := &breaker{open: tune.open}
	circuit := func(name string, note func(to gobreaker.State)) *gobreaker.TwoStepCircuitBreaker[struct{}] {
		return gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
			Name:         name,
			MaxRequests:  breakerProbes,
			Interval:     tune.window,
			BucketPeriod: tune.window / breakerBuckets,
			Timeout:      tune.open,
			ReadyToTrip: func(c gobreaker.Counts) bool {
				counted := c.TotalSuccesses + c.TotalFailures
				return counted >= minimum && 2*c.TotalFailures >= counted && (more == nil || more())
			},
			OnStateChange: func(_ string, from, to gobreaker.State) {
				note(to)
				changed(name, from, to)
			},
			IsExcluded: func(err error) bool { return errors.Is(err, neutral) },
		})
	}
	b.calls = circuit("calls", b.note)
	b.lookups = circuit("lookups", func(gobreaker.State) {})
	return b
}

// note keeps since when calls are turned away, and for how long.
func (b *breaker) note(to gobreaker.State) {
	now := time.Now()
	switch to {
	case gobreaker.StateOpen:
		b.openUntil.Store(now.Add(b.open).UnixNano())
		b.since.CompareAndSwap(0, now.UnixNano())
	case gobreaker.StateClosed:
		b.since.Store(0)
	case gobreaker.StateHalfOpen:
	}
}

// idle reports that nobody has called for long: whether it would let calls through is
// nobody's concern.
func (b *breaker) idle() bool { return time.Since(time.Unix(0, b.called.Load())) > breakerIdle }

// record counts a use that nothing could have stopped, after the fact.
func record(circuit *gobreaker.TwoStepCircuitBreaker[struct{}], v health) {
	if done, err := circuit.Allow(); err == nil {
		done(v)
	}
}

// retryAfter is how long calls are turned away, zero when they are not.
func (b *breaker) retryAfter() time.Duration {
	switch b.calls.State() {
	case gobreaker.StateOpen:
		return max(time.Until(time.Unix(0, b.openUntil.Load())), time.Millisecond)
	case gobreaker.StateHalfOpen:
		if c := b.calls.Counts(); c.Requests-c.TotalExclusions >= breakerProbes {
			return breakerProbeGap
		}
	case gobreaker.StateClosed:
	}
	return 0
}

// healthOf says what a call proves of the upstream's health. A refusal is a good
// answer. A slow answer is a bad one, because upstreams slow down before they fail.
func healthOf(caller context.Context, r sdk.Result, err error, took, timeout time.Duration) health {
	slow := took > timeout/2
	switch {
	case cutByCaller(caller, slow), pluginEnded(err):
		return neutral
	case err != nil || slow || r.Blame == sdk.BlameUpstream && r.Outcome != sdk.Refused:
		return fault
	case againstOwn(r.Blame) && r.Outcome != sdk.Refused:
		return accountFault
	case r.Outcome == sdk.NotSent || r.Outcome == sdk.Unknown:
		return neutral // for reasons of our own, such as a passed send_by
	}
	return nil
}

func healthOfLookup(caller context.Context, f sdk.StatusUpdate, err error, took, timeout time.Duration) health {
	slow := took > timeout/2
	switch {
	case cutByCaller(caller, slow), pluginEnded(err):
		return neutral
	case err != nil || slow || f.Blame == sdk.BlameUpstream:
		return fault
	case againstOwn(f.Blame):
		return accountFault
	case f.Status == sdk.StatusUnknown:
		return neutral
	}
	return nil
}

// againstOwn tells of a blame that it is the account's alone: a key that is not taken, a
// limit that it has reached.
func againstOwn(b sdk.Blame) bool { return b == sdk.BlameAccount || b == sdk.BlameLimit }

// pluginEnded reports that the plugin's process has, or the stream of its calls, which is
// no fault of the account that was asked, nor of the upstream. Whoever keeps plugins
// running turns calls away.
func pluginEnded(err error) bool {
	return errors.Is(err, errEnded) || errors.Is(err, sdk.ErrStreamEnded)
}

// cutByCaller reports whether the caller ended the use before the upstream had
// its time: by hanging up, or by a deadline much shorter than the operation's.
func cutByCaller(caller context.Context, slow bool) bool {
	return errors.Is(caller.Err(), context.Canceled) || caller.Err() != nil && !slow
}

// Unavailable says that a provider takes no calls now, and when it may again.
type Unavailable struct {
	Provider   string
	Reason     string
	RetryAfter time.Duration // zero when nobody knows
}

// Error is for operators.
func (u *Unavailable) Error() string {
	return fmt.Sprintf("provider %s is unavailable: %s", u.Provider, u.Reason)
}
