package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
)

// mailbox receives callbacks as a merchant does, and answers by their path.
type mailbox struct {
	url   string
	takes time.Duration // each answer

	mu       sync.Mutex
	received []letter
}

type letter struct {
	at     time.Time
	path   string
	header http.Header
	raw    []byte
	Event  string                     `json:"event"`
	Data   map[string]json.RawMessage `json:"data"`
}

func (l letter) id() string { return l.header.Get("webhook-id") }

func (l letter) sequence() int {
	n, _ := strconv.Atoi(l.header.Get("X-Svc-Event-Sequence"))
	return n
}

// field is a text of the data.
func (l letter) field(name string) (text string) {
	_ = json.Unmarshal(l.Data[name], &text)
	return text
}

func newMailbox(t *testing.T, takes time.Duration) *mailbox {
	t.Helper()
	b := &mailbox{takes: takes}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	b.url = server.URL
	return b
}

func (b *mailbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return // the gateway was killed while it sent
	}
	one := letter{at: time.Now(), path: r.URL.Path, header: r.Header, raw: raw}
	_ = json.Unmarshal(raw, &one)
	first := len(b.on(r.URL.Path)) == 0
	b.mu.Lock()
	b.received = append(b.received, one)
	b.mu.Unlock()
	<-time.After(b.takes)
	switch {
	case r.URL.Path == "/gone":
		w.WriteHeader(http.StatusGone)
	case r.URL.Path == "/failing" && first:
		w.WriteHeader(http.StatusInternalServerError)
	case r.URL.Path == "/moved":
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

func (b *mailbox) all() []letter {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.received)
}

func (b *mailbox) on(path string) []letter {
	return slices.DeleteFunc(b.all(), func(l letter) bool { return l.path != path })
}

// of are the letters about a payment.
func (b *mailbox) of(reference string) []letter {
	return slices.DeleteFunc(b.all(), func(l letter) bool { return l.field("external_id") != reference })
}

// wait waits for so many letters about a payment.
func (b *mailbox) wait(t *testing.T, reference string, count int) []letter {
	t.Helper()
	await(t, paidWithin, fmt.Sprintf("%d callbacks of %s", count, reference), func() bool { return len(b.of(reference)) >= count })
	return b.of(reference)
}

// createFor makes a payment whose callbacks go to a URL.
func (s shop) createFor(t *testing.T, url string, others fields) payment {
	t.Helper()
	a := s.ask(t, "/payments/create", s.order(others), "X-Callback-URL", url)
	if !a.Success {
		t.Fatalf("create: %s", a)
	}
	return a.payment()
}

// TestCallbacks receives the callbacks of every end that a payment can have,
// and answers some of them badly.
func TestCallbacks(t *testing.T) {
	t.Parallel()
	p := start(t, settings{})
	box := newMailbox(t, 0)
	for name, check := range map[string]func(*testing.T, *program, *mailbox){
		"every end": checkEveryEnd, "410": checkGone, "500": checkRetried, "redirect": checkRedirect,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, p, box)
		})
	}
}

func checkEveryEnd(t *testing.T, p *program, box *mailbox) {
	live, test := p.shop(large, "live"), p.shop(small, "test")
	secretOf := map[string]string{
		live.merchant: p.Merchants[large].CallbackSecret, test.merchant: p.Merchants[small].TestCallbackSecret,
	}
	url := box.url + "/shop?order=1&x=a/b"
	verified := func(s shop, one letter, event string) {
		t.Helper()
		wantVerified(t, one, secretOf[s.merchant])
		if one.Event != event || one.header.Get("Content-Type") != "application/json" || one.path != "/shop" {
			t.Errorf("%s %v %s", one.path, one.header, one.raw)
		}
	}
	for _, s := range []shop{live, test} {
		code := s.createFor(t, url, fields{"type": "qris", "amount": 31000, "metadata": fields{"table": "7"}})
		link := s.createFor(t, url, fields{"amount": 31001})
		late := s.createFor(t, url, fields{"type": "qris", "amount": 31002})
		refused := s.order(fields{"amount": 10100})
		if a := s.ask(t, "/payments/create", refused, "X-Callback-URL", url); a.Success {
			t.Fatalf("a refused payment: %s", a)
		}
		p.pay(t, fields{"qr_string": code.QRString})
		p.pay(t, fields{"url": p.providersPage(t, link.CheckoutURL)})
		for _, made := range []payment{code, link} {
			one := box.wait(t, made.ExternalID, 1)[0]
			verified(s, one, "payments.status_update")
			wantAsStatus(t, s, one, "PAID")
		}
		one := box.wait(t, refused["external_id"].(string), 1)[0]
		verified(s, one, "payments.status_update")
		if one.field("status") != "FAILED" {
			t.Errorf("a refused payment: %s", one.raw)
		}
		if a := s.ask(t, "/payments/cancel", fields{"external_id": late.ExternalID}); !a.Success {
			t.Fatalf("cancel: %s", a)
		}
		expired := box.wait(t, late.ExternalID, 1)[0]
		verified(s, expired, "payments.status_update")
		wantAsStatus(t, s, expired, "EXPIRED")
		p.pay(t, fields{"qr_string": late.QRString})
		paid := box.wait(t, late.ExternalID, 2)[1]
		verified(s, paid, "payments.paid_late")
		wantAsStatus(t, s, paid, "EXPIRED")
		if paid.sequence() <= expired.sequence() || paid.id() == expired.id() || paid.Data["paid_late_at"] == nil {
			t.Errorf("late money: %v %s\nafter %v %s", paid.header, paid.raw, expired.header, expired.raw)
		}
	}
}

