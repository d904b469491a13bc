package console

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/tenants"
)

const (
	// refusalsRead is how much of the log is read at once, and refusalsReads how often for
	// a page: the log of a flood is long, and most merchants have nothing in it.
	refusalsRead  = 10 * time.Minute
	refusalsReads = 36
)

// refusalPlace is where a page goes on: below a time, and at it below an id.
type refusalPlace struct {
	at time.Time
	id string
}

func (p refusalPlace) String() string { return strconv.FormatInt(p.at.UnixMicro(), 10) + "_" + p.id }

// above tells whether a page that goes on here has an input before it.
func (p refusalPlace) above(in decision.Input) bool {
	return in.At.Before(p.at) || in.At.Equal(p.at) && in.ID.String() < p.id
}

// listRefusals lists what of a merchant's requests was refused or failed.
func (c *Console) listRefusals(x *call, wanted adminapi.RefusalFilter) (out adminapi.Refusals, err error) {
	mode, err := parseMode(cmp.Or(wanted.Mode, string(tenants.Live)))
	if err != nil {
		return out, err
	}
	account, err := c.account(x)
	if err != nil {
		return out, err
	}
	place, err := refusalsFrom(wanted.After, x.now)
	if err != nil {
		return out, err
	}
	out = adminapi.Refusals{MerchantID: string(account.ID()), Mode: string(mode), Refusals: []adminapi.Refusal{}, Since: place.at}
	oldest := x.now.Add(-decision.Kept)
	for range refusalsReads {
		if !out.Since.After(oldest) || c.deps.Decisions.Past == nil {
			out.Next = ""
			return out, nil
		}
		until := out.Since.Add(time.Microsecond) // what is at the place itself is told apart by its id
		out.Since = out.Since.Add(-time.Microsecond).Truncate(refusalsRead)
		found, err := c.refusals(x.request.Context(), out.Since, until, func(in decision.Input) bool {
			return in.Merchant == out.MerchantID && in.Live == (mode == tenants.Live) && !in.Unused && place.above(in)
		})
		if err != nil {
			return out, err
		}
		for _, in := range found {
			if len(out.Refusals) == cmp.Or(wanted.Limit, defaultPage) {
				return out, nil
			}
			place = refusalPlace{in.At, in.ID.String()}
			out.Next = place.String()
			out.Refusals = append(out.Refusals, adminapi.Refusal{
				At: in.At, Operation: in.Operation, Code: in.Code, Message: in.Message, RequestID: in.RequestID, DecisionID: in.ID.String(),
			})
		}
		place = refusalPlace{at: out.Since}
		out.Next = place.String()
	}
	return out, nil
}

func refusalsFrom(after string, now time.Time) (refusalPlace, error) {
	if after == "" {
		return refusalPlace{at: now.Add(movement.ClockSkew)}, nil
	}
	at, id, ok := strings.Cut(after, "_")
	micro, err := strconv.ParseInt(at, 10, 64)
	if !ok || err != nil || time.UnixMicro(micro).After(now.Add(ahead)) {
		return refusalPlace{}, fault.Invalid("after", "must be the next of the page before")
	}
	return refusalPlace{time.UnixMicro(micro).UTC(), id}, nil
}

// refusals are the inputs of a span that fit, the newest first.
func (c *Console) refusals(ctx context.Context, since, until time.Time, fits func(in decision.Input) bool) ([]decision.Input, error) {
	parts, err := c.deps.Decisions.Past.Decisions(ctx, since, until)
	if err != nil {
		return nil, err
	}
	var found []decision.Input
	for _, part := range parts {
		if part.Inputs == nil {
			continue
		}
		inputs, err := c.inputs(part.Inputs)
		if err != nil {
			return nil, err
		}
		found = append(found, slices.DeleteFunc(inputs, func(in decision.Input) bool { return !fits(in) })...)
	}
	slices.SortFunc(found, func(a, b decision.Input) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(b.ID.String(), a.ID.String()))
	})
	return found, nil
}
