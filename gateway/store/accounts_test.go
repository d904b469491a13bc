package store_test

import (
	"crypto/rand"
	"errors"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// tenant is a merchant with all that can belong to one, before it is stored.
type tenant struct {
	merchant    tenants.Merchant
	keys        []tenants.Key
	connections []tenants.Connection
	secrets     []tenants.CallbackSecret
}

func newTenant(tb testing.TB) *tenant {
	tb.Helper()
	id := tenants.NewMerchantID()
	n := &tenant{merchant: tenants.Merchant{
		ID: id, Name: "Toko Contoh", Tier: "scale", Status: tenants.Active,
		Labels: map[string]string{"city": "Bandung", "note": "a \"b\" · ü"}, CreatedAt: epoch,
	}}
	n.keys = append(n.keys, issue(tb, id, tenants.Live), issue(tb, id, tenants.Test))
	n.keys[1].Scopes, _ = tenants.NewScopes(tenants.ScopeRead)
	n.keys[1].IPs = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::1/128")}
	end, stop := epoch.Add(time.Hour), epoch.Add(time.Minute)
	n.keys[1].ExpiresAt, n.keys[1].RevokedAt = &end, &stop
	for i, mode := range []tenants.Mode{tenants.Live, tenants.Test} {
		token, err := tenants.NewNotifyToken(rand.Reader)
		if err != nil {
			tb.Fatal(err)
		}
		n.connections = append(n.connections, tenants.Connection{
			MerchantID: id, Mode: mode, Provider: "payments", Owner: []tenants.Owner{tenants.OwnerMerchant, tenants.OwnerPlatform}[i],
			Sealed: []byte{0, 1, 0xff, byte(i)}, NotifyToken: token,
		})
		n.secrets = append(n.secrets, tenants.CallbackSecret{MerchantID: id, Mode: mode, Sealed: []byte{9, 0, byte(i)}})
	}
	return n
}

func issue(tb testing.TB, id tenants.MerchantID, mode tenants.Mode) tenants.Key {
	tb.Helper()
	issued, err := tenants.IssueKey(rand.Reader, tenants.KeySpec{MerchantID: id, Mode: mode}, epoch)
	if err != nil {
		tb.Fatal(err)
	}
	return issued.Key
}

// by is an audit entry.
func by(action string) store.Audit {
	return store.Audit{Operator: "ops-1", Action: action, Detail: "because", At: epoch}
}

func (n *tenant) store(tb testing.TB, s *store.Store) *tenant {
	tb.Helper()
	if err := s.CreateMerchant(tb.Context(), by("create"), n.merchant, n.keys, n.secrets); err != nil {
		tb.Fatal(err)
	}
	for i, c := range n.connections {
		stored, err := s.PutConnection(tb.Context(), by("connect"), c)
		if err != nil {
			tb.Fatal(err)
		}
		n.connections[i] = stored
	}
	return n
}

func account(tb testing.TB, s *store.Store, id tenants.MerchantID) *tenants.Account {
	tb.Helper()
	a, err := s.AccountByID(tb.Context(), id)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

// TestAccountRoundTrip compares with the account that tenants makes of the same
// records in memory.
func TestAccountRoundTrip(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	n, other := newTenant(t).store(t, s), newTenant(t).store(t, s)
	want := n.merchant
	want.Version = 4 // stored, raised with it, and by each connection
	expected, err := tenants.NewAccount(want, n.keys, n.connections, n.secrets)
	if err != nil {
		t.Fatal(err)
	}
	for how, read := range map[string]func() (*tenants.Account, error){
		"by id":          func() (*tenants.Account, error) { return s.AccountByID(t.Context(), n.merchant.ID) },
		"by key":         func() (*tenants.Account, error) { return s.AccountByKey(t.Context(), n.keys[0].ID) },
		"by another key": func() (*tenants.Account, error) { return s.AccountByKey(t.Context(), n.keys[1].ID) },
		"by notify token": func() (*tenants.Account, error) {
			return s.AccountByNotifyToken(t.Context(), "payments", n.connections[0].NotifyToken)
		},
	} {
		got, err := read()
		if err != nil {
			t.Errorf("%s: %v", how, err)
			continue
		}
		if got, want := unpack(got), unpack(expected); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v\nwant %+v", how, got, want)
		}
	}
	if got := account(t, s, other.merchant.ID); len(got.Keys()) != 2 || reflect.DeepEqual(unpack(got), unpack(expected)) {
		t.Error("merchants are mixed up")
	}
}

// unpack makes of an account what can be compared: its packed form keeps an
// order that means nothing.
func unpack(a *tenants.Account) tenant {
	n := tenant{merchant: a.Merchant(), keys: a.Keys(), connections: a.Connections()}
	slices.SortFunc(n.keys, func(a, b tenants.Key) int { return strings.Compare(string(a.ID), string(b.ID)) })
	slices.SortFunc(n.connections, func(a, b tenants.Connection) int { return strings.Compare(string(a.Mode), string(b.Mode)) })
	for _, mode := range []tenants.Mode{tenants.Live, tenants.Test} {
		if secret, ok := a.CallbackSecret(mode); ok {
			n.secrets = append(n.secrets, secret)
		}
	}
	return n
}

func TestAccountsThatAreNotThere(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	n := newTenant(t).store(t, s)
	for how, read := range map[string]func() (*tenants.Account, error){
		"id":    func() (*tenants.Account, error) { return s.AccountByID(t.Context(), "mer_0") },
		"key":   func() (*tenants.Account, error) { return s.AccountByKey(t.Context(), "nobody") },
		"token": func() (*tenants.Account, error) { return s.AccountByNotifyToken(t.Context(), "payments", "nothing") },
		"token of another account": func() (*tenants.Account, error) {
			return s.AccountByNotifyToken(t.Context(), "wallet1", n.connections[0].NotifyToken)
		},
	} {
		if a, err := read(); !errors.Is(err, tenants.ErrNotFound) || a != nil {
			t.Errorf("%s: %v, %v", how, a, err)
		}
	}
	if _, err := s.AccountByKey(t.Context(), "\x00"); err == nil || errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("what the database can't read: %v", err)
	}
}

