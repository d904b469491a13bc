package console

import (
	"cmp"
	"context"
	"slices"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/admission"
	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/gateway/limit"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// listRequests counts what was decided on a merchant's requests in the last hour. A
// policy that was replaced in it numbers its rules in its own way, so counts are added up
// by the names of what decided.
func (c *Console) listRequests(x *call, wanted adminapi.InMode) (out adminapi.Requests, err error) {
	ctx := x.request.Context()
	mode, err := parseMode(cmp.Or(wanted.Mode, string(tenants.Live)))
	if err != nil {
		return out, err
	}
	account, err := c.account(x)
	if err != nil {
		return out, err
	}
	sums, since, err := c.deps.Decided(ctx, account.ID())
	if err != nil {
		return out, err
	}
	out = adminapi.Requests{MerchantID: string(account.ID()), Mode: string(mode), Since: since, Requests: []adminapi.RequestCount{}}
	for _, sum := range sums {
		if sum.Live != (mode == tenants.Live) {
			continue
		}
		row, err := c.requestCount(ctx, account.Merchant(), sum)
		if err != nil {
			return out, err
		}
		i := slices.IndexFunc(out.Requests, func(r adminapi.RequestCount) bool {
			return r.Operation == row.Operation && r.Verdict == row.Verdict && r.Rule == row.Rule && r.Reason == row.Reason
		})
		if i < 0 {
			out.Requests = append(out.Requests, row)
			continue
		}
		same := &out.Requests[i]
		same.N += row.N
		if row.Last.After(same.Last) {
			same.Last, same.Limit = row.Last, row.Limit
		}
	}
	slices.SortFunc(out.Requests, func(a, b adminapi.RequestCount) int {
		if (a.Rule == "") != (b.Rule == "") {
			return cmp.Compare(b.Rule, a.Rule)
		}
		return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Reason, b.Reason))
	})
	return out, nil
}

// requestCount is a sum with the name of what refused, and how much of its limit is used.
func (c *Console) requestCount(ctx context.Context, m tenants.Merchant, sum decision.Sum) (adminapi.RequestCount, error) {
	row := adminapi.RequestCount{Operation: sum.Operation, Verdict: sum.Rule.Verdict(), N: sum.N, Last: sum.Last}
	if sum.Invalid {
		row.Verdict, row.Rule = "invalid", "the request is invalid"
	}
	if !sum.Rule.Refuses() {
		return row, nil
	}
	row.Rule = sum.Rule.String()
	set, err := c.deps.Decisions.Policy(ctx, policy.Version(sum.Version))
	if err != nil || set == nil {
		return row, err
	}
	if place, ok := placeOf(set, sum.Rule); ok {
		row.Rule, row.Reason = place.Rule, place.Reason
	}
	op, ok := c.deps.Catalog.Current().ByPath(sum.Operation)
	if !ok {
		return row, nil
	}
	e := explained{
		Facts: decision.Facts{At: sum.Last, Rule: sum.Rule, Live: sum.Live}, operations: []*catalog.Operation{op}, sets: []*policy.Set{set},
	}
	told := adminapi.Decision{Rule: row.Rule}
	if err := c.explainReached(ctx, &e, m, &told); err != nil {
		return row, err
	}
	row.Rule, row.Limit = told.Rule, told.Limit
	if _, ok := sum.Rule.RatePlace(); ok && row.Limit != nil {
		row.Limit.Used, row.Limit.ResetsAt = nil, nil // of one request, not of many
	}
	if _, ok := sum.Rule.QuotaPlace(); ok && row.Limit != nil {
		month := limit.Month(sum.Last.In(admission.ZoneOf(m, c.config.Location))).Name
		row.Limit.Used, err = c.usedOf(ctx, movement.Owner{MerchantID: string(m.ID), Mode: e.mode()}, month, row.Limit.Name)
	}
	return row, err
}
