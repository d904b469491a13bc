package transfer_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// checkEqual sends equal transfers without a reference, each as soon as the answer of the
// last one was read, to two replicas in turn: on connections that are closed at once and on
// one that stays. All are transfers of their own.
func checkEqual(t *testing.T, x *matrix) {
	t.Helper()
	const each = 24
	replicas := []*harness.Program{x.stays, x.dies}
	for r, headers := range map[route][]string{toWallet: {"Connection", "close"}, toBank: nil} {
		m, ids := r.newTransfer(), map[string]bool{}
		for i := range each {
			a := x.shop.At(replicas[i%2]).Ask(t, m.path, m.body(""), headers...)
			if a.HTTP != http.StatusOK || a.Replayed() || ids[transferOf(a).id()] {
				t.Fatalf("the %d. is answered %s, replayed: %t", i+1, a, a.Replayed())
			}
			ids[transferOf(a).id()] = true
		}
		m.wantMoved(t, x.stays, each)
	}
}

// checkHungUp hangs up while the provider works on a transfer without a reference. The same
// request again gets that transfer, and no other.
func checkHungUp(t *testing.T, x *matrix) {
	t.Helper()
	for _, r := range routes {
		s, m := x.shop, r.newTransfer()
		call := x.proxy.give(m.amount, "", before)
		impatient, hang := context.WithCancel(t.Context())
		gone := make(chan error)
		go func() {
			_, err := s.Post(impatient, m.path, m.body(""))
			gone <- err
		}()
		wantSoon(t, call.arrived, "the call")
		hang()
		if err := <-gone; err == nil {
			t.Error("the client that hung up was answered")
		}
		busy := s.Ask(t, m.path, m.body(""))
		if busy.Code != fault.InProgress || busy.Header.Get("Retry-After") == "" {
			t.Errorf("while it is being created: %s", busy)
		}
		call.letGo()
		var first harness.Answer
		harness.Await(t, heardWithin, "the transfer that nobody waits for", func() bool {
			first = s.Ask(t, m.path, m.body(""))
			return first.Code != fault.InProgress
		})
		m.wantAnswer(t, first, "", "Success")
		m.wantMoved(t, s.Program, 1)
		if !first.Replayed() {
			t.Errorf("asked again: %s", first)
		}
		// That answer was read, so the next is another.
		if next := sends(t, s, m, "", "Success"); next.id() == transferOf(first).id() {
			t.Errorf("after the answer was read: %s again", next.id())
		}
		m.wantMoved(t, s.Program, 2)
	}
}
