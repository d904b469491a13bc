package console_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// sealedWorld has merchants with connections in both modes, and one that
// rotates its callback secret. A merchant has four sealed values.
func sealedWorld(t *testing.T, merchants int) (*world, []string) {
	t.Helper()
	w := newWorld(t)
	ids := make([]string, merchants)
	for i := range ids {
		ids[i] = w.merchant().MerchantID
		for _, mode := range []string{"live", "test"} {
			spec := adminapi.ConnectionSpec{Mode: mode, Credentials: fmt.Appendf(nil, `{"api_key":"k-%s-%s"}`, ids[i], mode)}
			spec.Merchant, spec.Provider = ids[i], "bank"
			if _, err := adminapi.SetConnection.Call(t.Context(), w, spec); err != nil {
				t.Fatal(err)
			}
		}
	}
	return w, ids
}

func (w *world) rotate() tenants.KeyNumber {
	w.Helper()
	var next tenants.KeyNumber
	if err := tenants.EditKeysetFile(w.keyset, func(k *tenants.Keyset) (err error) { next, err = k.Rotate(); return err }); err != nil {
		w.Fatal(err)
	}
	return next
}

// uses is how many values each key has sealed.
func (w *world) uses() map[tenants.KeyNumber]int {
	w.Helper()
	keys, err := w.Keyset(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	uses := map[tenants.KeyNumber]int{}
	for _, key := range keys {
		uses[tenants.KeyNumber(key.Number)] = key.Values
	}
	return uses
}

// opensAll holds that another replica opens everything of the merchants.
func (w *world) opensAll(replica *tenants.Vault, ids []string) {
	w.Helper()
	for _, id := range ids {
		account, err := w.store.AccountByID(w.Context(), tenants.MerchantID(id))
		if err != nil {
			w.Fatal(err)
		}
		for _, c := range account.Connections() {
			if got, err := replica.OpenCredentials(c); err != nil || string(got) != fmt.Sprintf(`{"api_key":"k-%s-%s"}`, id, c.Mode) {
				w.Errorf("%s: %s, %v", id, got, err)
			}
		}
		for _, mode := range []tenants.Mode{tenants.Live, tenants.Test} {
			secret, _ := account.CallbackSecret(mode)
			if got, err := replica.OpenCallbackSecret(secret); err != nil || got.IsZero() {
				w.Errorf("%s: callback secret: %v", id, err)
			}
		}
	}
}

// TestAKeyRotatesWhileOthersWork goes the whole way, with a second replica that
// opens and seals all the time: rotate, seal anew, remove the old key.
func TestAKeyRotatesWhileOthersWork(t *testing.T) {
	t.Parallel()
	const merchants = 5
	w, ids := sealedWorld(t, merchants)
	replica, err := tenants.OpenKeysetFile(w.keyset)
	if err != nil {
		t.Fatal(err)
	}
	first := w.vault.Keys()[0].Number
	if got := w.uses(); len(got) != 1 || got[first] != 4*merchants {
		t.Fatalf("uses %v, want %d of %d alone", got, 4*merchants, first)
	}
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for i, id := range ids {
		group.Go(func() {
			for ctx.Err() == nil {
				w.opensAll(replica, ids[i:i+1])
				// The other replica's operators go on setting connections, too.
				account, err := w.store.AccountByID(t.Context(), tenants.MerchantID(id))
				if err != nil {
					t.Error(err)
					return
				}
				c, _ := account.Connection(tenants.Live, "bank")
				if c.Sealed, err = replica.SealCredentials(c.MerchantID, c.Mode, c.Provider, fmt.Appendf(nil, `{"api_key":"k-%s-live"}`, id)); err == nil {
					_, err = w.store.PutConnection(t.Context(), store.Audit{Operator: "budi", Action: "connection.set", At: account.Merchant().CreatedAt}, c)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	second := w.rotate()
	done, err := w.Reseal(t.Context())
	if err != nil || done.Unopened != nil {
		t.Errorf("resealed %+v, %v", done, err)
	}
	stop()
	group.Wait()
	if got := w.uses(); got[first] != 0 || got[second] != 4*merchants || len(got) != 2 {
		t.Errorf("uses %v, want %d of %d alone", got, 4*merchants, second)
	}
	if again, err := w.Reseal(t.Context()); err != nil || again.Resealed+again.Replaced != 0 {
		t.Errorf("there was nothing left to do: %+v, %v", again, err)
	}
	if err := tenants.EditKeysetFile(w.keyset, func(k *tenants.Keyset) error { return k.Remove(first) }); err != nil {
		t.Fatal(err)
	}
	fresh, err := tenants.OpenKeysetFile(w.keyset)
	if err != nil {
		t.Fatal(err)
	}
	w.opensAll(fresh, ids)
}

// TestAnOperatorsTokenOutlivesItsKey: the MAC of its row is made anew with the rest.
func TestAnOperatorsTokenOutlivesItsKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.operator("sari", console.RoleRead, "")
	old := w.vault.Keys()[0].Number
	w.rotate()
	if n := w.uses()[old]; n != 1 {
		t.Errorf("the old key has sealed %d values, want the token's MAC", n)
	}
	if done, err := w.Reseal(t.Context()); err != nil || done.Resealed != 1 {
		t.Errorf("resealed %+v, %v", done, err)
	}
	if err := tenants.EditKeysetFile(w.keyset, func(k *tenants.Keyset) error { return k.Remove(old) }); err != nil {
		t.Fatal(err)
	}
	if n := w.uses()[old]; n != 0 || !w.comesIn(made.Token) {
		t.Errorf("the old key has sealed %d values; the token comes in: %t", n, w.comesIn(made.Token))
	}
}

func TestResealingIsOnTheRecord(t *testing.T) {
	t.Parallel()
	w, ids := sealedWorld(t, 2)
	if _, err := adminapi.SetConnection.Call(t.Context(), w, adminapi.ConnectionSpec{Merchant: "platform", Provider: "pulsa", Mode: "live", Credentials: []byte(`{"username":"u"}`)}); err != nil {
		t.Fatal(err)
	}
	if _, err := adminapi.ChangeCallbackSecret.Call(t.Context(), w, adminapi.SecretChange{Merchant: ids[0], Mode: "live", Action: "rotate"}); err != nil {
		t.Fatal(err)
	}
	before := w.account(ids[0])
	connection, _ := before.Connection(tenants.Live, "bank")
	second := w.rotate()
	done, err := w.Reseal(t.Context())
	if err != nil || done.Resealed != 9 || done.Replaced != 0 || done.Unopened != nil {
		t.Errorf("resealed %+v, %v, want 9 rows", done, err)
	}
	if got := w.uses(); got[second] != 10 {
		t.Errorf("uses %v, want 10 of %d", got, second)
	}
	for id, want := range map[string]string{
		ids[0]: "2 connections, 2 callback secrets", ids[1]: "2 connections, 2 callback secrets", "platform": "1 connections, 0 callback secrets",
	} {
		audit, err := adminapi.ListAudit.Call(t.Context(), w, adminapi.AuditFilter{Merchant: id})
		if err != nil || audit[0].Operator != "ayu" || audit[0].Action != "keyset.reseal" || audit[0].Detail != want {
			t.Errorf("%s: audit %+v, %v", id, audit, err)
		}
	}
	// Replicas must read the account again; the credentials are the same ones.
	after := w.account(ids[0])
	again, _ := after.Connection(tenants.Live, "bank")
	if after.Version() <= before.Version() || again.Version != connection.Version || again.NotifyToken != connection.NotifyToken {
		t.Errorf("version %d after %d; connection %+v after %+v", after.Version(), before.Version(), again, connection)
	}
	if secret, _ := after.CallbackSecret(tenants.Live); tenants.SealedBy(secret.Next) != second {
		t.Error("the next callback secret was not sealed anew")
	}
}

// TestWhatNothingOpensIsNamed and keeps nothing else from being sealed anew.
func TestWhatNothingOpensIsNamed(t *testing.T) {
	t.Parallel()
	w, ids := sealedWorld(t, 2)
	first := w.vault.Keys()[0].Number
	lost, _ := w.account(ids[0]).Connection(tenants.Test, "bank")
	lost.Sealed = slices.Concat([]byte{1, 0, 0, 0, 9}, lost.Sealed[5:])
	if _, err := w.store.PutConnection(t.Context(), store.Audit{Operator: "ayu", Action: "x", At: w.account(ids[0]).Merchant().CreatedAt}, lost); err != nil {
		t.Fatal(err)
	}
	w.rotate()
	done, err := w.Reseal(t.Context())
	want := []adminapi.SealedPlace{{MerchantID: ids[0], Mode: "test", Provider: "bank"}}
	if err != nil || done.Resealed != 7 || !slices.Equal(done.Unopened, want) {
		t.Errorf("resealed %+v, %v", done, err)
	}
	keys, err := w.Keyset(t.Context())
	if err != nil || len(keys) != 3 || keys[0].Number != uint32(first) || !keys[1].Primary || keys[2] != (adminapi.KeyUse{Number: 9, Missing: true, State: "missing", Values: 1}) {
		t.Errorf("keys %+v, %v", keys, err)
	}
	if text := fmt.Sprint(keys, done) + w.logs.String(); strings.Contains(text, "k-"+ids[0]) {
		t.Errorf("a secret is told: %s", text)
	}
}

// TestAllAccountsAreReached: more of them than one request looks at.
func TestAllAccountsAreReached(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const merchants = 130
	for range merchants {
		w.merchant()
	}
	second := w.rotate()
	if done, err := w.Reseal(t.Context()); err != nil || done.Resealed != 2*merchants {
		t.Errorf("resealed %+v, %v, want %d", done, err, 2*merchants)
	}
	if got := w.uses(); got[second] != 2*merchants {
		t.Errorf("uses %v, want %d of %d", got, 2*merchants, second)
	}
}

// TestNothingIsStoredWithoutTheKeyset: what an older key sealed could be lost, so
// that nothing is sealed while nobody knows which key is the newest.
func TestNothingIsStoredWithoutTheKeyset(t *testing.T) {
	t.Parallel()
	w, ids := sealedWorld(t, 1)
	before := w.account(ids[0])
	merchants, err := adminapi.ListMerchants.Call(t.Context(), w, adminapi.MerchantFilter{After: "", Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	w.rotate()
	w.vault.Keys() // learns of it
	if err := os.Remove(w.keyset); err != nil {
		t.Fatal(err)
	}
	for name, does := range map[string]func() error{
		"connection": func() error {
			_, err := adminapi.SetConnection.Call(t.Context(), w, adminapi.ConnectionSpec{Merchant: ids[0], Provider: "bank", Mode: "live", Credentials: []byte(`{"api_key":"k-other"}`)})
			return err
		},
		"secret": func() error {
			_, err := adminapi.ChangeCallbackSecret.Call(t.Context(), w, adminapi.SecretChange{Merchant: ids[0], Mode: "live", Action: "rotate"})
			return err
		},
		"merchant": func() error {
			_, err := adminapi.CreateMerchant.Call(t.Context(), w, adminapi.NewMerchant{Name: "Toko", Tier: "starter"})
			return err
		},
		"reseal": func() error { _, err := w.Reseal(t.Context()); return err },
	} {
		says := "Nothing was stored."
		if name == "reseal" {
			says = "stays so"
		}
		f := w.refused(does(), http.StatusInternalServerError, "")
		if f.Code != fault.Internal || !strings.Contains(f.Message, "keyset can't be read") || !strings.Contains(f.Message, says) || strings.Contains(f.Message, w.keyset) {
			t.Errorf("%s: %s %q", name, f.Code, f.Message)
		}
	}
	if after := w.account(ids[0]); after.Version() != before.Version() || !strings.Contains(w.logs.String(), w.keyset) {
		t.Errorf("version %d after %d; log %s", after.Version(), before.Version(), w.logs)
	}
	if now, err := adminapi.ListMerchants.Call(t.Context(), w, adminapi.MerchantFilter{After: "", Limit: 100}); err != nil || len(now.Merchants) != len(merchants.Merchants) {
		t.Errorf("merchants %+v, %v", now, err)
	}
	w.opensAll(w.vault, ids) // and what is there is read all the time
}
