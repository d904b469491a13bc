package policy

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// moneyKinds are those of operations that move money on a merchant's own order.
var moneyKinds = []string{"payment", "collection", "transfer", "order"}

// triedAmounts and triedHours are of requests that are tried where a tier is allowed none of the others.
var (
	triedAmounts = []int64{10_000, 100_000, 1_000_000, 10_000_000}
	triedHours   = []time.Duration{2 * time.Hour, 10 * time.Hour, 20 * time.Hour}
)

// refusesAll warns of tiers of which every request that moves money is refused. That may be meant, so whoever puts it in force
// says so. It is no news where the version in force does it.
func (g *gate) refusesAll(ctx context.Context, offered []Offered, values map[string][]string) error {
	for _, tier := range g.set.tiers() { // one that is not in data.json refuses the set
		if g.allowed[tier] {
			continue
		}
		var all []AdmitInput
		for _, op := range offered {
			if slices.Contains(moneyKinds, op.Kind) && !op.MustBeNamed {
				all = append(all, g.moneySamples(op, tier, values)...)
			}
		}
		takes := func(s *Set) bool {
			return slices.ContainsFunc(all, func(in AdmitInput) bool {
				got := s.tryAdmit(ctx, in, ofRequest)
				if s == g.set {
					g.fault(ctx, got, in, "admit")
				}
				return got.decision.Allow
			})
		}
		refuses := len(all) > 0 && !takes(g.set)
		if ctx.Err() == nil && refuses && (g.facts.Active == nil || takes(g.facts.Active)) {
			rule := g.set.rules.GetRules(admitRef)[0]
			g.add(CheckMeaning, true, at(rule.Location, "", fmt.Sprintf("this refuses all money of the tier %q: each of %d requests that were tried; it is put in force with yes alone", tier, len(all))), tier).Confirm = true
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// moneySamples are requests of an operation by merchants of a tier, of many amounts and hours.
func (g *gate) moneySamples(op Offered, tier string, values map[string][]string) []AdmitInput {
	all := g.samples(op, tier, values)
	for _, hour := range triedHours {
		for _, amount := range triedAmounts {
			in := all[0]
			in.Now = sampleDay.Add(-48*time.Hour + hour) // of a working day
			if op.Amount {
				in.Amount = &amount
			}
			all = append(all, in)
		}
	}
	return all
}
