package tenants

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// useEvery is how often uses are written, and how exactly they are told.
	useEvery = time.Minute
	// mostUses bounds the keys whose use is not written yet.
	mostUses = 1 << 16
)

// UseKeeper keeps keys' last uses.
type UseKeeper interface {
	PutKeyUse(ctx context.Context, u KeyUse) error
}

// KeyUses notes when and from where keys are used, and writes it every minute: what is not
// written when a gateway is killed is lost. Any number of goroutines may use it.
type KeyUses struct {
	keeper UseKeeper
	log    *slog.Logger
	uses   sync.Map // of noted by KeyID; most notes find their own and take no lock
	count  atomic.Int64
}

type noted struct {
	merchant MerchantID
	minute   int64
	address  netip.Addr
}

// NewKeyUses makes an empty one.
func NewKeyUses(keeper UseKeeper, log *slog.Logger) *KeyUses {
	return &KeyUses{keeper: keeper, log: log}
}

// Note notes a use.
func (k *KeyUses) Note(id Identity, now time.Time, from netip.Addr) {
	use := noted{id.Account.ID(), now.Unix() / 60, from}
	known, found := k.uses.Load(id.Key.ID)
	if known == use || !found && k.count.Load() >= mostUses {
		return
	}
	if _, replaced := k.uses.Swap(id.Key.ID, use); !replaced {
		k.count.Add(1)
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
		id, use := key.(KeyID), taken.(noted)
		err = k.keeper.PutKeyUse(ctx, KeyUse{MerchantID: use.merchant, KeyID: id, At: time.Unix(use.minute*60, 0).UTC(), Address: use.address.String()})
		return err == nil
	})
	if err != nil {
		k.log.WarnContext(ctx, "keys' last uses can't be written", "error", err)
	}
}
