package scenarios

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
)

// TestStatusReadsTheStatementAfterTheEnd: a status of a collection that has ended
// still finds its return and its late money.
func TestStatusReadsTheStatementAfterTheEnd(t *testing.T) {
	t.Parallel()
	w := newCollections(t, keeperFor(t))
	m := w.sold("INV/1", 10_000)
	w.up.write(paid("r1", m.Amount, w.now()))
	w.pass(readEvery)
	if s := w.status("INV/1"); !strings.Contains(s.data, `"PAID"`) {
		t.Fatalf("status %s %v", s.data, s.err)
	}
	w.pass(readEvery)
	at := w.now()
	w.up.write(back("r1", m.Amount, at))
	if s := w.status("INV/1"); !strings.Contains(s.data, fmt.Sprintf(`"returned_at":%q`, lifecycle.Stamp(at))) {
		t.Errorf("taken back: status %s", s.data)
	}

	late := w.sold("INV/2", 10_000)
	w.pass(time.Hour)
	w.complete()
	if s := w.status("INV/2"); !strings.Contains(s.data, `"EXPIRED"`) {
		t.Fatalf("status %s %v", s.data, s.err)
	}
	at = late.ExpiresAt.Add(time.Minute)
	w.up.write(paid("r2", late.Amount, at))
	w.pass(readEvery)
	if s := w.status("INV/2"); !strings.Contains(s.data, fmt.Sprintf(`"paid_late_at":%q`, lifecycle.Stamp(at))) {
		t.Errorf("paid late: status %s", s.data)
	}
}

// TestStatusReadsNoStatementInRecovery: no status reads a statement before operators
// open a restored gateway.
func TestStatusReadsNoStatementInRecovery(t *testing.T) {
	t.Parallel()
	w := newCollections(t, keeperFor(t))
	m := w.sold("INV/1", 10_000)
	w.up.write(paid("r1", m.Amount, w.now()))
	w.Lifecycle.Recovering = func() error { return errors.New("restored") }
	w.pass(readEvery)
	if s := w.status("INV/1"); !strings.Contains(s.data, `"PENDING"`) {
		t.Errorf("in recovery: status %s %v", s.data, s.err)
	}
	w.Lifecycle.Recovering = nil
	if s := w.status("INV/1"); !strings.Contains(s.data, `"PAID"`) {
		t.Errorf("once it is open: status %s %v", s.data, s.err)
	}
}
