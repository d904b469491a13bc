package tenants

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
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
	mu     sync.Mutex
	uses   map[KeyID]noted
}

type noted struct {
	merchant MerchantID
	minute   int64
	address  netip.Addr
}

// NewKeyUses makes an empty one.
func NewKeyUses(keeper UseKeeper, log *slog.Logger) *KeyUses {
	return &KeyUses{keeper: keeper, log: log, uses: map[KeyID]noted{}}
}

// Note notes a use.
func (k *KeyUses) Note(id Identity, now time.Time, from netip.Addr) {
	use := noted{id.Account.ID(), now.Unix() / 60, from}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.uses) < mostUses || k.uses[id.Key.ID].minute > 0 {
		k.uses[id.Key.ID] = use
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
	k.mu.Lock()
	uses := k.uses
	k.uses = map[KeyID]noted{}
	k.mu.Unlock()
	for id, use := range uses {
		err := k.keeper.PutKeyUse(ctx, KeyUse{MerchantID: use.merchant, KeyID: id, At: time.Unix(use.minute*60, 0).UTC(), Address: use.address.String()})
		if err != nil {
			k.log.WarnContext(ctx, "keys' last uses can't be written", "error", err)
			return
		}
	}
}
