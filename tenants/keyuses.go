package tenants

import (
	"cmp"
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// useEvery is how often uses are written, and how exactly they are told.
	useEvery = time.Minute
	// mostUses bounds the keys whose use is not written yet, and mostPlaces the addresses
	// of each.
	mostUses   = 1 << 16
	mostPlaces = 20
)

// UseKeeper keeps when a key was used last from each of some addresses.
type UseKeeper interface {
	PutKeyUses(ctx context.Context, uses []KeyUse) error
}

// KeyUses notes when and from where keys are used, and writes it every minute: what is not
// written when a gateway is killed is lost. Any number of goroutines may use it.
type KeyUses struct {
	keeper UseKeeper
	log    *slog.Logger
	uses   sync.Map // of *noted by KeyID; most notes find their own and take no lock
	count  atomic.Int64
}

// noted is from where a key is used. It is never changed.
type noted struct {
	merchant MerchantID
	places   []place
}

type place struct {
	address netip.Addr
	minute  int64
}

// with is n with one use more, nil where that is known or has no room.
func (n *noted) with(p place) *noted {
	at := slices.IndexFunc(n.places, func(known place) bool { return known.address == p.address })
	switch {
	case at >= 0 && n.places[at].minute >= p.minute:
		return nil
	case at < 0 && len(n.places) < mostPlaces:
		return &noted{n.merchant, append(slices.Clip(n.places), p)}
	case at < 0: // in place of the oldest
		oldest := slices.MinFunc(n.places, func(a, b place) int { return cmp.Compare(a.minute, b.minute) })
		if oldest.minute >= p.minute {
			return nil
		}
		at = slices.Index(n.places, oldest)
	}
	places := slices.Clone(n.places)
	places[at] = p
	return &noted{n.merchant, places}
}

// NewKeyUses makes an empty one.
func NewKeyUses(keeper UseKeeper, log *slog.Logger) *KeyUses {
	return &KeyUses{keeper: keeper, log: log}
}

// Note notes a use.
func (k *KeyUses) Note(id Identity, now time.Time, from netip.Addr) {
	use := place{from, now.Unix() / 60}
	for {
		known, found := k.uses.Load(id.Key.ID)
		if !found {
			if k.count.Load() >= mostUses {
				return
			}
			if _, found = k.uses.LoadOrStore(id.Key.ID, &noted{id.Account.ID(), []place{use}}); !found {
				k.count.Add(1)
				return
			}
			continue
		}
		next := known.(*noted).with(use)
		if next == nil || k.uses.CompareAndSwap(id.Key.ID, known, next) {
			return
		}
	}
}

// Run writes what was noted until the context ends, and then once more.
func (k *KeyUses) Run(ctx context.Context) error {
	tick := time.NewTicker(useEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			k.writeLast(ctx)
			return nil
		case <-tick.C:
			k.Write(ctx)
		}
	}
}

// writeLast writes what was noted although the context has ended.
func (k *KeyUses) writeLast(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	k.Write(ctx)
}

// Write writes what was noted. What can't be written is dropped: the next use tells again.
func (k *KeyUses) Write(ctx context.Context) {
	var err error
	k.uses.Range(func(key, _ any) bool {
		taken, found := k.uses.LoadAndDelete(key)
		if !found {
			return true
		}
		k.count.Add(-1)
		of := taken.(*noted)
		uses := make([]KeyUse, len(of.places))
		for i, p := range of.places {
			uses[i] = KeyUse{MerchantID: of.merchant, KeyID: key.(KeyID), At: time.Unix(p.minute*60, 0).UTC(), Address: p.address.String()}
		}
		slices.SortFunc(uses, func(a, b KeyUse) int { return a.At.Compare(b.At) })
		err = k.keeper.PutKeyUses(ctx, uses)
		return err == nil
	})
	if err != nil {
		k.log.WarnContext(ctx, "keys' last uses can't be written", "error", err)
	}
}
