package admission

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/limit"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/tracing"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// defaultEvaluation bounds one evaluation of a policy. A rule that takes longer is at
// fault, and the request is refused.
const defaultEvaluation = 250 * time.Millisecond

// Quotas counts the units that merchants have used, exactly over all replicas. A
// reserved unit is used until it is released. A release is finished also after its
// context has ended; the context only bounds the wait.
type Quotas interface {
	Reserve(ctx context.Context, u limit.Usage, limit int64) (limit.Reservation, error)
	Release(ctx context.Context, u limit.Usage)
	// Left returns how many units a limit leaves, and takes none.
	Left(ctx context.Context, u limit.Usage, limit int64) (int64, error)
}

// Config is what admission needs besides what decides. All of it may be left out.
type Config struct {
	// Location is the time zone of the hour and weekday that policies see, and of the
	// months of merchants that name no other; Jakarta unless given.
	Location *time.Location
	// Evaluation bounds one evaluation of the policy, 250 ms unless given.
	Evaluation time.Duration
	// Lists tells which lists hold something of a request, nil for none.
	Lists func(policy.AdmitInput) []string
	// Namer makes the ids of decisions. Without it they are made under a key of
	// nobody's, and can't be explained.
	Namer *decision.Namer
	// Decisions is where decisions are counted, nil for nowhere.
	Decisions *decision.Log
	Log       *slog.Logger
}

// Admission decides by the active policy. Any number of goroutines may use it.
type Admission struct {
	policy   *policy.Active
	limiter  *limit.Limiter
	quotas   Quotas
	location *time.Location
	lists    func(policy.AdmitInput) []string
	namer    *decision.Namer
	counts   *decision.Log
	refusals refusals
	bound    time.Duration
	log      *slog.Logger
}

// New makes an admission.
func New(active *policy.Active, limiter *limit.Limiter, quotas Quotas, c Config) *Admission {
	return &Admission{
		policy: active, limiter: limiter, quotas: quotas,
		location: cmp.Or(c.Location, jakarta), lists: c.Lists, namer: cmp.Or(c.Namer, unexplained()), counts: c.Decisions, bound: cmp.Or(c.Evaluation, defaultEvaluation),
		log: cmp.Or(c.Log, slog.New(slog.DiscardHandler)),
	}
}

// Ticket names a decision and holds what the caller needs of it.
type Ticket struct {
	policy.Ticket // what the request runs by; Remaining is nil before Reserve

	set   *policy.Set // that decided
	facts facts

	// Quotas are the units that this request has reserved.
	Quotas []limit.Usage
	// RateLimit and RateLimitPolicy are the values of the header fields of these
	// names; empty where no rate was asked.
	RateLimit       string
	RateLimitPolicy string
}

// Admit decides on one request whose body fits its schema: the policy first, then
// the rates. Quotas are for Reserve. The error is POLICY_DENIED with the policy's own
// reasons, RATE_LIMITED, or INTERNAL when the policy could not be evaluated: without
// a decision the request is refused. The ticket is set in each case.
func (a *Admission) Admit(
	ctx context.Context, now time.Time, id tenants.Identity, op *catalog.Operation, body catalog.Document,
) (Ticket, error) {
	ctx, span := tracing.Start(ctx, "admit", tracing.Inside)
	defer span.End()
	input, err := a.input(now, id, op, body)
	ticket := a.ticket(now, id, &input, decision.Decided)
	if err != nil {
		return a.decided(ctx, ticket, decision.Unjudged, internal(err))
	}
	if err := Named(ticket.set.Names, op); err != nil {
		return a.decided(ctx, ticket, decision.NotNamed, err)
	}
	if rule, err := a.allow(ctx, input, ticket); err != nil {
		return a.decided(ctx, ticket, rule, err)
	}
	if op.Rules.Routed && op.Contract() != "" { // also where this replica knows one provider
		if ticket.Route, err = a.route(ctx, input, ticket); err != nil {
			return a.decided(ctx, ticket, decision.Unjudged, err)
		}
	}
	rule, err := a.slow(ctx, now, &ticket, input, id.Key.ID)
	return a.decided(ctx, ticket, rule, err)
}

// Spend takes a token of each rate for a request that is refused before the policy is
// asked, so that what is invalid is slowed as what is valid. The error is that of a rate,
// or else the given refusal. The ticket is set in each case.
func (a *Admission) Spend(ctx context.Context, now time.Time, id tenants.Identity, op *catalog.Operation, refusal error) (Ticket, error) {
	input := a.bare(now, id, op)
	ticket := a.ticket(now, id, &input, decision.Spent)
	rule, err := a.slow(ctx, now, &ticket, input, id.Key.ID)
	if err == nil {
		rule, err = accessRule(refusal), refusal
	}
	return a.decided(ctx, ticket, rule, err)
}

