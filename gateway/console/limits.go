package console

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

func (c *Console) listLimits(x *call, wanted adminapi.MerchantID) ([]adminapi.Limit, error) {
	account, err := c.account(x)
	if err != nil {
		return nil, err
	}
	return limitDocuments(account.Merchant(), x.now), nil
}

func (c *Console) setLimits(x *call, change adminapi.LimitChange) ([]adminapi.Limit, error) {
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
		limits = append(limits, limitOf(l, change.Reason, expires))
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

func (c *Console) removeLimit(x *call, why adminapi.LimitRemoval) ([]adminapi.Limit, error) {
	if err := requireReason(why.Reason); err != nil {
		return nil, err
	}
	account, err := c.account(x)
	if err != nil {
		return nil, err
	}
	err = c.deps.Merchants.RemoveLimit(x.request.Context(), x.audit("merchant.limit.remove", why.Name+": "+why.Reason), account.ID(), why.Name)
	return c.limited(x, err, "limit")
}

// limited ends a change of limits as changed ends others.
func (c *Console) limited(x *call, err error, what string) ([]adminapi.Limit, error) {
	c.deps.Directory.Invalidate(x.merchant())
	if err != nil {
		return nil, notFound(err, what)
	}
	return c.listLimits(x, adminapi.MerchantID{})
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
		if !plain(l.Name, 1, maxName) || seen[l.Name] {
			return time.Time{}, fault.Invalid("limits", "must each have a name of its own")
		}
		if err := checkLimit(l); err != nil {
			return time.Time{}, err
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

// checkLimit refuses what sets nothing, sets two things, or has another's name.
func checkLimit(l adminapi.NewLimit) error {
	below := func(n *int64) bool { return n != nil && *n < 0 }
	if l.RatePerSecond < 0 || l.Burst < 0 || below(l.Limit) || below(l.Markup) || below(l.Amount) || below(l.Transfers) {
		return fault.Invalid("limits", "must not be below zero")
	}
	payout, others := l.Amount != nil || l.Transfers != nil, 0
	for _, set := range []bool{l.RatePerSecond != 0 || l.Burst != 0, l.Limit != nil, l.Markup != nil, payout, l.RepeatWithin != ""} {
		if set {
			others++
		}
	}
	if others != 1 {
		return fault.Invalid("limits", "must each set a rate, a burst or both, or else a quota's limit, a markup, "+
			"an amount, a number of transfers or both, or a duration")
	}
	switch l.Name {
	case adminapi.LimitMarkup:
		if l.Markup == nil || *l.Markup > policy.MaxMarkup {
			return fault.Invalid("limits", fmt.Sprintf("must have a markup of 0 to %d in %s", policy.MaxMarkup, l.Name))
		}
	case adminapi.LimitDay, adminapi.LimitDestinationDay:
		if !payout {
			return fault.Invalid("limits", "must have an amount, a number of transfers or both in "+l.Name)
		}
	case adminapi.LimitRepeatWithin:
		d, err := time.ParseDuration(l.RepeatWithin)
		if err != nil || d < 0 || d > policy.MaxRepeat || d%time.Second != 0 {
			return fault.Invalid("limits", "must have a duration of whole seconds from 0s to 24h in "+l.Name)
		}
	default:
		if l.Markup != nil || payout || l.RepeatWithin != "" {
			return fault.Invalid("limits", fmt.Sprintf("must be called %s, %s, %s or %s to set a markup or a payout limit",
				adminapi.LimitMarkup, adminapi.LimitDay, adminapi.LimitDestinationDay, adminapi.LimitRepeatWithin))
		}
	}
	return nil
}

// limitOf is a limit as it is kept.
func limitOf(l adminapi.NewLimit, reason string, expires time.Time) tenants.Limit {
	limit := tenants.Limit{
		Name: l.Name, RatePerSecond: l.RatePerSecond, Burst: l.Burst, Quota: l.Limit, Reason: reason, ExpiresAt: expires,
		Markup: l.Markup, Amount: l.Amount, Transfers: l.Transfers,
	}
	if d, err := time.ParseDuration(l.RepeatWithin); err == nil {
		limit.RepeatWithin = &d
	}
	return limit
}

// checkEffect refuses limits that the policy in force takes for nothing, such as
// one of a misspelt quota or one that its rules don't read, and those that it could
// not live with.
func (c *Console) checkEffect(x *call, m tenants.Merchant) error {
	offered := c.deps.Catalog.Current()
	ctx, set, in := x.request.Context(), c.deps.Policy(), policy.LimitsInput{Merchant: admission.RecordOf(m), Mode: string(tenants.Live), Now: x.now}
	in.Merchant.Version = -x.now.UnixNano() // of no record: the answer must not be kept for one
	known := map[string]bool{}
	for _, op := range offered.Operations() {
		in.Operation = admission.OperationOf(op)
		answer, err := set.Limits(ctx, in)
		if errors.Is(err, policy.ErrNoAnswer) {
			continue
		}
		if err != nil {
			return unreadable(err)
		}
		for _, q := range answer.Quotas {
			known["quota "+q.Name] = true
		}
		for _, r := range answer.Rates {
			known["rate "+r.Name] = true
		}
	}
	own := in.Merchant.Limits
	for i, l := range m.Limits {
		what := "rate "
		switch {
		case own[i].Kind() != "":
			in.Merchant.Limits = slices.Delete(slices.Clone(own), i, i+1)
			if err := shows(ctx, set, in, own[i], offered); err != nil {
				return err
			}
			continue
		case l.Quota != nil:
			what = "quota "
		}
		if !known[what+l.Name] {
			return fault.Invalid("limits", "must name what the policy in force knows; it has no "+what+l.Name)
		}
	}
	return nil
}

// unreadable says that the policy in force fails with a limit.
func unreadable(err error) error {
	return fault.Invalid("limits", "can't be read by the policy in force: "+err.Error())
}

// shows refuses a markup or payout limit of which the policy in force would show nothing
// for any operation. Where no operation is of its kind yet, one that is nobody's is
// asked about.
func shows(ctx context.Context, set *policy.Set, in policy.LimitsInput, own policy.OwnLimit, offered *catalog.Snapshot) error {
	var asked []policy.Operation
	for _, op := range offered.Operations() {
		if kind := string(admission.KindOf(op)); kind == own.Kind() {
			asked = append(asked, policy.Operation{Path: op.Path, Kind: kind, Provider: op.Provider, Contract: op.Contract()})
		}
	}
	if len(asked) == 0 {
		asked = []policy.Operation{{Path: "/any", Kind: own.Kind(), Provider: "any"}}
	}
	var ignored []string // for each of them
	answered := false
	for _, op := range asked {
		in.Operation = op
		here, err := set.Ignored(ctx, in, own)
		if errors.Is(err, policy.ErrNoAnswer) {
			continue
		}
		if err != nil {
			return unreadable(err)
		}
		if !answered {
			answered, ignored = true, here
		}
		ignored = slices.DeleteFunc(ignored, func(part string) bool { return !slices.Contains(here, part) })
	}
	switch {
	case !answered:
		return fault.Invalid("limits", fmt.Sprintf("would not hold: the policy in force has no limits for any %s of this merchant, so none for %s", own.Kind(), own.Name))
	case len(ignored) > 0:
		return fault.Invalid("limits", fmt.Sprintf("would not hold: the policy in force answers data.gerbang.limits for every %s as it does without %s; "+
			"have its rules read %s as the default limits.rego does (gerbang policy export DIR), and push them first",
			own.Kind(), own.Name, strings.Join(ignored, ", ")))
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
			InForce: l.ExpiresAt.IsZero() || now.Before(l.ExpiresAt), Markup: l.Markup, Amount: l.Amount, Transfers: l.Transfers,
		}
		if l.RepeatWithin != nil {
			limits[i].RepeatWithin = l.RepeatWithin.String()
		}
		if !l.ExpiresAt.IsZero() {
			limits[i].ExpiresAt = &l.ExpiresAt
		}
	}
	return limits
}
