package transfer_test

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

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// reservePoints are the moments after a reservation is committed and before its
// answer is heard.
var reservePoints = []point{{name: "gateway killed, reserved and not heard of"}, {name: "plugin killed, reserved and not heard of", plugin: true}}

// dieReserving kills somebody at such a moment.
func (x *matrix) dieReserving(t *testing.T, at point, r route) {
	t.Helper()
	x.revive(t)
	c := x.add(r, upstreamFault{name: "nothing"}, at)
	seen := x.tap.arm(false, c.mark)
	posted := make(chan struct{})
	go func() {
		c.insist(t.Context(), x.dies)
		close(posted)
	}()
	wantSoon(t, seen, "the reservation")
	harness.Await(t, reachesWithin, "its commit", func() bool { return x.recorded(t)[c.reference].State == "submitting" })
	x.strike(t, at.plugin)
	x.tap.disarm(!at.plugin)
	<-posted
	x.end(t)
}

// sleepReserving stops the gateway between reservation and send until somebody
// else has looked, and told the merchant that it is pending. When it wakes,
// nothing goes out any more, and that is known at once.
func (x *matrix) sleepReserving(t *testing.T, r route) {
	t.Helper()
	x.revive(t)
	c := x.add(r, upstreamFault{name: "nothing"}, point{name: "gateway stopped between reservation and call"})
	seen := x.tap.arm(false, c.mark)
	posted := make(chan struct{})
	go func() {
		c.post(t.Context(), x.dies)
		close(posted)
	}()
	wantSoon(t, seen, "the reservation")
	harness.Await(t, reachesWithin, "its commit", func() bool { return x.recorded(t)[c.reference].State == "submitting" })
	freeze(t, x.dies)
	x.tap.disarm(false)
	harness.Await(t, heardWithin, "a look by the other replica", func() bool {
		statusOfTransfer(t, c.shop, c.transfer, c.reference, "")
		return x.recorded(t)[c.reference].Asked
	})
	if err := x.dies.Command.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	<-posted
	if got := c.answers[len(c.answers)-1]; got.Code != fault.ProviderRejected || got.Sent != fault.SentNo || c.script.called() > 0 {
		t.Errorf("%s: after %d calls answered %s", c, c.script.called(), got)
	}
	x.dies.Kill(t)
}

// lateTokens lets tokens expire as calls arrive, and gives the next ones when it is
// too late to send: what was not let in is not sent again, and its reference is
// free.
func (x *matrix) lateTokens(t *testing.T) {
	t.Helper()
	x.revive(t)
	var posts sync.WaitGroup
	var all []*transferCase
	for _, r := range routes {
		c := x.add(r, upstreamFault{act: actToken}, point{name: "the next token came too late", at: before})
		all = append(all, c)
		posts.Go(func() { c.post(t.Context(), x.dies) })
		wantSoon(t, c.script.arrived, "the call")
	}
	release := sync.OnceFunc(x.proxy.noTokens())
	defer release()
	for _, c := range all {
		c.script.letGo()
		wantSoon(t, c.script.acted, "no for an answer")
	}
	harness.Await(t, heardWithin, "the end of the time to send", func() bool {
		return x.recorded(t)[all[1].reference].SendBy.Add(time.Second).Before(time.Now()) // the gateway's clock may be a little behind
	})
	release()
	posts.Wait()
	for _, c := range all {
		harness.ProviderUnavailable.Want(t, c.String(), c.answers[0], c.reference)
		if c.script.called() != 1 || x.recorded(t)[c.reference].State != "not_submitted" {
			t.Errorf("%s: %d calls, stands at %+v", c, c.script.called(), x.recorded(t)[c.reference])
		}
	}
	x.dies.Kill(t)
}

// lateCalls has calls arrive at the upstream after the gateway is dead and the
// other one was told that nothing is there, again and again, but not yet for as
// long as would make it proof.
func (x *matrix) lateCalls(t *testing.T) (arrive func()) {
	t.Helper()
	x.revive(t)
	var posts sync.WaitGroup
	var all []*transferCase
	for _, r := range routes {
		c := x.add(r, upstreamFault{name: "nothing"}, point{name: "gateway killed, the call arrives after looks", at: before})
		all = append(all, c)
		posts.Go(func() { c.post(t.Context(), x.dies) })
		wantSoon(t, c.script.arrived, "the call")
	}
	x.strike(t, false)
	posts.Wait()
	sentBy := x.recorded(t)[all[1].reference].SendBy
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for time.Since(sentBy) < twoLooks && t.Context().Err() == nil {
			for _, c := range all {
				if a, err := c.shop.Post(t.Context(), "/wallet1/transfer/status", harness.Fields{"external_id": c.reference}); t.Context().Err() == nil && (err != nil || transferOf(a).Status != "Pending") {
					t.Errorf("%s: before it has arrived: %v %s", c, err, a)
				}
			}
			<-tick.C
		}
		for _, c := range all {
			c.script.letGo() // at once, whatever else the matrix has to do: the upstream has a minute
		}
	}()
	t.Cleanup(func() { <-asked })
	return func() {
		t.Helper()
		wantWithin(t, 2*heardWithin, asked, "looks in vain")
		for _, c := range all {
			wantSoon(t, c.script.acted, "what the upstream does")
			c.wantMoved(t, x.stays, 1)
		}
	}
}

// twoLooks is when a transfer that is asked for was surely looked at twice, 10 s
// apart.
const twoLooks = 18 * time.Second

// freeze stops a process, and waits until none of its threads runs.
func freeze(t *testing.T, p *harness.Program) {
	t.Helper()
	if err := p.Command.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	harness.Await(t, reachesWithin, "a process that stands still", func() bool {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.Command.Process.Pid))
		return err == nil && !slices.ContainsFunc(threads, func(thread string) bool {
			stat, err := os.ReadFile(thread)
			_, state, _ := strings.Cut(string(stat), ") ")
			return err != nil || !strings.HasPrefix(state, "T")
		})
	})
}
