package merchants

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// one is a merchant's only movement. It notes since when movements are read.
type one struct {
	Records

	of   movement.Movement
	read []time.Time
}

func (o *one) MovementByKey(_ context.Context, key movement.Key) (movement.Movement, error) {
	if key != o.of.Key {
		return movement.Movement{}, store.ErrNotFound
	}
	return o.of, nil
}

func (o *one) Movements(_ context.Context, l movement.Listing) ([]movement.Movement, error) {
	o.read = append(o.read, l.Since)
	return nil, nil
}

// TestAWholeReferenceIsFoundByItsKey: however old it is, and where the list has its state
// and time. The beginning of one is read for in 31 days.
func TestAWholeReferenceIsFoundByItsKey(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)
	key := movement.Key{Owner: movement.Owner{MerchantID: "mer_1", Mode: "live"}, Kind: manifest.Payment, Reference: "INV-1"}
	records := &one{of: movement.Movement{Key: key, State: movement.Failed, CreatedAt: now.AddDate(-1, 0, 0)}}
	c := &Console{deps: Dependencies{Records: records}}
	all := movement.Listing{Owner: key.Owner, Kind: key.Kind, States: groups[""], Before: now, Prefix: "INV-1", Most: pageOf}
	for what, change := range map[string]func(*movement.Listing){
		"whole":            func(*movement.Listing) {},
		"a beginning":      func(l *movement.Listing) { l.Prefix = "INV" },
		"another state":    func(l *movement.Listing) { l.States = groups["pending"] },
		"later":            func(l *movement.Listing) { l.Since = now.AddDate(0, -6, 0) },
		"earlier":          func(l *movement.Listing) { l.Before = now.AddDate(-2, 0, 0) },
		"another kind":     func(l *movement.Listing) { l.Kind = manifest.Order },
		"another merchant": func(l *movement.Listing) { l.Owner.MerchantID = "mer_2" },
	} {
		records.read = nil
		l := all
		change(&l)
		var read []time.Time
		if what != "whole" {
			read = []time.Time{l.Before.Add(-prefixSpan)}
		}
		found, err := c.found(t.Context(), l)
		if err != nil || len(found) != 1-len(read) || !slices.Equal(records.read, read) {
			t.Errorf("%s: found %d, read since %v, want %v; %v", what, len(found), records.read, read, err)
		}
	}
}
