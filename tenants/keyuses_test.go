package tenants_test

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/tenants"
)

// uses keeps what is written, or refuses it.
type uses struct {
	kept map[tenants.KeyID][]tenants.KeyUse
	err  error
}

func (u *uses) PutKeyUses(_ context.Context, uses []tenants.KeyUse) error {
	if u.err == nil {
		u.kept[uses[0].KeyID] = append(u.kept[uses[0].KeyID], uses...)
	}
	return u.err
}

func TestKeyUsesAreWrittenOnce(t *testing.T) {
	t.Parallel()
	account, err := tenants.NewAccount(tenants.Merchant{ID: "mer_a", Status: tenants.Active}, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	kept := &uses{kept: map[tenants.KeyID][]tenants.KeyUse{}}
	k := tenants.NewKeyUses(kept, slog.New(slog.DiscardHandler))
	at := time.Date(2026, 11, 20, 5, 0, 30, 0, time.UTC)
	first, second := netip.MustParseAddr("203.0.113.1"), netip.MustParseAddr("203.0.113.2")
	note := func(id tenants.KeyID, at time.Time, from netip.Addr) {
		k.Note(tenants.Identity{Account: account, Key: tenants.Key{ID: id}}, at, from)
	}
	note("one", at, first)
	note("one", at.Add(5*time.Second), first)
	note("one", at.Add(time.Minute), second)
	note("two", at, first)
	k.Write(t.Context())
	want := []tenants.KeyUse{
		{MerchantID: "mer_a", KeyID: "one", At: at.Add(-30 * time.Second), Address: "203.0.113.1"},
		{MerchantID: "mer_a", KeyID: "one", At: at.Add(30 * time.Second), Address: "203.0.113.2"},
	}
	if len(kept.kept) != 2 || !slices.Equal(kept.kept["one"], want) {
		t.Errorf("written: %+v, want %+v", kept.kept, want)
	}
	clear(kept.kept)
	k.Write(t.Context())
	if len(kept.kept) != 0 {
		t.Errorf("written twice: %+v", kept.kept)
	}
	note("one", at, first)
	kept.err = errors.New("down")
	k.Write(t.Context()) // dropped, and said in the log
	kept.err = nil
	note("one", at.Add(time.Hour), first)
	if k.Write(t.Context()); len(kept.kept) != 1 {
		t.Errorf("after a failure: %+v", kept.kept)
	}
}

// TestAddressesOfAKeyAreBounded: who uses a key from everywhere costs no memory, and the
// latest addresses are those that are told.
func TestAddressesOfAKeyAreBounded(t *testing.T) {
	t.Parallel()
	account, err := tenants.NewAccount(tenants.Merchant{ID: "mer_a", Status: tenants.Active}, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	kept := &uses{kept: map[tenants.KeyID][]tenants.KeyUse{}}
	k := tenants.NewKeyUses(kept, slog.New(slog.DiscardHandler))
	at := time.Date(2026, 11, 20, 5, 0, 30, 0, time.UTC)
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			for j := range 50 {
				k.Note(tenants.Identity{Account: account, Key: tenants.Key{ID: "one"}}, at, netip.AddrFrom4([4]byte{10, 0, byte(i), byte(j)}))
			}
		})
	}
	group.Wait()
	late := netip.MustParseAddr("203.0.113.1")
	k.Note(tenants.Identity{Account: account, Key: tenants.Key{ID: "one"}}, at.Add(time.Minute), late)
	k.Write(t.Context())
	uses := kept.kept["one"]
	if len(uses) != 20 || uses[19].Address != late.String() {
		t.Errorf("%d addresses are written: %+v", len(uses), uses)
	}
}

func BenchmarkNote(b *testing.B) {
	account, err := tenants.NewAccount(tenants.Merchant{ID: "mer_a", Status: tenants.Active}, nil, nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	k := tenants.NewKeyUses(&uses{}, slog.New(slog.DiscardHandler))
	id, now, from := tenants.Identity{Account: account, Key: tenants.Key{ID: "one"}}, time.Now(), netip.MustParseAddr("203.0.113.1")
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			k.Note(id, now, from)
		}
	})
}
