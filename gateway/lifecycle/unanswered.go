package lifecycle

import (
	"context"
	"errors"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// SaidNo is why something was refused, by a provider that was asked.
type SaidNo struct{ error }

// Unanswered is the error of a query or a quote that the provider did not answer with
// what was asked for. Nothing was sent that moves money. What a quote is asked for
// stands in its words; "" is a query.
func (l *Lifecycle) Unanswered(ctx context.Context, op *catalog.Operation, c Connection, result sdk.Result, what string) error {
	if result.Blame == sdk.BlameAccount {
		l.Alert(ctx, op.Provider, c, result.Detail)
	}
	cause := errors.New(result.Outcome.String() + ": " + result.Detail)
	switch result.Outcome {
	case sdk.Refused:
		refusal := inquired(result.Refusal)
		if result.Blame == sdk.BlameUpstream {
			cause = SaidNo{cause}
		}
		return refusal.Because(cause)
	case sdk.NotSent:
		return fault.New(fault.ProviderUnavailable, "The provider is not available at the moment. Nothing was sent.").Because(cause)
	case sdk.Done, sdk.Pending, sdk.Unknown:
	}
	if what != "" {
		return fault.Newf(fault.ProviderUnavailable, "The provider could not tell %s. Nothing was sent.", what).Because(cause)
	}
	return fault.New(fault.ProviderTimeout, "The provider did not answer in time.").Because(cause)
}

// inquired is a provider's no to a question: nothing was sent, and the same reference
// may be used again with something else.
func inquired(r sdk.Refusal) *fault.Error {
	kept := RefusalOf(r)
	if r.Code == sdk.RefuseRequest {
		message := kept.Message
		if message == "" {
			message = "The request is invalid."
		}
		e := fault.New(fault.InvalidRequest, message)
		for _, f := range kept.Fields {
			e.Fields = append(e.Fields, fault.Field(f))
		}
		return e
	}
	e := RefusalError(kept)
	e.Sent, e.Retry = fault.SentNo, fault.RetryAfterChange
	if e.Code == fault.ProductUnavailable {
		e.Retry = fault.RetryLater
	}
	return e
}

// Added is what this merchant pays beside the provider's price: nothing where it pays
// the provider itself.
func Added(r Request, whose manifest.Owner) catalog.Added {
	if whose != manifest.OwnerPlatform {
		return policy.Markup{}
	}
	return r.Limits.Markup
}
