package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/admission"
	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/gateway/judge"
	"github.com/seed-f006e74d/gerbang/gateway/limit"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/past"
	"github.com/seed-f006e74d/gerbang/gateway/requestlog"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Decisions explains decisions by their ids.
type Decisions struct {
	Key decision.Key
	// Policies are the sets that may be the one of a digest: one, seldom more, none
	// where it is not kept any more.
	Policies func(ctx context.Context, digest uint32) ([]*policy.Set, error)
	// Policy is the set of a version, nil where it is not kept.
	Policy func(ctx context.Context, version policy.Version) (*policy.Set, error)
	// Open opens inputs of the log. Past is what is kept of the past.
	Open func(sealed []byte) ([]byte, error)
	Past past.Records
	// Judge tries policies on cases and on the past.
	Judge *judge.Judge
	// Replica names the replica of a number at a time.
	Replica func(ctx context.Context, number uint16, at time.Time) (string, error)
}

// explained is a decision with what is known of it now.
type explained struct {
	decision.Facts
	merchants  []tenants.Merchant
	operations []*catalog.Operation
	sets       []*policy.Set
	logged     logged
	record     tenants.Merchant // of the one merchant
	known      bool             // that the record is the one of then
}

// explain tells what an id of a decision says, nil where it is none of this
// installation's: then no merchant is its own.
func (c *Console) explain(x *call, id string, trace bool) (*adminapi.Decision, error) {
	e, out, err := c.explained(x.request.Context(), x.now, id, movement.Owner{}, nil)
	if err != nil || out == nil {
		return nil, err
	}
	if trace {
		return out, c.trace(x, e, out)
	}
	return out, nil
}

// explained reads a decision's id. Where an owner is given, a decision on anybody else's
// request is none. Kept is its call, where that is known already.
func (c *Console) explained(ctx context.Context, now time.Time, id string, of movement.Owner, kept *requestlog.Entry) (*explained, *adminapi.Decision, error) {
	facts, err := c.deps.Decisions.Key.Open(id, now)
	if err != nil {
		return nil, nil, nil //nolint:nilerr // another's id
	}
	e := &explained{Facts: facts}
	if of != (movement.Owner{}) && (decision.MerchantDigest(of.MerchantID) != facts.Merchant || of.Mode != e.mode()) {
		return nil, nil, nil
	}
	if e.logged, err = c.logged(ctx, facts, id); err != nil {
		return nil, nil, err
	}
	if of != (movement.Owner{}) {
		err = c.onlyOf(ctx, e, tenants.MerchantID(of.MerchantID))
	} else {
		e.merchants, err = c.merchantsOf(ctx, e.logged, facts.Merchant)
	}
	if err != nil || len(e.merchants) == 0 {
		return nil, nil, err
	}
	e.operations = c.operationsOf(facts.Operation)
	if e.sets, err = c.deps.Decisions.Policies(ctx, facts.Version); err != nil {
		return nil, nil, err
	}
	out := &adminapi.Decision{
		ID: id, At: facts.At, Mode: e.mode(), MerchantIDs: []string{}, Operations: []string{},
		Verdict: facts.Rule.Verdict(), PolicyVersion: fmt.Sprintf("%05x", facts.Version),
	}
	for _, m := range e.merchants {
		out.MerchantIDs = append(out.MerchantIDs, string(m.ID))
	}
	for _, op := range e.operations {
		out.Operations = append(out.Operations, op.Path)
	}
	if out.Replica, err = c.deps.Decisions.Replica(ctx, facts.Replica, facts.At); err != nil {
		return nil, nil, err
	}
	if facts.Rule.Refuses() {
		out.Rule = facts.Rule.String()
	}
	if err := c.answered(ctx, now, e, kept, out); err != nil {
		return nil, nil, err
	}
	return e, out, c.explainRule(ctx, e, out)
}

// answered tells what the request was answered, where the log of requests has it.
func (c *Console) answered(ctx context.Context, now time.Time, e *explained, kept *requestlog.Entry, out *adminapi.Decision) (err error) {
	for _, m := range e.merchants {
		if kept != nil {
			break
		}
		if kept, err = c.ownAt(ctx, requestlog.Owner{Merchant: string(m.ID), Mode: e.mode()}, requestlog.Filter{Own: out.ID}, now); err != nil {
			return err
		}
	}
	if kept != nil {
		out.RequestID = kept.ID
		if kept.Failed() {
			out.ErrorCode, out.Message = kept.Code, kept.Message
		}
	}
	return nil
}

