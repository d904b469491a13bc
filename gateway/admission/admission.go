package admission

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/limit"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// evaluation bounds one evaluation of a policy: a rule that takes longer is at
// fault, and the request is refused.
const evaluation = 250 * time.Millisecond

// Quotas counts what merchants have used, exactly over all replicas. A unit that
// is reserved is used until it is released. A release comes to its end whatever
// becomes of the context, which only says how long to wait for it.
type Quotas interface {
	Reserve(ctx context.Context, u limit.Usage, limit int64) (limit.Reservation, error)
	Release(ctx context.Context, u limit.Usage)
	// Left tells how many units a limit leaves, and takes none.
	Left(ctx context.Context, u limit.Usage, limit int64) (int64, error)
}

// Config is how admission sees the time and where it writes. Both may be left
// out.
type Config struct {
	// Location is the place whose hour and weekday policies see, and whose months
	// the merchants' have that name no other; Jakarta unless given.
	Location *time.Location
	Log      *slog.Logger
}

// Admission decides by the policy that is in force. Any number of goroutines
// may use it.
type Admission struct {
	policy   *policy.Active
	limiter  *limit.Limiter
	quotas   Quotas
	location *time.Location
	log      *slog.Logger
}

// New makes an admission.
func New(active *policy.Active, limiter *limit.Limiter, quotas Quotas, c Config) *Admission {
	return &Admission{
		policy: active, limiter: limiter, quotas: quotas,
		location: cmp.Or(c.Location, jakarta),
		log:      cmp.Or(c.Log, slog.New(slog.DiscardHandler)),
	}
}

// Ticket names a decision and tells the caller where its rates stand.
type Ticket struct {
	DecisionID    string
	PolicyVersion string
	set           *policy.Set // that decided

	// Zone is the merchant's, whose days and months count.
	Zone *time.Location
	// Limits are what the policy says of this merchant and operation; nothing where
	// it refused.
	Limits policy.Limits
	// Quotas are what this request has reserved, of which Remaining is left in the
	// scarcest; nil until it has, and where none counts it.
	Quotas    []limit.Usage
	Remaining *int64
	// RateLimit and RateLimitPolicy are the values of the header fields of these
	// names; empty where no rate was asked.
	RateLimit       string
	RateLimitPolicy string
}

// Admit decides on one request whose body fits its schema: the policy first, then
// the rates. What the ticket says that it must still be counted by is for Reserve.
// The error is POLICY_DENIED with the policy's own reasons, RATE_LIMITED, or INTERNAL
// when the policy could not be evaluated: no decision is a refusal. The ticket is set
// in each case.
func (a *Admission) Admit(
	ctx context.Context, now time.Time, id tenants.Identity, op *catalog.Operation, body catalog.Document,
) (Ticket, error) {
	// Read once, so that one request never sees two policies.
	set := a.policy.Set()
	zone := ZoneOf(id.Account.Merchant(), a.location)
	// The id tells when it was made, so that what it decided is found by it.
	ticket := Ticket{DecisionID: uuid.Must(uuid.NewV7()).String(), PolicyVersion: string(set.Version()), Zone: zone, set: set}
	input, err := a.input(now, id, op, body)
	if err != nil {
		return ticket, internal(err)
	}
	if ticket.Limits, err = a.judge(ctx, set, input, ticket); err != nil {
		return ticket, err
	}
	return ticket, a.spend(ctx, now, &ticket, input)
}

// Reconsider asks the policy again about a request that was admitted, with what an
// inquiry has told before the money call. A price that it tells is the amount that
// rules see. The error is as Admit's.
func (a *Admission) Reconsider(
	ctx context.Context, now time.Time, ticket Ticket, id tenants.Identity, op *catalog.Operation, body catalog.Document, told map[string]any,
) error {
	input, err := a.input(now, id, op, body)
	if err != nil {
		return internal(err)
	}
	set := ticket.set
	input.Told = told
	if price, ok := told["price"].(int64); ok {
		input.Amount = &price
	}
	return a.allow(ctx, set, input, ticket)
}

