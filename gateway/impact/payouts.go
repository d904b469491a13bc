package impact

import (
	"container/heap"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/policy"
)

// before counts a transfer from before the span.
func (s *simulation) before(ctx context.Context, t *trial) error {
	if t.Record == nil || t.Input == nil {
		return nil
	}
	t.judged.record = t.Record
	if s.candidate.Record != nil {
		t.judged.record = s.candidate.Record(t.Record)
	}
	limits, err := s.limits(ctx, s.candidate.Set, t, t.judged.record)
	if errors.Is(err, policy.ErrNoAnswer) {
		return nil
	}
	t.limits = limits
	for _, c := range s.counters(t) {
		s.count(c, t)
	}
	return err
}

// counter is a payout limit that counts a transfer.
type counter struct {
	key    counterKey
	amount int64
	most   int64
	then   *int64 // how much it was then, nil for no limit
	rule   decision.Rule
}

// counters are the candidate's payout limits for a transfer.
func (s *simulation) counters(t *trial) []counter {
	day := t.At.In(s.world.Zone(t.judged.record)).Format(time.DateOnly)
	var found []counter
	add := func(name string, limit, then *int64, amount int64, rule decision.Rule) {
		if limit != nil {
			found = append(found, counter{counterKey{t.who, name, day}, amount, *limit, then, rule})
		}
	}
	limits, then := t.limits.Transfers, t.then.Transfers
	if t.Input.Amount != nil {
		add("out.amount", limits.Day.Amount, then.Day.Amount, *t.Input.Amount, decision.DayAmount)
	}
	add("out.count", limits.Day.Count, then.Day.Count, 1, decision.DayCount)
	if to := t.Input.Limit; to != "" {
		if t.Input.Amount != nil {
			add("to."+to+".amount", limits.DestinationDay.Amount, then.DestinationDay.Amount, *t.Input.Amount, decision.DestinationAmount)
		}
		add("to."+to+".count", limits.DestinationDay.Count, then.DestinationDay.Count, 1, decision.DestinationCount)
	}
	return found
}

// payout counts a transfer against the payout limits, against all or none. What never came to a reservation counts nothing.
func (s *simulation) payout(t *trial, _ time.Time) {
	if !t.Operation.Transfer || t.Unused && !t.Rule.IsPayout() {
		return
	}
	limits := t.limits.Transfers
	bounded := limits.Day != policy.Outflow{} || limits.DestinationDay != policy.Outflow{}
	if !bounded {
		return
	}
	if t.Input == nil || t.Input.Amount == nil || t.Input.Limit == "" && limits.DestinationDay != (policy.Outflow{}) {
		bounds, _ := json.Marshal(limits) // of numbers alone
		t.open += "payouts " + string(bounds)
	}
	if t.Input == nil {
		if t.Rule.IsPayout() {
			t.rule = t.Rule.String()
		}
		return
	}
	counters := s.counters(t)
	for _, c := range counters {
		u := s.payoutOf(c.key)
		asThen := t.known && !u.diverged && t.stageThen() >= byPayout && c.then != nil && *c.then == c.most
		if asThen && t.Rule == c.rule || !asThen && u.n+c.amount > c.most {
			t.rule = c.rule.String()
			return
		}
	}
	for _, c := range counters {
		s.count(c, t)
	}
}

// count counts a transfer against a payout limit, until it fails.
func (s *simulation) count(c counter, t *trial) {
	s.payoutOf(c.key).n += c.amount
	if !t.FailedAt.IsZero() {
		heap.Push(&t.m.failing, failure{t.FailedAt, c.key, c.amount})
	}
}

// failure is when a transfer gives back what it counted.
type failure struct {
	at     time.Time
	key    counterKey
	amount int64
}

// failures are those to come, the first one first.
type failures []failure

func (f failures) Len() int           { return len(f) }
func (f failures) Less(i, j int) bool { return f[i].at.Before(f[j].at) }
func (f failures) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }

// Push is for package heap.
func (f *failures) Push(x any) { *f = append(*f, x.(failure)) }

// Pop is for package heap.
func (f *failures) Pop() any {
	last := (*f)[len(*f)-1]
	*f = (*f)[:len(*f)-1]
	return last
}

// release gives back what of a merchant's has failed.
func (s *simulation) release(m *merchant, now time.Time) {
	for len(m.failing) > 0 && !m.failing[0].at.After(now) {
		f := heap.Pop(&m.failing).(failure)
		s.payoutOf(f.key).n -= f.amount
	}
}
