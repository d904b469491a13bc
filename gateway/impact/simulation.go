package impact

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/policy"
)

// simulation is where merchants stand under the candidate.
type simulation struct {
	candidate Candidate
	world     World
	done      int64
	rows      map[rowKey]*Row
	units     []unit

	mu        sync.Mutex // of what judging remembers
	residuals map[residualKey]policy.Residual
	bases     map[string]*policy.Set
	named     map[string]string
	against   *simulation // nil for what was decided
	side      int         // of what is judged

	merchants map[merchantKey]*merchant
	buckets   map[counterKey]*bucket
	quotas    map[counterKey]*used
	payouts   map[counterKey]*used
}

type merchantKey struct {
	id   string
	live bool
}

// merchant is what differs from the past so far: the changes by rates, by operation. They are set against one another,
// because when in its second a request came is not known.
type merchant struct {
	flips   map[string]*flips
	failing failures
}

// used is how much of a quota or payout limit is used. Once it has diverged, it is not what was used then.
type used struct {
	n        int64
	diverged bool
}

// flips are requests that a rate decides otherwise: by the row that each would be counted in.
type flips struct {
	denied, allowed []flip
}

// flip is one change, or those by one rule in a minute.
type flip struct {
	rule   string
	at     time.Time // the first
	n      int64
	rupiah int64
}

// counterKey names a bucket, a quota or a payout limit of a merchant.
type counterKey struct {
	merchantKey
	name, period string
}

type rowKey struct {
	merchant  string
	live      bool
	operation string
	rule      string
}

func newSimulation(c Candidate, w World) *simulation {
	s := &simulation{
		candidate: c, world: w, rows: map[rowKey]*Row{}, residuals: map[residualKey]policy.Residual{}, bases: map[string]*policy.Set{},
		named: map[string]string{}, merchants: map[merchantKey]*merchant{}, buckets: map[counterKey]*bucket{},
		quotas: map[counterKey]*used{}, payouts: map[counterKey]*used{},
	}
	if c.Against != nil {
		w.Progress = nil
		s.against = newSimulation(Candidate{Set: c.Against}, w)
		s.against.side = 1
	}
	return s
}

// told is how often progress is told.
const told = 1 << 14

// trial is one request on its way through the candidate.
type trial struct {
	*Past
	judged       *judged
	who          merchantKey
	m            *merchant
	limits, then policy.Limits // the candidate's, and those of the past
	known        bool          // then is
	rule         string        // that refuses, "" for none
	stage        stage         // at which it refuses
	unsure       bool          // whether a rate does
	untried      bool          // for want of the record, or of the rule
	open         string        // what would decide it, where that is not known
	skipped      bool          // it is compared with nothing
	replay       bool          // or came to nothing
}

