package impact

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// judged is what the candidate's rules say to a request.
type judged struct {
	record  *policy.Merchant // the candidate's
	base    *policy.Set
	same    bool   // the rules say what was said then
	stopped bool   // the merchant is not active: it is refused before rules are asked, also what it sends again
	open    string // what is left to evaluate, where nobody can tell what it comes to; what was said then is assumed
	unnamed bool   // the policy does not name the operation, as it has to
	refuses bool
	reasons []string
	input   policy.AdmitInput // that was refused
}

// residualKey is what a residual depends on.
type residualKey struct {
	set       *policy.Set
	record    policy.Alike
	inForce   int // of the merchant's own limits
	live      bool
	operation policy.Operation
	unknown   policy.Unknown
	moment    time.Time // zero where the clock is unknown
	lists     string    // that the rules may look at
}

// judge asks the candidate's rules about entries of the past, which no other entry changes.
func (s *simulation) judge(ctx context.Context, past []Past) error {
	var group sync.WaitGroup
	workers := max(1, runtime.GOMAXPROCS(0)/2) // a gateway that serves beside it keeps as many processors
	errs := make([]error, workers)
	for worker := range workers {
		group.Go(func() {
			for i := worker; i < len(past) && errs[worker] == nil; i += workers {
				if p := &past[i]; !p.Before && p.judged[s.side].record == nil {
					p.judged[s.side], errs[worker] = s.rules(ctx, p)
				}
			}
		})
	}
	group.Wait()
	err := errors.Join(errs...)
	if s.against != nil && err == nil {
		err = s.against.judge(ctx, past)
	}
	return err
}

// rules asks the candidate's rules about one entry.
func (s *simulation) rules(ctx context.Context, p *Past) (judged, error) {
	if p.Record == nil {
		return judged{same: true}, nil
	}
	j := judged{record: p.Record, base: s.base(p.Version)}
	if s.candidate.Record != nil {
		j.record = s.candidate.Record(p.Record)
	}
	unchanged := j.base != nil && j.base.Version() == s.candidate.Set.Version()
	switch {
	case p.Outcome == decision.Spent || unchanged && j.record == p.Record:
		j.same = true
		return j, nil
	case j.record.Status != string(tenants.Active):
		j.stopped = true
		return j, nil
	case p.Operation.refusedBy(s.candidate.Set):
		j.unnamed = true
		return j, nil
	}
	in, unknown := s.input(p, j.record), policy.Unknown{Body: p.Operation.Reads || p.Input != nil}
	candidate, err := s.residual(ctx, s.candidate.Set, in, policy.Unknown{Body: unknown.Body, Clock: true})
	switch {
	case err == nil && candidate.Known:
		return j.decided(in, candidate.Decision), nil
	case p.Input != nil:
		return s.evaluate(ctx, p, j, in)
	case err == nil && unknown.Body && s.leaves(ctx, p, j.base, candidate.Rest):
		j.same = true
		return j, nil
	}
	now, err := s.residual(ctx, s.candidate.Set, in, unknown)
	switch {
	case err == nil && now.Known:
		return j.decided(in, now.Decision), nil
	case !unknown.Body:
		return j, err
	}
	// Where this fails, the request itself may have been decided: nobody knows.
	j.same, j.open = true, "rules "+cmp.Or(candidate.Rest, string(s.candidate.Set.Version()))
	return j, ctx.Err()
}

// leaves reports whether the policy of then, too, leaves this text of a request whose body is not kept. Where an operation
// had to be named and was not, that policy was not asked.
func (s *simulation) leaves(ctx context.Context, p *Past, base *policy.Set, rest string) bool {
	if base == nil || p.Rule == decision.NotNamed || p.Operation.refusedBy(base) {
		return false
	}
	then, err := s.residual(ctx, base, s.input(p, p.Record), policy.Unknown{Body: true, Clock: true})
	return err == nil && !then.Known && then.Rest == rest
}

// decided is what a decision says.
func (j judged) decided(in policy.AdmitInput, d policy.Decision) judged {
	j.refuses, j.reasons, j.input = !d.Allow, d.Reasons, in
	return j
}

