package app_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// claimPoints are the moments after a claim is committed and before its answer is
// heard.
var claimPoints = []point{{name: "gateway killed, claimed and not heard of"}, {name: "plugin killed, claimed and not heard of", plugin: true}}

// dieClaiming kills somebody at such a moment.
func (x *matrix) dieClaiming(t *testing.T, at point, r route) {
	t.Helper()
	x.revive(t)
	c := x.add(r, mishap{name: "nothing"}, at)
	seen := x.tap.arm(false, c.mark)
	posted := make(chan struct{})
	go func() {
		c.post(t.Context(), x.dies)
		close(posted)
	}()
	wantSoon(t, seen, "the claim")
	await(t, reachesWithin, "its commit", func() bool { return x.books(t)[c.reference].State == "submitting" })
	x.strike(t, at.plugin)
	x.tap.disarm(!at.plugin)
	<-posted
	if x.dies.running() {
		x.dies.kill(t)
	}
}

// sleepClaiming stops the gateway between claim and send until somebody else has
// looked, and told the merchant that it is pending. When it wakes, nothing goes
// out any more, and that is known at once.
func (x *matrix) sleepClaiming(t *testing.T, r route) {
	t.Helper()
	x.revive(t)
	c := x.add(r, mishap{name: "nothing"}, point{name: "gateway stopped between claim and call"})
	seen := x.tap.arm(false, c.mark)
	posted := make(chan struct{})
	go func() {
		c.post(t.Context(), x.dies)
		close(posted)
	}()
	wantSoon(t, seen, "the claim")
	await(t, reachesWithin, "its commit", func() bool { return x.books(t)[c.reference].State == "submitting" })
	x.dies.freeze(t)
	x.tap.disarm(false)
	await(t, heardWithin, "a look by the other replica", func() bool {
		c.shop.stands(t, c.remit, c.reference, "")
		return x.books(t)[c.reference].Asked
	})
	if err := x.dies.command.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	<-posted
	if got := c.answers[len(c.answers)-1]; got.Code != fault.ProviderRejected || got.Sent != fault.SentNo || c.scene.called() > 0 {
		t.Errorf("%s: after %d calls answered %s", c, c.scene.called(), got)
	}
	x.dies.kill(t)
}

// lateTokens lets tokens expire as calls arrive, and gives the next ones when it is
// too late to send: what was not let in is not sent again, and its reference is
// free.
func (x *matrix) lateTokens(t *testing.T) {
	t.Helper()
	x.revive(t)
	var posts sync.WaitGroup
	var all []*crossing
	for _, r := range routes {
		c := x.add(r, mishap{act: actToken}, point{name: "the next token came too late", at: before})
		all = append(all, c)
		posts.Go(func() { c.post(t.Context(), x.dies) })
		wantSoon(t, c.scene.arrived, "the call")
	}
	release := sync.OnceFunc(x.stage.noTokens())
	defer release()
	for _, c := range all {
		c.scene.letGo()
		wantSoon(t, c.scene.acted, "no for an answer")
	}
	await(t, heardWithin, "the end of the time to send", func() bool { return x.books(t)[all[1].reference].SendBy.Before(time.Now()) })
	release()
	posts.Wait()
	for _, c := range all {
		notNow.want(t, c.String(), c.answers[0], c.reference)
		if c.scene.called() != 1 || x.books(t)[c.reference].State != "not_submitted" {
			t.Errorf("%s: %d calls, stands at %+v", c, c.scene.called(), x.books(t)[c.reference])
		}
	}
	x.dies.kill(t)
}

// lateCalls has calls arrive at the upstream after the gateway is dead and the
// other one was told that nothing is there, again and again, but not yet for as long
// as would make it proof.
func (x *matrix) lateCalls(t *testing.T) (arrive func()) {
	t.Helper()
	x.revive(t)
	var posts sync.WaitGroup
	var all []*crossing
	for _, r := range routes {
		c := x.add(r, mishap{name: "nothing"}, point{name: "gateway killed, the call arrives after looks", at: before})
		all = append(all, c)
		posts.Go(func() { c.post(t.Context(), x.dies) })
		wantSoon(t, c.scene.arrived, "the call")
	}
	x.strike(t, false)
	posts.Wait()
	sentBy := x.books(t)[all[1].reference].SendBy
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for time.Since(sentBy) < twoLooks && t.Context().Err() == nil {
			for _, c := range all {
				if a, err := c.shop.post(t.Context(), "/wallet1/transfer/status", fields{"external_id": c.reference}); t.Context().Err() == nil && (err != nil || a.remitted().Status != "Pending") {
					t.Errorf("%s: before it has arrived: %v %s", c, err, a)
				}
			}
			<-tick.C
		}
		for _, c := range all {
			c.scene.letGo() // at once, whatever else the matrix has to do: the upstream has a minute
		}
	}()
	t.Cleanup(func() { <-asked })
	return func() {
		t.Helper()
		wantWithin(t, 2*heardWithin, asked, "looks in vain")
		for _, c := range all {
			wantSoon(t, c.scene.acted, "what the upstream does")
			c.wantMoved(t, x.stays, 1)
		}
	}
}

// twoLooks is when a transfer that is asked for was surely looked at twice, 10 s
// apart.
const twoLooks = 18 * time.Second

// freeze stops a process, and waits until none of its threads runs.
func (p *program) freeze(t *testing.T) {
	t.Helper()
	if err := p.command.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	await(t, reachesWithin, "a process that stands still", func() bool {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.command.Process.Pid))
		return err == nil && !slices.ContainsFunc(threads, func(thread string) bool {
			stat, err := os.ReadFile(thread)
			_, state, _ := strings.Cut(string(stat), ") ")
			return err != nil || !strings.HasPrefix(state, "T")
		})
	})
}
