package transfer_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// wantDuplicate wants a transfer refused that equals an earlier one, which the answer names.
func (m transfer) wantDuplicate(t testing.TB, a harness.Answer, id string, statuses ...string) {
	t.Helper()
	harness.DuplicateTransfer.Want(t, "an equal one", a, "")
	var named map[string]string
	if err := json.Unmarshal(a.Data, &named); err != nil {
		t.Errorf("%s: %v", a, err)
	}
	made, err := time.Parse(time.RFC3339, named["created_at"])
	known := false
	for _, status := range statuses {
		known = known || named["status"] == status
	}
	if !known || err != nil || time.Since(made) > time.Hour || len(named) != 3 || named[m.idField] == "" || id != "" && named[m.idField] != id {
		t.Errorf("named %v, want %s %s, %q", named, m.idField, id, statuses)
	}
	if a.HTTP != http.StatusConflict || a.Replayed() || !strings.Contains(a.Message, "external_id") {
		t.Errorf("%d, replayed: %t: %s", a.HTTP, a.Replayed(), a)
	}
}

// checkEqual sends equal transfers without a reference at once, to two replicas. One moves;
// the others are refused, and name it.
func checkEqual(t *testing.T, x *matrix) {
	t.Helper()
	replicas := []*harness.Program{x.stays, x.dies}
	for _, r := range routes {
		m, answers := r.newTransfer(), make([]harness.Answer, 24)
		var sending sync.WaitGroup
		for i := range answers {
			sending.Go(func() { answers[i], _ = x.shop.At(replicas[i%2]).Insist(t.Context(), m.path, m.body("")) })
		}
		sending.Wait()
		var first harness.Answer
		for _, a := range answers {
			if a.Success && first.Success {
				t.Errorf("two were made: %s and %s", first, a)
			}
			if a.Success {
				first = a
			}
		}
		m.wantAnswer(t, first, "", "Success")
		for _, a := range answers {
			if !a.Success && a.Code != fault.InProgress {
				m.wantDuplicate(t, a, transferOf(first).id(), "Success", "Pending")
			}
		}
		m.wantDuplicate(t, x.shop.At(x.dies).Ask(t, m.path, m.body("")), transferOf(first).id(), "Success")
		m.wantMoved(t, x.stays, 1)
	}
}

// checkHungUp hangs up while the provider works on a transfer without a reference. The same
// request again moves nothing, and with an external_id it is another transfer.
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
		var again harness.Answer
		harness.Await(t, heardWithin, "the transfer that nobody waits for", func() bool {
			again = s.Ask(t, m.path, m.body(""))
			return again.Code != fault.InProgress
		})
		m.wantDuplicate(t, again, "", "Success", "Pending")
		m.wantMoved(t, s.Program, 1)
		sends(t, s, m, harness.NewReference(), "Success")
		m.wantMoved(t, s.Program, 2)
	}
}

// checkUnread has a client die with the answer to a transfer without a reference unread,
// as behind a balancer. The same request again moves nothing.
func checkUnread(t *testing.T, s harness.Shop) {
	for _, r := range routes {
		m := r.newTransfer()
		body, err := json.Marshal(harness.Fields{"secret_key": s.Key}.With(m.body("")))
		if err != nil {
			t.Fatal(err)
		}
		at, err := url.Parse(s.Program.APIURL)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := net.Dial("tcp", at.Host)
		if err != nil {
			t.Fatal(err)
		}
		head := "POST " + m.path + " HTTP/1.1\r\nHost: " + at.Host + "\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n"
		if _, err := conn.Write(append([]byte(head), body...)); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 1)); err != nil { // the answer is here
			t.Fatal(err)
		}
		_ = conn.Close()
		m.wantMoved(t, s.Program, 1)
		again := s.Ask(t, m.path, m.body(""))
		m.wantMoved(t, s.Program, 1)
		m.wantDuplicate(t, again, "", "Success")
	}
}
