package tenants

import (
	"context"
	"crypto/rand"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestAuthenticate(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	source := newSource(n.account(t), newTenant(t).account(t))
	d := newTestDirectory(source)
	for i, mode := range []Mode{Live, Test} {
		for range 3 {
			got, err := d.Authenticate(t.Context(), epoch, n.plain[i], anywhere)
			if err != nil {
				t.Fatal(err)
			}
			if got.Account.ID() != n.merchant.ID || got.Key.ID != n.keys[i].ID || got.Mode != mode {
				t.Errorf("identity = %s, %s, %s", got.Account.ID(), got.Key.ID, got.Mode)
			}
		}
	}
	if reads, _ := source.counts(); reads != 2 {
		t.Errorf("%d reads, want one for each key", reads)
	}
}

func TestAuthenticateLeavesTheStatusToItsCaller(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	n.merchant.Status = Suspended
	got, err := newTestDirectory(newSource(n.account(t))).Authenticate(t.Context(), epoch, n.plain[0], anywhere)
	if err != nil || got.Account.Merchant().Status != Suspended {
		t.Errorf("Authenticate = %v, %v", got, err)
	}
}

// wrongSecret is a well-formed key with the id of another and a secret of its own.
func wrongSecret(key string) string {
	text := key[:idEnd+1] + strings.Repeat("x", secretLen)
	return text + checksum(text)
}

// otherMode is the same key with the other mode's prefix and a right checksum.
func otherMode(key string) string {
	text := testPrefix + key[len(livePrefix):keyLen-checksumLen]
	return text + checksum(text)
}

func TestAuthenticateRefusesAllInOneWay(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	n.issue(t, KeySpec{Mode: Live})
	n.issue(t, KeySpec{Mode: Live})
	n.issue(t, KeySpec{Mode: Live})
	n.keys[4].Mode = Test // a record that contradicts its key
	n.keys[2] = RevokeKey(n.keys[2], epoch)
	_, n.keys[3], _ = RotateKey(rand.Reader, n.keys[3], epoch, time.Hour)
	unknown, _, _ := mustKey(t, Live)
	d := newTestDirectory(newSource(n.account(t)))
	noted := map[KeyID]int{}
	d.NoteRefusals(func(id Identity, _ netip.Addr, why error) {
		if errors.Is(why, ErrAuthFailed) {
			noted[id.Key.ID]++
		}
	})
	cases := map[string]string{
		"empty":        "",
		"malformed":    "secret",
		"long":         strings.Repeat(n.plain[0], 1000),
		"mistyped":     n.plain[0][:keyLen-7] + "!" + n.plain[0][keyLen-6:],
		"unknown":      unknown,
		"wrong secret": wrongSecret(n.plain[0]),
		"wrong mode":   otherMode(n.plain[0]),
		"revoked":      n.plain[2],
		"expired":      n.plain[3],
		"contradicted": n.plain[4],
	}
	for name, key := range cases {
		for _, addr := range []netip.Addr{anywhere, {}} {
			got, err := d.Authenticate(t.Context(), epoch.Add(time.Hour), key, addr)
			if err != ErrAuthFailed || got.Account != nil { //nolint:errorlint // the very same error, unwrapped
				t.Errorf("%s: %v, %v; want ErrAuthFailed itself", name, got, err)
			}
		}
	}
	if len(noted) != 2 || noted[n.keys[2].ID] != 2 || noted[n.keys[3].ID] != 2 {
		t.Errorf("noted are %v, want each refusal of the revoked and of the expired key", noted)
	}
	if _, err := d.Authenticate(t.Context(), epoch.Add(time.Hour-1), n.plain[3], anywhere); err != nil {
		t.Errorf("a rotated key within its overlap: %v", err)
	}
}

func TestAuthenticateTellsAWrongAddressOnlyToTheRightKey(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	n.issue(t, KeySpec{Mode: Live, IPs: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}})
	d := newTestDirectory(newSource(n.account(t)))
	var noted []string
	d.NoteRefusals(func(id Identity, addr netip.Addr, why error) {
		noted = append(noted, string(id.Key.ID)+" "+addr.String()+" "+why.Error())
	})
	got, err := d.Authenticate(t.Context(), epoch, n.plain[2], anywhere)
	if !errors.Is(err, ErrAddress) || got.Key.ID != n.keys[2].ID {
		t.Errorf("Authenticate = %v, %v; want the identity and ErrAddress", got.Key.ID, err)
	}
	if _, err := d.Authenticate(t.Context(), epoch, wrongSecret(n.plain[2]), anywhere); !errors.Is(err, ErrAuthFailed) {
		t.Errorf("wrong secret from a wrong address: %v, want ErrAuthFailed", err)
	}
	if _, err := d.Authenticate(t.Context(), epoch, n.plain[2], netip.MustParseAddr("198.51.100.9")); err != nil {
		t.Errorf("from the right address: %v", err)
	}
	if want := []string{string(n.keys[2].ID) + " " + anywhere.String() + " " + ErrAddress.Error()}; !slices.Equal(noted, want) {
		t.Errorf("noted are %q, want the refusal of the right key alone, %q", noted, want)
	}
}

