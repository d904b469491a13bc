package policy

import (
	"context"
	"fmt"
)

// Trial is what a set says about one case, and what it costs.
type Trial struct {
	Explanation
	// Limits are nil where the set has none; then the request is refused, whatever Decision says.
	Limits *Limits
	// LimitsSteps is what the limits cost; Steps is what the decision does.
	LimitsSteps int
}

// Try asks a set about one case, as a request that was made at in.Now would be. Nothing is kept. A rule that fails, never ends
// or answers in the wrong shape is an *Error with its place.
func (s *Set) Try(ctx context.Context, in AdmitInput) (Trial, error) {
	got := s.try(ctx, in, ofProbe)
	if err := ctx.Err(); err != nil {
		return Trial{}, fmt.Errorf("policy: %w", err)
	}
	var problems []Problem
	for _, t := range got {
		if t.fault != nil {
			problems = append(problems, *t.fault)
		}
	}
	if err := refused(problems); err != nil {
		return Trial{}, err
	}
	explained, err := s.Explain(ctx, in)
	if err != nil {
		return Trial{}, err
	}
	trial := Trial{Explanation: explained, LimitsSteps: got[0].steps}
	if got[0].answered {
		trial.Limits = &got[0].limits
	}
	return trial, nil
}
