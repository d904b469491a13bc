package rollout

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/policy"
)

// fitWithin bounds what an activation or a rollback waits to know whether the version fits.
const fitWithin = 8 * time.Second

// Unfit says that a version, good when it was pushed, does not fit the merchants and the
// operations of now.
type Unfit struct {
	Version  policy.Version
	Findings []policy.Finding
}

// Unconfirmed says that a version does what is seldom meant, and that nobody has said that it is.
type Unconfirmed struct{ Unfit }

// Error lists what does not fit, each with its place and how many merchants it is about.
func (u *Unfit) Error() string {
	const most = 10
	lines := make([]string, 0, most)
	for _, f := range u.Findings[:min(most, len(u.Findings))] {
		lines = append(lines, f.String())
	}
	text := strings.Join(lines, "; ")
	if more := len(u.Findings) - most; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// unfit is what of a version refuses it by its meaning. What was overruled when it was
// pushed is overruled, as long as it is about no more merchants. Nobody must wait for a
// judgement in an outage: where there is none in time, the version passes, as it did
// when it was pushed.
func (p *Publisher) unfit(ctx context.Context, version policy.Version, head store.PolicyHead) []policy.Finding {
	if p.Meaning == nil || version == head.Version {
		return nil
	}
	judging, cancel := context.WithTimeout(ctx, fitWithin)
	defer cancel()
	v, err := p.Record.PolicyVersion(judging, version)
	if err == nil && v.State == store.PolicyRefused {
		return nil // it can't be proposed at all
	}
	var found []policy.Finding
	if err == nil {
		found, err = p.Meaning(judging, v.Source)
	}
	if err != nil {
		p.Log.WarnContext(ctx, "a policy version is proposed without a look at whether it still fits", "version", version, "error", err)
		return nil
	}
	overruled := func(f policy.Finding) bool {
		return v.Forced != "" && slices.ContainsFunc(v.Findings, func(then policy.Finding) bool {
			return then.File == f.File && then.Line == f.Line && then.Reason == f.Reason && then.Merchants >= f.Merchants
		})
	}
	return slices.DeleteFunc(found, func(f policy.Finding) bool { return f.Warning || overruled(f) })
}
