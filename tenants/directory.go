package tenants

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
)

// Source is where a Directory reads from: the store. All methods may be called at any time from many goroutines, and
// every Account is read in one snapshot that is not older than the call.
type Source interface {
	// AccountByKey returns the account that holds the key, or ErrNotFound. A revoked or expired key may still find it.
	AccountByKey(ctx context.Context, id KeyID) (*Account, error)
	// AccountByID returns the account, or ErrNotFound.
	AccountByID(ctx context.Context, id MerchantID) (*Account, error)
	// AccountByNotifyToken returns the account whose connection to the provider has the token, or ErrNotFound.
	AccountByNotifyToken(ctx context.Context, provider Provider, token NotifyToken) (*Account, error)
	// ChangedSince returns every merchant whose Version rose at or after the given time, with its present version.
	// It is asked with an overlap of a minute: that much may clocks differ and transactions last.
	ChangedSince(ctx context.Context, since time.Time) ([]Change, error)
}

// Change says that a merchant has reached a version.
type Change struct {
	MerchantID MerchantID
	Version    int64
}

const (
	// missLife bounds how long a key that was just created elsewhere can still be unknown here.
	missLife = 2 * time.Second
	// maxMisses and maxRoutes bound what strangers and providers can make a replica remember.
	maxMisses = 16 << 10
	maxRoutes = 16 << 10
	// loadTimeout is well below pollOverlap, so that no load can bring back what a poll has already seen changed.
	loadTimeout = 5 * time.Second
)

// Directory answers from memory who a key belongs to. Misses are read from the Source, once per key however many wait.
// While Run polls, a change made by any replica is seen within a second, also a revocation. It keeps every merchant it
// has met. It is safe for concurrent use.
type Directory struct {
	source   Source
	log      *slog.Logger
	now      func() time.Time
	born     time.Time
	polled   atomic.Pointer[time.Time] // when the last successful poll began
	accounts *otter.Cache[MerchantID, *Account]
	keys     *index[keyName]
	routes   *index[routeName]
	uses     *KeyUses // nil notes none
	refused  func(id Identity, addr netip.Addr, why error)
}

// keyName and routeName are names as cache keys: no pointers into a request's memory, nothing secret kept alive.
type (
	keyName   [keyIDLen]byte
	routeName struct {
		provider Provider
		token    [notifyTokenBytes]byte
	}
)

// Identity is who a request comes from. The merchant may be suspended: that is for the caller to judge.
type Identity struct {
	Account *Account
	Key     Key
	Mode    Mode
	Address netip.Addr // of the client
}

// NewDirectory returns an empty directory. It is not Fresh before Run's first poll. Now is the time that all replicas
// share, by which the Source is asked for changes.
func NewDirectory(source Source, now func() time.Time, log *slog.Logger) *Directory {
	return &Directory{
		source: source, now: now, log: log, born: now(), refused: func(Identity, netip.Addr, error) {},
		accounts: otter.Must(&otter.Options[MerchantID, *Account]{}),
		keys:     newIndex[keyName](0),
		routes:   newIndex[routeName](maxRoutes),
	}
}

// NoteUses has every right key's use noted. It must be called before the first request.
func (d *Directory) NoteUses(uses *KeyUses) { d.uses = uses }

// NoteRefusals has the refusals of right keys noted: with ErrAuthFailed for one that is revoked or expired, with
// ErrAddress for another address. It must be called before the first request, and note must not wait.
func (d *Directory) NoteRefusals(note func(id Identity, addr netip.Addr, why error)) {
	d.refused = note
}

// Authenticate returns who presented the key. Whatever is wrong with the key is ErrAuthFailed; ErrAddress comes with
// the identity, for the key was right. Any other error is the Source's and says nothing about the key.
func (d *Directory) Authenticate(ctx context.Context, now time.Time, presented string, addr netip.Addr) (Identity, error) {
	// Hashed before anything else and compared whatever was found, so that each refusal does the same work.
	hash := HashKey(presented[:min(len(presented), keyLen)])
	account, key, err := d.keyRecord(ctx, now, presented)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return Identity{}, err
	}
	if !key.Hash.Equal(hash) || err != nil {
		return Identity{}, ErrAuthFailed
	}
	identity := Identity{Account: account, Key: key, Mode: key.Mode, Address: addr}
	if !key.Usable(now) {
		d.refused(identity, addr, ErrAuthFailed)
		return Identity{}, ErrAuthFailed
	}
	if !key.Allows(addr) {
		d.refused(identity, addr, ErrAddress)
		return identity, ErrAddress
	}
	if d.uses != nil {
		d.uses.Note(identity, now, addr)
	}
	return identity, nil
}