// accessRule is the number of what Access refuses. That a body does not fit its schema has
// none: the answer itself says what is wrong.
func accessRule(refusal error) decision.Rule {
	switch fault.From(refusal).Code {
	case fault.MerchantSuspended:
		return decision.Suspended
	case fault.ScopeMissing:
		return decision.Scope
	default:
		return decision.Admitted
	}
}

// ticket is one of the policy that is active now: read once, so that one request never
// sees two.
func (a *Admission) ticket(now time.Time, id tenants.Identity, input *policy.AdmitInput, outcome decision.Outcome) Ticket {
	set := a.policy.Set()
	version := string(set.Version())
	return Ticket{
		Ticket: policy.Ticket{PolicyVersion: version, Zone: ZoneOf(id.Account.Merchant(), a.location)}, set: set,
		facts: facts{at: now, amount: input.Amount, fields: input.Fields, parties: input.Parties, address: id.Address, series: decision.Series{
			Merchant: input.Merchant.ID, Operation: input.Operation.Path, Version: version, Record: input.Merchant.Version,
			Live: input.Mode == string(tenants.Live), Outcome: outcome,
		}},
	}
}

// slow asks for the limits and takes a token of each rate.
func (a *Admission) slow(ctx context.Context, now time.Time, ticket *Ticket, input policy.AdmitInput, key tenants.KeyID) (decision.Rule, error) {
	limits, rule, err := a.limits(ctx, input, *ticket)
	if err == nil {
		ticket.Limits = limits
		rule, err = a.spend(now, ticket, input, string(key))
	}
	return rule, err
}

// facts are what is kept of a decision.
type facts struct {
	at      time.Time
	id      decision.ID
	series  decision.Series
	amount  *int64
	fields  map[string]any
	parties policy.Parties
	address netip.Addr
	counted bool
}

// decided names a decision and counts it. Where it refuses, it is logged, and its input
// is kept. What a quota may refuse yet is counted then.
func (a *Admission) decided(ctx context.Context, ticket Ticket, rule decision.Rule, refusal error) (Ticket, error) {
	ticket.facts.series.Rule = rule
	waits := rule == decision.Admitted && ticket.facts.series.Outcome == decision.Decided && len(ticket.Limits.Quotas) > 0
	if !waits {
		a.count(&ticket)
	}
	kept := decision.Input{Amount: ticket.facts.amount, Fields: ticket.facts.fields, Parties: ticket.facts.parties}
	return a.named(ctx, ticket, ticket.facts.series, kept, refusal), refusal
}

// count counts a decision, once.
func (a *Admission) count(ticket *Ticket) {
	if !ticket.facts.counted {
		ticket.facts.counted = true
		a.counts.Count(ticket.facts.at, ticket.facts.series)
	}
}

// named gives the ticket the id of a decision, and keeps what is kept of refusals.
func (a *Admission) named(ctx context.Context, ticket Ticket, s decision.Series, kept decision.Input, refusal error) Ticket {
	id := a.namer.Name(ticket.facts.at, s.Version, s.Merchant, s.Live, s.Operation, s.Rule)
	ticket.DecisionID, ticket.facts.id, ticket.facts.series = id.String(), id, s
	if !s.Rule.Refuses() || s.Rule == decision.Unjudged { // that is logged as a fault
		return ticket
	}
	a.note(ctx, ticket, s, refusal)
	if s.Outcome != decision.Spent { // of that no input fits
		kept.ID, kept.At, kept.Series = id, ticket.facts.at, s
		if a.lists != nil {
			in := policy.AdmitInput{Merchant: policy.Merchant{ID: s.Merchant}, Parties: kept.Parties, Address: ticket.facts.address, Now: kept.At}.Quoted(kept.Quote)
			kept.Lists = a.lists(in)
		}
		a.counts.Keep(kept)
	}
	return ticket
}

// Reconsider asks the policy again about an admitted request, with the quote of its
// operation. The quoted price is the amount that rules see. The error is as Admit's;
// Refused names its decision.
func (a *Admission) Reconsider(
	ctx context.Context, now time.Time, ticket Ticket, id tenants.Identity, op *catalog.Operation, body catalog.Document, quote map[string]any,
) error {
	input, err := a.input(now, id, op, body)
	if err != nil {
		return internal(err)
	}
	rule, err := a.allow(ctx, input.Quoted(quote), ticket)
	if f, refused := errors.AsType[*fault.Error](err); refused && rule != decision.Unjudged {
		return f.Because(&reconsidered{rule, quote})
	}
	return err
}

// reconsidered is the cause of what was refused with its quote.
type reconsidered struct {
	rule  decision.Rule
	quote map[string]any
}

