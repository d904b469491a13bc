package tenants

import (
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// merchantBudget is what a merchant may cost a replica's memory, everything counted.
const merchantBudget = 2048

// typicalTenant has two keys, two connections whose credentials are as long as real ones (a key of 72 characters and a
// token of 40) and two callback secrets.
func typicalTenant(t testing.TB, v *Vault) *tenant {
	n := newTenant(t)
	n.connect(t, Test, "payments")
	credentials := fmt.Appendf(nil, `{"api_key":%q,"callback_token":%q}`, strings.Repeat("k", 72), strings.Repeat("t", 40))
	for i, c := range n.conns {
		sealed, err := v.SealCredentials(c.MerchantID, c.Mode, c.Provider, credentials)
		if err != nil {
			t.Fatal(err)
		}
		n.conns[i].Sealed = sealed
		plain, err := NewCallbackSecret(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		secret, err := v.SealCallbackSecret(c.MerchantID, c.Mode, plain)
		if err != nil {
			t.Fatal(err)
		}
		n.secrets = append(n.secrets, secret)
	}
	return n
}

func testVault(t testing.TB) *Vault {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keyset.json")
	if err := CreateKeysetFile(path); err != nil {
		t.Fatal(err)
	}
	v, err := OpenKeysetFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// mintSource makes up merchants as they are asked for: the n-th one is the template under names of its own.
type mintSource struct {
	*memorySource
	t        testing.TB
	template *tenant
}

func mintKeyID(n, i int) KeyID { return KeyID(fmt.Sprintf("%015d%d", n, i)) }

func mintToken(n, i int) NotifyToken { return NotifyToken(fmt.Sprintf("%041d%d0", n, i)) }

func (s mintSource) AccountByKey(_ context.Context, id KeyID) (*Account, error) {
	n, err := strconv.Atoi(string(id[:keyIDLen-1]))
	if err != nil {
		return nil, ErrNotFound
	}
	copied := *s.template
	copied.merchant.ID = MerchantID(fmt.Sprintf("mer_%036d", n))
	copied.keys, copied.conns, copied.secrets = slices.Clone(copied.keys), slices.Clone(copied.conns), slices.Clone(copied.secrets)
	for i := range copied.keys {
		copied.keys[i].ID, copied.keys[i].MerchantID = mintKeyID(n, i), copied.merchant.ID
	}
	for i := range copied.conns {
		copied.conns[i].NotifyToken, copied.conns[i].MerchantID = mintToken(n, i), copied.merchant.ID
	}
	for i := range copied.secrets {
		copied.secrets[i].MerchantID = copied.merchant.ID
	}
	return copied.account(s.t), nil
}

func (s mintSource) AccountByNotifyToken(ctx context.Context, _ Provider, token NotifyToken) (*Account, error) {
	return s.AccountByKey(ctx, KeyID(token[len(token)-2-(keyIDLen-1):]))
}

// warm makes the directory know n merchants by both keys and both routes.
func warm(t testing.TB, d *Directory, n int) {
	t.Helper()
	ctx, secret := t.Context(), strings.Repeat("0", secretLen)
	for i := range n {
		for j, prefix := range []string{livePrefix, testPrefix} {
			text := prefix + string(mintKeyID(i, j)) + "_" + secret
			if _, _, err := d.keyRecord(ctx, epoch, text+checksum(text)); err != nil {
				t.Fatal(err)
			}
			if _, _, err := d.ByNotifyToken(ctx, epoch, "payments", mintToken(i, j)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestMemoryPerMerchant runs alone, for it reads the memory of the whole process.
func TestMemoryPerMerchant(t *testing.T) { //nolint:paralleltest // see above
	if testing.Short() || raceEnabled {
		t.Skip("makes 100,000 merchants")
	}
	const merchants = 100_000
	source := mintSource{memorySource: newSource(), t: t, template: typicalTenant(t, testVault(t))}
	before := liveHeap()
	d := newTestDirectory(source)
	warm(t, d, merchants)
	each := (liveHeap() - before) / merchants
	t.Logf("%d bytes a merchant", each)
	if each > merchantBudget {
		t.Errorf("a merchant takes %d bytes, the budget is %d", each, merchantBudget)
	}
	if got := d.accounts.EstimatedSize(); got != merchants {
		t.Errorf("%d accounts in memory, want %d", got, merchants)
	}
	runtime.KeepAlive(d)
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
