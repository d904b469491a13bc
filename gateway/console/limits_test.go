package console_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/policy"
)

func TestOwnLimits(t *testing.T) {
	t.Parallel()
	source := policy.Default()
	source["data.json"] = []byte(counted)
	set, err := policy.Compile(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	w := newWorld(t, func(_ *console.Config, deps *console.Dependencies) {
		deps.Policy, deps.Now = func() *policy.Set { return set }, func() time.Time { return now }
	})
	ctx := t.Context()
	made, err := adminapi.CreateMerchant.Call(ctx, w, adminapi.NewMerchant{Name: "Toko", Tier: "starter"})
	if err != nil {
		t.Fatal(err)
	}
	id, until := made.MerchantID, now.Add(2*time.Hour)
	got, err := adminapi.SetLimits.Call(ctx, w, adminapi.LimitChange{Merchant: id, For: "2h", Reason: "a trial", Limits: []adminapi.NewLimit{
		{Name: "names", Limit: new(int64(12))}, {Name: "default", RatePerSecond: 0.5, Burst: 2},
	}})
	rate := adminapi.Limit{Name: "default", RatePerSecond: 0.5, Burst: 2, Reason: "a trial", SetBy: "ayu", SetAt: now, ExpiresAt: &until, InForce: true}
	want := []adminapi.Limit{rate, {Name: "names", Limit: new(int64(12)), Reason: "a trial", SetBy: "ayu", SetAt: now, ExpiresAt: &until, InForce: true}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Fatal(err, diff)
	}
	stand, err := adminapi.ShowQuotas.Call(ctx, w, adminapi.InMode{Merchant: id, Mode: "live"})
	if err != nil || *stand.Quotas[1].Limit != 12 {
		t.Errorf("the quotas: %+v, %v", stand, err)
	}
	got, err = adminapi.SetLimits.Call(ctx, w, adminapi.LimitChange{Merchant: id, Reason: "stop", Limits: []adminapi.NewLimit{{Name: "names", Limit: new(int64(0))}}})
	want[1] = adminapi.Limit{Name: "names", Limit: new(int64(0)), Reason: "stop", SetBy: "ayu", SetAt: now, InForce: true}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	now = until
	rate.InForce = false
	if got, err := adminapi.ListLimits.Call(ctx, w, adminapi.MerchantID{Merchant: id}); err != nil || !cmp.Equal(got[0], rate) {
		t.Errorf("after its end: %+v, %v", got, err)
	}
	if m, err := adminapi.ShowMerchant.Call(ctx, w, adminapi.MerchantID{Merchant: id}); err != nil || len(m.Limits) != 2 || m.Version < 3 {
		t.Errorf("the merchant: %+v, %v", m, err)
	}
	if got, err := adminapi.RemoveLimit.Call(ctx, w, adminapi.LimitRemoval{Merchant: id, Name: "names", Reason: "over"}); err != nil || len(got) != 1 {
		t.Errorf("removed: %+v, %v", got, err)
	}
	entries, err := adminapi.ListAudit.Call(ctx, w, adminapi.AuditFilter{Merchant: id})
	if err != nil || len(entries) != 4 {
		t.Fatal(entries, err)
	}
	var told []string
	for _, e := range entries {
		told = append(told, e.Operator+" "+e.Action+" "+e.Detail)
	}
	for _, want := range []string{
		"ayu merchant.limit names quota 12, default 0.5/s burst 2 until 2026-11-20T10:00:00Z: a trial",
		"ayu merchant.limit names quota 0: stop", "ayu merchant.limit.remove names: over",
	} {
		if !strings.Contains(strings.Join(told, "\n"), want) {
			t.Errorf("audit %q, want %q", told, want)
		}
	}
}

// TestOwnMarkupAndPayoutLimits: they are kept with who, why and until when, and reach the policy.
func TestOwnMarkupAndPayoutLimits(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	w := newWorld(t, func(_ *console.Config, deps *console.Dependencies) { deps.Now = func() time.Time { return now } })
	ctx := t.Context()
	made, err := adminapi.CreateMerchant.Call(ctx, w, adminapi.NewMerchant{Name: "Toko", Tier: "starter"})
	if err != nil {
		t.Fatal(err)
	}
	until := now.Add(time.Hour)
	got, err := adminapi.SetLimits.Call(ctx, w, adminapi.LimitChange{Merchant: made.MerchantID, For: "1h", Reason: "agreed", Limits: []adminapi.NewLimit{
		{Name: adminapi.LimitMarkup, Markup: new(int64(75))}, {Name: adminapi.LimitDay, Amount: new(int64(500)), Transfers: new(int64(0))},
		{Name: adminapi.LimitRepeatWithin, RepeatWithin: "90s"},
	}})
	kept := adminapi.Limit{Reason: "agreed", SetBy: "ayu", SetAt: now, ExpiresAt: &until, InForce: true}
	day, repeat, markup := kept, kept, kept
	day.Name, day.Amount, day.Transfers = adminapi.LimitDay, new(int64(500)), new(int64(0))
	repeat.Name, repeat.RepeatWithin = adminapi.LimitRepeatWithin, "1m30s"
	markup.Name, markup.Markup = adminapi.LimitMarkup, new(int64(75))
	if diff := cmp.Diff([]adminapi.Limit{day, repeat, markup}, got); err != nil || diff != "" {
		t.Fatal(err, diff)
	}
	entries, err := adminapi.ListAudit.Call(ctx, w, adminapi.AuditFilter{Merchant: made.MerchantID})
	const want = "price:markup Rp 75, payout:day Rp 500 transfers 0, payout:repeat_within 90s until 2026-11-20T09:00:00Z: agreed"
	if err != nil || !slices.ContainsFunc(entries, func(e store.Audit) bool { return e.Detail == want }) {
		t.Errorf("the audit: %+v, %v; want %q", entries, err, want)
	}
	if got, err := adminapi.RemoveLimit.Call(ctx, w, adminapi.LimitRemoval{Merchant: made.MerchantID, Name: adminapi.LimitDay, Reason: "over"}); err != nil || len(got) != 2 {
		t.Errorf("removed: %+v, %v", got, err)
	}
}

func TestLimitsThatAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	made, err := adminapi.CreateMerchant.Call(ctx, w, adminapi.NewMerchant{Name: "Toko", Tier: "starter"})
	if err != nil {
		t.Fatal(err)
	}
	one := func(l adminapi.NewLimit) adminapi.LimitChange {
		return adminapi.LimitChange{Reason: "why", Limits: []adminapi.NewLimit{l}}
	}
	rate, timed, silent := one(adminapi.NewLimit{Name: "default", Burst: 2}), one(adminapi.NewLimit{Name: "default", Burst: 2}), one(adminapi.NewLimit{Name: "default", Burst: 2})
	timed.For, silent.Reason = "0s", " "
	twice := adminapi.LimitChange{Reason: "why", Limits: append(rate.Limits, rate.Limits...)}
	for want, change := range map[string]adminapi.LimitChange{
		"reason is required":         silent,
		"for must be a duration":     timed,
		"a name of its own":          twice,
		"must have 1 to 20":          {Reason: "why"},
		"must each have a name":      one(adminapi.NewLimit{Burst: 2}),
		"not be below zero":          one(adminapi.NewLimit{Name: "default", Burst: -2}),
		"or else a quota's":          one(adminapi.NewLimit{Name: "default"}),
		"must have a markup of 0 to": one(adminapi.NewLimit{Name: adminapi.LimitMarkup, Markup: new(int64(1_000_000_001))}),
		"must have a duration":       one(adminapi.NewLimit{Name: adminapi.LimitRepeatWithin, RepeatWithin: "25h"}),
		"an amount, a number of transfers or both in payout:day": one(adminapi.NewLimit{Name: adminapi.LimitDay, Limit: new(int64(5))}),
		"must be called price:markup":                            one(adminapi.NewLimit{Name: "default", Amount: new(int64(5))}),
		"must each set a rate":                                   one(adminapi.NewLimit{Name: "default", Burst: 2, Limit: new(int64(2))}),
		"it has no quota banq":                                   one(adminapi.NewLimit{Name: "banq", Limit: new(int64(2))}),
		"it has no rate other":                                   one(adminapi.NewLimit{Name: "other", Burst: 2}),
		"can't be read by the policy ":                           one(adminapi.NewLimit{Name: "default", Burst: 1 << 40}),
	} {
		change.Merchant = made.MerchantID
		_, err := adminapi.SetLimits.Call(ctx, w, change)
		if f, ok := err.(*adminapi.Failure); !ok || f.Code != fault.InvalidRequest || !strings.Contains(f.Error(), want) { //nolint:errorlint // as the client returns it
			t.Errorf("%+v: %v, want %q", change, err, want)
		}
	}
	rate.Merchant = "mer_none"
	if _, err := adminapi.SetLimits.Call(ctx, w, rate); err == nil {
		t.Error("a merchant that is not there has limits")
	}
	if _, err := adminapi.RemoveLimit.Call(ctx, w, adminapi.LimitRemoval{Merchant: made.MerchantID, Name: "default", Reason: "why"}); err == nil {
		t.Error("a limit that is not there was removed")
	}
	if _, err := adminapi.RemoveLimit.Call(ctx, w, adminapi.LimitRemoval{Merchant: made.MerchantID, Name: "default", Reason: ""}); err == nil || !strings.Contains(err.Error(), "reason") {
		t.Errorf("removed without a reason: %v", err)
	}
	if limits, err := adminapi.ListLimits.Call(ctx, w, adminapi.MerchantID{Merchant: made.MerchantID}); err != nil || len(limits) > 0 {
		t.Errorf("limits %+v, %v", limits, err)
	}
}

