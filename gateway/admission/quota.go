package admission

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/limit"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// zoneLabel is the label by which a merchant's record names the place whose months
// its quotas are counted by, such as Asia/Jayapura.
const zoneLabel = "time_zone"

// jakarta is the zone of Indonesia's capital, which has no summer time.
var jakarta = time.FixedZone("WIB", 7*60*60)

// Reserve takes a unit of each quota that counts an admitted request, or of none:
// what was taken before one that is used up is released. It is apart from Admit so
// that the caller may look before whether the request is about what exists already
// and so uses nothing. The error is QUOTA_EXCEEDED, or INTERNAL when a quota could
// not be counted. The ticket that it returns is the given one in that case.
func (a *Admission) Reserve(ctx context.Context, now time.Time, ticket Ticket, id tenants.Identity, op *catalog.Operation) (Ticket, error) {
	s := subject{string(id.Account.ID()), string(id.Mode), op.Path}
	now = now.In(ticket.Zone)
	month := limit.Month(now)
	reserved := ticket
	for _, quota := range ticket.Limits.Quotas {
		usage := limit.Usage{Key: limit.Key{Merchant: s.merchant, Mode: s.mode, Name: quota.Name}, Period: month.Name}
		counted, err := a.quotas.Reserve(ctx, usage, quota.Limit)
		if err == nil && counted.OK {
			reserved.Quotas = append(reserved.Quotas, usage)
			if reserved.Remaining == nil || counted.Remaining < *reserved.Remaining {
				reserved.Remaining = &counted.Remaining
			}
			continue
		}
		a.Release(ctx, reserved)
		if err != nil {
			return ticket, internal(err)
		}
		a.note(ctx, ticket, s, fault.QuotaExceeded, quota.Name)
		return ticket, fault.Newf(fault.QuotaExceeded, "The quota %s is used up: %d calls until %s.", quota.Name, quota.Limit,
			month.End.UTC().Format(time.RFC3339)).After(now, month.End.Sub(now))
	}
	return reserved, nil
}

// Remaining is what is left in the scarcest of the quotas that would count an
// admitted request, for one that is about what exists already and takes nothing; nil
// where none does, or it can't be read, which is logged.
func (a *Admission) Remaining(ctx context.Context, now time.Time, ticket Ticket, id tenants.Identity) *int64 {
	var remaining *int64
	for _, quota := range ticket.Limits.Quotas {
		key := limit.Key{Merchant: string(id.Account.ID()), Mode: string(id.Mode), Name: quota.Name}
		left, err := a.quotas.Left(ctx, limit.Usage{Key: key, Period: limit.Month(now.In(ticket.Zone)).Name}, quota.Limit)
		if err != nil {
			a.log.WarnContext(ctx, "what is left of a quota can't be told", "decision_id", ticket.DecisionID, "quota", quota.Name, "error", err)
			return nil
		}
		if remaining == nil || left < *remaining {
			remaining = &left
		}
	}
	return remaining
}

// Release gives back what a request has reserved: for one that turned out
// to consume nothing. It must be called once at most.
func (a *Admission) Release(ctx context.Context, ticket Ticket) {
	for _, usage := range ticket.Quotas {
		a.quotas.Release(ctx, usage)
	}
}

// ZoneOf is the zone whose months a merchant's quotas are counted by: what its
// record names, or else the gateway's, Jakarta's where that is nil.
func ZoneOf(m tenants.Merchant, gateway *time.Location) *time.Location {
	if zone, err := Zone(m.Labels); err == nil && zone != nil {
		return zone
	}
	return cmp.Or(gateway, jakarta)
}

// zones are those that were loaded from files, by their names.
var zones sync.Map

// Zone is the zone that a merchant's labels name, nil where they name none. A zone
// that this machine does not know is an error.
func Zone(labels map[string]string) (*time.Location, error) {
	name := labels[zoneLabel]
	if name == "" {
		return nil, nil //nolint:nilnil // none is named
	}
	if known, ok := zones.Load(name); ok {
		return known.(*time.Location), nil
	}
	if name == "Local" { // would be this machine's
		return nil, fmt.Errorf("admission: %s names no place", zoneLabel)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("admission: %s: %w", zoneLabel, err)
	}
	zones.Store(name, zone)
	return zone, nil
}
