package admission

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/policy"
)

const (
	// explainedASecond bounds how many refusals of a second are evaluated again to see
	// which rule refused: that takes several times as long as to decide. Beyond it the
	// rule that gave the same reasons last is named, and none where a reason is new:
	// one that tells the amount would be new each time.
	explainedASecond = 100
	// keptReasons bounds the reasons that rules are remembered by.
	keptReasons = 4096
)

// refusals finds the rules of refusals.
type refusals struct {
	mu     sync.Mutex
	second int64
	done   int // of this second
	rules  map[string]decision.Rule
}

// rule is the first of the rules that refused. Several may give one reason, so it is
// only remembered where refusals come too fast to see which.
func (r *refusals) rule(ctx context.Context, now time.Time, set *policy.Set, input policy.AdmitInput, reasons []string) decision.Rule {
	key := string(set.Version()) + "\x00" + strings.Join(reasons, "\x00")
	if rule, spent := r.remembered(now, key); spent {
		return rule
	}
	explained, err := set.Explain(ctx, input)
	if err != nil || len(explained.Because) == 0 {
		return decision.Unnamed
	}
	number := explained.Because[0].Rule.Number
	for _, because := range explained.Because {
		number = min(number, because.Rule.Number)
	}
	rule := decision.Policy(number)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rules == nil || len(r.rules) >= keptReasons {
		r.rules = map[string]decision.Rule{}
	}
	r.rules[key] = rule
	return rule
}

// remembered is the rule of reasons as far as it is known, where enough were explained
// in this second.
func (r *refusals) remembered(now time.Time, key string) (decision.Rule, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if second := now.Unix(); second != r.second {
		r.second, r.done = second, 0
	}
	if r.done < explainedASecond {
		r.done++
		return decision.Unnamed, false
	}
	if rule, known := r.rules[key]; known {
		return rule, true
	}
	return decision.Unnamed, true
}
