package tenants

import (
	"context"
	"errors"
	"time"

	"github.com/maypok86/otter/v2"
)

// index remembers which merchant stands behind a public name, a key's id or a notification route. A name never moves to
// another merchant, so what was found stays true; whether the merchant still honours it is asked of the Account. Names
// that were not found are remembered shortly, and not more than maxMisses of them, so that forged ones cost little.
type index[K comparable] struct {
	found  *otter.Cache[K, MerchantID]
	missed *otter.Cache[K, int64] // until when, as Unix nanoseconds
}

// newIndex returns an index that remembers at most max found names, or every one when max is 0.
func newIndex[K comparable](max int) *index[K] {
	return &index[K]{
		found:  otter.Must(&otter.Options[K, MerchantID]{MaximumSize: max}),
		missed: otter.Must(&otter.Options[K, int64]{MaximumSize: maxMisses}),
	}
}

// known answers from memory.
func (x *index[K]) known(name K) (MerchantID, bool) { return x.found.GetIfPresent(name) }

// find reads the account behind an unknown name and hands it to adopt. Callers that ask for the same name meanwhile wait
// for the one read.
func (x *index[K]) find(
	ctx context.Context, now time.Time, name K,
	read func(context.Context) (*Account, error), adopt func(*Account) MerchantID,
) (MerchantID, error) {
	if until, ok := x.missed.GetIfPresent(name); ok && now.UnixNano() < until {
		return "", ErrNotFound
	}
	id, err := x.found.Get(ctx, name, otter.LoaderFunc[K, MerchantID](
		func(ctx context.Context, _ K) (MerchantID, error) {
			account, err := fetch(ctx, read)
			if err != nil {
				return "", err
			}
			return adopt(account), nil
		}))
	if errors.Is(err, otter.ErrNotFound) {
		x.missed.Set(name, now.Add(missLife).UnixNano())
	}
	return id, sourceError(err)
}
