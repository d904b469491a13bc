package callback_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/callback"
	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/queue"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

const (
	benchMerchants = 200
	benchBacklog   = 10_000
	benchPace      = 400 // callbacks per second
	benchSpan      = 10 * time.Second
	benchSlow      = 2 * time.Second
)

// BenchmarkDelivery measures one dispatcher with the store and a durable database:
// how fast it works a backlog off (deliveries/s), and how long after its commit
// a callback arrives for the first time while they come at a steady pace. Each
// once with good receivers alone, and once where of 200 merchants' receivers
// 10 % never answer and 10 % take 2 s. All receivers are in this process.
func BenchmarkDelivery(b *testing.B) {
	harness.RequireDurable(b)
	for _, bad := range []int{0, benchMerchants / 5} {
		b.Run(fmt.Sprintf("backlog/%d_bad", bad), func(b *testing.B) {
			var took time.Duration
			for range b.N {
				w := newCallbackWorld(b, bad)
				w.post(b, benchBacklog, 64, 0)
				began := time.Now()
				w.deliver(b, func() { took += w.goodArrive(b, benchBacklog).Sub(began) })
				w.wantWritten(b, benchBacklog)
			}
			b.ReportMetric(float64(b.N*benchBacklog*(benchMerchants-bad)/benchMerchants)/took.Seconds(), "deliveries/s")
		})
		b.Run(fmt.Sprintf("paced/%d_bad", bad), func(b *testing.B) {
			for range b.N {
				w := newCallbackWorld(b, bad)
				count := int(benchPace * benchSpan / time.Second)
				w.deliver(b, func() {
					w.post(b, count, 16, time.Second/benchPace)
					w.goodArrive(b, count)
				})
				waits := w.waits()
				b.ReportMetric(float64(waits[len(waits)/2].Microseconds())/1000, "p50-ms")
				b.ReportMetric(float64(waits[len(waits)*99/100].Microseconds())/1000, "p99-ms")
				b.ReportMetric(float64(waits[len(waits)-1].Microseconds())/1000, "max-ms")
			}
		})
	}
}

// callbackWorld is merchants with a receiver each. The first are bad.
type callbackWorld struct {
	store      *store.Store
	dispatcher *callback.Dispatcher
	url        string
	port       int
	bad        int

	mu        sync.Mutex
	committed map[string]time.Time
	arrived   map[string]time.Time // of the good
	written   int                  // deliveries to the good
	changed   chan struct{}
}

func newCallbackWorld(b *testing.B, bad int) *callbackWorld {
	b.Helper()
	log := slog.New(slog.DiscardHandler)
	databaseURL := dbtest.New(b, store.MigrationsDigest(), func(ctx context.Context, url string) error { return store.Migrate(ctx, url, log) })
	s, err := store.Open(b.Context(), databaseURL, store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	sender, err := callback.New(callback.Config{AllowLocal: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(sender.Close)
	w := &callbackWorld{
		store: s, url: databaseURL, bad: bad, committed: map[string]time.Time{}, arrived: map[string]time.Time{}, changed: make(chan struct{}, 1),
	}
	w.dispatcher = callback.NewDispatcher(callback.Dependencies{
		Queue: outbox{s, w}, Leases: queue.NewLeases(s, "callbacks", uuid.NewString(), movement.Buckets, time.Now), Send: sender.Send,
		Secrets: oneSecret{}.CallbackSecrets, Observe: func(callback.Attempt) {}, Log: log,
	})
	// Each receiver has an address of its own, as they do in the world.
	listener, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		b.Fatal(err)
	}
	w.port = listener.Addr().(*net.TCPAddr).Port
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: w}}
	server.Start()
	b.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return w
}

// outbox is the store's, and tells what has been written.
type outbox struct {
	*store.Store
	world *callbackWorld
}

func (o outbox) RecordAttempt(ctx context.Context, a movement.CallbackAttempt) (bool, error) {
	ours, err := o.Store.RecordAttempt(ctx, a)
	o.tell(a, ours)
	return ours, err
}

func (o outbox) RecordAttempts(ctx context.Context, all []movement.CallbackAttempt) ([]bool, error) {
	ours, err := o.Store.RecordAttempts(ctx, all)
	for i := range ours {
		o.tell(all[i], ours[i])
	}
	return ours, err
}

