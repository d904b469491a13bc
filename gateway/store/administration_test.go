package store_test

import (
	"crypto/rand"
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/tenants"
)

func key(tb testing.TB, s *store.Store, k tenants.Key) tenants.Key {
	tb.Helper()
	found, ok := account(tb, s, k.MerchantID).Key(k.ID)
	if !ok {
		tb.Fatalf("key %s is not there", k.ID)
	}
	return found
}

// audits are a merchant's audit entries as they were written, each by the test itself.
func audits(tb testing.TB, s *store.Store, id tenants.MerchantID) []store.Audit {
	tb.Helper()
	list, err := s.AuditOf(tb.Context(), store.AuditRange{MerchantID: id, Most: 100})
	if err != nil {
		tb.Fatal(err)
	}
	for i := range list {
		if list[i].From != tenants.Itself || list[i].Times != 1 {
			tb.Errorf("%+v", list[i])
		}
		list[i].ID, list[i].Merchant, list[i].From, list[i].Times = uuid.Nil, "", "", 0
	}
	return list
}

// TestAdministration runs each action on a merchant of its own: it is done, the
// version rises by one, and its audit entry stands beside it. On a merchant that
// is not there nothing is, the entry neither.
func TestAdministration(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	for name, c := range map[string]struct {
		act  func(n *tenant, a store.Audit) error
		done func(a *tenants.Account, n *tenant) bool
	}{
		"set status": {
			func(n *tenant, a store.Audit) error {
				return s.SetStatus(t.Context(), a, n.merchant.ID, tenants.Suspended)
			},
			func(a *tenants.Account, _ *tenant) bool { return a.Merchant().Status == tenants.Suspended },
		},
		"set labels": {
			func(n *tenant, a store.Audit) error {
				return s.SetLabels(t.Context(), a, n.merchant.ID, func(m *tenants.Merchant) error {
					m.Labels = map[string]string{"colour": "#0a5"}
					return nil
				})
			},
			func(a *tenants.Account, _ *tenant) bool { return a.Merchant().Labels["colour"] == "#0a5" },
		},
		"set tier": {
			func(n *tenant, a store.Audit) error { return s.SetTier(t.Context(), a, n.merchant.ID, "growth") },
			func(a *tenants.Account, _ *tenant) bool { return a.Merchant().Tier == "growth" },
		},
		"pause": {
			func(n *tenant, a store.Audit) error {
				return s.SetPause(t.Context(), a, tenants.Pause{MerchantID: n.merchant.ID, What: tenants.PauseTransfers, Reason: "fraud"})
			},
			func(a *tenants.Account, _ *tenant) bool {
				p, paused := a.Paused(tenants.PauseTransfers, "", tenants.Live)
				_, connection := a.Paused(tenants.PauseConnection, "payments", tenants.Live)
				return paused && p.Reason == "fraud" && p.SetBy != "" && !p.SetAt.IsZero() && !connection
			},
		},
		"add key": {
			func(n *tenant, a store.Audit) error {
				n.keys = append(n.keys, issue(t, n.merchant.ID, tenants.Live))
				return s.AddKey(t.Context(), a, n.keys[2])
			},
			func(a *tenants.Account, n *tenant) bool { _, ok := a.Key(n.keys[2].ID); return ok },
		},
		"end key": {
			func(n *tenant, a store.Audit) error {
				return s.EndKey(t.Context(), a, tenants.RevokeKey(n.keys[0], epoch))
			},
			func(a *tenants.Account, n *tenant) bool { k, _ := a.Key(n.keys[0].ID); return !k.Usable(epoch) },
		},
		"rename key": {
			func(n *tenant, a store.Audit) error {
				n.keys[0].Name = "till 7"
				return s.RenameKey(t.Context(), a, n.keys[0])
			},
			func(a *tenants.Account, n *tenant) bool {
				one, _ := a.Key(n.keys[0].ID)
				other, _ := a.Key(n.keys[1].ID)
				return one.Called() == "till 7" && other.Name == ""
			},
		},
		"replace key": {
			func(n *tenant, a store.Audit) error {
				next, retiring, err := tenants.RotateKey(rand.Reader, n.keys[0], epoch, time.Hour)
				if err != nil {
					return err
				}
				n.keys = append(n.keys, next.Key)
				return s.ReplaceKey(t.Context(), a, next.Key, retiring)
			},
			func(a *tenants.Account, n *tenant) bool {
				old, _ := a.Key(n.keys[0].ID)
				_, ok := a.Key(n.keys[2].ID)
				return ok && old.Usable(epoch) && !old.Usable(epoch.Add(time.Hour))
			},
		},
		"put connection": {
			func(n *tenant, a store.Audit) error {
				token, err := tenants.NewNotifyToken(rand.Reader)
				if err != nil {
					return err
				}
				n.connections[0].Provider, n.connections[0].NotifyToken = "wallet1", token
				_, err = s.PutConnection(t.Context(), a, n.connections[0])
				return err
			},
			func(a *tenants.Account, _ *tenant) bool { _, ok := a.Connection(tenants.Live, "wallet1"); return ok },
		},
		"note audit": {
			func(n *tenant, a store.Audit) error { return s.NoteAudit(t.Context(), a, n.merchant.ID) },
			func(*tenants.Account, *tenant) bool { return true },
		},
	} {
		n := newTenant(t).store(t, s)
		version, entries := account(t, s, n.merchant.ID).Version(), len(audits(t, s, n.merchant.ID))
		entry := store.Audit{Operator: "ops-2", Action: name, Detail: "ticket 7", At: epoch.Add(time.Minute)}
		if err := c.act(n, entry); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		a, list := account(t, s, n.merchant.ID), audits(t, s, n.merchant.ID)
		if !c.done(a, n) || a.Version() != version+1 || len(list) != entries+1 || list[0] != entry {
			t.Errorf("%s: done %v, version %d after %d, audit %+v", name, c.done(a, n), a.Version(), version, list[0])
		}

		stranger := newTenant(t)
		if err := c.act(stranger, entry); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s for nobody: %v", name, err)
		}
		if list := audits(t, s, stranger.merchant.ID); len(list) != 0 {
			t.Errorf("%s for nobody: audit %+v", name, list)
		}
	}
}

