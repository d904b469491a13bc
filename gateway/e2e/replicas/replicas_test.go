package replicas_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// TestReplicasUnderLoad starts three replicas at once on one empty database and
// one provider. Under load one is killed, one is stopped, and another joins.
func TestReplicasUnderLoad(t *testing.T) {
	t.Parallel()
	databaseURL := harness.ServeDatabase(t)
	d := harness.NewDeploymentOf(t, "payments", "--latency=10s") // what is held must be so until the kill
	replicas := d.Start(t, databaseURL, databaseURL, databaseURL)
	stays, leaves, dies := replicas[0], replicas[1], replicas[2]
	s := d.NewShop(t, stays, "scale")
	l := harness.NewLoad(s)

	left := killReplica(t, l, dies, replicas) // first, since the rest fills the time until it is found out
	wantCutOnly(t, l, dies, func(*harness.Attempt) bool { return true })
	joins := d.Start(t, databaseURL)[0]
	replicas = []*harness.Program{stays, leaves, joins}
	notifiedAnywhere(t, s, d, replicas)
	sentToAll(t, l, replicas)
	stopReplica(t, l, leaves, replicas)
	inherited(t, databaseURL, left)
	l.Shop = s.At(joins)
	l.Resolve(t)
}

// notifiedAnywhere has the provider notify whichever replica is next, also of
// what another one made, and twice of the same.
func notifiedAnywhere(t *testing.T, s harness.Shop, d *harness.Deployment, replicas []*harness.Program) {
	t.Helper()
	const twice = 10110 // the simulator's magic amount
	var all []harness.Payment
	for i, amount := range []int{20001, 20002, 20003, 20004, twice, 20005} {
		made := s.At(replicas[i%len(replicas)]).Create(t, harness.Fields{"amount": amount})
		s.Pay(t, harness.Fields{"url": s.ProviderPage(t, made.CheckoutURL)})
		all = append(all, made)
	}
	for i, made := range all {
		// The operator's view asks no provider, so only a notification brings this.
		harness.Await(t, harness.PaidWithin, "PAID by a notification", func() bool {
			m, err := s.MovementOf(t.Context(), made)
			return err == nil && m.State == "succeeded"
		})
		m, err := s.MovementOf(t.Context(), made)
		if last := m.History[len(m.History)-1]; err != nil || !strings.Contains(last.Detail, "notification") {
			t.Errorf("%s was found out by %s, %v", made.ExternalID, last.Detail, err)
		}
		if got := s.At(replicas[(i+1)%len(replicas)]).Status(t, made.ExternalID); got.Status != "PAID" {
			t.Errorf("another replica says %s", got.Status)
		}
	}
	for _, p := range replicas {
		if d.Notified(p) == 0 {
			t.Errorf("nothing was notified at %s", p.APIURL)
		}
	}
}

// sentToAll sends the same references to all replicas at the same moment.
func sentToAll(t *testing.T, l *harness.Load, replicas []*harness.Program) {
	t.Helper()
	const references = 40
	var group sync.WaitGroup
	tries := make([][]*harness.Attempt, references)
	for i := range tries {
		first := l.NewAttempt([]string{"payment_link", "qris"}[i%2])
		tries[i] = []*harness.Attempt{first}
		for range replicas[1:] {
			again := *first
			tries[i] = append(tries[i], &again)
		}
		for n, a := range tries[i] {
			group.Go(func() { a.Try(t.Context(), l.Shop.At(replicas[n])) })
		}
	}
	group.Wait()
	for _, same := range tries {
		var agreed []byte
		for n, a := range same {
			for a.Err == nil && (a.First.Code == fault.InProgress || a.First.Code == fault.RateLimited) { // as its retry advises
				<-time.After(50 * time.Millisecond)
				a.Try(t.Context(), l.Shop.At(replicas[n]))
			}
			if a.Err != nil || !a.First.Success {
				t.Fatalf("%s: %v, %v", a.Order["external_id"], a.First, a.Err)
			}
			if agreed == nil {
				agreed = a.First.Data
			}
			if !bytes.Equal(a.First.Data, agreed) {
				t.Errorf("the same reference is answered %s and %s", agreed, a.First.Data)
			}
		}
	}
}

// killReplica kills a replica under load, with payments in the provider's hands. It
// returns the movements that are left unfinished.
func killReplica(t *testing.T, l *harness.Load, victim *harness.Program, replicas []*harness.Program) []string {
	t.Helper()
	const held = 3
	at := harness.NewLoad(l.Shop.At(victim))
	at.Inject(t, "latency", harness.FaultOperations["payment_link"], held)
	var group sync.WaitGroup
	for range held {
		a := l.NewAttempt("payment_link")
		a.At = victim
		group.Go(func() { a.Try(t.Context(), at.Shop) })
	}
	at.AwaitInFlight(t, held)
	ctx, stop := context.WithCancel(t.Context())
	group.Go(func() { runAcross(ctx, l, clients, replicas...) })
	<-time.After(500*time.Millisecond + rand.N(500*time.Millisecond))
	family := victim.Kill(t)
	<-time.After(500 * time.Millisecond) // the others go on
	stop()
	group.Wait()
	harness.Await(t, harness.GoneWithin, "the end of its plugin", func() bool { return len(harness.StillAlive(t, family)) == 0 })
	left := sending(t, victim.DatabaseURL)
	t.Logf("%d movements were left unfinished", len(left))
	if len(left) < held {
		t.Errorf("%d movements were left unfinished, and %d were in the provider's hands", len(left), held)
	}
	return left
}

