package host

import (
	"cmp"
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