func TestCreateMerchantIsWhole(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	n := newTenant(t).store(t, s)
	if err := s.CreateMerchant(t.Context(), by("create"), n.merchant, nil, nil); err == nil {
		t.Error("created twice")
	}
	other := newTenant(t)
	other.keys[1].ID = n.keys[1].ID // somebody else's
	if err := s.CreateMerchant(t.Context(), by("create"), other.merchant, other.keys, other.secrets); err == nil {
		t.Error("took another merchant's key")
	}
	if _, err := s.AccountByID(t.Context(), other.merchant.ID); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("half a merchant: %v", err)
	}
	if len(audits(t, s, other.merchant.ID)) != 0 || len(audits(t, s, n.merchant.ID)) != 3 {
		t.Error("audit entries of what failed")
	}
	plain := newTenant(t)
	plain.merchant.Labels = nil
	plain.store(t, s)
	if got := account(t, s, plain.merchant.ID).Merchant().Labels; len(got) != 0 {
		t.Errorf("labels %v", got)
	}
}

func TestAuditEntriesAreComplete(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	n := newTenant(t).store(t, s)
	for _, a := range []store.Audit{
		{Operator: "ops-1", Action: "x"}, {Operator: "ops-1", At: epoch}, {Action: "x", At: epoch},
	} {
		if err := s.SetTier(t.Context(), a, n.merchant.ID, "growth"); err == nil {
			t.Errorf("done under %+v", a)
		}
	}
	if got := account(t, s, n.merchant.ID).Merchant().Tier; got != n.merchant.Tier {
		t.Errorf("tier %s", got)
	}
}

// TestAVersionNeverComesBack: what is known by a version of the credentials of a
// connection that was removed is never taken for those of the next one.
func TestAVersionNeverComesBack(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	c := newTenant(t).store(t, s).connections[0]
	for want := c.Version + 1; want < c.Version+4; want++ {
		pause := tenants.Pause{MerchantID: c.MerchantID, What: tenants.PauseConnection, Provider: c.Provider, Mode: c.Mode, Reason: "leaked"}
		if err := s.SetPause(t.Context(), by("pause"), pause); err != nil {
			t.Fatal(err)
		}
		if err := s.RemoveConnection(t.Context(), by("remove"), c, false); err != nil {
			t.Fatal(err)
		}
		if got, err := s.PutConnection(t.Context(), by("connect"), c); err != nil || got.Version != want {
			t.Errorf("version %d, %v, want %d", got.Version, err, want)
		}
	}
}

