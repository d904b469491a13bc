package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/cockroach-go/v2/crdb"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// cuttable is a store behind a proxy, and one beside it that sees the truth.
func cuttable(t *testing.T) (p *proxy, cut, truth *store.Store, url string) {
	t.Helper()
	url = database(t)
	p, through := between(t, url)
	return p, open(t, through, store.Options{MaxConns: 4}), open(t, url, store.Options{MaxConns: 4}), url
}

const rows = "SELECT count(*) FROM movements"

func TestReserveWhoseAnswerIsCut(t *testing.T) {
	t.Parallel()
	p, s, truth, url := cuttable(t)
	for _, which := range []string{"the first", "a later one, of a prepared statement"} {
		m := draft(which)
		p.arm(cut{at: execution, after: true})
		reserved, ours, err := s.Reserve(t.Context(), m)
		if err != nil || !ours || reserved.ID != m.ID || reserved.Attempt != 1 || reserved.State != movement.Submitting {
			t.Errorf("%s: %+v, %v, %v", which, reserved, ours, err)
		}
		if p.happened() != 1 {
			t.Fatal("nothing was cut")
		}
		if _, ours, err := truth.Reserve(t.Context(), draft(which)); ours || err != nil {
			t.Errorf("%s: somebody else gets it, too: %v, %v", which, ours, err)
		}
	}
	if n := count(t, url, rows); n != 2 {
		t.Errorf("%d rows of two reservations", n)
	}
}

func TestReserveThatIsCut(t *testing.T) {
	t.Parallel()
	p, s, _, url := cuttable(t)
	m := draft("INV/1")
	p.arm(cut{at: execution})
	if _, ours, err := s.Reserve(t.Context(), m); err == nil || ours {
		t.Errorf("%v, %v", ours, err)
	}
	if n := count(t, url, rows); n != 0 || p.happened() != 1 {
		t.Errorf("%d rows, %d cuts", n, p.happened())
	}
	if again := reserve(t, s, m); again.Attempt != 1 {
		t.Errorf("%+v", again)
	}
}

// TestReserveCutForGood can't be read back: whatever stands in the database, the
// caller gets an error and must not act.
func TestReserveCutForGood(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		p, s, truth, url := cuttable(t)
		m := draft("INV/1")
		p.arm(cut{at: execution, after: after, stay: true})
		if _, ours, err := s.Reserve(t.Context(), m); err == nil || ours {
			t.Errorf("after %v: %v, %v", after, ours, err)
		}
		want := 0
		if after {
			want = 1
		}
		if n := count(t, url, rows); n != want {
			t.Errorf("after %v: %d rows", after, n)
		}
		// The same request again finds the first attempt, and does not reserve twice.
		if existing, ours, err := truth.Reserve(t.Context(), draft("INV/1")); err != nil || ours == after || after && existing.ID != m.ID {
			t.Errorf("after %v, again: %v, %v", after, ours, err)
		}
	}
}

// TestCutReservationIsNotAnothers has another replica reserve the reference while ours is
// cut: for the very same request, under the same id and at the same time.
func TestCutReservationIsNotAnothers(t *testing.T) {
	t.Parallel()
	p, s, truth, _ := cuttable(t)
	freed := at(t, truth, "INV/2", movement.NotSubmitted)
	for _, reference := range []string{"INV/1", "INV/2"} {
		m := draft(reference)
		other := m
		p.arm(cut{at: execution, then: func() { reserve(t, truth, other) }})
		existing, ours, err := s.Reserve(t.Context(), m)
		if err != nil || ours {
			t.Errorf("%s, which is another's: %v, %v", reference, ours, err)
		}
		if reference == "INV/1" && existing.ID != other.ID || reference == "INV/2" && existing.ID != freed.ID {
			t.Errorf("%s: %+v", reference, existing)
		}
	}
}

func TestReserveAgainWhoseAnswerIsCut(t *testing.T) {
	t.Parallel()
	p, s, truth, _ := cuttable(t)
	freed := at(t, truth, "INV/1", movement.NotSubmitted)
	p.arm(cut{at: execution, after: true})
	reserved, ours, err := s.Reserve(t.Context(), draft("INV/1"))
	if err != nil || !ours || reserved.ID != freed.ID || reserved.Attempt != 2 || p.happened() != 1 {
		t.Errorf("%+v, %v, %v", reserved, ours, err)
	}
}

func TestMoveWhoseAnswerIsCut(t *testing.T) {
	t.Parallel()
	p, s, truth, _ := cuttable(t)
	m := reserve(t, truth, draft("INV/1"))
	p.arm(cut{at: execution, after: true})
	if ok, err := apply(t.Context(), s, epoch, move(m, movement.Pending)); err != nil || !ok || p.happened() != 1 {
		t.Errorf("%v, %v", ok, err)
	}
	if got := byID(t, truth, m.ID); got.State != movement.Pending || got.Sequence != m.Sequence+1 || len(history(t, truth, m.ID)) != 1 {
		t.Errorf("%s, %d, %v", got.State, got.Sequence, history(t, truth, m.ID))
	}
}

// TestMoveThatIsOvertaken has the movement go on before the cut one is read back:
// it was moved all the same.
func TestMoveThatIsOvertaken(t *testing.T) {
	t.Parallel()
	p, s, truth, _ := cuttable(t)
	m := reserve(t, truth, draft("INV/1"))
	pending := m
	pending.State, pending.Version = movement.Pending, m.Version+1
	p.arm(cut{at: execution, after: true, then: func() { moved(t, truth, move(pending, movement.Succeeded)) }})
	if ok, err := apply(t.Context(), s, epoch, move(m, movement.Pending)); err != nil || !ok {
		t.Errorf("%v, %v", ok, err)
	}
	if got := byID(t, truth, m.ID); got.State != movement.Succeeded || len(history(t, truth, m.ID)) != 2 {
		t.Errorf("%s, %v", got.State, history(t, truth, m.ID))
	}
}