// try simulates one request: rules, rates, quotas, payout limits, in the order of admission.
func (s *simulation) try(ctx context.Context, u unit) (*trial, error) {
	t := &trial{Past: u.past, judged: &u.past.judged[s.side], who: merchantKey{u.past.Merchant, u.past.Live}, stage: admitted}
	at := t.At.Truncate(time.Second).Add(time.Duration(u.offset * float64(time.Second)))
	if t.m = s.merchants[t.who]; t.m == nil {
		t.m = &merchant{flips: map[string]*flips{}}
		s.merchants[t.who] = t.m
	}
	s.release(t.m, at)
	if t.Before {
		t.skipped = true
		return t, s.before(ctx, t)
	}
	if s.done++; s.done%told == 0 && s.world.Progress != nil {
		s.world.Progress(s.done, t.At)
	}
	// A replay has its answer, whatever is decided on it, and what came to nothing has lost nothing; both take their tokens.
	t.replay = t.Unused && t.Operation.Money && t.Outcome == decision.Decided && (t.Input == nil || t.Rule.Refuses())
	spent := t.Outcome == decision.Spent
	untried := t.judged.record == nil || t.Rule == decision.Unjudged
	if !t.replay && !spent {
		t.untried, t.open = untried, t.judged.open
	}
	if t.skipped = untried || spent; untried {
		return t, ctx.Err()
	}
	var err error
	if t.limits, err = s.limits(ctx, s.candidate.Set, t, t.judged.record); err != nil && !errors.Is(err, policy.ErrNoAnswer) {
		return t, err
	}
	unlimited := errors.Is(err, policy.ErrNoAnswer)
	if t.judged.base != nil {
		t.then, err = s.limits(ctx, t.judged.base, t, t.Record)
		t.known = err == nil
	}
	if spent { // it was refused, and is
		s.take(t, at)
		return t, ctx.Err()
	}
	if err := s.rulesSay(ctx, t, unlimited); err != nil {
		return t, err
	}
	if t.rule != "" {
		t.stage = byRule
	}
	if t.rule != "" && t.Outcome == decision.Later { // it had taken its tokens
		refused := t.rule
		t.rule = ""
		if s.rates(t, at); t.rule == "" {
			t.rule = refused
		}
	}
	if t.replay && !t.judged.stopped {
		s.take(t, at)
		t.skipped = true
		return t, ctx.Err()
	}
	for i, try := range []func(*trial, time.Time){s.rates, s.quota, s.payout} {
		if t.rule == "" {
			t.stage = byRate + stage(i)
			try(t, at)
		}
	}
	if t.rule == "" {
		t.stage = admitted
	}
	s.diverge(t)
	if t.unsure = t.unsure && t.rule == ""; t.unsure {
		t.open += fmt.Sprint("rates ", t.limits.Rates)
	}
	return t, ctx.Err()
}

func (s *simulation) limits(ctx context.Context, set *policy.Set, t *trial, record *policy.Merchant) (policy.Limits, error) {
	limits, err := set.Limits(ctx, policy.LimitsInput{
		Merchant: *record, Mode: decision.ModeOf(t.Live), Operation: t.Operation.Operation, Now: t.At,
	})
	if err != nil && !errors.Is(err, policy.ErrNoAnswer) {
		return limits, fmt.Errorf("impact: %w", err)
	}
	return limits, err
}

// stage is how far a request comes.
type stage int

// The stages, in the order of admission.
const (
	byRule stage = iota
	byRate
	byQuota
	byPayout
	admitted
)

// stageThen is how far a request came then.
func (p *Past) stageThen() stage {
	_, rate := p.Rule.RatePlace()
	_, quota := p.Rule.QuotaPlace()
	switch {
	case !p.Rule.Refuses(), p.Rule == decision.Suspended, p.Rule == decision.Scope: // these take tokens
		return admitted
	case rate:
		return byRate
	case quota:
		return byQuota
	case p.Rule.IsPayout():
		return byPayout
	}
	return byRule
}

// take takes the tokens of what is answered, or refused, whatever is decided on it. It uses no quota.
func (s *simulation) take(t *trial, at time.Time) {
	s.divergeRates(t, t.rule == "")
	if t.rule == "" {
		s.rates(t, at)
	}
}

// divergeRates notes that the buckets serve another request than then, or one less.
func (s *simulation) divergeRates(t *trial, asks bool) {
	if (t.stageThen() != byRule) != asks {
		for _, rate := range t.limits.Rates {
			s.bucket(t, rate).diverged = true
		}
	}
}

// diverge notes which counters count a request otherwise than then.
func (s *simulation) diverge(t *trial) {
	then := t.stageThen()
	if then == t.stage {
		return
	}
	s.divergeRates(t, t.stage != byRule)
	if (then <= byQuota) != (t.stage <= byQuota) {
		for _, quota := range t.limits.Quotas {
			s.quotaOf(t, quota.Name).diverged = true
		}
	}
	if t.Operation.Transfer && (then == admitted) != (t.stage == admitted) && t.Input != nil {
		for _, c := range s.counters(t) {
			s.payoutOf(c.key).diverged = true
		}
	}
}

// refusedByRule says whether a rule of the policy refused then, at the first look or at the second.
func (p *Past) refusedByRule() bool { return p.stageThen() == byRule }