// TestAConnectionKeepsItsRouteWhereItsWriteIsTriedAgain has the first write of a connection
// fail as one does that others conflict with.
func TestAConnectionKeepsItsRouteWhereItsWriteIsTriedAgain(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := open(t, url, store.Options{MaxConns: 8})
	if s.Engine() != store.PostgreSQL {
		t.Skip("conflicts are made by a trigger of PostgreSQL's")
	}
	execute(t, url,
		"CREATE SEQUENCE tries", // which a rollback leaves as it is
		`CREATE FUNCTION conflict() RETURNS TRIGGER LANGUAGE plpgsql AS
			$$ BEGIN IF nextval('tries') = 1 THEN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END IF; RETURN NEW; END $$`,
		"CREATE TRIGGER conflict BEFORE INSERT ON connections FOR EACH ROW EXECUTE FUNCTION conflict()",
	)
	n := newTenant(t)
	wanted := n.connections[0]
	stored := n.store(t, s).connections[0]
	if kept, ok := account(t, s, n.merchant.ID).Connection(tenants.Live, "payments"); !ok || stored.NotifyToken != wanted.NotifyToken || kept.NotifyToken != wanted.NotifyToken {
		t.Errorf("stored with the route %q, told %q, want %q", kept.NotifyToken, stored.NotifyToken, wanted.NotifyToken)
	}
}

func TestPutConnectionKeepsItsRoute(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	n := newTenant(t).store(t, s)
	first := n.connections[0]
	changed := first
	changed.Sealed, changed.Owner, changed.NotifyToken, changed.Version = []byte("new"), tenants.OwnerPlatform, "another-route", 77
	for version := int64(2); version <= 3; version++ {
		got, err := s.PutConnection(t.Context(), by("connect"), changed)
		want := changed
		want.Version, want.NotifyToken = version, first.NotifyToken
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v\nwant %+v", got, err, want)
		}
		if stored, ok := account(t, s, n.merchant.ID).Connection(tenants.Live, "payments"); !ok || !reflect.DeepEqual(stored, want) {
			t.Errorf("stored %+v", stored)
		}
	}
	if test, _ := account(t, s, n.merchant.ID).Connection(tenants.Test, "payments"); !reflect.DeepEqual(test, n.connections[1]) {
		t.Errorf("the other mode's: %+v", test)
	}
	before := account(t, s, n.merchant.ID).Connections()
	if _, err := s.AddConnection(t.Context(), by("connect"), changed); !errors.Is(err, store.ErrConnected) || !reflect.DeepEqual(account(t, s, n.merchant.ID).Connections(), before) {
		t.Errorf("one is added where there is one: %v", err)
	}
	other := n.connections[1]
	other.Provider, other.NotifyToken = "wallet2", "a-route-of-its-own"
	if got, err := s.AddConnection(t.Context(), by("connect"), other); err != nil || got.Version != 1 {
		t.Errorf("added %+v, %v", got, err)
	}
	stolen := newTenant(t).store(t, s).connections[0]
	stolen.Provider, stolen.NotifyToken = "wallet1", first.NotifyToken
	if got, err := s.PutConnection(t.Context(), by("connect"), stolen); err == nil || got.NotifyToken != "" {
		t.Errorf("two merchants have one route: %+v, %v", got, err)
	}
}

// TestACallbackSecretIsSetAtTheVersionItWasReadAt lets a second operator write
// what was read before a first one did: nothing of the first one's may be lost.
func TestACallbackSecretIsSetAtTheVersionItWasReadAt(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	n := newTenant(t).store(t, s)
	read := account(t, s, n.merchant.ID)
	first, _ := read.CallbackSecret(tenants.Live)
	second := first
	first.Next, first.NextSigns, first.URL = []byte("next"), true, "https://shop.example.com/cb"
	second.Next = []byte("another")
	if err := s.SetCallbackSecret(t.Context(), by("rotate"), first, read.Version()); err != nil {
		t.Fatal(err)
	}
	entries := len(audits(t, s, n.merchant.ID))
	if err := s.SetCallbackSecret(t.Context(), by("rotate"), second, read.Version()); !errors.Is(err, store.ErrConflict) {
		t.Errorf("over the first one's: %v", err)
	}
	now := account(t, s, n.merchant.ID)
	if got, _ := now.CallbackSecret(tenants.Live); !reflect.DeepEqual(got, first) || now.Version() != read.Version()+1 {
		t.Errorf("stored %+v at version %d, want %+v", got, now.Version(), first)
	}
	if got := len(audits(t, s, n.merchant.ID)); got != entries {
		t.Errorf("%d audit entries of what was refused", got-entries)
	}
	stranger := newTenant(t).secrets[0]
	if err := s.SetCallbackSecret(t.Context(), by("rotate"), stranger, 1); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("for nobody: %v", err)
	}
}