// stopReplica stops a replica in order under load.
func stopReplica(t *testing.T, l *harness.Load, leaves *harness.Program, replicas []*harness.Program) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	before := len(l.Attempts)
	finished := make(chan struct{})
	go func() {
		runAcross(ctx, l, clients, replicas...)
		close(finished)
	}()
	<-time.After(500 * time.Millisecond)
	stopping := time.Now()
	leaves.Stop(t)
	<-time.After(200 * time.Millisecond)
	stop()
	<-finished
	during := &harness.Load{Attempts: l.Attempts[before:]}
	wantCutOnly(t, during, leaves, func(a *harness.Attempt) bool {
		return errors.Is(a.Err, syscall.ECONNREFUSED) || a.Began.Add(a.Took).After(stopping.Add(farewell)) && untaken(t, l, a, replicas[0])
	})
}

// runAcross is run with every client's requests in turns at the replicas. One
// that does not answer is left out from then on, as a balancer would.
func runAcross(ctx context.Context, l *harness.Load, clients int, replicas ...*harness.Program) {
	var group sync.WaitGroup
	for client := range clients {
		kind := []string{"payment_link", "qris"}[client%2]
		rotation := slices.Clone(replicas)
		group.Go(func() {
			for turn := client; ctx.Err() == nil && len(rotation) > 0; turn++ {
				a := l.NewAttempt(kind)
				a.At = rotation[turn%len(rotation)]
				a.Try(context.WithoutCancel(ctx), l.Shop.At(a.At))
				if a.Err != nil {
					rotation = slices.DeleteFunc(rotation, func(p *harness.Program) bool { return p == a.At })
				} else if a.First.Code == fault.RateLimited {
					<-time.After(100 * time.Millisecond)
				}
			}
		})
	}
	group.Wait()
}

// clients send requests at once while a replica ends.
const clients = 6

// farewell is for how long a replica that stops answers on open connections.
const farewell = time.Second

// untaken tells whether a replica that stopped hung up on a client that had been
// silent for its whole farewell: then there is no such payment.
func untaken(t *testing.T, l *harness.Load, a *harness.Attempt, stays *harness.Program) bool {
	t.Helper()
	if !errors.Is(a.Err, io.EOF) && !errors.Is(a.Err, syscall.ECONNRESET) {
		return false
	}
	status := l.Shop.At(stays).Ask(t, "/payments/status", harness.Fields{"external_id": a.Order["external_id"]})
	return status.Code == fault.NotFound
}

// wantCutOnly wants every request answered with success, or not let in by its
// rate or by a policy that was not judged in time, other than those that one replica may have cut.
func wantCutOnly(t *testing.T, l *harness.Load, by *harness.Program, may func(*harness.Attempt) bool) {
	t.Helper()
	cut, unjudged := 0, 0
	for _, a := range l.Attempts {
		switch {
		case a.Err != nil && a.At == by && may(a):
			cut++
		case a.Err != nil:
			t.Errorf("%s: %v", a.Order["external_id"], a.Err)
		case a.First.Code == fault.Internal && a.First.Sent == fault.SentNo && a.At != nil && a.At.LogCount("deadline exceeded") > 0:
			unjudged++ // a policy has its time, which a busy machine may not
		case !a.First.Success && a.First.Code != fault.RateLimited:
			t.Errorf("%s: %s", a.Order["external_id"], a.First)
		}
	}
	t.Logf("%d requests, %d of them cut, %d not judged in time", len(l.Attempts), cut, unjudged)
	if cut == 0 {
		t.Error("nothing was cut: there was no load on the replica that ended")
	}
}

// inherited waits until the workers of other replicas have found out about all
// movements that are left; nobody asks for them.
func inherited(t *testing.T, databaseURL string, left []string) {
	t.Helper()
	began := time.Now()
	var still []string
	if err := harness.Until(harness.ResolvesWithin, func() bool {
		still = slices.DeleteFunc(sending(t, databaseURL), func(id string) bool { return !slices.Contains(left, id) })
		return len(still) == 0
	}); err != nil {
		t.Errorf("after %v nobody has found out about %s", harness.ResolvesWithin, strings.Join(still, ", "))
	}
	t.Logf("all were found out after %v more", time.Since(began).Round(time.Second))
}

// sending are the movements of which nobody knows whether they were sent.
func sending(t *testing.T, databaseURL string) []string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	rows, err := conn.Query(t.Context(), "SELECT id::TEXT FROM movements WHERE state IN ('submitting', 'acknowledged') ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return ids
}