// rulesSay notes what the candidate's rules refuse.
func (s *simulation) rulesSay(ctx context.Context, t *trial, unlimited bool) (err error) {
	switch {
	case t.judged.stopped:
		t.rule = decision.Suspended.String()
	case t.judged.unnamed:
		t.rule = decision.NotNamed.String()
	case t.judged.same && t.refusedByRule() && t.Rule != decision.NoLimits: // to which the rules had said yes
		t.rule = RuleName(t.judged.base, t.Rule, t.then)
	case t.judged.refuses:
		t.rule, err = s.ruleOf(ctx, *t.judged)
	case unlimited:
		t.rule = decision.NoLimits.String()
	}
	return err
}

// bucket is a merchant's rate over all replicas. One that each key has is simulated as if all had come with one key, which
// nobody has noted: what it admits is admitted, and what it refuses is not known.
type bucket struct {
	tokens float64
	last   time.Time
	filled bool
	// diverged says that it has served other requests than then.
	diverged bool
}

func (s *simulation) bucket(t *trial, rate policy.Rate) *bucket {
	key := counterKey{merchantKey: t.who, name: rate.Bucket(t.Operation.Path, "")}
	b := s.buckets[key]
	if b == nil {
		b = &bucket{}
		s.buckets[key] = b
	}
	return b
}

// take takes a token where there is one. A bucket is full at first.
func (b *bucket) take(now time.Time, r policy.Rate) bool {
	burst := float64(r.Burst)
	switch {
	case !b.filled:
		b.tokens, b.filled = burst, true
	case now.After(b.last):
		b.tokens = min(burst, b.tokens+now.Sub(b.last).Seconds()*r.PerSecond)
	}
	b.tokens = min(b.tokens, burst)
	if now.After(b.last) {
		b.last = now
	}
	const rounding = 1e-9
	if b.tokens < 1-rounding {
		return false
	}
	b.tokens--
	return true
}

// rates takes a token of each rate. As long as a bucket has served the same requests and the rates are those of then, what
// they said then is true: replicas had seen when in its second each request came.
func (s *simulation) rates(t *trial, at time.Time) {
	_, slowed := t.Rule.RatePlace()
	asThen := t.known && t.stageThen() != byRule && slices.Equal(t.limits.Rates, t.then.Rates)
	for _, rate := range t.limits.Rates {
		asThen = asThen && !s.bucket(t, rate).diverged
	}
	for _, rate := range t.limits.Rates {
		switch took := s.bucket(t, rate).take(at, rate); {
		case took || asThen:
		case rate.Per == policy.PerKey:
			t.unsure = true
		default:
			t.rule = "rate " + rate.Name
			return
		}
	}
	if asThen && slowed {
		t.rule = RuleName(t.judged.base, t.Rule, t.then)
	}
}

func (s *simulation) quotaOf(t *trial, name string) *used {
	period := t.At.In(s.world.Zone(t.judged.record)).Format("2006-01")
	key := counterKey{t.who, name, period}
	u := s.quotas[key]
	if u == nil {
		u = &used{n: max(0, s.world.Used[Used{t.Merchant, t.Live, name, period}])}
		s.quotas[key] = u
	}
	return u
}

func (s *simulation) payoutOf(key counterKey) *used {
	u := s.payouts[key]
	if u == nil {
		u = &used{}
		s.payouts[key] = u
	}
	return u
}

// quota takes a unit of each quota, or of none.
func (s *simulation) quota(t *trial, _ time.Time) {
	place, refused := t.Rule.QuotaPlace()
	var taken []*used
	for _, quota := range t.limits.Quotas {
		u := s.quotaOf(t, quota.Name)
		asThen := t.known && !u.diverged && t.stageThen() >= byQuota && slices.Contains(t.then.Quotas, quota)
		was := refused && nth(place, t.then.Quotas, quotaName) == quota.Name
		if asThen && was || !asThen && u.n >= quota.Limit {
			t.rule = "quota " + quota.Name
			for _, back := range taken {
				back.n--
			}
			return
		}
		u.n++
		taken = append(taken, u)
	}
	if t.Unused { // nothing was sent
		for _, back := range taken {
			back.n--
		}
	}
}

func quotaName(q policy.Quota) string { return q.Name }