// TestLimitsThatWouldNotHold: rules that do not read merchants' own markups and payout
// limits are no rules to set any under.
func TestLimitsThatWouldNotHold(t *testing.T) {
	t.Parallel()
	source := policy.Default()
	delete(source, "limits_test.rego")
	for old, before := range map[string]string{
		"own_outflow := input.merchant.transfers": "own_outflow := data.transfers.merchants[input.merchant.id]",
		"amount := input.merchant.markup":         "amount := data.markups.merchants[input.merchant.id]",
	} {
		if rules := string(source["limits.rego"]); !strings.Contains(rules, old) {
			t.Fatalf("limits.rego has no %s", old)
		}
		source["limits.rego"] = []byte(strings.Replace(string(source["limits.rego"]), old, before, 1))
	}
	set, err := policy.Compile(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(_ *console.Config, deps *console.Dependencies) {
		deps.Policy = func() *policy.Set { return set }
	})
	made := w.merchant()
	for want, limit := range map[string]adminapi.NewLimit{
		"for every transfer as it does without payout:day; have its rules read input.merchant.transfers.day.amount, input.merchant.transfers.day.count as": {
			Name: adminapi.LimitDay, Amount: new(int64(500)), Transfers: new(int64(5)),
		},
		"without payout:destination_day; have its rules read input.merchant.transfers.destination_day.count as": {Name: adminapi.LimitDestinationDay, Transfers: new(int64(0))},
		"without payout:repeat_within; have its rules read input.merchant.transfers.repeat_within as":           {Name: adminapi.LimitRepeatWithin, RepeatWithin: "20m"},
		"for every order as it does without price:markup; have its rules read input.merchant.markup as":         {Name: adminapi.LimitMarkup, Markup: new(int64(75))},
	} {
		_, err := adminapi.SetLimits.Call(t.Context(), w, adminapi.LimitChange{Merchant: made.MerchantID, Reason: "agreed", Limits: []adminapi.NewLimit{limit}})
		if f := w.refused(err, 400, "limits"); !strings.Contains(f.Error(), want) {
			t.Errorf("%s: %v, want %q", limit.Name, f, want)
		}
	}
	if _, err := adminapi.SetLimits.Call(t.Context(), w, adminapi.LimitChange{Merchant: made.MerchantID, Reason: "agreed", Limits: []adminapi.NewLimit{{Name: "default", Burst: 2}}}); err != nil {
		t.Errorf("a limit that they read is refused: %v", err)
	}
	if limits, err := adminapi.ListLimits.Call(t.Context(), w, adminapi.MerchantID{Merchant: made.MerchantID}); err != nil || len(limits) != 1 {
		t.Errorf("limits %+v, %v", limits, err)
	}
}