// onlyOf keeps what the log has of one merchant. Where it has the decision as another's
// alone, that merchant stays unknown. Where it has nothing, the digest decides: nobody
// finds a second merchant of the same, because nobody sees it.
func (c *Console) onlyOf(ctx context.Context, e *explained, id tenants.MerchantID) error {
	if others := e.logged.merchants(); len(others) > 0 && !slices.Contains(others, id) {
		return nil
	}
	e.logged.series = slices.DeleteFunc(e.logged.series, func(s decision.Series) bool { return s.Merchant != string(id) })
	account, err := c.deps.Merchants.AccountByID(ctx, id)
	if err != nil {
		return notFound(err, "merchant")
	}
	e.merchants = []tenants.Merchant{account.Merchant()}
	return nil
}

func (e *explained) mode() string {
	if e.Live {
		return string(tenants.Live)
	}
	return string(tenants.Test)
}

// merchantsOf are the merchants of a digest: those that the log has, and else all that
// there are.
func (c *Console) merchantsOf(ctx context.Context, l logged, digest uint32) ([]tenants.Merchant, error) {
	var found []tenants.Merchant
	for _, id := range l.merchants() {
		account, err := c.deps.Merchants.AccountByID(ctx, id)
		if err != nil {
			return nil, notFound(err, "merchant")
		}
		found = append(found, account.Merchant())
	}
	if len(found) > 0 {
		return found, nil
	}
	for after := tenants.MerchantID(""); ; {
		page, err := c.deps.Merchants.Merchants(ctx, after, adminapi.MostListed)
		if err != nil {
			return nil, err
		}
		for _, m := range page {
			if decision.MerchantDigest(string(m.ID)) == digest {
				found = append(found, m)
			}
		}
		if len(page) < adminapi.MostListed {
			return found, nil
		}
		after = page[len(page)-1].ID
	}
}

// operationsOf are the operations of a digest.
func (c *Console) operationsOf(digest uint16) []*catalog.Operation {
	return slices.DeleteFunc(slices.Clone(c.deps.Catalog.Current().Operations()), func(op *catalog.Operation) bool {
		return decision.OperationDigest(op.Path) != digest
	})
}

// explainRule adds what refused. Where the id leaves several merchants, operations or
// versions, nobody knows whose limit it was.
func (c *Console) explainRule(ctx context.Context, e *explained, out *adminapi.Decision) error {
	if len(e.sets) == 0 {
		out.Notes = append(out.Notes, "the policy's version is not kept any more")
	}
	if len(e.operations) == 0 {
		out.Notes = append(out.Notes, "no operation has this id's digest any more")
	}
	if len(e.sets) == 1 {
		out.PolicyVersion = string(e.sets[0].Version())
	}
	for _, set := range e.sets {
		if place, ok := placeOf(set, e.Rule); ok {
			out.Places = append(out.Places, place)
		}
	}
	if len(e.sets) != 1 || len(e.merchants) != 1 || len(e.operations) != 1 || !e.Rule.Refuses() {
		return nil
	}
	account, err := c.deps.Merchants.AccountByID(ctx, e.merchants[0].ID)
	if err != nil {
		return notFound(err, "merchant")
	}
	return c.explainReached(ctx, e, account.Merchant(), out)
}

// placeOf is where a rule of a policy stands, and what it says where that is always the
// same.
func placeOf(set *policy.Set, refused decision.Rule) (adminapi.Place, bool) {
	number, ofPolicy := refused.PolicyNumber()
	rule := set.Rule(number)
	return adminapi.Place{File: rule.File, Line: rule.Line, Rule: rule.Name, Reason: rule.Says}, ofPolicy && rule.File != ""
}

