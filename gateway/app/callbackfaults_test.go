package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
)

// till is payments that are paid while something goes wrong, all with callbacks
// to one mailbox.
type till struct {
	box  *mailbox
	made []payment
	paid []bool
}

// fill makes some more payments.
func (c *till) fill(t *testing.T, s shop, count int) {
	t.Helper()
	for range count {
		c.made = append(c.made, s.createFor(t, c.box.url, fields{"type": "qris", "amount": 33000 + len(c.made)}))
		c.paid = append(c.paid, false)
	}
}

// payAll has payers pay what is not yet, one after the other and quickly, and
// ends when that is done or the provider has gone.
func (c *till) payAll(ctx context.Context, p *program) {
	for i, made := range c.made {
		if c.paid[i] {
			continue
		}
		body, _ := json.Marshal(fields{"qr_string": made.QRString})
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.SandboxURL+"/pay", bytes.NewReader(body))
		if err != nil {
			return
		}
		response, err := httpClient.Do(request)
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
func (c *till) wantAll(t *testing.T, s shop, within time.Duration) (duplicates int) {
	t.Helper()
	for range 3 {
		c.payAll(t.Context(), s.program)
	}
	for _, made := range c.made {
		s.becomes(t, made.ExternalID, "PAID", resolvesWithin)
	}
	began := time.Now()
	missing := 0
	if err := until(within, func() bool {
		told := map[string]bool{}
		for _, l := range c.box.all() {
			told[l.field("external_id")] = true
		}
		missing = len(c.made) - len(told)
		return missing == 0
	}); err != nil {
		t.Fatalf("%d of %d callbacks never came", missing, len(c.made))
	}
	await(t, within, "an end of every delivery", func() bool { return waiting(t, s.program) == 0 })
	ids := map[string]string{}
	for _, l := range c.box.all() {
		reference := l.field("external_id")
		if id, again := ids[reference]; again && id != l.id() {
			t.Errorf("%s was told of as %s and as %s", reference, id, l.id())
		}
		ids[reference] = l.id()
	}
	duplicates = len(c.box.all()) - len(ids)
	t.Logf("%d callbacks, all there %v after the payments were; %d duplicates, with the same ids", len(ids), time.Since(began).Round(time.Millisecond), duplicates)
	return duplicates
}

// waiting counts the deliveries that have not ended.
func waiting(t *testing.T, p *program) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), p.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM callbacks WHERE state = 'waiting'").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// callbacksWithin is what deliveries may take when something went wrong: leases
// of a dead replica run out after 10 s, and so does a send.
const callbacksWithin = 30 * time.Second

// TestCallbacksAndKills kills the gateway while it delivers, at moments that
// nobody chose.
func TestCallbacksAndKills(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	s := settings{data: dataDir(t), databaseURL: dbtest.New(t, "", nil)}
	p := start(t, s)
	c := &till{box: newMailbox(t, 40*time.Millisecond)}
	for range 2 {
		c.fill(t, p.shop(large, "live"), 60)
		// The buckets of the one before are free after a while, and without them
		// there are no deliveries to kill.
		before := len(c.box.all())
		ctx, cancel := context.WithCancel(t.Context())
		finished := make(chan struct{})
		go func() {
			c.payAll(ctx, p)
			close(finished)
		}()
		await(t, callbacksWithin, "deliveries", func() bool { return len(c.box.all()) > before })
		<-time.After(time.Duration(random.Int64N(int64(300 * time.Millisecond))))
		p.kill(t)
		cancel()
		<-finished
		p = start(t, s)
	}
	c.wantAll(t, p.shop(large, "live"), callbacksWithin)
	p.stop(t)
}

// TestCallbacksAndTheDatabase takes the database away while callbacks are
// delivered, in both ways.
func TestCallbacksAndTheDatabase(t *testing.T) {
	t.Parallel()
	wire := newWire(t, dbtest.New(t, "", nil))
	p := start(t, settings{databaseURL: wire.url})
	c := &till{box: newMailbox(t, 40*time.Millisecond)}
	for _, away := range []func(){wire.refuse, wire.silence} {
		c.fill(t, p.shop(large, "live"), 40)
		before := len(c.box.all())
		finished := make(chan struct{})
		go func() {
			c.payAll(t.Context(), p)
			close(finished)
		}()
		await(t, callbacksWithin, "deliveries", func() bool { return len(c.box.all()) > before })
		away()
		<-time.After(3 * time.Second)
		wire.restore()
		<-finished
		await(t, callbacksWithin, "readiness", func() bool { return p.admin().Ready(t.Context()) == nil })
	}
	c.wantAll(t, p.shop(large, "live"), callbacksWithin)
	p.stop(t)
}

// TestCallbacksOfReplicas has a second replica join while the first delivers,
// which makes no duplicates, and then kills it.
func TestCallbacksOfReplicas(t *testing.T) {
	t.Parallel()
	databaseURL := dbtest.New(t, "", nil)
	d := newDeployment(t)
	first := d.startLocal(t, databaseURL)
	s := d.newShop(t, first, "scale")
	c := &till{box: newMailbox(t, 300*time.Millisecond)}
	c.fill(t, s, 60)
	paying := make(chan struct{})
	go func() {
		c.payAll(t.Context(), first)
		close(paying)
	}()
	second := d.startLocal(t, databaseURL)
	<-paying
	if duplicates := c.wantAll(t, s, callbacksWithin); duplicates > 0 {
		t.Errorf("%d duplicates, though nothing went wrong", duplicates)
	}
	await(t, callbacksWithin, "a share of the second", func() bool { return deliverers(t, databaseURL) == 2 })
	c.fill(t, s.at(second), 60)
	before := len(c.box.all())
	paying = make(chan struct{})
	go func() {
		c.payAll(t.Context(), first)
		close(paying)
	}()
	await(t, callbacksWithin, "deliveries", func() bool { return len(c.box.all()) > before+10 })
	second.kill(t)
	<-paying
	const inFlight = 4 // of one receiver, at the one that was killed
	if duplicates := c.wantAll(t, s, callbacksWithin); duplicates > inFlight {
		t.Errorf("%d duplicates, and %d at most were under way where it was killed", duplicates, inFlight)
	}
}

// deliverers counts the replicas that hold buckets of callbacks.
func deliverers(t *testing.T, databaseURL string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if err := conn.QueryRow(t.Context(), "SELECT count(DISTINCT holder) FROM leases WHERE queue = 'callbacks'").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// startLocal starts one replica that may send callbacks to this machine.
func (d *deployment) startLocal(t *testing.T, databaseURL string) *program {
	t.Helper()
	name := "replica-" + uuid.NewString()
	var config bytes.Buffer
	if err := serveConfig.Execute(&config, map[string]any{"Name": name, "Public": d.front.url, "Plugin": d.approved}); err != nil {
		t.Fatal(err)
	}
	d.write(t, name+".url", databaseURL+"\n")
	d.write(t, name+".yaml", config.String()+"allow_http_callbacks: true\n")
	p := &program{data: d.dir, document: document{SandboxURL: d.door, DatabaseURL: databaseURL, AdminToken: d.token}}
	p.begin(t, "serve", "--config", filepath.Join(d.dir, name+".yaml"))
	await(t, readyWithin, "a replica that serves", func() bool {
		if !p.running() {
			t.Fatalf("gerbang serve ended with code %d:\n%s", p.code, p.log.tail(60))
		}
		return p.serves() && p.admin().Ready(t.Context()) == nil
	})
	d.front.add(t, p)
	d.replicas = append(d.replicas, p)
	return p
}
