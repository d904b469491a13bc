package policy

import "testing"

// Admission runs for every request, so its cost is part of each.
func BenchmarkAdmit(b *testing.B) {
	withBounds := []byte(`{"tiers": {"starter": {"rate_per_second": 5, "burst": 10}},
		"amounts": {"payment": {"min": 100, "max": 1000000}, "/payments/create": {"min": 100}}}`)
	for name, source := range map[string]Source{"plain": fixture(), "bounds": with(dataFile, string(withBounds))} {
		b.Run(name, func(b *testing.B) {
			set, in := must(b, source), request()
			b.ReportAllocs()
			for b.Loop() {
				if decision, err := set.Admit(b.Context(), in); err != nil || !decision.Allow {
					b.Fatal(decision, err)
				}
			}
		})
	}
}

// A query's decision is the same for all, and kept.
func BenchmarkAdmitKept(b *testing.B) {
	set, in := must(b, Default()), request()
	in.Operation, in.Amount = Operation{Path: "/payments/status", Kind: "payment", Provider: "payments"}, nil
	if _, err := set.Limits(b.Context(), LimitsInput{Merchant: in.Merchant, Mode: in.Mode, Operation: in.Operation, Now: in.Now}); err != nil {
		b.Fatal(err)
	}
	for range studyAt {
		if _, err := set.AdmitAndKeep(b.Context(), in); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if decision, kept := set.KeptAdmission(in); !kept || !decision.Allow {
			b.Fatal("not kept")
		}
	}
}

func BenchmarkAdmitInput(b *testing.B) {
	set, in := must(b, fixture()), request()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := set.admitTerm(&in); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLimits(b *testing.B) {
	set := must(b, fixture())
	for name, step := range map[string]int64{"kept": 0, "asked": 1} {
		b.Run(name, func(b *testing.B) {
			in := starter(noon)
			b.ReportAllocs()
			for b.Loop() {
				in.Merchant.Version += step
				if _, err := set.Limits(b.Context(), in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		must(b, Default())
	}
}

// An order of providers that is the same for all is kept, too.
func BenchmarkRouteKept(b *testing.B) {
	set, in := must(b, with("route.rego", "package gerbang\n\nroute := [\"big\", \"payments\"] if input.merchant.tier == \"starter\"\n")), request()
	for range studyAt {
		if _, err := set.RouteAndKeep(b.Context(), in); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("kept", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if route, kept := set.KeptRoute(in); !kept || len(route) != 2 {
				b.Fatal("not kept")
			}
		}
	})
	b.Run("asked", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if route, err := set.Route(b.Context(), in); err != nil || len(route) != 2 {
				b.Fatal(route, err)
			}
		}
	})
}
