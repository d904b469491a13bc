package store_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/tenants"
)

func TestTheLogOfDecisions(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	noon := time.Date(2026, 11, 20, 5, 0, 0, 0, time.UTC)
	replica, other := uuid.UUID{1}, uuid.UUID{2}
	for i := range 20 {
		part := store.DecisionPart{Minute: noon.Add(time.Duration(i) * time.Minute), Replica: replica, Part: 1, Counts: []byte{byte(i)}}
		if i == 3 {
			part.Inputs = []byte("sealed")
			for _, replica := range []uuid.UUID{other, other} { // the same part twice
				twin := part
				twin.Replica = replica
				if err := s.AddDecisions(t.Context(), twin); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := s.AddDecisions(t.Context(), part); err != nil {
			t.Fatal(err)
		}
	}
	read := func() (minutes []int) {
		t.Helper()
		parts, err := s.Decisions(t.Context(), noon.Add(2*time.Minute), noon.Add(12*time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		var counted []int
		if err := s.CountDecisions(t.Context(), noon.Add(2*time.Minute), noon.Add(12*time.Minute), func(minute time.Time, counts []byte) error {
			counted = append(counted, int(minute.Sub(noon)/time.Minute), int(counts[0]))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for i, p := range parts {
			if counted[2*i] != int(p.Counts[0]) || counted[2*i+1] != int(p.Counts[0]) || len(counted) != 2*len(parts) {
				t.Errorf("counted %v of %d parts", counted, len(parts))
			}
			minutes = append(minutes, int(p.Counts[0]))
			if !p.Minute.Equal(noon.Add(time.Duration(p.Counts[0])*time.Minute)) || (p.Inputs != nil) != (p.Counts[0] == 3) {
				t.Errorf("part %+v", p)
			}
		}
		return minutes
	}
	if got := read(); !slices.Equal(got, []int{2, 3, 3, 4, 5, 6, 7, 8, 9, 10, 11}) {
		t.Errorf("read %v", got)
	}
	if err := s.ForgetDecisions(t.Context(), noon.Add(9*time.Minute)); err != nil {
		t.Fatal(err)
	}
	if got := read(); !slices.Equal(got, []int{9, 10, 11}) {
		t.Errorf("after the old ones are forgotten: %v", got)
	}
}

// TestARecordIsKeptAsItWas: whatever replaces it.
func TestARecordIsKeptAsItWas(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	n := newTenant(t).store(t, s)
	id := n.merchant.ID
	first := account(t, s, id).Merchant()
	audit := by("merchant.limit")
	if err := s.SetLimits(t.Context(), audit, id, []tenants.Limit{{Name: "default", RatePerSecond: 2, Burst: 3, SetBy: audit.Operator, SetAt: audit.At}}); err != nil {
		t.Fatal(err)
	}
	if err := s.SetTier(t.Context(), audit, id, "other"); err != nil {
		t.Fatal(err)
	}
	record := func(version int64) tenants.Merchant {
		t.Helper()
		m, err := s.MerchantRecord(t.Context(), id, version)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	if got := record(first.Version); got.Tier != first.Tier || len(got.Limits) != 0 || got.Version != first.Version {
		t.Errorf("the first record: %+v", got)
	}
	if got := record(first.Version + 1); got.Tier != first.Tier || len(got.Limits) != 1 || got.Limits[0].RatePerSecond != 2 {
		t.Errorf("with a limit: %+v", got)
	}
	if _, err := s.MerchantRecord(t.Context(), id, first.Version+2); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the present one is not kept twice: %v", err)
	}
	if err := s.ForgetDecisions(t.Context(), audit.At.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.MerchantRecord(t.Context(), id, first.Version); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("it is forgotten with the log: %v", err)
	}
}
