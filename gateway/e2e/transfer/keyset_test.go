package transfer_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// TestTransfersOnTwoReplicas sends equal transfers in a row and hangs up during one. It
// connects accounts, which the provider verifies. Then it gives the deployment a new key,
// seals everything anew and removes the old key, while both replicas transfer: no call
// fails.
func TestTransfersOnTwoReplicas(t *testing.T) {
	t.Parallel()
	x := newMatrix(t)
	x.revive(t)
	checkHungUp(t, x)
	checkEqual(t, x)
	checkVerified(t, x)
	rest := x.flow(t)
	more := func() {
		t.Helper()
		begun := rest.count()
		harness.Await(t, heardWithin, "more transfers", func() bool { return rest.count() >= begun+12 })
	}
	more()
	first := x.keys(t, x.stays)[0].Number
	x.stays.MustRun(t, "", nil, "keyset", "rotate", filepath.Join(x.Dir, "keyset.json"))
	more()
	for _, p := range []*harness.Program{x.stays, x.dies} {
		harness.Await(t, heardWithin, "the new key", func() bool {
			keys := x.keys(t, p)
			return len(keys) == 2 && slices.ContainsFunc(keys, func(k adminapi.KeyUse) bool { return k.Primary && k.Number != first })
		})
	}
	s, _ := x.newSender(t) // sealed with the new key, opened by the other replica
	m := toBank.newTransfer()
	sends(t, s.At(x.dies), m, harness.NewReference(), "Success")
	more()
	x.stays.MustRun(t, "", nil, "keyset", "reseal") // the other replica has read what it was before
	x.stays.MustRun(t, "", nil, "keyset", "prune", "--yes", filepath.Join(x.Dir, "keyset.json"))
	for _, p := range []*harness.Program{x.stays, x.dies} {
		harness.Await(t, heardWithin, "the end of the old key", func() bool {
			keys := x.keys(t, p)
			return len(keys) == 1 && keys[0].Primary && keys[0].Number != first && keys[0].Values > 0
		})
	}
	more()
	t.Logf("%d transfers while the key was replaced", rest.stop())
}

// keys are those that a replica has in force.
func (x *matrix) keys(t *testing.T, p *harness.Program) (keys []adminapi.KeyUse) {
	t.Helper()
	keys, err := p.Admin().Keyset(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// flow is transfers that go on and on, and must all succeed.
type flow struct {
	quit chan struct{}
	done sync.WaitGroup
	mu   sync.Mutex
	sent int
}

func (x *matrix) flow(t *testing.T) *flow {
	t.Helper()
	f := &flow{quit: make(chan struct{})}
	for i := range 4 {
		f.done.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-f.quit:
					return
				default:
				}
				s := []harness.Shop{x.shop, x.expiring}[i/2].At([]*harness.Program{x.stays, x.dies}[(i+n)%2])
				m := routes[i%2].newTransfer()
				a, err := s.Insist(t.Context(), m.path, m.body(harness.NewReference()))
				if err != nil || transferOf(a).Status != "Success" {
					t.Errorf("while the key is replaced: %v %s", err, a)
				}
				f.mu.Lock()
				f.sent++
				f.mu.Unlock()
			}
		})
	}
	return f
}

func (f *flow) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sent
}

// stop ends it, and tells how many there were.
func (f *flow) stop() int {
	close(f.quit)
	f.done.Wait()
	return f.count()
}

// checkVerified connects an account with credentials that the provider refuses,
// which changes nothing, and with credentials that it cannot be asked about.
func checkVerified(t *testing.T, x *matrix) {
	t.Helper()
	s, _ := x.newSender(t)
	right := x.credentials
	set := func(change harness.Fields, unverified bool) (string, error) {
		content, err := json.Marshal(right.With(change))
		if err != nil {
			t.Fatal(err)
		}
		made, err := adminapi.SetConnection.Call(t.Context(), x.stays.Admin(), adminapi.ConnectionSpec{Merchant: s.MerchantID, Provider: "wallet1", Mode: "live", Credentials: content, Unverified: unverified})
		return made.Verified, err
	}
	nowhere := harness.Fields{"base_url": "http://127.0.0.1:1"}
	for what, c := range map[string]struct {
		change     harness.Fields
		unverified bool
		part       string
	}{
		"another secret":                 {harness.Fields{"client_secret": "another"}, false, "Unauthorized"},
		"another secret, unverified":     {harness.Fields{"client_secret": "another"}, true, "Unauthorized"},
		"another client":                 {harness.Fields{"client_id": "another"}, false, "Unknown client"},
		"another wallet":                 {harness.Fields{"customer_number": "628123456789"}, false, "customer_number"},
		"a setting that is not there":    {harness.Fields{"secret": "x"}, false, "secret"},
		"a provider that is not reached": {nowhere, false, "unverified"},
	} {
		if _, err := set(c.change, c.unverified); err == nil || !strings.Contains(err.Error(), c.part) || strings.Contains(err.Error(), "PRIVATE KEY") {
			t.Errorf("%s: %v", what, err)
		}
		sends(t, s, toBank.newTransfer(), harness.NewReference(), "Success")
	}
	if verified, err := set(nowhere, true); err != nil || verified != "unverified" {
		t.Errorf("unverified: %v %s", err, verified)
	}
	m, reference := toWallet.newTransfer(), harness.NewReference()
	var a harness.Answer
	harness.Await(t, harness.ActsWithin, "the new connection", func() bool {
		a = s.Ask(t, m.path, m.body(reference))
		return a.Code == fault.ProviderUnavailable
	})
	harness.ProviderUnavailable.Want(t, "nobody is there", a, reference)
	if verified, err := set(nil, false); err != nil || verified != "yes" {
		t.Errorf("the right ones: %v %s", err, verified)
	}
	sends(t, s, m, reference, "Success")
}