// Error is for logs.
func (r *reconsidered) Error() string { return "refused with its quote by " + r.rule.String() }

// Refused names the decision about an admitted request that the policy refused later: for
// its quote, or by a payout limit. Any other error is none of the policy's, and the
// ticket stays as it is.
func (a *Admission) Refused(ctx context.Context, ticket Ticket, err error) Ticket {
	later := ticket.facts.series
	later.Outcome = decision.Later
	kept := decision.Input{Amount: ticket.facts.amount, Fields: ticket.facts.fields, Parties: ticket.facts.parties}
	if quoted, ok := errors.AsType[*reconsidered](err); ok {
		later.Rule, kept.Quote = quoted.rule, quoted.quote
	} else if reached, ok := errors.AsType[*movement.LimitError](err); ok {
		later.Rule, kept.Limit = decision.Payout(reached.Name), movement.DestinationOf(reached.Name)
	} else {
		return ticket
	}
	a.counts.Count(ticket.facts.at, later)
	return a.named(ctx, ticket, later, kept, err)
}

// limits asks the policy for the limits of a merchant and operation.
func (a *Admission) limits(ctx context.Context, input policy.AdmitInput, ticket Ticket) (policy.Limits, decision.Rule, error) {
	asked := policy.LimitsInput{Merchant: input.Merchant, Mode: input.Mode, Operation: input.Operation, Now: input.Now}
	if limits, ok := ticket.set.KeptLimits(asked); ok {
		return limits, decision.Admitted, nil
	}
	ctx, span := tracing.Start(ctx, "policy limits", tracing.Inside)
	defer span.End()
	evaluating, cancel := context.WithTimeout(ctx, a.bound)
	defer cancel()
	limits, err := ticket.set.Limits(evaluating, asked)
	if errors.Is(err, policy.ErrNoAnswer) {
		return policy.Limits{}, decision.NoLimits, fault.New(fault.PolicyDenied, "The policy sets no limits for this merchant.")
	}
	if err != nil {
		return policy.Limits{}, decision.Unjudged, internal(err)
	}
	return limits, decision.Admitted, nil
}

// allow asks the policy whether this request is allowed.
func (a *Admission) allow(ctx context.Context, input policy.AdmitInput, ticket Ticket) (decision.Rule, error) {
	answer, kept := ticket.set.KeptAdmission(input)
	if kept && answer.Allow {
		return decision.Admitted, nil
	}
	ctx, span := tracing.Start(ctx, "policy", tracing.Inside)
	defer span.End()
	evaluating, cancel := context.WithTimeout(ctx, a.bound)
	defer cancel()
	if !kept {
		var err error
		if answer, err = ticket.set.AdmitAndKeep(evaluating, input); err != nil {
			return decision.Unjudged, internal(err)
		}
	}
	if !answer.Allow {
		rule := a.refusals.rule(evaluating, input.Now, ticket.set, input, answer.Reasons)
		return rule, fault.New(fault.PolicyDenied, strings.Join(answer.Reasons, " "))
	}
	return decision.Admitted, nil
}

// RecordOf is a merchant's record as policies see it.
func RecordOf(m tenants.Merchant) policy.Merchant {
	record := policy.Merchant{
		ID: string(m.ID), Tier: string(m.Tier), Status: string(m.Status), Labels: m.Labels, Version: m.Version,
	}
	for _, l := range m.Limits {
		record.Limits = append(record.Limits, policy.OwnLimit{
			Name: l.Name, RatePerSecond: l.RatePerSecond, Burst: l.Burst, Limit: l.Quota, ExpiresAt: l.ExpiresAt,
			Markup: l.Markup, Payout: payoutOf(l),
		})
	}
	return record
}

// payoutOf is a limit that bounds transfers, as policies see it; nil for any other.
func payoutOf(l tenants.Limit) *policy.Payout {
	flow := policy.Outflow{Amount: l.Amount, Count: l.Transfers}
	switch l.Name {
	case tenants.LimitDay:
		return &policy.Payout{Day: flow}
	case tenants.LimitDestinationDay:
		return &policy.Payout{DestinationDay: flow}
	case tenants.LimitRepeatWithin:
		return &policy.Payout{RepeatWithin: l.RepeatWithin}
	}
	return nil
}

// bare is the input of which nothing comes from a body.
func (a *Admission) bare(now time.Time, id tenants.Identity, op *catalog.Operation) policy.AdmitInput {
	return policy.AdmitInput{
		Merchant:  RecordOf(id.Account.Merchant()),
		Mode:      string(id.Mode),
		Operation: OperationOf(op),
		Now:       now.In(a.location),
		Address:   id.Address,
		Listed:    a.lists,
	}
}

