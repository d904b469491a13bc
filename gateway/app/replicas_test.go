package app_test

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

	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// TestReplicas runs three replicas on one database and one provider. They
// begin together on an empty database; later one is killed and one is stopped,
// both under load, and another joins.
func TestReplicas(t *testing.T) {
	t.Parallel()
	databaseURL := dbtest.New(t, "", nil)
	d := newDeployment(t)
	replicas := d.start(t, databaseURL, databaseURL, databaseURL)
	stays, leaves, dies := replicas[0], replicas[1], replicas[2]
	s := d.newShop(t, stays, "scale")
	l := newLoad(s)

	left := killOne(t, l, dies, replicas) // first, since the rest fills the time until it is found out
	l.wantCutOnly(t, dies, func(*attempt) bool { return true })
	joins := d.start(t, databaseURL)[0]
	replicas = []*program{stays, leaves, joins}
	notifiedAnywhere(t, s, d, replicas)
	sentToAll(t, l, replicas)
	stopOne(t, l, leaves, replicas)
	inherited(t, databaseURL, left)
	l.shop = s.at(joins)
	l.settle(t)
}

// notifiedAnywhere has the provider notify whichever replica is next, also of
// what another one made, and twice of the same.
func notifiedAnywhere(t *testing.T, s shop, d *deployment, replicas []*program) {
	t.Helper()
	const twice = 10110 // the simulator's magic amount
	var all []payment
	for i, amount := range []int{20001, 20002, 20003, 20004, twice, 20005} {
		made := s.at(replicas[i%len(replicas)]).create(t, fields{"amount": amount})
		s.pay(t, fields{"url": s.providersPage(t, made.CheckoutURL)})
		all = append(all, made)
	}
	for i, made := range all {
		// The operator's view asks no provider, so only a notification brings this.
		await(t, paidWithin, "PAID by a notification", func() bool {
			m, err := s.movementOf(t.Context(), made)
			return err == nil && m.State == "succeeded"
		})
		m, err := s.movementOf(t.Context(), made)
		if last := m.Story[len(m.Story)-1]; err != nil || !strings.Contains(last.Detail, "notification") {
			t.Errorf("%s was found out by %s, %v", made.ExternalID, last.Detail, err)
		}
		if got := s.at(replicas[(i+1)%len(replicas)]).status(t, made.ExternalID); got.Status != "PAID" {
			t.Errorf("another replica says %s", got.Status)
		}
	}
	d.front.mu.Lock()
	defer d.front.mu.Unlock()
	for _, p := range replicas {
		if d.front.notified[p.APIURL] == 0 {
			t.Errorf("nothing was notified at %s: %v", p.APIURL, d.front.notified)
		}
	}
}

// sentToAll sends the same references to all replicas at the same moment.
func sentToAll(t *testing.T, l *load, replicas []*program) {
	t.Helper()
	const references = 40
	var group sync.WaitGroup
	tries := make([][]*attempt, references)
	for i := range tries {
		first := l.attempt([]string{"payment_link", "qris"}[i%2])
		tries[i] = []*attempt{first}
		for range replicas[1:] {
			again := *first
			tries[i] = append(tries[i], &again)
		}
		for n, a := range tries[i] {
			group.Go(func() { a.try(t.Context(), l.shop.at(replicas[n])) })
		}
	}
	group.Wait()
	for _, same := range tries {
		var agreed []byte
		for n, a := range same {
			for a.err == nil && (a.first.Code == fault.InProgress || a.first.Code == fault.RateLimited) { // as its retry advises
				<-time.After(50 * time.Millisecond)
				a.try(t.Context(), l.shop.at(replicas[n]))
			}
			if a.err != nil || !a.first.Success {
				t.Fatalf("%s: %v, %v", a.order["external_id"], a.first, a.err)
			}
			if agreed == nil {
				agreed = a.first.Data
			}
			if !bytes.Equal(a.first.Data, agreed) {
				t.Errorf("the same reference is answered %s and %s", agreed, a.first.Data)
			}
		}
	}
}