// explainReached adds the limit that the policy set for the one operation of a merchant,
// whose record of now is given.
func (c *Console) explainReached(ctx context.Context, e *explained, now tenants.Merchant, out *adminapi.Decision) (err error) {
	if e.record, e.known, err = c.recordThen(ctx, now, e.logged.record()); err != nil {
		return err
	}
	limits, err := e.sets[0].Limits(ctx, policy.LimitsInput{
		Merchant: admission.RecordOf(e.record), Mode: e.mode(), Now: e.At, Operation: policyOperation(e.operations[0]),
	})
	switch {
	case errors.Is(err, policy.ErrNoAnswer):
		return nil
	case err != nil:
		return err
	}
	return c.explainLimit(ctx, e, e.record, limits, out)
}

func policyOperation(op *catalog.Operation) policy.Operation {
	return admission.OperationOf(op)
}

// explainLimit adds the limit that was reached. Of a rate or quota that refused nothing
// was left.
func (c *Console) explainLimit(
	ctx context.Context, e *explained, m tenants.Merchant, limits policy.Limits, out *adminapi.Decision,
) error {
	at := e.At.In(admission.ZoneOf(m, c.config.Location))
	if place, ok := e.Rule.RatePlace(); ok {
		if rate, ok := named(place, limits.Rates, func(r policy.Rate) string { return r.Name }); ok {
			next := time.Duration(math.Ceil(float64(time.Second) / rate.PerSecond))
			out.Rule = "rate " + rate.Name
			out.Limit = &adminapi.LimitUse{
				Name: rate.Name, RatePerSecond: rate.PerSecond, Per: string(rate.Per), Limit: int64(rate.Burst), Used: new(int64(rate.Burst)), ResetsAt: new(e.At.Add(next)),
			}
		}
	}
	if place, ok := e.Rule.QuotaPlace(); ok {
		if quota, ok := named(place, limits.Quotas, func(q policy.Quota) string { return q.Name }); ok {
			out.Rule = "quota " + quota.Name
			out.Limit = &adminapi.LimitUse{Name: quota.Name, Limit: quota.Limit, Used: &quota.Limit, ResetsAt: new(limit.Month(at).End.UTC())}
		}
	}
	if e.Rule.IsPayout() {
		if err := c.explainPayout(ctx, e, m, limits.Transfers, at, out); err != nil {
			return err
		}
	}
	if out.Limit != nil && !e.known {
		out.Notes = append(out.Notes, "the limit is the one of the merchant's record now, at version "+fmt.Sprint(m.Version))
	}
	return nil
}

// explainPayout adds a payout limit. What is used of that of a destination is known
// under a digest of the destination only.
func (c *Console) explainPayout(
	ctx context.Context, e *explained, m tenants.Merchant, limits policy.TransferLimits, at time.Time, out *adminapi.Decision,
) error {
	var name string
	var most *int64
	switch e.Rule { //nolint:exhaustive // the payout limits
	case decision.DayAmount:
		name, most = "out.amount", limits.Day.Amount
	case decision.DayCount:
		name, most = "out.count", limits.Day.Count
	case decision.DestinationAmount:
		most = limits.DestinationDay.Amount
	case decision.DestinationCount:
		most = limits.DestinationDay.Count
	}
	if most == nil {
		return nil
	}
	year, month, day := at.Date()
	out.Limit = &adminapi.LimitUse{Name: e.Rule.String(), Limit: *most, ResetsAt: new(time.Date(year, month, day+1, 0, 0, 0, 0, at.Location()).UTC())}
	if name == "" {
		return nil
	}
	used, err := c.usedOf(ctx, movement.Owner{MerchantID: string(m.ID), Mode: e.mode()}, at.Format(time.DateOnly), name)
	if used != nil {
		out.Limit.Used = used
		out.Notes = append(out.Notes, "what is used is the day's as it is known now")
	}
	return err
}

// usedOf is what is used of one name in a period as it is known now, nil for nothing.
func (c *Console) usedOf(ctx context.Context, owner movement.Owner, period, name string) (*int64, error) {
	all, err := c.deps.Usage(ctx, owner, period)
	for _, used := range all {
		if used.Name == name {
			return &used.Units, nil
		}
	}
	return nil, err
}

// named is the one of a place among the names of all.
func named[T any](place int, all []T, nameOf func(T) string) (found T, ok bool) {
	sorted := slices.SortedFunc(slices.Values(all), func(a, b T) int { return cmp.Compare(nameOf(a), nameOf(b)) })
	if place >= len(sorted) {
		return found, false
	}
	return sorted[place], true
}