func TestUnknownKeysAreRememberedShortly(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	source := newSource()
	d := newTestDirectory(source)
	for range 5 {
		if _, err := d.Authenticate(t.Context(), epoch.Add(missLife-1), n.plain[0], anywhere); !errors.Is(err, ErrAuthFailed) {
			t.Fatal(err)
		}
	}
	if reads, _ := source.counts(); reads != 1 {
		t.Errorf("%d reads for one unknown key, want 1", reads)
	}
	source.put(n.account(t))
	if _, err := d.Authenticate(t.Context(), epoch.Add(2*missLife-1), n.plain[0], anywhere); err != nil {
		t.Errorf("a key created meanwhile: %v", err)
	}
}

func TestForgedKeysCantFillTheMemory(t *testing.T) {
	t.Parallel()
	d := newTestDirectory(newSource())
	for i := range 2 * maxMisses {
		text := livePrefix + string(mintKeyID(i, 0)) + "_" + strings.Repeat("0", secretLen)
		if _, _, err := d.keyRecord(t.Context(), epoch, text+checksum(text)); !errors.Is(err, ErrNotFound) {
			t.Fatal(err)
		}
	}
	d.keys.missed.CleanUp()
	if got := d.keys.missed.EstimatedSize(); got > maxMisses {
		t.Errorf("%d misses remembered, the bound is %d", got, maxMisses)
	}
	if got := d.keys.found.EstimatedSize(); got != 0 {
		t.Errorf("%d keys taken for found", got)
	}
}

func TestSourceFailureIsNotTheCallersFault(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	source := newSource(n.account(t))
	d := newTestDirectory(source)
	down := errors.New("connection refused")
	source.setFail(down)
	if _, err := d.Authenticate(t.Context(), epoch, n.plain[0], anywhere); !errors.Is(err, down) || errors.Is(err, ErrAuthFailed) {
		t.Errorf("Authenticate = %v, want the source's error", err)
	}
	if _, err := d.Account(t.Context(), n.merchant.ID); !errors.Is(err, down) {
		t.Errorf("Account = %v, want the source's error", err)
	}
	source.setFail(nil)
	if _, err := d.Authenticate(t.Context(), epoch, n.plain[0], anywhere); err != nil {
		t.Errorf("after the failure: %v", err)
	}
	source.setFail(down)
	if _, err := d.Authenticate(t.Context(), epoch, n.plain[0], anywhere); err != nil {
		t.Errorf("from memory, while the source fails: %v", err)
	}
}

func TestOneReadHoweverManyWait(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	synctest.Test(t, func(t *testing.T) {
		source := newSource(n.account(t))
		release := make(chan struct{})
		source.before = func(context.Context) error { <-release; return nil }
		d := newTestDirectory(source)
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				var err error
				switch i % 2 {
				case 0:
					_, err = d.Authenticate(t.Context(), time.Now(), n.plain[0], anywhere)
				default:
					_, err = d.Account(t.Context(), n.merchant.ID)
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if reads, _ := source.counts(); reads != 2 {
			t.Errorf("%d reads under way, want one by key and one by id", reads)
		}
		close(release)
		wg.Wait()
		if reads, _ := source.counts(); reads > 3 {
			t.Errorf("%d reads in all", reads)
		}
	})
}

func TestACallerWhoHangsUpHurtsNobody(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	synctest.Test(t, func(t *testing.T) {
		source := newSource(n.account(t))
		release := make(chan struct{})
		source.before = func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-release:
				return nil
			}
		}
		d := newTestDirectory(source)
		first, hangUp := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := d.Authenticate(first, time.Now(), n.plain[0], anywhere); !errors.Is(err, context.Canceled) {
				t.Errorf("who hung up: %v, want context.Canceled", err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if _, err := d.Authenticate(t.Context(), time.Now(), n.plain[0], anywhere); err != nil {
				t.Errorf("who waited: %v", err)
			}
		})
		synctest.Wait()
		hangUp()
		synctest.Wait()
		close(release)
		wg.Wait()
	})
}

func TestASlowSourceIsGivenUp(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	synctest.Test(t, func(t *testing.T) {
		source := newSource(n.account(t))
		source.before = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		begin := time.Now()
		_, err := newTestDirectory(source).Authenticate(t.Context(), begin, n.plain[0], anywhere)
		if took := time.Since(begin); !errors.Is(err, context.DeadlineExceeded) || took != loadTimeout {
			t.Errorf("gave up after %v with %v, want %v and a deadline", took, err, loadTimeout)
		}
	})
}