func (o outbox) tell(a movement.CallbackAttempt, ours bool) {
	if ours && a.Then == movement.CallbackDelivered && strings.HasSuffix(a.Callback.URL, "/good") {
		o.world.mu.Lock()
		o.world.written++
		o.world.mu.Unlock()
		select {
		case o.world.changed <- struct{}{}:
		default:
		}
	}
}

// oneSecret is everybody's.
type oneSecret struct{}

func (oneSecret) CallbackSecrets(context.Context, movement.Owner) (callback.Secrets, error) {
	return callback.Secrets{Current: "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="}, nil
}

func (w *callbackWorld) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	switch r.URL.Path {
	case "/dead":
		<-r.Context().Done()
		return
	case "/slow":
		select {
		case <-r.Context().Done():
		case <-time.After(benchSlow):
		}
	default:
		w.mu.Lock()
		if id := r.Header.Get("webhook-id"); w.arrived[id].IsZero() {
			w.arrived[id] = time.Now()
		}
		w.mu.Unlock()
	}
	out.WriteHeader(http.StatusNoContent)
}

// post commits callbacks of all merchants in turn, one each pace.
func (w *callbackWorld) post(b *testing.B, count, writers int, pace time.Duration) {
	b.Helper()
	body := []byte(`{"event":"payments.status_update","data":{"external_id":"INV/2026/#000001","status":"PAID","amount":25000}}`)
	turns := make(chan int)
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for turn := range turns {
				merchant := turn % benchMerchants
				path := "good"
				if merchant < w.bad {
					path = []string{"dead", "slow"}[merchant%2]
				}
				id := uuid.New()
				url := fmt.Sprintf("http://127.0.1.%d:%d/%s", merchant+1, w.port, path)
				owner := movement.Owner{MerchantID: fmt.Sprintf("mer_%d", merchant), Mode: "live"}
				err := w.store.AddCallback(b.Context(), time.Now(), owner, movement.CallbackEvent{ID: id, Event: "payments.status_update", URL: url, Body: body})
				if err != nil {
					b.Error(err)
				}
				w.mu.Lock()
				w.committed[id.String()] = time.Now()
				w.mu.Unlock()
				w.dispatcher.Wake()
			}
		})
	}
	began := time.Now()
	for turn := range count {
		<-time.After(time.Until(began.Add(time.Duration(turn) * pace)))
		turns <- turn
	}
	close(turns)
	group.Wait()
}

// deliver runs the dispatcher while something is done.
func (w *callbackWorld) deliver(b *testing.B, work func()) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- w.dispatcher.Run(ctx) }()
	work()
	cancel()
	if err := <-done; err != nil {
		b.Error(err)
	}
}

// goodArrive waits until the good receivers' part of what was posted has arrived
// and that is written.
func (w *callbackWorld) goodArrive(b *testing.B, posted int) time.Time {
	b.Helper()
	want := posted * (benchMerchants - w.bad) / benchMerchants
	late := time.After(2 * time.Minute)
	for {
		w.mu.Lock()
		have := w.written
		w.mu.Unlock()
		if have >= want {
			return time.Now()
		}
		select {
		case <-w.changed:
		case <-late:
			b.Fatalf("%d of %d good ones arrived", have, want)
		}
	}
}

// wantWritten asks the database itself whether each good one was delivered, by
// one try.
func (w *callbackWorld) wantWritten(b *testing.B, posted int) {
	b.Helper()
	conn, err := pgx.Connect(b.Context(), w.url)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(context.Background())
	var delivered, tries int
	err = conn.QueryRow(b.Context(), `SELECT count(*), sum(tries) FROM callbacks
		WHERE state = 'delivered' AND url LIKE '%/good'`).Scan(&delivered, &tries)
	if want := posted * (benchMerchants - w.bad) / benchMerchants; err != nil || delivered != want || tries != want || len(w.arrived) != want {
		b.Errorf("%d of %d are delivered by %d tries, %d arrived: %v", delivered, want, tries, len(w.arrived), err)
	}
}

// waits are how long after its commit each of the good ones arrived, in order.
func (w *callbackWorld) waits() []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	var waits []time.Duration
	for id, at := range w.arrived {
		waits = append(waits, max(0, at.Sub(w.committed[id])))
	}
	slices.Sort(waits)
	return waits
}
