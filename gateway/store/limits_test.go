package store_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/tenants"
)

func TestOwnLimits(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	n := newTenant(t).store(t, s)
	id := n.merchant.ID
	before := account(t, s, id).Version()
	audit := by("merchant.limit")
	limits := []tenants.Limit{
		{Name: "default", RatePerSecond: 0.1, Burst: 3, Reason: "slow", SetBy: audit.Operator, SetAt: audit.At, ExpiresAt: audit.At.Add(time.Hour)},
		{Name: "wallet2", Quota: new(int64(0)), Reason: "none", SetBy: audit.Operator, SetAt: audit.At},
	}
	if err := s.SetLimits(t.Context(), audit, id, limits); err != nil {
		t.Fatal(err)
	}
	if a := account(t, s, id); a.Version() != before+1 || !reflect.DeepEqual(a.Merchant().Limits, limits) {
		t.Errorf("version %d, limits %+v", a.Version(), a.Merchant().Limits)
	}
	limits[1].Quota, limits[1].Reason = new(int64(1<<40)), "plenty"
	if err := s.SetLimits(t.Context(), audit, id, limits[1:]); err != nil {
		t.Fatal(err)
	}
	if got := account(t, s, id).Merchant().Limits; !reflect.DeepEqual(got, limits) {
		t.Errorf("one replaced: %+v", got)
	}
	changes, err := s.ChangedSince(t.Context(), audit.At)
	if err != nil || len(changes) != 1 || changes[0].Version != before+2 {
		t.Errorf("replicas learn of %+v, %v", changes, err)
	}
	if err := s.RemoveLimit(t.Context(), audit, id, "default"); err != nil {
		t.Fatal(err)
	}
	if got := account(t, s, id).Merchant().Limits; !reflect.DeepEqual(got, limits[1:]) {
		t.Errorf("one removed: %+v", got)
	}
	own := func(name string, l tenants.Limit) tenants.Limit {
		l.Name, l.Reason, l.SetBy, l.SetAt = name, "agreed", audit.Operator, audit.At
		return l
	}
	others := []tenants.Limit{
		own(tenants.LimitDay, tenants.Limit{Amount: new(int64(0)), Transfers: new(int64(5))}),
		own(tenants.LimitDestinationDay, tenants.Limit{Amount: new(int64(1 << 40))}),
		own(tenants.LimitRepeatWithin, tenants.Limit{RepeatWithin: new(90 * time.Second)}),
		own(tenants.LimitMarkup, tenants.Limit{Markup: new(int64(75))}),
	}
	if err := s.SetLimits(t.Context(), audit, id, others); err != nil {
		t.Fatal(err)
	}
	if got := account(t, s, id).Merchant().Limits; !reflect.DeepEqual(got, append(others, limits[1])) {
		t.Errorf("with a markup and payout limits: %+v", got)
	}
	entries := len(audits(t, s, id))
	for name, err := range map[string]error{
		"not there":      s.RemoveLimit(t.Context(), audit, id, "default"),
		"of nobody":      s.SetLimits(t.Context(), audit, "mer_none", limits),
		"the platform's": s.SetLimits(t.Context(), audit, tenants.Platform, limits),
	} {
		if !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := len(audits(t, s, id)); got != entries {
		t.Errorf("what was not done is in the audit: %d entries, want %d", got, entries)
	}
}