func (a *Admission) input(
	now time.Time, id tenants.Identity, op *catalog.Operation, body catalog.Document,
) (policy.AdmitInput, error) {
	input := a.bare(now, id, op)
	if op.HasAmount(body) { // an order's may be left out
		amount, err := op.AmountOf(body)
		if err != nil {
			return input, err
		}
		input.Amount = new(int64(amount))
	}
	if len(op.Fields) > 0 {
		// With the defaults: a rule about a field must see what the engine does.
		input.Fields = op.PolicyFields(op.WithDefaults(body))
	}
	input.Parties = op.Parties(body)
	return input, nil
}

// note logs a refusal under its decision's id, so that it can be explained.
func (a *Admission) note(ctx context.Context, ticket Ticket, s decision.Series, refusal error) {
	f := fault.From(refusal)
	a.log.LogAttrs(ctx, slog.LevelInfo, "not admitted",
		slog.String("decision_id", ticket.DecisionID), slog.String("policy_version", ticket.PolicyVersion),
		slog.String("merchant_id", s.Merchant), slog.String("mode", s.Mode()), slog.String("operation", s.Operation),
		slog.String("error_code", string(f.Code)), slog.String("rule", s.Rule.String()), slog.String("reason", f.Message))
}

// unexplained names decisions under a key that nobody has.
func unexplained() *decision.Namer {
	key := movement.NewNameKey()
	return decision.NewNamer(decision.NewKey(key[:]), 0)
}

func internal(cause error) error {
	return fault.New(fault.Internal, "The request could not be judged. Try again later.").Because(cause)
}

// Access checks what needs no body. The error is MERCHANT_SUSPENDED for a suspended
// merchant, whatever the policy says, or SCOPE_MISSING for an operation outside the
// key's scopes.
func Access(id tenants.Identity, op *catalog.Operation) error {
	if id.Account.Merchant().Status != tenants.Active {
		return fault.New(fault.MerchantSuspended, "This merchant is suspended.")
	}
	if scope := ScopeOf(op); !id.Key.Scopes.Has(scope) {
		return fault.Newf(fault.ScopeMissing, "This key may not do this; it lacks the scope %s.", scope)
	}
	return nil
}

// Named checks that a policy names an operation that an approval alone has brought. The
// error is POLICY_DENIED.
func Named(names func(path string) bool, op *catalog.Operation) error {
	if op.Unnamed && !names(op.Path) {
		return fault.New(fault.PolicyDenied, "The policy does not name this operation yet.")
	}
	return nil
}

// ScopeOf is the scope that an operation needs: one for reading, and one for each
// way of moving money. Ending a movement needs the scope of its kind. A manifest may
// ask for another scope for a query.
func ScopeOf(op *catalog.Operation) tenants.Scope {
	if op.Scope != "" {
		return tenants.Scope(op.Scope)
	}
	if rules, moves := movement.RulesOf(KindOf(op)); moves {
		return tenants.Scope(rules.Scope)
	}
	return tenants.ScopeRead
}

// KindOf is the kind of an operation for scopes and policies: a status operation
// counts as a query, and one that ends a movement as the movement's kind.
func KindOf(op *catalog.Operation) manifest.Kind {
	switch {
	case op.StatusOf != "":
		return manifest.Query
	case op.CancelOf != "" && op.Target != nil:
		return op.Target.Kind
	}
	return op.Kind
}

// ZoneOf is the time zone of a merchant's months: the one its record names, else the
// gateway's, else Jakarta's.
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
	name := labels[tenants.LabelTimeZone]
	if name == "" {
		return nil, nil //nolint:nilnil // none is named
	}
	if known, ok := zones.Load(name); ok {
		return known.(*time.Location), nil
	}
	if name == "Local" { // would be this machine's
		return nil, fmt.Errorf("admission: %s names no place", tenants.LabelTimeZone)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("admission: %s: %w", tenants.LabelTimeZone, err)
	}
	zones.Store(name, zone)
	return zone, nil
}

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

// route asks the policy for the order of providers.
func (a *Admission) route(ctx context.Context, input policy.AdmitInput, ticket Ticket) ([]string, error) {
	if providers, kept := ticket.set.KeptRoute(input); kept {
		return providers, nil
	}
	evaluating, cancel := context.WithTimeout(ctx, a.bound)
	defer cancel()
	providers, err := ticket.set.RouteAndKeep(evaluating, input)
	if err != nil {
		return nil, internal(err)
	}
	return providers, nil
}

// OperationOf is an operation as policies see it.
func OperationOf(op *catalog.Operation) policy.Operation {
	return policy.Operation{Path: op.Path, Kind: string(KindOf(op)), Provider: op.Provider, Contract: op.Contract()}
}
