package impact_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/gateway/impact"
	"github.com/seed-f006e74d/gerbang/policy"
)

// BenchmarkAMillionDecisions of a day, each with its body, tried by a candidate that looks at amounts, rates and quotas.
func BenchmarkAMillionDecisions(b *testing.B) {
	for _, merchants := range []int{1000, 100_000} {
		b.Run(fmt.Sprint("merchants=", merchants), func(b *testing.B) { aMillionDecisions(b, merchants) })
	}
}

func aMillionDecisions(b *testing.B, merchants int) {
	const many = 1_000_000
	base, candidate := compile(b), compile(b, "900000", "800000", `2, "burst": 10`, `0.01, "burst": 5`, `"limit": 100`, `"limit": 50`)
	records := make([]*policy.Merchant, merchants)
	for i := range records {
		records[i] = &policy.Merchant{ID: fmt.Sprintf("mer_%05d", i), Tier: "t", Status: "active", Version: 1}
	}
	op := impact.Operation{Operation: policy.Operation{Path: create, Kind: "payment", Provider: "payments"}, Reads: true, Money: true}
	past := func(yield func(impact.Past, error) bool) {
		for i := range many {
			amount := int64(i*7919%1_000_000 + 1)
			p := impact.Past{
				At: evening.Add(time.Duration(i) * 24 * time.Hour / many), Merchant: records[i%merchants].ID, Live: true, Operation: op,
				Version: string(base.Version()), Record: records[i%merchants], N: 1, Input: &impact.Input{Amount: &amount},
			}
			if amount > 900_000 {
				p.Rule = decision.Policy(3)
			}
			if !yield(p, nil) {
				return
			}
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		report, err := impact.Run(b.Context(), impact.Candidate{Set: candidate}, unused(base), past)
		if err != nil || report.Decisions != many || report.NewlyDenied == 0 {
			b.Fatal(report.Decisions, err)
		}
	}
}
