package callback_test

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/tier"
)

// paidBatch is payments that are paid while something goes wrong, all with
// callbacks to one receiver.
type paidBatch struct {
	box  *harness.Receiver
	made []harness.Payment
	paid []bool
}

// add makes some more payments.
func (c *paidBatch) add(t *testing.T, s harness.Shop, count int) {
	t.Helper()
	for range count {
		c.made = append(c.made, createFor(t, s, c.box.URL, harness.Fields{"type": "qris", "amount": 33000 + len(c.made)}))
		c.paid = append(c.paid, false)
	}
}

// payAll has payers pay what is not yet, one after the other and quickly, and
// ends when that is done or the provider has gone.
func (c *paidBatch) payAll(ctx context.Context, p *harness.Program) {
	for i, made := range c.made {
		if c.paid[i] {
			continue
		}
		body, _ := json.Marshal(harness.Fields{"qr_string": made.QRString})
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.SandboxURL+"/pay", bytes.NewReader(body))
		if err != nil {
			return
		}
		response, err := harness.HTTPClient.Do(request)
		if err != nil {
			return
		}
		response.Body.Close()
		// A conflict is a payment of which the answer was cut.
		c.paid[i] = response.StatusCode == http.StatusOK || response.StatusCode == http.StatusConflict
	}
}

// wantAll waits until every payment is PAID and told of, and returns how many
// callbacks came more than once. They carry the same id.
func (c *paidBatch) wantAll(t *testing.T, s harness.Shop, within time.Duration) (duplicates int) {
	t.Helper()
	for range 3 {
		c.payAll(t.Context(), s.Program)
	}
	for _, made := range c.made {
		s.AwaitStatus(t, made.ExternalID, "PAID", harness.ResolvesWithin)
	}
	began := time.Now()
	missing := 0
	if err := harness.Until(within, func() bool {
		told := map[string]bool{}
		for _, l := range c.box.All() {
			told[l.Field("external_id")] = true
		}
		missing = len(c.made) - len(told)
		return missing == 0
	}); err != nil {
		t.Fatalf("%d of %d callbacks never came", missing, len(c.made))
	}
	harness.Await(t, within, "an end of every delivery", func() bool { return harness.UndeliveredCallbacks(t, s.Program) == 0 })
	ids := map[string]string{}
	for _, l := range c.box.All() {
		reference := l.Field("external_id")
		if id, again := ids[reference]; again && id != l.ID() {
			t.Errorf("%s was told of as %s and as %s", reference, id, l.ID())
		}
		ids[reference] = l.ID()
	}
	duplicates = len(c.box.All()) - len(ids)
	t.Logf("%d callbacks, all there %v after the payments were; %d duplicates, with the same ids", len(ids), time.Since(began).Round(time.Millisecond), duplicates)
	return duplicates
}

// TestCallbacksSurviveKillsAndOutages takes the database away while callbacks are delivered,
// once by refusing connections and once by silence, and kills the gateway at a random
// moment.
func TestCallbacksSurviveKillsAndOutages(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	proxy := harness.NewProxy(t, harness.DevDatabase(t))
	s := harness.Settings{Data: harness.DataDir(t), DatabaseURL: proxy.URL}
	p := harness.Start(t, s)
	c := &paidBatch{box: harness.NewReceiver(t, 40*time.Millisecond)}
	for _, away := range []func(){proxy.Refuse, proxy.Silence} {
		c.deliver(t, p, 20, func() {
			away()
			<-time.After(time.Second)
			proxy.Restore()
		})
		harness.Await(t, harness.ReadyWithin, "readiness", func() bool { return p.Admin().Ready(t.Context()) == nil })
	}
	kills := 1
	if tier.IsLong() {
		kills = 4
	}
	for range kills {
		c.deliver(t, p, 30, func() {
			<-time.After(time.Duration(random.Int64N(int64(300 * time.Millisecond))))
			p.Kill(t)
		})
		p = harness.Start(t, s)
	}
	c.wantAll(t, p.Shop(harness.Large, "live"), harness.CallbacksWithin)
	p.Stop(t)
}

// deliver makes payments and has them paid, and lets something go wrong once callbacks are
// delivered.
func (c *paidBatch) deliver(t *testing.T, p *harness.Program, count int, wrong func()) {
	t.Helper()
	c.add(t, p.Shop(harness.Large, "live"), count)
	before := len(c.box.All())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	finished := make(chan struct{})
	go func() {
		c.payAll(ctx, p)
		close(finished)
	}()
	harness.Await(t, harness.CallbacksWithin, "deliveries", func() bool { return len(c.box.All()) > before })
	if wrong(); !p.Running() {
		cancel()
	}
	<-finished
}

// TestReplicasShareCallbacks has a second replica join while the first delivers,
// which causes no duplicates, and then kills it.
func TestReplicasShareCallbacks(t *testing.T) {
	t.Parallel()
	databaseURL := harness.ServeDatabase(t)
	d := harness.NewDeployment(t)
	first := startLocal(t, d, databaseURL)
	s := d.NewShop(t, first, "scale")
	c := &paidBatch{box: harness.NewReceiver(t, 300*time.Millisecond)}
	c.add(t, s, 30)
	paying := make(chan struct{})
	go func() {
		c.payAll(t.Context(), first)
		close(paying)
	}()
	second := startLocal(t, d, databaseURL)
	<-paying
	if duplicates := c.wantAll(t, s, harness.CallbacksWithin); duplicates > 0 {
		t.Errorf("%d duplicates, though nothing went wrong", duplicates)
	}
	harness.Await(t, harness.CallbacksWithin, "a share of the second", func() bool { return deliverers(t, first) == 2 })
	c.add(t, s.At(second), 40)
	before := len(c.box.All())
	paying = make(chan struct{})
	go func() {
		c.payAll(t.Context(), first)
		close(paying)
	}()
	harness.Await(t, harness.CallbacksWithin, "deliveries", func() bool { return len(c.box.All()) > before+10 })
	second.Kill(t)
	<-paying
	const inFlight = 4 // of one receiver, at the one that was killed
	if duplicates := c.wantAll(t, s, harness.CallbacksWithin); duplicates > inFlight {
		t.Errorf("%d duplicates, and %d at most were under way where it was killed", duplicates, inFlight)
	}
}

// deliverers counts the replicas that hold buckets of callbacks.
func deliverers(t *testing.T, p *harness.Program) (n int) {
	t.Helper()
	p.QueryRow(t, &n, "SELECT count(DISTINCT holder) FROM leases WHERE queue = 'callbacks'")
	return n
}

// startLocal starts one replica that may send callbacks to this machine.
func startLocal(t *testing.T, d *harness.Deployment, databaseURL string) *harness.Program {
	t.Helper()
	p := d.Launch(t, databaseURL, d.Approved, "allow_http_callbacks: true")
	d.Join(t, p)
	return p
}
