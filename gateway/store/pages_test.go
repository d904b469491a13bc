package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// TestPagesLoseNothingOfOneTime: what was made at one and the same time is on one page or
// the next, each once.
func TestPagesLoseNothingOfOneTime(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	merchant := newTenant(t).store(t, s).merchant.ID
	const all, page = 23, 5
	at := epoch.Add(time.Minute)
	for i := range all {
		made := at
		if i%4 == 0 {
			made = at.Add(time.Duration(i) * time.Microsecond)
		}
		added(t, s, owner, made)
		if err := s.NoteAudit(t.Context(), store.Audit{Operator: []string{"ayu", "budi"}[i%2], Action: []string{"key.create", "keys.none"}[i%2], At: made}, merchant); err != nil {
			t.Fatal(err)
		}
	}
	for _, state := range []movement.CallbackState{"", movement.CallbackWaiting} {
		seen := map[uuid.UUID]bool{}
		r := movement.CallbackRange{Owner: owner, State: state, Until: epoch.Add(time.Hour), Most: page}
		for {
			found, err := s.Callbacks(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range found {
				if seen[c.EventID] || c.CreatedAt.After(r.Until) {
					t.Fatalf("%s comes twice or out of order", c.EventID)
				}
				seen[c.EventID] = true
			}
			if len(found) < page {
				break
			}
			r.Until, r.After = found[page-1].CreatedAt, found[page-1].EventID
		}
		if len(seen) != all {
			t.Errorf("state %q: %d of %d callbacks", state, len(seen), all)
		}
	}
	for narrowed, want := range map[store.AuditRange]int{
		{}: all, {Operator: "ayu"}: 12, {Operator: "ay"}: 0, {Action: "key."}: 12, {Action: "key"}: all, {Action: "%"}: 0,
		{Since: at.Add(time.Microsecond)}: 5, {Operator: "budi", Action: "key."}: 0,
	} {
		seen := map[uuid.UUID]bool{}
		r := narrowed
		r.MerchantID, r.Most = merchant, page
		if r.Since.IsZero() {
			r.Since = at
		}
		for {
			found, err := s.AuditOf(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.IsSortedFunc(found, func(a, b store.Audit) int { return b.At.Compare(a.At) }) {
				t.Errorf("%+v: out of order", narrowed)
			}
			for _, e := range found {
				if seen[e.ID] {
					t.Fatalf("%+v comes twice", e)
				}
				seen[e.ID] = true
			}
			if len(found) < page {
				break
			}
			r.Until, r.After = found[page-1].At, found[page-1].ID
		}
		if len(seen) != want {
			t.Errorf("%+v: %d entries, want %d", narrowed, len(seen), want)
		}
	}
	if list, err := s.AuditOf(t.Context(), store.AuditRange{MerchantID: tenants.Platform, Most: page}); err != nil || len(list) > 0 && list[0].ID == uuid.Nil {
		t.Errorf("%+v, %v", list, err)
	}
}
