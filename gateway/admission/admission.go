package admission

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
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

// jakarta is the zone of Indonesia's capital, which has no summer time.
var jakarta = time.FixedZone("WIB", 7*60*60)

// Config is how admission sees the time and where it writes. Both may be left
// out.
type Config struct {
	// Location is the place whose hour and weekday policies see, Jakarta's
	// unless given.
	Location *time.Location
	Log      *slog.Logger
}

// Admission decides by the policy that is in force. Any number of goroutines
// may use it.
type Admission struct {
	policy   *policy.Active
	limiter  *limit.Limiter
	location *time.Location
	log      *slog.Logger

	uncounted sync.Map // quotas that operators were warned of
}

// New makes an admission.
func New(active *policy.Active, limiter *limit.Limiter, c Config) *Admission {
	return &Admission{
		policy: active, limiter: limiter,
		location: cmp.Or(c.Location, jakarta),
		log:      cmp.Or(c.Log, slog.New(slog.DiscardHandler)),
	}
}

// Ticket names a decision and tells the caller where its rates stand.
type Ticket struct {
	DecisionID    string
	PolicyVersion string
	// RateLimit and RateLimitPolicy are the values of the header fields of these
	// names; empty where no rate was asked.
	RateLimit       string
	RateLimitPolicy string
}

// Admit decides on one request whose body fits its schema. The error is
// POLICY_DENIED with the policy's own reasons, RATE_LIMITED, or INTERNAL when
// the policy could not be evaluated: no decision is a refusal. The ticket is
// set in each case.
func (a *Admission) Admit(
	ctx context.Context, now time.Time, id tenants.Identity, op *catalog.Operation, body catalog.Document,
) (Ticket, error) {
	// Read once, so that one request never sees two policies.
	set := a.policy.Set()
	ticket := Ticket{DecisionID: uuid.NewString(), PolicyVersion: string(set.Version())}
	ctx, cancel := context.WithTimeout(ctx, evaluation)
	defer cancel()
	input, err := a.input(now, id, op, body)
	if err != nil {
		return ticket, internal(err)
	}
	decision, err := set.Admit(ctx, input)
	if err != nil {
		return ticket, internal(err)
	}
	if !decision.Allow {
		return ticket, a.deny(ctx, ticket, input, strings.Join(decision.Reasons, " "))
	}
	limits, err := set.Limits(ctx, policy.LimitsInput{
		Merchant: input.Merchant, Mode: input.Mode, Operation: input.Operation, Now: now,
	})
	if errors.Is(err, policy.ErrNoAnswer) {
		return ticket, a.deny(ctx, ticket, input, "The policy sets no limits for this merchant.")
	}
	if err != nil {
		return ticket, internal(err)
	}
	if len(limits.Quotas) > 0 {
		a.warnUncounted(ctx, input.Operation.Path, limits)
	}
	return a.spend(ctx, now, ticket, input, limits.Rates)
}

// warnUncounted tells operators, once for each policy and operation, that a
// quota they have set is not counted: nothing that is served has one yet.
func (a *Admission) warnUncounted(ctx context.Context, path string, limits policy.Limits) {
	if _, told := a.uncounted.LoadOrStore(string(limits.Version)+path, true); !told {
		a.log.WarnContext(ctx, "the policy sets a quota that is not counted", "operation", path, "quota", limits.Quotas[0].Name, "policy", string(limits.Version))
	}
}

func (a *Admission) input(
	now time.Time, id tenants.Identity, op *catalog.Operation, body catalog.Document,
) (policy.AdmitInput, error) {
	merchant := id.Account.Merchant()
	input := policy.AdmitInput{
		Merchant: policy.Merchant{
			ID: string(merchant.ID), Tier: string(merchant.Tier), Status: string(merchant.Status),
			Labels: merchant.Labels, Version: merchant.Version,
		},
		Mode:      string(id.Mode),
		Operation: policy.Operation{Path: op.Path, Kind: string(KindOf(op)), Provider: op.Provider},
		Now:       now.In(a.location),
	}
	if op.AmountField() != "" {
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
func (a *Admission) spend(
	ctx context.Context, now time.Time, ticket Ticket, input policy.AdmitInput, rates []policy.Rate,
) (Ticket, error) {
	var limits, policies []byte
	var refusal error
	for _, rate := range rates {
		key := limit.Key{Merchant: input.Merchant.ID, Mode: input.Mode, Name: rate.Name}
		verdict := a.limiter.Allow(now, key, limit.Rate{PerSecond: rate.PerSecond, Burst: rate.Burst})
		limits = limit.AppendLimit(limits, rate.Name, verdict)
		policies = limit.AppendPolicy(policies, rate.Name, verdict)
		if !verdict.OK {
			a.note(ctx, ticket, input, fault.RateLimited, rate.Name)
			refusal = fault.Newf(fault.RateLimited,
				"Too many requests: at most %g a second, %d at once.", rate.PerSecond, rate.Burst).After(now, verdict.RetryAfter)
			break
		}
	}
	ticket.RateLimit, ticket.RateLimitPolicy = string(limits), string(policies)
	return ticket, refusal
}

func (a *Admission) deny(ctx context.Context, ticket Ticket, input policy.AdmitInput, reason string) error {
	a.note(ctx, ticket, input, fault.PolicyDenied, reason)
	return fault.New(fault.PolicyDenied, reason)
}

// note logs a refusal under its decision's id, so that it can be explained.
func (a *Admission) note(ctx context.Context, ticket Ticket, input policy.AdmitInput, code fault.Code, reason string) {
	a.log.LogAttrs(ctx, slog.LevelInfo, "not admitted",
		slog.String("decision_id", ticket.DecisionID), slog.String("policy_version", ticket.PolicyVersion),
		slog.String("merchant_id", input.Merchant.ID), slog.String("mode", input.Mode),
		slog.String("operation", input.Operation.Path), slog.String("error_code", string(code)), slog.String("reason", reason))
}

func internal(cause error) error {
	return fault.New(fault.Internal, "The request could not be judged. Try again later.").Because(cause)
}