// TestEndsAreForEver writes ends that were reckoned from an old copy of the key:
// none may bring it to life again.
func TestEndsAreForEver(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	n := newTenant(t).store(t, s)
	k := n.keys[0]
	ends := func(expires, revoked time.Duration) tenants.Key {
		end := k
		if e := epoch.Add(expires); expires > 0 {
			end.ExpiresAt = &e
		}
		if r := epoch.Add(revoked); revoked > 0 {
			end.RevokedAt = &r
		}
		return end
	}
	for _, step := range []struct {
		what             string
		end, want        tenants.Key
		refused          bool
		expires, revoked time.Duration
	}{
		{what: "an overlap", end: ends(time.Hour, 0), want: ends(time.Hour, 0)},
		{what: "a longer one", end: ends(2*time.Hour, 0), want: ends(time.Hour, 0)},
		{what: "none", end: ends(0, 0), want: ends(time.Hour, 0)},
		{what: "a shorter one", end: ends(time.Minute, 0), want: ends(time.Minute, 0)},
		{what: "a revocation", end: ends(0, 5*time.Second), want: ends(time.Minute, 5*time.Second)},
		{what: "a second revocation", end: ends(0, 9*time.Second), want: ends(time.Minute, 5*time.Second)},
		{what: "an overlap of what was revoked", end: ends(time.Second, 0), want: ends(time.Minute, 5*time.Second), refused: true},
	} {
		err := s.EndKey(t.Context(), by("end"), step.end)
		if step.refused != errors.Is(err, store.ErrNotFound) || !step.refused && err != nil {
			t.Errorf("%s: %v", step.what, err)
		}
		if got := key(t, s, k); !reflect.DeepEqual(got, step.want) {
			t.Errorf("%s: ends %v, %v", step.what, got.ExpiresAt, got.RevokedAt)
		}
	}
}

func TestRotationOfARevokedKey(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	n := newTenant(t).store(t, s)
	next, retiring, err := tenants.RotateKey(rand.Reader, n.keys[0], epoch, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.EndKey(t.Context(), by("revoke"), tenants.RevokeKey(n.keys[0], epoch)); err != nil {
		t.Fatal(err)
	}
	if err := s.ReplaceKey(t.Context(), by("rotate"), next.Key, retiring); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("rotated what was revoked meanwhile: %v", err)
	}
	if _, ok := account(t, s, n.merchant.ID).Key(next.Key.ID); ok {
		t.Error("a revoked key has a successor")
	}
}

// TestAdministrationAtOnce has many operators change one merchant: no change is
// lost, and no version comes twice.
func TestAdministrationAtOnce(t *testing.T) {
	t.Parallel()
	s := open(t, database(t), store.Options{MaxConns: 8})
	n := newTenant(t).store(t, s)
	version := account(t, s, n.merchant.ID).Version()
	var wait sync.WaitGroup
	for range 16 {
		wait.Go(func() {
			if err := s.AddKey(t.Context(), by("add key"), issue(t, n.merchant.ID, tenants.Live)); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	a := account(t, s, n.merchant.ID)
	if len(a.Keys()) != 18 || a.Version() != version+16 || len(audits(t, s, n.merchant.ID)) != 3+16 {
		t.Errorf("%d keys, version %d after %d, %d entries", len(a.Keys()), a.Version(), version, len(audits(t, s, n.merchant.ID)))
	}
}

func TestMerchants(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	want := map[tenants.MerchantID]tenants.Merchant{}
	for range 5 {
		m := newTenant(t).store(t, s).merchant
		m.Version = 4
		want[m.ID] = m
	}
	var after tenants.MerchantID
	for len(want) > 0 {
		page, err := s.Merchants(t.Context(), after, 2)
		if err != nil || len(page) == 0 || len(page) > 2 {
			t.Fatal(page, err)
		}
		for _, m := range page {
			if m.ID <= after || !reflect.DeepEqual(m, want[m.ID]) {
				t.Errorf("%+v after %s", m, after)
			}
			delete(want, m.ID)
			after = m.ID
		}
	}
	if page, err := s.Merchants(t.Context(), after, 2); err != nil || len(page) != 0 {
		t.Errorf("after the last: %v, %v", page, err)
	}
	if list, err := s.AuditOf(t.Context(), store.AuditRange{MerchantID: after, Most: 2}); err != nil || len(list) != 2 {
		t.Errorf("audit: %v, %v", list, err)
	}
}
