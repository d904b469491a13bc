package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// effort is how much one evaluation of a set that is judged may cost.
type effort struct {
	steps int
	time  time.Duration // far more than a request may wait: a busy machine's pauses must refuse no set
}

var (
	// ofRequest is what a request may cost.
	ofRequest = effort{maxSteps, 5 * time.Second}
	// ofProbe cuts what never ends. It is wider: what another version of this program took may not keep a replica from starting.
	ofProbe = effort{10 * maxSteps, 5 * time.Second}
)

// ErrTooLarge is the cause with which whoever bounds the memory of a judgement ends its context: the rule at hand is at fault.
var ErrTooLarge = errors.New("takes more memory than a policy may")

func tooLarge(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ErrTooLarge) }

// tried is how one question went.
type tried struct {
	steps int
	lines map[place]int // that it came to
	// fault is why there is no answer of the right shape, check what it is against.
	fault *Problem
	check Check
	// answered says that the rules have an answer: to the one question limits, to the other decision.
	answered bool
	limits   Limits
	decision Decision
}

// try asks both questions, limits first.
func (s *Set) try(ctx context.Context, in AdmitInput, most effort) [2]tried {
	return [2]tried{s.tryLimits(ctx, in, most), s.tryAdmit(ctx, in, most)}
}

// tryLimits asks for the limits.
func (s *Set) tryLimits(ctx context.Context, in AdmitInput, most effort) (got tried) {
	limits := LimitsInput{Merchant: in.Merchant, Mode: in.Mode, Operation: in.Operation, Now: in.Now}
	answer := s.tryOne(ctx, &got, &s.limits, limitsRef, s.limitsTerm(&limits), most)
	if answer != nil {
		var err error
		got.answered = true
		if got.limits, err = s.readLimits(answer.Value); err != nil {
			got.misses(s, limitsRef, err)
		}
	}
	return got
}

// tryAdmit asks for a decision.
func (s *Set) tryAdmit(ctx context.Context, in AdmitInput, most effort) (got tried) {
	input, err := s.admitTerm(&in)
	if err != nil {
		got.misses(s, admitRef, err)
		return got
	}
	answer := s.tryOne(ctx, &got, &s.admit, admitRef, input, most)
	if got.fault == nil {
		got.answered = answer != nil
		if got.decision, err = s.decision(answer); err != nil {
			got.misses(s, admitRef, errors.Unwrap(err))
		}
	}
	return got
}

// misses notes an answer of the wrong shape, at the rule that answers.
func (t *tried) misses(s *Set, ref ast.Ref, err error) {
	t.check = CheckAnswer
	t.fault = new(at(s.rules.GetRules(ref)[0].Location, "", fmt.Sprintf("policy: the answer of %s: %v", ref, err)))
}

// tryOne asks one question and notes why it has no answer, at the rule that is at fault.
func (s *Set) tryOne(ctx context.Context, t *tried, q *question, ref ast.Ref, input *ast.Term, most effort) *ast.Term {
	ctx, cancel := context.WithTimeout(ctx, most.time)
	defer cancel()
	w := &witness{table: s.table, lines: map[place]int{}}
	answer, err := s.askTraced(ctx, q, input, w, most.steps)
	t.steps, t.lines = w.steps, w.lines
	if err == nil {
		return answer
	}
	t.check = CheckAnswer
	var failed *topdown.Error
	switch {
	case errors.Is(err, errTooManySteps):
		t.check, t.fault = CheckCost, w.costs(w.costliest(), fmt.Sprintf("takes more than %d evaluation steps", most.steps))
	case tooLarge(ctx):
		t.check, t.fault = CheckCost, w.costs(w.last, ErrTooLarge.Error())
	case errors.Is(err, context.DeadlineExceeded):
		t.check, t.fault = CheckCost, w.costs(w.last, fmt.Sprintf("does not end within %s", most.time))
	case errors.As(err, &failed) && failed.Location != nil && failed.Location.File != "":
		t.fault = new(at(failed.Location, "", ref.String()+": "+cmp.Or(failed.Message, err.Error())))
	default:
		t.fault = new(at(s.rules.GetRules(ref)[0].Location, "", err.Error()))
	}
	return nil
}

// costs is a problem of the rule at a place.
func (w *witness) costs(where place, what string) *Problem {
	return &Problem{File: where.file, Line: where.line, Col: 1, Message: "the rule " + w.table.at(where.file, where.line).Name + " " + what}
}

// costliest is the line with the most steps.
func (w *witness) costliest() place {
	hot := w.last
	for where, steps := range w.lines {
		earlier := where.file < hot.file || where.file == hot.file && where.line < hot.line
		if steps > w.lines[hot] || steps == w.lines[hot] && earlier {
			hot = where
		}
	}
	return hot
}