// killOne kills a replica under load, with payments in the provider's hands. It
// returns the movements that are left unfinished.
func killOne(t *testing.T, l *load, victim *program, replicas []*program) []string {
	t.Helper()
	const held = 3
	at := newLoad(l.shop.at(victim))
	at.inject(t, "latency", faultOperations["payment_link"], held)
	var group sync.WaitGroup
	for range held {
		a := l.attempt("payment_link")
		a.at = victim
		group.Go(func() { a.try(t.Context(), at.shop) })
	}
	at.inFlight(t, held)
	ctx, stop := context.WithCancel(t.Context())
	group.Go(func() { l.runAcross(ctx, 12, replicas...) })
	<-time.After(500*time.Millisecond + rand.N(500*time.Millisecond))
	family := victim.kill(t)
	<-time.After(500 * time.Millisecond) // the others go on
	stop()
	group.Wait()
	await(t, goneWithin, "the end of its plugin", func() bool { return len(stillAlive(t, family)) == 0 })
	left := sending(t, victim.DatabaseURL)
	t.Logf("%d movements were left unfinished", len(left))
	if len(left) < held {
		t.Errorf("%d movements were left unfinished, and %d were in the provider's hands", len(left), held)
	}
	return left
}

// stopOne stops a replica in order under load.
func stopOne(t *testing.T, l *load, leaves *program, replicas []*program) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	before := len(l.attempts)
	finished := make(chan struct{})
	go func() {
		l.runAcross(ctx, 12, replicas...)
		close(finished)
	}()
	<-time.After(500 * time.Millisecond)
	stopping := time.Now()
	leaves.stop(t)
	<-time.After(200 * time.Millisecond)
	stop()
	<-finished
	during := &load{attempts: l.attempts[before:]}
	during.wantCutOnly(t, leaves, func(a *attempt) bool {
		return errors.Is(a.err, syscall.ECONNREFUSED) || a.began.Add(a.took).After(stopping.Add(farewell)) && l.untaken(t, a, replicas[0])
	})
}

// runAcross is run with every client's requests in turns at the replicas. One
// that does not answer is left out from then on, as a balancer would.
func (l *load) runAcross(ctx context.Context, clients int, replicas ...*program) {
	var group sync.WaitGroup
	for client := range clients {
		kind := []string{"payment_link", "qris"}[client%2]
		rotation := slices.Clone(replicas)
		group.Go(func() {
			for turn := client; ctx.Err() == nil && len(rotation) > 0; turn++ {
				a := l.attempt(kind)
				a.at = rotation[turn%len(rotation)]
				a.try(context.WithoutCancel(ctx), l.shop.at(a.at))
				if a.err != nil {
					rotation = slices.DeleteFunc(rotation, func(p *program) bool { return p == a.at })
				} else if a.first.Code == fault.RateLimited {
					<-time.After(100 * time.Millisecond)
				}
			}
		})
	}
	group.Wait()
}

// farewell is for how long a replica that stops answers on open connections.
const farewell = time.Second

// untaken tells whether a replica that stopped hung up on a client that had been
// silent for its whole farewell: then there is no such payment.
func (l *load) untaken(t *testing.T, a *attempt, stays *program) bool {
	t.Helper()
	if !errors.Is(a.err, io.EOF) && !errors.Is(a.err, syscall.ECONNRESET) {
		return false
	}
	status := l.shop.at(stays).ask(t, "/payments/status", fields{"external_id": a.order["external_id"]})
	return status.Code == fault.NotFound
}

// wantCutOnly wants every request answered with success, or not let in by its
// rate, other than those that one replica may have cut.
func (l *load) wantCutOnly(t *testing.T, by *program, may func(*attempt) bool) {
	t.Helper()
	cut := 0
	for _, a := range l.attempts {
		switch {
		case a.err != nil && a.at == by && may(a):
			cut++
		case a.err != nil:
			t.Errorf("%s: %v", a.order["external_id"], a.err)
		case !a.first.Success && a.first.Code != fault.RateLimited:
			t.Errorf("%s: %s", a.order["external_id"], a.first)
		}
	}
	t.Logf("%d requests, %d of them cut", len(l.attempts), cut)
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
	if err := until(resolvesWithin, func() bool {
		still = slices.DeleteFunc(sending(t, databaseURL), func(id string) bool { return !slices.Contains(left, id) })
		return len(still) == 0
	}); err != nil {
		t.Errorf("after %v nobody has found out about %s", resolvesWithin, strings.Join(still, ", "))
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