// evaluate asks about a body as admission does: first without the quote, and then, where there was one, with it.
func (s *simulation) evaluate(ctx context.Context, p *Past, j judged, in policy.AdmitInput) (judged, error) {
	answer, err := s.candidate.Set.Admit(ctx, in)
	if err != nil {
		return j, fmt.Errorf("impact: %w", err)
	}
	if !answer.Allow || p.Input.Quote == nil {
		return j.decided(in, answer), nil
	}
	in = in.Quoted(p.Input.Quote)
	if answer, err = s.candidate.Set.Admit(ctx, in); err != nil {
		return j, fmt.Errorf("impact: %w", err)
	}
	return j.decided(in, answer), nil
}

// input is what rules see of an entry at first, without its quote.
func (s *simulation) input(p *Past, record *policy.Merchant) policy.AdmitInput {
	in := policy.AdmitInput{
		Merchant: *record, Mode: decision.ModeOf(p.Live), Operation: p.Operation.Operation, Now: p.At.In(s.world.Clock), Lists: p.Lists,
	}
	if p.Input != nil {
		in.Amount, in.Fields, in.Parties = p.Input.Amount, p.Input.Fields, p.Input.Parties
	}
	return in
}

// residual is what a set makes of an operation, once for all requests of merchants that are alike, in a moment where the clock
// is known.
func (s *simulation) residual(ctx context.Context, set *policy.Set, in policy.AdmitInput, unknown policy.Unknown) (policy.Residual, error) {
	key := residualKey{set: set, record: set.Alike(in.Merchant), live: in.Mode == "live", operation: in.Operation, unknown: unknown}
	if set.ReadsLists() {
		key.lists = strings.Join(in.Lists, " ")
	}
	if !unknown.Clock {
		key.moment = set.Moment(in.Now)
	}
	for _, l := range in.Merchant.Limits {
		if l.ExpiresAt.IsZero() || in.Now.Before(l.ExpiresAt) {
			key.inForce++
		}
	}
	s.mu.Lock()
	kept, known := s.residuals[key]
	s.mu.Unlock()
	if known {
		return kept, nil
	}
	found, err := set.Residual(ctx, in, unknown)
	if err != nil {
		return found, fmt.Errorf("impact: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.residuals) >= mostKept {
		clear(s.residuals)
	}
	s.residuals[key] = found
	return found, nil
}

// mostKept bounds what is remembered of merchants' operations.
const mostKept = 1 << 18

func (s *simulation) base(version string) *policy.Set {
	s.mu.Lock()
	defer s.mu.Unlock()
	set, known := s.bases[version]
	if !known {
		set = s.world.Base(version)
		s.bases[version] = set
	}
	return set
}

// ruleOf names the rule of a refusal: the first one that gave its reasons.
func (s *simulation) ruleOf(ctx context.Context, j judged) (string, error) {
	key := j.input.Operation.Path + "\x00" + strings.Join(j.reasons, "\x00")
	if name, known := s.named[key]; known {
		return name, nil
	}
	explained, err := s.candidate.Set.Explain(ctx, j.input)
	if err != nil {
		return "", fmt.Errorf("impact: %w", err)
	}
	number := 0
	for _, because := range explained.Because {
		if number == 0 || because.Rule.Number < number {
			number = because.Rule.Number
		}
	}
	if len(s.named) >= mostNamed {
		clear(s.named)
	}
	s.named[key] = RuleName(s.candidate.Set, decision.Policy(number), policy.Limits{})
	return s.named[key], nil
}

// mostNamed bounds the reasons that rules are remembered by.
const mostNamed = 1 << 14

// RuleName names what refused by the set and the limits that it refused with.
func RuleName(set *policy.Set, rule decision.Rule, limits policy.Limits) string {
	if place, ok := rule.RatePlace(); ok {
		if name := nth(place, limits.Rates, func(r policy.Rate) string { return r.Name }); name != "" {
			return "rate " + name
		}
	}
	if place, ok := rule.QuotaPlace(); ok {
		if name := nth(place, limits.Quotas, func(q policy.Quota) string { return q.Name }); name != "" {
			return "quota " + name
		}
	}
	if number, ok := rule.PolicyNumber(); ok && set != nil {
		if r := set.Rule(number); r.File != "" {
			return fmt.Sprintf("rule %s %s:%d", r.Name, r.File, r.Line)
		}
	}
	return rule.String()
}

// nth is the name at a place among all names.
func nth[T any](place int, all []T, nameOf func(T) string) string {
	for _, one := range all {
		before := 0
		for _, other := range all {
			if nameOf(other) < nameOf(one) {
				before++
			}
		}
		if before == place {
			return nameOf(one)
		}
	}
	return ""
}