func TestMoveThatIsCut(t *testing.T) {
	t.Parallel()
	p, s, truth, _ := cuttable(t)
	m := reserve(t, truth, draft("INV/1"))
	p.arm(cut{at: execution})
	if ok, err := apply(t.Context(), s, epoch, move(m, movement.Pending)); err == nil || ok {
		t.Errorf("%v, %v", ok, err)
	}
	if got := byID(t, truth, m.ID); got.State != movement.Submitting || len(history(t, truth, m.ID)) != 0 {
		t.Errorf("%s, %v", got.State, history(t, truth, m.ID))
	}
	// Another's move meanwhile is not taken for ours, although it is the same.
	p.arm(cut{at: execution, then: func() { moved(t, truth, move(m, movement.Pending)) }})
	if ok, err := apply(t.Context(), s, epoch.Add(time.Second), move(m, movement.Pending)); err == nil || ok {
		t.Errorf("another's: %v, %v", ok, err)
	}
}

// TestRecordWhoseAnswerIsCut reads back what changes no state, too.
func TestRecordWhoseAnswerIsCut(t *testing.T) {
	t.Parallel()
	p, s, truth, _ := cuttable(t)
	supplement := func(m movement.Movement) movement.Change {
		return movement.Change{Movement: m, Transition: movement.Transition{
			Effect: movement.Supplement, Result: json.RawMessage(`{"sn":"1"}`), Event: "supplemented", Detail: "{}",
		}}
	}
	for name, c := range map[string]struct {
		from   movement.State
		change func(movement.Movement) movement.Change
	}{
		"late money": {movement.Expired, func(m movement.Movement) movement.Change { return record(m, movement.LateMoney, epoch) }},
		"a reversal": {movement.Succeeded, func(m movement.Movement) movement.Change { return record(m, movement.MoneyBack, epoch) }},
		"supplement": {movement.Succeeded, supplement},
	} {
		for _, after := range []bool{false, true} {
			m := at(t, truth, fmt.Sprint(name, after), c.from)
			entries := len(history(t, truth, m.ID))
			p.arm(cut{at: execution, after: after})
			if ok, err := apply(t.Context(), s, epoch, c.change(m)); ok != after || (err == nil) != after || p.happened() != 1 {
				t.Errorf("%s, after %v: %v, %v", name, after, ok, err)
			}
			if got := len(history(t, truth, m.ID)) - entries; (got == 1) != after {
				t.Errorf("%s, after %v: %d entries", name, after, got)
			}
		}
	}
}

func TestAdministrationWhoseAnswerIsCut(t *testing.T) {
	t.Parallel()
	p, s, truth, url := cuttable(t)
	w := newTenant(t)
	p.arm(cut{at: commitment, after: true})
	if err := s.CreateMerchant(t.Context(), by("create"), w.merchant, w.keys, w.secrets); err != nil || p.happened() != 1 {
		t.Errorf("%v", err)
	}
	p.arm(cut{at: commitment, after: true})
	c, err := s.PutConnection(t.Context(), by("connect"), w.connections[0])
	if err != nil || c.Version != 1 || p.happened() != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	account, err := truth.AccountByID(t.Context(), w.merchant.ID)
	if err != nil || len(account.Connections()) != 1 || account.Version() != 3 {
		t.Errorf("%v, version %d", err, account.Version())
	}
	if n := count(t, url, "SELECT count(*) FROM audit"); n != 2 {
		t.Errorf("%d audit entries of two actions", n)
	}
}

func TestAdministrationThatIsCut(t *testing.T) {
	t.Parallel()
	p, s, truth, url := cuttable(t)
	w := newTenant(t)
	for _, stay := range []bool{false, true} {
		p.arm(cut{at: commitment, stay: stay})
		err := s.CreateMerchant(t.Context(), by("create"), w.merchant, w.keys, w.secrets)
		if _, unclear := errors.AsType[*crdb.AmbiguousCommitError](err); !unclear || p.happened() != 1 {
			t.Errorf("%v", err)
		}
		if _, err := truth.AccountByID(t.Context(), w.merchant.ID); !errors.Is(err, tenants.ErrNotFound) {
			t.Errorf("%v", err)
		}
		if n := count(t, url, "SELECT count(*) FROM audit"); n != 0 {
			t.Errorf("%d audit entries of nothing", n)
		}
	}
}

// TestTxIsNeverRepeatedAfterACut counts how often work ran whose commit's fate
// nobody knows.
func TestTxIsNeverRepeatedAfterACut(t *testing.T) {
	t.Parallel()
	p, s, _, url := cuttable(t)
	for i, after := range []bool{false, true} {
		calls := 0
		p.arm(cut{at: commitment, after: after})
		err := s.Tx(t.Context(), func(q *dbsqlc.Queries) error {
			calls++
			return q.InsertMerchant(t.Context(), row(fmt.Sprint(i)))
		})
		if _, unclear := errors.AsType[*crdb.AmbiguousCommitError](err); !unclear || calls != 1 || p.happened() != 1 {
			t.Errorf("after %v: %d calls, %v", after, calls, err)
		}
		if n := count(t, url, "SELECT count(*) FROM merchants WHERE merchant_id <> 'platform'"); n != i {
			t.Errorf("after %v: %d rows", after, n)
		}
	}
}