// Remembers reports whether a key can be judged from memory. A malformed one can.
func (d *Directory) Remembers(presented string) bool {
	parsed, err := ParseKey(presented)
	if err != nil {
		return true
	}
	_, known := d.keys.known(keyName([]byte(parsed.ID)))
	return known
}

// RemembersRoute reports whether a token can be judged from memory. A malformed one can.
func (d *Directory) RemembersRoute(provider Provider, token NotifyToken) bool {
	raw, ok := token.raw()
	if !ok {
		return true
	}
	_, known := d.routes.known(routeName{provider: provider, token: raw})
	return known
}

// keyRecord finds the record that the presented key names; whether the key is right is for the caller to check.
func (d *Directory) keyRecord(ctx context.Context, now time.Time, presented string) (*Account, Key, error) {
	parsed, err := ParseKey(presented)
	if err != nil {
		return nil, Key{}, ErrNotFound
	}
	name := keyName([]byte(parsed.ID))
	id, ok := d.keys.known(name)
	if !ok {
		wanted := KeyID(strings.Clone(string(parsed.ID)))
		id, err = d.keys.find(ctx, now, name, func(ctx context.Context) (*Account, error) {
			return d.source.AccountByKey(ctx, wanted)
		}, d.adopt)
		if err != nil {
			return nil, Key{}, err
		}
	}
	account, err := d.load(ctx, id)
	if err != nil {
		return nil, Key{}, err
	}
	key, ok := account.Key(parsed.ID)
	if !ok || key.Mode != parsed.Mode {
		return nil, Key{}, ErrNotFound
	}
	return account, key, nil
}

// ByNotifyToken returns the connection that a provider notifies at the token, or ErrNotFound.
func (d *Directory) ByNotifyToken(
	ctx context.Context, now time.Time, provider Provider, token NotifyToken,
) (*Account, Connection, error) {
	raw, ok := token.raw()
	if !ok {
		return nil, Connection{}, ErrNotFound
	}
	id, ok := d.routes.known(routeName{provider: provider, token: raw})
	if !ok {
		wanted := routeName{provider: Provider(strings.Clone(string(provider))), token: raw}
		var err error
		id, err = d.routes.find(ctx, now, wanted, func(ctx context.Context) (*Account, error) {
			return d.source.AccountByNotifyToken(ctx, wanted.provider, token)
		}, d.adopt)
		if err != nil {
			return nil, Connection{}, err
		}
	}
	account, err := d.load(ctx, id)
	if err != nil {
		return nil, Connection{}, err
	}
	conn, ok := account.connectionAt(provider, token)
	if !ok {
		return nil, Connection{}, ErrNotFound
	}
	return account, conn, nil
}

// Account returns a merchant's account, or ErrNotFound.
func (d *Directory) Account(ctx context.Context, id MerchantID) (*Account, error) {
	if account, ok := d.accounts.GetIfPresent(id); ok {
		return account, nil
	}
	return d.load(ctx, MerchantID(strings.Clone(string(id))))
}

// load is Account for an id whose text may be kept.
func (d *Directory) load(ctx context.Context, id MerchantID) (*Account, error) {
	account, err := d.accounts.Get(ctx, id, otter.LoaderFunc[MerchantID, *Account](
		func(ctx context.Context, id MerchantID) (*Account, error) {
			return fetch(ctx, func(ctx context.Context) (*Account, error) { return d.source.AccountByID(ctx, id) })
		}))
	return account, sourceError(err)
}

// adopt keeps an account that was read on the way to something else, unless a newer one is known. It returns the id as
// the directory holds it, so that one copy of the text serves all of a merchant's names.
func (d *Directory) adopt(account *Account) MerchantID {
	kept, _ := d.accounts.Compute(account.ID(), func(old *Account, found bool) (*Account, otter.ComputeOp) {
		if found && old.Version() >= account.Version() {
			return old, otter.CancelOp
		}
		return account, otter.WriteOp
	})
	return kept.ID()
}

// Invalidate makes this replica read the merchant again before it next answers for it. Other replicas learn by polling.
func (d *Directory) Invalidate(id MerchantID) { d.accounts.Invalidate(id) }

// fetch reads from the Source in bounded time and says ErrNotFound in the cache's words.
func fetch(ctx context.Context, read func(context.Context) (*Account, error)) (*Account, error) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	account, err := read(ctx)
	if errors.Is(err, ErrNotFound) {
		return nil, otter.ErrNotFound
	}
	return account, err
}

// sourceError says the cache's errors in our words.
func sourceError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, otter.ErrNotFound):
		return ErrNotFound
	default:
		return fmt.Errorf("tenants: read account: %w", err)
	}
}

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