// judge asks the policy whether this request is allowed, and for its limits.
func (a *Admission) judge(ctx context.Context, set *policy.Set, input policy.AdmitInput, ticket Ticket) (policy.Limits, error) {
	if err := a.allow(ctx, set, input, ticket); err != nil {
		return policy.Limits{}, err
	}
	evaluating, cancel := context.WithTimeout(ctx, evaluation)
	defer cancel()
	limits, err := set.Limits(evaluating, policy.LimitsInput{
		Merchant: input.Merchant, Mode: input.Mode, Operation: input.Operation, Now: input.Now,
	})
	if errors.Is(err, policy.ErrNoAnswer) {
		return policy.Limits{}, a.deny(ctx, ticket, input, "The policy sets no limits for this merchant.")
	}
	if err != nil {
		return policy.Limits{}, internal(err)
	}
	return limits, nil
}

// allow asks the policy whether this request is allowed.
func (a *Admission) allow(ctx context.Context, set *policy.Set, input policy.AdmitInput, ticket Ticket) error {
	evaluating, cancel := context.WithTimeout(ctx, evaluation)
	defer cancel()
	decision, err := set.Admit(evaluating, input)
	if err != nil {
		return internal(err)
	}
	if !decision.Allow {
		return a.deny(ctx, ticket, input, strings.Join(decision.Reasons, " "))
	}
	return nil
}

// RecordOf is a merchant's record as policies see it.
func RecordOf(m tenants.Merchant) policy.Merchant {
	record := policy.Merchant{
		ID: string(m.ID), Tier: string(m.Tier), Status: string(m.Status), Labels: m.Labels, Version: m.Version,
	}
	for _, l := range m.Limits {
		record.Limits = append(record.Limits, policy.OwnLimit{
			Name: l.Name, RatePerSecond: l.RatePerSecond, Burst: l.Burst, Limit: l.Quota, ExpiresAt: l.ExpiresAt,
		})
	}
	return record
}

func (a *Admission) input(
	now time.Time, id tenants.Identity, op *catalog.Operation, body catalog.Document,
) (policy.AdmitInput, error) {
	input := policy.AdmitInput{
		Merchant:  RecordOf(id.Account.Merchant()),
		Mode:      string(id.Mode),
		Operation: policy.Operation{Path: op.Path, Kind: string(KindOf(op)), Provider: op.Provider},
		Now:       now.In(a.location),
	}
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
	return input, nil
}

// spend takes a token of each rate. One that is spent is not returned, also
// when the next rate refuses.
func (a *Admission) spend(ctx context.Context, now time.Time, ticket *Ticket, input policy.AdmitInput) error {
	var limits, policies []byte
	var refusal error
	for _, rate := range ticket.Limits.Rates {
		key := limit.Key{Merchant: input.Merchant.ID, Mode: input.Mode, Name: rate.Name}
		verdict := a.limiter.Allow(now, key, limit.Rate{PerSecond: rate.PerSecond, Burst: rate.Burst})
		limits = limit.AppendLimit(limits, rate.Name, verdict)
		policies = limit.AppendPolicy(policies, rate.Name, verdict)
		if !verdict.OK {
			a.note(ctx, *ticket, subjectOf(input), fault.RateLimited, rate.Name)
			refusal = fault.Newf(fault.RateLimited,
				"Too many requests: at most %g a second, %d at once.", rate.PerSecond, rate.Burst).After(now, verdict.RetryAfter)
			break
		}
	}
	ticket.RateLimit, ticket.RateLimitPolicy = string(limits), string(policies)
	return refusal
}

func (a *Admission) deny(ctx context.Context, ticket Ticket, input policy.AdmitInput, reason string) error {
	a.note(ctx, ticket, subjectOf(input), fault.PolicyDenied, reason)
	return fault.New(fault.PolicyDenied, reason)
}

// subject is whom a decision is about, and for what.
type subject struct{ merchant, mode, operation string }

func subjectOf(input policy.AdmitInput) subject {
	return subject{input.Merchant.ID, input.Mode, input.Operation.Path}
}

// note logs a refusal under its decision's id, so that it can be explained.
func (a *Admission) note(ctx context.Context, ticket Ticket, s subject, code fault.Code, reason string) {
	a.log.LogAttrs(ctx, slog.LevelInfo, "not admitted",
		slog.String("decision_id", ticket.DecisionID), slog.String("policy_version", ticket.PolicyVersion),
		slog.String("merchant_id", s.merchant), slog.String("mode", s.mode),
		slog.String("operation", s.operation), slog.String("error_code", string(code)), slog.String("reason", reason))
}

func internal(cause error) error {
	return fault.New(fault.Internal, "The request could not be judged. Try again later.").Because(cause)
}
