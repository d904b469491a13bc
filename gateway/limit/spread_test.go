package limit_test

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/limit"
	"github.com/seed-f006e74d/gerbang/gateway/limit/limittest"
)

const (
	beatEvery = 5 * time.Second
	liveFor   = 30 * time.Second
)

var (
	shop    = limit.Key{Merchant: "mer_1", Mode: "live", Name: "default"}
	starter = limit.Rate{PerSecond: 5, Burst: 10}
)

// cluster is some replicas on one database, in a bubble of their own time.
type cluster struct {
	t       *testing.T
	buckets *limittest.Buckets

	mu       sync.Mutex
	replicas []*replica
}

// replica is a limiter with its heartbeat.
type replica struct {
	cluster *cluster
	limiter *limit.Limiter
	link    *limittest.Link
	started time.Time
	end     context.CancelFunc

	// The cluster's lock guards these.
	seen time.Time // by the others
	cut  bool
	dead bool

	others []time.Time
	read   time.Time
}

func newCluster(t *testing.T, replicas int) *cluster {
	t.Helper()
	c := &cluster{t: t, buckets: &limittest.Buckets{Now: time.Now}}
	for range replicas {
		c.start()
	}
	<-time.After(20 * time.Second) // until all know each other
	return c
}

// start starts a replica, which lives until it is killed or the test ends.
func (c *cluster) start() *replica { return c.startSilent(0) }

// startSilent is start for a replica whose first heartbeat takes a while.
func (c *cluster) startSilent(lasts time.Duration) *replica {
	ctx, end := context.WithCancel(c.t.Context())
	r := &replica{cluster: c, limiter: limit.New(), link: &limittest.Link{Buckets: c.buckets, Delay: 4 * time.Millisecond}, started: time.Now(), end: end}
	c.mu.Lock()
	c.replicas = append(c.replicas, r)
	c.mu.Unlock()
	if lasts == 0 {
		r.beat()
	}
	go func() {
		if <-time.After(lasts); lasts > 0 {
			r.beat()
		}
		for range time.Tick(beatEvery) {
			if ctx.Err() != nil {
				return
			}
			r.beat()
		}
	}()
	go func() {
		_ = r.limiter.Run(ctx, limit.Sharing{Buckets: r.link, Others: r.who, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	}()
	return r
}

// beat tells the others of a replica, and it of the others.
func (r *replica) beat() {
	r.cluster.mu.Lock()
	defer r.cluster.mu.Unlock()
	if r.cut || r.dead {
		return
	}
	r.seen, r.read, r.others = time.Now(), time.Now(), nil
	for _, other := range r.cluster.replicas {
		if other != r && time.Since(other.seen) < liveFor {
			r.others = append(r.others, other.started)
		}
	}
}

func (r *replica) who() (started []time.Time, read time.Time) {
	r.cluster.mu.Lock()
	defer r.cluster.mu.Unlock()
	return r.others, r.read
}

// kill ends a replica, of which the others are told nothing.
func (r *replica) kill() {
	r.cluster.mu.Lock()
	defer r.cluster.mu.Unlock()
	r.dead = true
	r.end()
}

// part cuts a replica off from the database, or ends that.
func (r *replica) part(cut bool) {
	r.link.Cut(cut)
	r.cluster.mu.Lock()
	defer r.cluster.mu.Unlock()
	r.cut = cut
}

// minute sends 20 requests a second for a minute, each to the replica that a way chooses,
// and tells how many were admitted. What happens at a second is done before it begins.
func (c *cluster) minute(way func(request int) int, happens map[int]func()) (admitted int) {
	const perSecond = 20
	for request := range 60 * perSecond {
		if event := happens[request/perSecond]; event != nil && request%perSecond == 0 {
			event()
		}
		if c.replicas[way(request)].limiter.Allow(time.Now(), shop, starter).OK {
			admitted++
		}
		<-time.After(time.Second / perSecond)
	}
	return admitted
}

func (c *cluster) end() {
	for _, r := range c.replicas {
		r.kill()
	}
	<-time.After(beatEvery)
}

// Over a minute a bucket gives its burst and what the rate adds, which is 310, however the
// requests come: at most five less, which replicas hold and may have lost, and at most one
// a replica more, which is paid later.
func TestAMinuteOverThreeReplicas(t *testing.T) {
	t.Parallel()
	robin := func(n int) func(int) int { return func(request int) int { return request % n } }
	first := func(int) int { return 0 }
	for name, c := range map[string]struct {
		least, most int
		play        func(*cluster) int
	}{
		"round-robin": {305, 313, func(c *cluster) int { return c.minute(robin(3), nil) }},
		"sticky":      {305, 313, func(c *cluster) int { return c.minute(first, nil) }},
		"a fourth joins": {305, 313, func(c *cluster) int {
			n := 3
			return c.minute(func(request int) int { return request % n }, map[int]func(){20: func() { c.start(); n = 4 }})
		}},
		"a second joins one that was alone": {305, 313, func(c *cluster) int {
			for _, r := range c.replicas[1:] {
				r.kill()
			}
			<-time.After(time.Minute)
			n := 1
			return c.minute(func(request int) int { return request % n * 3 }, map[int]func(){20: func() { c.start(); n = 2 }})
		}},
		"one dies": {305, 313, func(c *cluster) int {
			n := 3
			return c.minute(func(request int) int { return request % n }, map[int]func(){20: func() { c.replicas[2].kill(); n = 2 }})
		}},
		"the one that all went to dies": {305, 313, func(c *cluster) int {
			to := 0
			return c.minute(func(int) int { return to }, map[int]func(){20: func() { c.replicas[0].kill(); to = 1 }})
		}},
		"two die": {305, 313, func(c *cluster) int {
			n := 3
			return c.minute(func(request int) int { return request % n }, map[int]func(){10: func() { c.replicas[1].kill(); c.replicas[2].kill(); n = 1 }})
		}},
		"one is cut off for twenty seconds": {305, 313, func(c *cluster) int {
			return c.minute(robin(3), map[int]func(){10: func() { c.replicas[2].part(true) }, 30: func() { c.replicas[2].part(false) }})
		}},
		"one is stopped for forty seconds": {305, 313, func(c *cluster) int {
			n := 3
			return c.minute(func(request int) int { return request % n }, map[int]func(){
				10: func() { c.replicas[2].part(true); n = 2 }, 50: func() { c.replicas[2].part(false); n = 3 },
			})
		}},
		"the database is away for thirty seconds": {290, 313, func(c *cluster) int { // but for a second until that is known
			return c.minute(robin(3), map[int]func(){
				10: func() { c.part(true) }, 40: func() { c.part(false) },
			})
		}},
		"the database is away for forty seconds": {290, 313 + 10, func(c *cluster) int {
			return c.minute(robin(3), map[int]func(){10: func() { c.part(true) }, 50: func() { c.part(false) }}) // and what is admitted before all know each other again is paid after the minute
		}},
		"the database is slow": {305, 313, func(c *cluster) int {
			for _, r := range c.replicas {
				r.link.Delay = 400 * time.Millisecond
			}
			return c.minute(robin(3), nil)
		}},
		"one is cut off all the time": {305, 313 + 100 + 3, func(c *cluster) int { // the part that it grants
			return c.minute(robin(3), map[int]func(){0: func() { c.replicas[2].part(true) }})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				replicas := newCluster(t, 3)
				defer replicas.end()
				got := c.play(replicas)
				t.Logf("%d admitted in a minute, 310 by the rate; %d asks", got, replicas.buckets.Leased())
				if got < c.least || got > c.most {
					t.Errorf("%d admitted, want %d to %d", got, c.least, c.most)
				}
			})
		})
	}
}