func TestChangedSince(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	var ids []tenants.MerchantID
	for i := range 20 { // more than there are shards
		n := newTenant(t)
		ids = append(ids, n.merchant.ID)
		audit := by("create")
		audit.At = epoch.Add(time.Duration(i) * time.Second)
		if err := s.CreateMerchant(t.Context(), audit, n.merchant, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, from := range []int{0, 7, 19, 20} {
		changes, err := s.ChangedSince(t.Context(), epoch.Add(time.Duration(from)*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		found := map[tenants.MerchantID]int64{}
		for _, c := range changes {
			found[c.MerchantID] = c.Version
		}
		if len(found) != 20-from || len(changes) != len(found) {
			t.Errorf("since %d: %d changes", from, len(changes))
		}
		for _, id := range ids[from:] {
			if found[id] != 2 {
				t.Errorf("since %d: %s at version %d", from, id, found[id])
			}
		}
	}
	later := by("suspend")
	later.At = epoch.Add(time.Hour)
	if err := s.SetStatus(t.Context(), later, ids[3], tenants.Suspended); err != nil {
		t.Fatal(err)
	}
	changes, err := s.ChangedSince(t.Context(), later.At)
	if err != nil || len(changes) != 1 || changes[0] != (tenants.Change{MerchantID: ids[3], Version: 3}) {
		t.Errorf("%v, %v", changes, err)
	}
}

// TestStoreIsASource has the directory read the store: an account that changed is
// found by what ChangedSince tells.
func TestStoreIsASource(t *testing.T) {
	t.Parallel()
	var _ tenants.Source = fresh(t)
}

// TestThePlatformIsNoMerchant keeps its row for connections alone.
func TestThePlatformIsNoMerchant(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	w := newTenant(t).store(t, s)
	c := w.connections[0]
	c.MerchantID, c.Owner = tenants.Platform, tenants.OwnerPlatform
	var err error
	if c.NotifyToken, err = tenants.NewNotifyToken(rand.Reader); err != nil {
		t.Fatal(err)
	}
	if _, err := s.PutConnection(t.Context(), by("connect"), c); err != nil {
		t.Fatal(err)
	}
	account, err := s.AccountByID(t.Context(), tenants.Platform)
	if err != nil || len(account.Connections()) != 1 {
		t.Fatal(err)
	}
	if list, err := s.Merchants(t.Context(), "", 10); err != nil || len(list) != 1 || list[0].ID != w.merchant.ID {
		t.Errorf("%+v, %v", list, err)
	}
	key, secret, merchant := w.keys[0], w.secrets[0], w.merchant
	key.MerchantID, secret.MerchantID, merchant.ID = tenants.Platform, tenants.Platform, tenants.Platform
	for what, err := range map[string]error{
		"created":        s.CreateMerchant(t.Context(), by("create"), merchant, nil, nil),
		"suspended":      s.SetStatus(t.Context(), by("suspend"), tenants.Platform, tenants.Suspended),
		"moved":          s.SetTier(t.Context(), by("tier"), tenants.Platform, "scale"),
		"given a key":    s.AddKey(t.Context(), by("key"), key),
		"given a next":   s.ReplaceKey(t.Context(), by("key"), key, key),
		"given a secret": s.SetCallbackSecret(t.Context(), by("secret"), secret, account.Version()),
	} {
		if !errors.Is(err, store.ErrNotFound) {
			t.Errorf("it is %s: %v", what, err)
		}
	}
}
