package console

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/admission"
	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// The bounds of a change of limits.
const (
	maxLimits   = 20
	minLimitFor = time.Second
	maxLimitFor = 10 * 366 * 24 * time.Hour
)

func (c *Console) listLimits(x *call) (any, error) {
	account, err := c.account(x)
	if err != nil {
		return nil, err
	}
	return limitDocuments(account.Merchant(), x.now), nil
}

func (c *Console) setLimits(x *call, change adminapi.LimitChange) (any, error) {
	expires, err := checkLimits(change, x.now)
	if err != nil {
		return nil, err
	}
	account, err := c.account(x)
	if err != nil {
		return nil, err
	}
	m := account.Merchant()
	var limits []tenants.Limit
	var words []string
	for _, l := range change.Limits {
		limits = append(limits, tenants.Limit{
			Name: l.Name, RatePerSecond: l.RatePerSecond, Burst: l.Burst, Quota: l.Limit, Reason: change.Reason, ExpiresAt: expires,
		})
		words = append(words, l.String())
	}
	m.Limits = limits
	if err := c.checkEffect(x, m); err != nil {
		return nil, err
	}
	detail := strings.Join(words, ", ")
	if !expires.IsZero() {
		detail += " until " + expires.UTC().Format(time.RFC3339)
	}
	err = c.deps.Merchants.SetLimits(x.request.Context(), x.audit("merchant.limit", detail+": "+change.Reason), m.ID, limits)
	return c.limited(x, err, "merchant")
}

func (c *Console) removeLimit(x *call, why adminapi.Reason) (any, error) {
	if err := requireReason(why.Reason); err != nil {
		return nil, err
	}
	account, err := c.account(x)
	if err != nil {
		return nil, err
	}
	name := x.request.PathValue("limit")
	err = c.deps.Merchants.RemoveLimit(x.request.Context(), x.audit("merchant.limit.remove", name+": "+why.Reason), account.ID(), name)
	return c.limited(x, err, "limit")
}

// limited ends a change of limits as changed ends others.
func (c *Console) limited(x *call, err error, what string) (any, error) {
	c.deps.Directory.Invalidate(x.merchant())
	if err != nil {
		return nil, notFound(err, what)
	}
	return c.listLimits(x)
}

// checkLimits refuses what is no limit, and says when the limits end.
func checkLimits(change adminapi.LimitChange, now time.Time) (time.Time, error) {
	if err := requireReason(change.Reason); err != nil {
		return time.Time{}, err
	}
	if n := len(change.Limits); n == 0 || n > maxLimits {
		return time.Time{}, fault.Invalid("limits", fmt.Sprintf("must have 1 to %d entries", maxLimits))
	}
	seen := map[string]bool{}
	for _, l := range change.Limits {
		pace := l.RatePerSecond != 0 || l.Burst != 0
		switch {
		case !plain(l.Name, 1, maxName) || seen[l.Name]:
			return time.Time{}, fault.Invalid("limits", "must each have a name of its own")
		case l.RatePerSecond < 0 || l.Burst < 0 || l.Limit != nil && *l.Limit < 0:
			return time.Time{}, fault.Invalid("limits", "must not be below zero")
		case pace == (l.Limit != nil):
			return time.Time{}, fault.Invalid("limits", "must each set a rate, a burst or both, or else a quota's limit")
		}
		seen[l.Name] = true
	}
	if change.For == "" {
		return time.Time{}, nil
	}
	d, err := time.ParseDuration(change.For)
	if err != nil || d < minLimitFor || d > maxLimitFor {
		return time.Time{}, fault.Invalid("for", "must be a duration from 1s to ten years, such as 2h")
	}
	return now.Add(d), nil
}

// checkEffect refuses limits that the policy in force takes for nothing, such as
// one of a misspelt quota, and those that it could not live with.
func (c *Console) checkEffect(x *call, m tenants.Merchant) error {
	offered, err := catalog.Build(c.deps.Plugins.Manifests())
	if err != nil {
		return err
	}
	set, in := c.deps.Policy(), policy.LimitsInput{Merchant: admission.RecordOf(m), Mode: string(tenants.Live), Now: x.now}
	in.Merchant.Version = -x.now.UnixNano() // of no record: the answer must not be kept for one
	known := map[string]bool{}
	for _, op := range offered.Operations() {
		in.Operation = policy.Operation{Path: op.Path, Kind: string(admission.KindOf(op)), Provider: op.Provider}
		answer, err := set.Limits(x.request.Context(), in)
		if errors.Is(err, policy.ErrNoAnswer) {
			continue
		}
		if err != nil {
			return fault.Invalid("limits", "can't be read by the policy in force: "+err.Error())
		}
		for _, q := range answer.Quotas {
			known["quota "+q.Name] = true
		}
		for _, r := range answer.Rates {
			known["rate "+r.Name] = true
		}
	}
	for _, l := range m.Limits {
		what := "rate "
		if l.Quota != nil {
			what = "quota "
		}
		if !known[what+l.Name] {
			return fault.Invalid("limits", "must name what the policy in force knows; it has no "+what+l.Name)
		}
	}
	return nil
}

// requireReason refuses a change without a reason.
func requireReason(reason string) error {
	if strings.TrimSpace(reason) == "" {
		return fault.Invalid("reason", "is required")
	}
	return checkReason(reason)
}

func limitDocuments(m tenants.Merchant, now time.Time) []adminapi.Limit {
	limits := make([]adminapi.Limit, len(m.Limits))
	for i, l := range m.Limits {
		limits[i] = adminapi.Limit{
			Name: l.Name, RatePerSecond: l.RatePerSecond, Burst: l.Burst, Limit: l.Quota, Reason: l.Reason, SetBy: l.SetBy, SetAt: l.SetAt,
			InForce: l.ExpiresAt.IsZero() || now.Before(l.ExpiresAt),
		}
		if !l.ExpiresAt.IsZero() {
			limits[i].ExpiresAt = &l.ExpiresAt
		}
	}
	return limits
}