func (c *cluster) part(cut bool) {
	for _, r := range c.replicas {
		r.part(cut)
	}
}

// Who stays below the rate is refused by nobody while replicas that began together get to
// know each other, nor when they share the bucket at last.
func TestReplicasThatBeginTogetherRefuseNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{t: t, buckets: &limittest.Buckets{Now: time.Now}}
		for range 3 {
			c.start()
		}
		defer c.end()
		<-time.After(time.Second)
		busy := limit.Rate{PerSecond: 50, Burst: 100}
		for request := range 20 * 40 {
			if v := c.replicas[request%3].limiter.Allow(time.Now(), shop, busy); !v.OK {
				t.Fatalf("request %d of 40 a second is refused: %+v", request, v)
			}
			<-time.After(time.Second / 40)
		}
	})
}

// However the requests come and however slow the database is, what replicas admit on credit
// is one less than they are: of one token that comes back each admits a request, and one of
// these has it. That is so also where one has joined.
func TestCreditIsOneAReplica(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 14))
			upTo := func(most time.Duration) time.Duration { return time.Duration(random.Int64N(int64(most))) }
			c := newCluster(t, 3)
			defer c.end()
			<-time.After(upTo(beatEvery))
			for _, r := range c.replicas {
				r.link.Delay = upTo(200 * time.Millisecond)
			}
			admitted, began, last := 0, time.Now(), time.Duration(0)
			for request := range 1200 {
				if request == 400 {
					c.start().link.Delay = upTo(200 * time.Millisecond)
				}
				if c.replicas[request%len(c.replicas)].limiter.Allow(time.Now(), shop, starter).OK {
					admitted, last = admitted+1, time.Since(began)
				}
				<-time.After(time.Until(began.Add(time.Duration(request+1)*50*time.Millisecond + upTo(100*time.Millisecond))))
			}
			byRate := float64(starter.Burst) + starter.PerSecond*last.Seconds()
			if over := float64(admitted) - byRate; over > float64(len(c.replicas)-1) || over < -5 {
				t.Errorf("seed %d: %d admitted in %v, %.1f by the rate", seed, admitted, last, byRate)
			}
		})
	}
}

// Who joins knows nobody until its first heartbeat. It takes itself to be alone no longer
// than that, and admits no burst that the others have spent.
func TestWhoJoinsIsNotAloneForLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		defer c.end()
		for range 200 {
			c.replicas[0].limiter.Allow(time.Now(), shop, starter)
			<-time.After(10 * time.Millisecond)
		}
		joins, admitted := c.startSilent(30*time.Millisecond), 0
		for range 50 {
			if joins.limiter.Allow(time.Now(), shop, starter).OK {
				admitted++
			}
			<-time.After(10 * time.Millisecond)
		}
		if most := 7; admitted > most { // four until then, and what comes back in half a second
			t.Errorf("%d of a spent burst are admitted", admitted)
		}
	})
}
