package policy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Kind is that of the operations which a limit without a name among rates and quotas bounds: orders have a markup, transfers
// payout limits. It is "" for a rate or a quota.
func (l OwnLimit) Kind() string {
	switch {
	case l.Markup != nil:
		return "order"
	case l.Payout != nil:
		return "transfer"
	}
	return ""
}

// Ignored asks for limits with a markup or payout limit of the merchant's own and without it, and answers which parts of it
// the answer does not show: each is named as rules read it. The merchant's record must not have it already. Nothing is kept.
func (s *Set) Ignored(ctx context.Context, in LimitsInput, own OwnLimit) ([]string, error) {
	without, err := s.askLimits(ctx, in)
	if err != nil {
		return nil, err
	}
	in.Merchant.Limits = append(slices.Clone(in.Merchant.Limits), own)
	with, err := s.askLimits(ctx, in)
	if errors.Is(err, ErrNoAnswer) {
		return nil, nil // the limit takes all away, and that shows
	}
	return with.ignored(own, without), err
}

// ignored are the parts of a merchant's own limit that the limits with it don't show: they have other values, and the same as
// the limits without it.
func (l Limits) ignored(own OwnLimit, without Limits) []string {
	var parts []string
	part := func(name string, shown bool) {
		if !shown {
			parts = append(parts, "input.merchant."+name)
		}
	}
	if own.Markup != nil {
		with, other := l.Markup, without.Markup
		exactly := len(with.Products) == 0 && int64(with.Default) == *own.Markup
		part("markup", exactly || with.Default != other.Default || !maps.Equal(with.Products, other.Products))
	}
	if own.Payout == nil {
		return parts
	}
	outflow := func(name string, own, with, without Outflow) {
		part("transfers."+name+".amount", bounds(own.Amount, with.Amount, without.Amount))
		part("transfers."+name+".count", bounds(own.Count, with.Count, without.Count))
	}
	outflow("day", own.Payout.Day, l.Transfers.Day, without.Transfers.Day)
	outflow("destination_day", own.Payout.DestinationDay, l.Transfers.DestinationDay, without.Transfers.DestinationDay)
	if d := own.Payout.RepeatWithin; d != nil {
		part("transfers.repeat_within", l.RepeatWithin == *d || l.RepeatWithin != without.RepeatWithin)
	}
	return parts
}

// bounds reports whether a bound shows where a merchant has one of its own.
func bounds(own, with, without *int64) bool {
	switch {
	case own == nil:
		return true
	case with == nil || without == nil:
		return with != without
	}
	return *with == *own || *with != *without
}

// ownPart is a part of own limits, as rules read it, for a tier.
type ownPart struct{ tier, name string }

// askOwn notes which of a merchant's own markup and payout limits the answer for an operation shows, in live mode. It is asked
// with the least and the greatest: rules may bound what a merchant's own limit says, but not have the same answer to both.
func (g *gate) askOwn(ctx context.Context, op Offered, tier string) {
	in := AdmitInput{Merchant: Merchant{ID: "mer_sample", Tier: tier, Status: "active"}, Mode: "live", Operation: op.Operation, Now: sampleDay}
	limits := [2]Limits{}
	own := [2][]OwnLimit{sampleOwn(0, 0, 0), sampleOwn(greatAmount, MaxMarkup, MaxRepeat)}
	for i := range own {
		in.Merchant.Limits = slices.DeleteFunc(own[i], func(l OwnLimit) bool { return l.Kind() != op.Kind })
		if own[i] = in.Merchant.Limits; len(own[i]) == 0 {
			return
		}
		got := g.set.tryLimits(ctx, in, ofRequest)
		g.fault(ctx, got, in, "a generated request of "+op.Path)
		if got.fault != nil || !got.answered {
			return
		}
		limits[i] = got.limits
	}
	for i, l := range own[1] {
		missing := append(limits[1].ignored(l, limits[0]), limits[0].ignored(own[0][i], limits[1])...)
		for _, name := range (Limits{}).ignored(l, Limits{}) { // where nothing shows: all parts
			part := ownPart{tier, name}
			if g.shown[part] == nil {
				g.shown[part] = map[bool][]string{}
			}
			shows := !slices.Contains(missing, name)
			g.shown[part][shows] = append(g.shown[part][shows], op.Path)
		}
	}
}

// ownIgnored refuses a set that ignores merchants' own limits: they would be accepted and never hold. Where only some
// operations ignore them, or nobody knows which there are, it warns.
func (g *gate) ownIgnored() {
	rule := g.set.rules.GetRules(limitsRef)[0]
	type of struct {
		tier, paths string
		everywhere  bool
	}
	ignored := map[of][]string{}
	for part, shown := range g.shown {
		if paths := shown[false]; len(paths) > 0 {
			in := of{part.tier, some(paths), len(shown[true]) == 0}
			ignored[in] = append(ignored[in], part.name)
		}
	}
	for in, names := range ignored {
		slices.Sort(names)
		g.add(CheckMeaning, !in.everywhere || len(g.facts.Operations) == 0, at(rule.Location, "", fmt.Sprintf("the answer for %s does not show %s: "+
			"merchants' own limits would not hold; read them as the default limits.rego does", in.paths, strings.Join(names, ", "))), in.tier)
	}
}