func TestByNotifyToken(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	source := newSource(n.account(t), newTenant(t).account(t))
	d := newTestDirectory(source)
	want := n.conns[0]
	if d.RemembersRoute("payments", want.NotifyToken) || !d.RemembersRoute("payments", "short") {
		t.Error("only a malformed token can be judged before any was looked up")
	}
	for range 3 {
		account, conn, err := d.ByNotifyToken(t.Context(), epoch, "payments", want.NotifyToken)
		if err != nil || account.ID() != n.merchant.ID || conn.Mode != Live || conn.NotifyToken != want.NotifyToken {
			t.Fatalf("ByNotifyToken = %v, %v, %v", account, conn, err)
		}
	}
	if reads, _ := source.counts(); reads != 1 {
		t.Errorf("%d reads, want 1", reads)
	}
	if !d.RemembersRoute("payments", want.NotifyToken) || d.RemembersRoute("wallet2", want.NotifyToken) {
		t.Error("what was looked up is remembered of its provider")
	}
	stranger, err := NewNotifyToken(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, _, err := d.ByNotifyToken(t.Context(), epoch, "payments", stranger); !errors.Is(err, ErrNotFound) {
			t.Errorf("unknown token: %v, want ErrNotFound", err)
		}
		if _, _, err := d.ByNotifyToken(t.Context(), epoch, "wallet2", want.NotifyToken); !errors.Is(err, ErrNotFound) {
			t.Errorf("another provider's token: %v, want ErrNotFound", err)
		}
		if _, _, err := d.ByNotifyToken(t.Context(), epoch, "payments", "short"); !errors.Is(err, ErrNotFound) {
			t.Errorf("malformed token: %v, want ErrNotFound", err)
		}
	}
	if reads, _ := source.counts(); reads != 3 {
		t.Errorf("%d reads, want one for each well-formed name", reads)
	}
	source.setFail(errors.New("down"))
	if _, _, err := d.ByNotifyToken(t.Context(), epoch, "payments", want.NotifyToken); err != nil {
		t.Errorf("from memory: %v", err)
	}
}

func TestAReplacedRouteStopsAnswering(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	source := newSource(n.account(t))
	d := newTestDirectory(source)
	old := n.conns[0].NotifyToken
	if _, _, err := d.ByNotifyToken(t.Context(), epoch, "payments", old); err != nil {
		t.Fatal(err)
	}
	n.conns = nil
	n.connect(t, Live, "payments")
	n.merchant.Version++
	source.put(n.account(t))
	d.Invalidate(n.merchant.ID)
	if _, _, err := d.ByNotifyToken(t.Context(), epoch, "payments", old); !errors.Is(err, ErrNotFound) {
		t.Errorf("the old route: %v, want ErrNotFound", err)
	}
	if _, _, err := d.ByNotifyToken(t.Context(), epoch, "payments", n.conns[0].NotifyToken); err != nil {
		t.Errorf("the new route: %v", err)
	}
}

func TestInvalidateActsAtOnce(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	source := newSource(n.account(t))
	d := newTestDirectory(source)
	if _, err := d.Authenticate(t.Context(), epoch, n.plain[0], anywhere); err != nil {
		t.Fatal(err)
	}
	n.keys[0] = RevokeKey(n.keys[0], epoch)
	n.merchant.Version++
	source.put(n.account(t))
	d.Invalidate(n.merchant.ID)
	if _, err := d.Authenticate(t.Context(), epoch, n.plain[0], anywhere); !errors.Is(err, ErrAuthFailed) {
		t.Errorf("revoked: %v, want ErrAuthFailed", err)
	}
	if _, err := d.Authenticate(t.Context(), epoch, n.plain[1], anywhere); err != nil {
		t.Errorf("the merchant's other key: %v", err)
	}
}

func TestAMerchantThatIsGone(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	source := newSource(n.account(t))
	d := newTestDirectory(source)
	if _, err := d.Authenticate(t.Context(), epoch, n.plain[0], anywhere); err != nil {
		t.Fatal(err)
	}
	source.remove(n.merchant.ID)
	d.Invalidate(n.merchant.ID)
	if _, err := d.Authenticate(t.Context(), epoch, n.plain[0], anywhere); !errors.Is(err, ErrAuthFailed) {
		t.Errorf("Authenticate = %v, want ErrAuthFailed", err)
	}
	if _, err := d.Account(t.Context(), n.merchant.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("Account = %v, want ErrNotFound", err)
	}
}

func TestAdoptNeverGoesBack(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	old := n.account(t)
	n.merchant.Version = 2
	d := newTestDirectory(newSource())
	d.adopt(n.account(t))
	d.adopt(old)
	if got, err := d.Account(t.Context(), n.merchant.ID); err != nil || got.Version() != 2 {
		t.Errorf("version %d, %v; want 2", got.Version(), err)
	}
	n.merchant.Version = 3
	d.adopt(n.account(t))
	if got, err := d.Account(t.Context(), n.merchant.ID); err != nil || got.Version() != 3 {
		t.Errorf("version %d, %v; want 3", got.Version(), err)
	}
}
