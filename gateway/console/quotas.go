package console

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/admission"
	"github.com/seed-f006e74d/gerbang/gateway/limit"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/tenants"
)

func (c *Console) listQuotas(x *call, wanted adminapi.InMode) (out adminapi.Quotas, err error) {
	mode, err := parseMode(cmp.Or(wanted.Mode, string(tenants.Live)))
	if err != nil {
		return out, err
	}
	account, err := c.account(x)
	if err != nil {
		return out, err
	}
	m := account.Merchant()
	month := limit.Month(x.now.In(admission.ZoneOf(m, c.config.Location)))
	quotas, err := c.quotasOf(x, m, mode)
	if err != nil {
		return out, err
	}
	used, err := c.deps.Usage(x.request.Context(), movement.Owner{MerchantID: string(m.ID), Mode: string(mode)}, month.Name)
	if err != nil {
		return out, err
	}
	return adminapi.Quotas{MerchantID: string(m.ID), Mode: string(mode), Period: month.Name, ResetsAt: month.End, Quotas: filled(quotas, used)}, nil
}

// quotasOf are the quotas that the policy has for a merchant's operations.
func (c *Console) quotasOf(x *call, m tenants.Merchant, mode tenants.Mode) ([]adminapi.Quota, error) {
	offered := c.deps.Catalog.Current()
	set, in := c.deps.Policy(), policy.LimitsInput{Merchant: admission.RecordOf(m), Mode: string(mode), Now: x.now}
	quotas := []adminapi.Quota{}
	for _, op := range offered.Operations() {
		in.Operation = admission.OperationOf(op)
		limits, err := set.Limits(x.request.Context(), in)
		if err != nil && !errors.Is(err, policy.ErrNoAnswer) {
			return nil, err
		}
		for _, q := range limits.Quotas {
			i := slices.IndexFunc(quotas, func(known adminapi.Quota) bool { return known.Quota == q.Name && *known.Limit == q.Limit })
			if i < 0 {
				i, quotas = len(quotas), append(quotas, adminapi.Quota{Quota: q.Name, Limit: &q.Limit})
			}
			quotas[i].Operations = append(quotas[i].Operations, op.Path)
		}
	}
	return quotas, nil
}

// filled puts what was used to the quotas, and adds those that are none any more.
func filled(quotas []adminapi.Quota, used []store.Used) []adminapi.Quota {
	for _, u := range used {
		known := false
		for i := range quotas {
			if quotas[i].Quota == u.Name {
				quotas[i].Used, known = u.Units, true
			}
		}
		if !known {
			quotas = append(quotas, adminapi.Quota{Quota: u.Name, Used: u.Units})
		}
	}
	for i, q := range quotas {
		if q.Limit != nil {
			quotas[i].Remaining = new(max(0, *q.Limit-q.Used))
		}
	}
	slices.SortFunc(quotas, func(a, b adminapi.Quota) int { return strings.Compare(a.Quota, b.Quota) })
	return quotas
}