// wantAsStatus wants a callback that tells what the status answer tells, with
// the time of the change and nothing else.
func wantAsStatus(t *testing.T, s shop, one letter, status string) {
	t.Helper()
	told := s.ask(t, "/payments/status", fields{"external_id": one.field("external_id")})
	var want map[string]json.RawMessage
	if err := json.Unmarshal(told.Data, &want); err != nil {
		t.Fatal(err)
	}
	got := maps.Clone(one.Data)
	at, err := time.Parse(time.RFC3339, one.field("timestamp"))
	if delete(got, "timestamp"); err != nil || !strings.HasSuffix(one.field("timestamp"), "Z") || time.Since(at) > time.Minute {
		t.Errorf("timestamp %s: %v", one.Data["timestamp"], err)
	}
	same := maps.EqualFunc(got, want, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(one.raw, &whole); err != nil || !same || len(whole) != 2 || one.field("status") != status {
		t.Errorf("the callback is %s\nand the status %s (%v)", one.raw, told.Data, err)
	}
}

// wantVerified verifies both signatures as merchants do.
func wantVerified(t *testing.T, one letter, secret string) {
	t.Helper()
	library, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := library.Verify(one.raw, one.header); err != nil {
		t.Errorf("the library says %v: %v %s", err, one.header, one.raw)
	}
	if err := library.Verify(append(slices.Clone(one.raw), ' '), one.header); err == nil {
		t.Error("the library verifies another body, too")
	}
	if uuid.Validate(one.id()) != nil || one.sequence() < 1 {
		t.Errorf("headers %v", one.header)
	}
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Log("openssl is not installed: nobody has tried its line")
		return
	}
	openssl := exec.CommandContext(t.Context(), "openssl", "dgst", "-sha256", "-hmac", secret)
	openssl.Stdin = bytes.NewReader(one.raw)
	out, err := openssl.Output()
	if _, digest, _ := strings.Cut(strings.TrimSpace(string(out)), "= "); err != nil || digest != one.header.Get("X-Svc-Signature") {
		t.Errorf("openssl says %s (%v), the header %s", out, err, one.header.Get("X-Svc-Signature"))
	}
}

// paidFor makes a payment and has it paid, so that its callback comes.
func paidFor(t *testing.T, p *program, box *mailbox, path string) payment {
	t.Helper()
	made := p.shop(large, "live").createFor(t, box.url+path, fields{"type": "qris", "amount": 32000})
	p.pay(t, fields{"qr_string": made.QRString})
	return made
}

// standing is how a payment's one callback stands in the database.
func standing(t *testing.T, p *program, made payment) (state string, attempts int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), p.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	err = conn.QueryRow(t.Context(), "SELECT state, attempts FROM callbacks WHERE reference = $1", made.ExternalID).Scan(&state, &attempts)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		t.Fatal(err)
	}
	return state, attempts
}

func checkGone(t *testing.T, p *program, box *mailbox) {
	made := paidFor(t, p, box, "/gone")
	await(t, paidWithin, "the end", func() bool { state, _ := standing(t, p, made); return state == "gone" })
	<-time.After(7 * time.Second) // when a retry would have come
	if got := len(box.on("/gone")); got != 1 {
		t.Errorf("sent %d times to a receiver that is gone", got)
	}
}

func checkRetried(t *testing.T, p *program, box *mailbox) {
	made := paidFor(t, p, box, "/failing")
	tries := box.wait(t, made.ExternalID, 2)
	if after := tries[1].at.Sub(tries[0].at); after < 4500*time.Millisecond || after > 8*time.Second {
		t.Errorf("tried again after %v, want 5 s or a tenth more or less", after)
	}
	if tries[0].id() != tries[1].id() || !bytes.Equal(tries[0].raw, tries[1].raw) || tries[0].sequence() != tries[1].sequence() {
		t.Errorf("%v %s\nand then %v %s", tries[0].header, tries[0].raw, tries[1].header, tries[1].raw)
	}
	wantVerified(t, tries[1], p.Merchants[large].CallbackSecret)
	await(t, paidWithin, "delivered", func() bool { state, _ := standing(t, p, made); return state == "delivered" })
	if _, attempts := standing(t, p, made); attempts != 2 {
		t.Errorf("%d attempts are counted", attempts)
	}
}

func checkRedirect(t *testing.T, p *program, box *mailbox) {
	made := paidFor(t, p, box, "/moved")
	await(t, paidWithin, "a try", func() bool { _, attempts := standing(t, p, made); return attempts >= 1 })
	if state, _ := standing(t, p, made); state != "waiting" || len(box.on("/elsewhere")) != 0 {
		t.Errorf("it is %s, and %d were sent to where the redirect leads", state, len(box.on("/elsewhere")))
	}
}

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
	for range 3 {
		c.fill(t, p.shop(large, "live"), 40)
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
	if err := conn.QueryRow(t.Context(), "SELECT count(DISTINCT holder) FROM leases WHERE queue = 'deliver'").Scan(&n); err != nil {
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
