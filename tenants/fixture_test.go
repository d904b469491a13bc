package tenants

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"net/netip"
	"sync"
	"testing"
	"time"
)

// epoch is when the fixtures were made: midnight, 1 January 2026, UTC.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

var anywhere = netip.MustParseAddr("192.0.2.7")

// tenant is a merchant under construction: its records and the plaintexts of its keys.
type tenant struct {
	merchant Merchant
	keys     []Key
	conns    []Connection
	secrets  []CallbackSecret
	plain    []string
}

// newTenant has a live and a test key, and a live connection to payments.
func newTenant(t testing.TB) *tenant {
	t.Helper()
	n := &tenant{merchant: Merchant{
		ID: NewMerchantID(), Name: "Toko Contoh", Tier: "starter", Status: Active, Version: 1, CreatedAt: epoch,
	}}
	n.issue(t, KeySpec{Mode: Live})
	n.issue(t, KeySpec{Mode: Test})
	n.connect(t, Live, "payments")
	return n
}

func (n *tenant) issue(t testing.TB, spec KeySpec) {
	t.Helper()
	spec.MerchantID = n.merchant.ID
	issued, err := IssueKey(rand.Reader, spec, epoch)
	if err != nil {
		t.Fatal(err)
	}
	n.keys = append(n.keys, issued.Key)
	n.plain = append(n.plain, issued.Secret.Reveal())
}

func (n *tenant) connect(t testing.TB, mode Mode, provider Provider) {
	t.Helper()
	token, err := NewNotifyToken(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	n.conns = append(n.conns, Connection{
		MerchantID: n.merchant.ID, Mode: mode, Provider: provider, Owner: OwnerMerchant, Version: 1,
		Sealed: []byte("sealed elsewhere"), NotifyToken: token,
	})
}

func (n *tenant) account(t testing.TB) *Account {
	t.Helper()
	a, err := NewAccount(n.merchant, n.keys, n.conns, n.secrets)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// memorySource is the store of the tests. Reads are counted; before, when set, runs ahead of each.
type memorySource struct {
	mu       sync.Mutex
	accounts map[MerchantID]*Account
	changed  map[MerchantID]time.Time
	reads    int
	polls    int
	fail     error
	before   func(ctx context.Context) error
}

func newSource(accounts ...*Account) *memorySource {
	s := &memorySource{accounts: map[MerchantID]*Account{}, changed: map[MerchantID]time.Time{}}
	for _, a := range accounts {
		s.accounts[a.ID()] = a
	}
	return s
}

// put commits a change at the present time.
func (s *memorySource) put(a *Account) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accounts[a.ID()] = a
	s.changed[a.ID()] = time.Now()
}

func (s *memorySource) remove(id MerchantID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.accounts, id)
}

func (s *memorySource) setFail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = err
}

func (s *memorySource) counts() (reads, polls int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads, s.polls
}

// find takes its snapshot before it waits, as a slow read would.
func (s *memorySource) find(ctx context.Context, wanted func(*Account) bool) (*Account, error) {
	s.mu.Lock()
	s.reads++
	fail, before := s.fail, s.before
	var account *Account
	for _, a := range s.accounts {
		if wanted(a) {
			account = a
		}
	}
	s.mu.Unlock()
	if before != nil {
		fail = cmp.Or(before(ctx), fail)
	}
	if fail != nil {
		return nil, fail
	}
	if account == nil {
		return nil, ErrNotFound
	}
	return account, nil
}

func (s *memorySource) AccountByKey(ctx context.Context, id KeyID) (*Account, error) {
	return s.find(ctx, func(a *Account) bool { _, ok := a.Key(id); return ok })
}

func (s *memorySource) AccountByID(ctx context.Context, id MerchantID) (*Account, error) {
	return s.find(ctx, func(a *Account) bool { return a.ID() == id })
}

func (s *memorySource) AccountByNotifyToken(ctx context.Context, p Provider, token NotifyToken) (*Account, error) {
	return s.find(ctx, func(a *Account) bool { _, ok := a.connectionAt(p, token); return ok })
}

func (s *memorySource) ChangedSince(_ context.Context, since time.Time) ([]Change, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.polls++
	if s.fail != nil {
		return nil, s.fail
	}
	var changes []Change
	for id, at := range s.changed {
		if !at.Before(since) {
			changes = append(changes, Change{MerchantID: id, Version: s.accounts[id].Version()})
		}
	}
	return changes, nil
}

func newTestDirectory(s Source) *Directory {
	return NewDirectory(s, time.Now, slog.New(slog.DiscardHandler))
}
