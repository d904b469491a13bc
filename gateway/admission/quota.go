package admission

import (
	"context"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/limit"
	"github.com/seed-f006e74d/gerbang/gateway/tracing"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// jakarta is the zone of Indonesia's capital, which has no summer time.
var jakarta = time.FixedZone("WIB", 7*60*60)

// Reserve takes a unit of each quota that counts an admitted request, or of none:
// where one is used up, the others are released. Reserve is apart from Admit so that
// the caller can look the reference up in between: a replay uses no quota. The error
// is QUOTA_EXCEEDED, or INTERNAL when a quota could not be counted, and then the ticket
// names that decision.
func (a *Admission) Reserve(ctx context.Context, now time.Time, ticket Ticket, id tenants.Identity, _ *catalog.Operation) (Ticket, error) {
	ctx, span := tracing.Start(ctx, "quota", tracing.Inside)
	defer span.End()
	now = now.In(ticket.Zone)
	month := limit.Month(now)
	reserved := ticket
	for _, quota := range ticket.Limits.Quotas {
		usage := limit.Usage{Key: limit.Key{Merchant: string(id.Account.ID()), Mode: string(id.Mode), Name: quota.Name}, Period: month.Name}
		counted, err := a.quotas.Reserve(ctx, usage, quota.Limit)
		if err == nil && counted.OK {
			reserved.Quotas = append(reserved.Quotas, usage)
			if reserved.Remaining == nil || counted.Remaining < *reserved.Remaining {
				reserved.Remaining = &counted.Remaining
			}
			continue
		}
		a.release(ctx, reserved)
		if err != nil {
			return a.decided(ctx, ticket, decision.Unjudged, internal(err))
		}
		rule := decision.Quota(placeOf(quota.Name, ticket.Limits.Quotas, func(q policy.Quota) string { return q.Name }))
		return a.decided(ctx, ticket, rule, fault.Newf(fault.QuotaExceeded, "The quota %s is used up: %d calls until %s.",
			quota.Name, quota.Limit, month.End.UTC().Format(time.RFC3339)).After(now, month.End.Sub(now)))
	}
	a.count(&reserved)
	return reserved, nil
}

// Remaining is what the scarcest quota of an admitted request has left, for replays,
// which take nothing. It is nil where no quota counts, or where one can't be read,
// which is logged.
func (a *Admission) Remaining(ctx context.Context, now time.Time, ticket Ticket, id tenants.Identity) *int64 {
	var remaining *int64
	for _, quota := range ticket.Limits.Quotas {
		key := limit.Key{Merchant: string(id.Account.ID()), Mode: string(id.Mode), Name: quota.Name}
		left, err := a.quotas.Left(ctx, limit.Usage{Key: key, Period: limit.Month(now.In(ticket.Zone)).Name}, quota.Limit)
		if err != nil {
			a.log.WarnContext(ctx, "quota: the remaining units cannot be read", "decision_id", ticket.DecisionID, "quota", quota.Name, "error", err)
			return nil
		}
		if remaining == nil || left < *remaining {
			remaining = &left
		}
	}
	return remaining
}

// Release gives back the units of a request that turned out to consume nothing, and
// counts it as such. It must be called at most once.
func (a *Admission) Release(ctx context.Context, ticket Ticket) {
	a.release(ctx, ticket)
	a.count(&ticket)
	if unused := ticket.facts.series; unused.Outcome == decision.Decided {
		if unused.Rule.Refuses() {
			a.counts.Answered(ticket.facts.id)
		}
		unused.Outcome = decision.Unused
		a.counts.Count(ticket.facts.at, unused)
	}
}

func (a *Admission) release(ctx context.Context, ticket Ticket) {
	for _, usage := range ticket.Quotas {
		a.quotas.Release(ctx, usage)
	}
}
