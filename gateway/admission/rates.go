package admission

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/limit"
	"github.com/seed-f006e74d/gerbang/policy"
)

// spend takes a token of each rate. A spent token is not returned, also when the
// next rate refuses.
func (a *Admission) spend(now time.Time, ticket *Ticket, input policy.AdmitInput, apiKey string) (decision.Rule, error) {
	var limits, policies []byte
	var refusal error
	rule := decision.Admitted
	for _, rate := range ticket.Limits.Rates {
		key := limit.Key{Merchant: input.Merchant.ID, Mode: input.Mode, Name: rate.Bucket(input.Operation.Path, apiKey)}
		verdict := a.limiter.Allow(now, key, limit.Rate{PerSecond: rate.PerSecond, Burst: rate.Burst})
		limits = limit.AppendLimit(limits, rate.Name, verdict)
		policies = limit.AppendPolicy(policies, rate.Name, verdict)
		if !verdict.OK {
			rule = decision.Rate(placeOf(rate.Name, ticket.Limits.Rates, func(r policy.Rate) string { return r.Name }))
			refusal = fault.New(fault.RateLimited, tooMany(rate)).After(now, verdict.RetryAfter)
			break
		}
	}
	ticket.RateLimit, ticket.RateLimitPolicy = string(limits), string(policies)
	return rule, refusal
}

// tooMany tells a merchant what a rate allows, by the second or by what a whole request
// takes.
func tooMany(r policy.Rate) string {
	pace, unit := r.PerSecond, "a second"
	for _, longer := range []string{"a minute", "an hour"} {
		if pace < 1 {
			pace, unit = pace*60, longer
		}
	}
	whose := map[policy.Per]string{policy.PerOperation: " for this operation", policy.PerKey: " with this key"}[r.Per]
	const digits = 1000
	return fmt.Sprintf("Too many requests: at most %s %s, %d at once%s.",
		strconv.FormatFloat(math.Round(pace*digits)/digits, 'f', -1, 64), unit, r.Burst, whose)
}

// placeOf is the place of a name among the names of all, from 0: it is the same in
// whatever order the policy answers.
func placeOf[T any](name string, all []T, nameOf func(T) string) int {
	place := 0
	for _, other := range all {
		if nameOf(other) < name {
			place++
		}
	}
	return place
}
