package rollout

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/policy"
)

// propose writes a proposal into the head's row, as no gateway does.
func (w *world) propose(activation uuid.UUID, version policy.Version) {
	w.Helper()
	w.execute("UPDATE policy_head SET proposal_id = $1, proposed = $2, proposed_at = $3", activation, string(version), w.clock())
}

func (w *world) head() store.PolicyHead {
	w.Helper()
	head, err := w.store.PolicyHead(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	return head
}

// TestProposedByHand: only what an operator has asked a gateway for is ever proposed,
// and only instead of what was in force then.
func TestProposedByHand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.start("a")
	first := policy.Default().Version()
	one, refused := w.push(edited("one")), w.push(edited("wrong"))
	for i, what := range []struct {
		version policy.Version
		by      func() uuid.UUID
	}{
		{one, uuid.New}, // there is no such activation
		{refused, func() uuid.UUID { // a row of its own
			id := uuid.New()
			w.execute(`INSERT INTO policy_activations (activation_id, version, replaces, reason, requested_by, requested_at, confirmed_by, proposed_at, state, detail)
				VALUES ($1, $2, $3, '', 'ayu', now(), 'budi', now(), 'proposed', '')`, id, string(refused), string(first))
			w.execute("UPDATE policy_versions SET state = 'pushed' WHERE version = $1", string(refused))
			return id
		}},
		{one, func() uuid.UUID { // one that waits for another operator
			w.publisher.SecondOperator = true
			asked := w.activate(one)
			w.execute("UPDATE policy_activations SET state = 'proposed', confirmed_by = 'budi', proposed_at = now() WHERE activation_id = $1", asked.ID)
			return asked.ID
		}},
		{refused, func() uuid.UUID { // another version in an operator's row
			w.publisher.SecondOperator = false
			asked := w.activate(one)
			w.execute("UPDATE policy_activations SET version = $1 WHERE activation_id = $2", string(refused), asked.ID)
			return asked.ID
		}},
	} {
		w.propose(what.by(), what.version)
		w.look(a, a)
		w.run(first, a)
		if head := w.head(); head.Proposal != uuid.Nil || head.Version != first || head.Changes != 1 {
			t.Errorf("case %d: %+v", i, head)
		}
		if found := w.exceptions(); len(found) == 0 || len(a.refused) != i+1 {
			t.Errorf("case %d: exceptions %q, refused %v", i, found, a.refused)
		}
	}
	// What was asked for once is not proposed again when the same version is in force again.
	withdrawn := w.activate(one)
	w.pass(store.ProposalLasts + time.Second)
	w.look(a)
	w.became(withdrawn, store.ActivationWithdrawn, "nobody decided")
	two := w.push(edited("two"))
	done := w.activate(two)
	w.look(a, a)
	w.run(two, a)
	if _, err := w.publisher.Rollback(t.Context(), Wish{Operator: "ayu", Replaces: two}); err != nil {
		t.Fatal(err)
	}
	w.look(a, a)
	for _, old := range []store.Activation{withdrawn, done} {
		w.execute("UPDATE policy_activations SET state = 'proposed', decided_at = NULL WHERE activation_id = $1", old.ID)
		w.propose(old.ID, old.Version)
		w.look(a, a)
		w.run(first, a)
	}
}

// TestRollbackByHand: where a rollback leads is a gateway's word, too, and so is what
// waits for a second operator.
func TestRollbackByHand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.start("a")
	one, two := w.push(edited("one")), w.push(edited("two"))
	w.publisher.SecondOperator = true
	waiting := w.activate(two)
	w.execute("UPDATE policy_activations SET requested_by = 'budi' WHERE activation_id = $1", waiting.ID)
	if _, err := w.publisher.Activate(t.Context(), two, Wish{Operator: "citra"}); !errors.Is(err, ErrForged) {
		t.Errorf("confirmed another's row: %v", err)
	}
	w.execute("UPDATE policy_activations SET requested_by = 'ayu' WHERE activation_id = $1", waiting.ID)
	if again := w.activate(two); again.ID != waiting.ID || again.State != store.ActivationWaiting {
		t.Errorf("%+v", again)
	}
	confirmed, err := w.publisher.Activate(t.Context(), two, Wish{Operator: "budi", Reason: "seen"})
	if err != nil || confirmed.ID != waiting.ID || confirmed.State != store.ActivationProposed || confirmed.ConfirmedBy != "budi" {
		t.Fatalf("%+v, %v", confirmed, err)
	}
	w.look(a, a)
	w.run(two, a)
	w.publisher.SecondOperator = false
	w.activate(one)
	w.look(a, a)
	w.execute("UPDATE policy_activations SET back_id = (SELECT activation_id FROM policy_activations WHERE requested_by = 'gerbang') WHERE version = $1", string(one))
	if _, err := w.publisher.Rollback(t.Context(), Wish{Operator: "ayu", Replaces: one}); !errors.Is(err, ErrForged) {
		t.Errorf("rolled back along a row of somebody's: %v", err)
	}
}

// TestOlderHead: an older row of the head that was put back is told and not run, and
// nothing is decided on it.
func TestOlderHead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.start("a")
	one, two := w.push(edited("one")), w.push(edited("two"))
	w.activate(one)
	w.look(a, a)
	old := w.head()
	w.activate(two)
	w.look(a, a)
	now := w.head()
	put := func(h store.PolicyHead) {
		w.execute("UPDATE policy_head SET activation_id = $1, version = $2, changes = $3, mac = $4", h.Activation, string(h.Version), h.Changes, h.MAC)
	}
	put(old)
	w.activate(two)
	w.look(a, a)
	w.run(two, a)
	if lag := a.Lag(); lag == nil || !strings.Contains(lag.Why, "an older row was put back") || len(w.exceptions()) != 1 || w.head().Changes != old.Changes {
		t.Errorf("lag %+v, exceptions %q", lag, w.exceptions())
	}
	put(now)
	w.execute("UPDATE policy_head SET proposal_id = NULL, proposed = NULL, proposed_at = NULL")
	w.look(a)
	if a.Lag() != nil || len(w.exceptions()) != 0 {
		t.Errorf("lag %+v, exceptions %q", a.Lag(), w.exceptions())
	}
}

// TestStartWithAForgedHead takes no money, on the newest version that a gateway has put in
// force, until an operator activates a version.
func TestStartWithAForgedHead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.start("a")
	one, two := w.push(edited("one")), w.push(edited("two"))
	for _, version := range []policy.Version{one, two} {
		w.activate(version)
		w.look(a, a)
	}
	three := w.push(edited("three"))
	// A forged history beside it.
	w.execute(`INSERT INTO policy_activations (activation_id, version, replaces, reason, requested_by, requested_at, confirmed_by, proposed_at, state, decided_at, detail, changes)
		VALUES ($1, $2, '', '', 'ayu', now(), '', now(), 'done', now(), '', 99)`, uuid.New(), string(three))
	w.execute("UPDATE policy_head SET version = $1", string(three))
	b := w.start("b")
	w.run(two, b)
	if b.Fresh(w.clock()) || b.Lag() == nil || !strings.Contains(b.log.String(), "no money is moved") {
		t.Errorf("fresh %v, lag %+v, logged %s", b.Fresh(w.clock()), b.Lag(), b.log)
	}
	w.activate(one)
	w.look(a, b, a, b)
	w.run(one, a, b)
	if !a.Fresh(w.clock()) || !b.Fresh(w.clock()) || len(w.exceptions()) != 0 {
		t.Errorf("fresh %v %v, exceptions %q", a.Fresh(w.clock()), b.Fresh(w.clock()), w.exceptions())
	}
}

// TestHeadGone: a row that is gone begins nothing anew.
func TestHeadGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.start("a")
	one := w.push(edited("one"))
	w.activate(one)
	w.look(a, a)
	head := w.head()
	w.execute("DELETE FROM policy_head")
	if _, err := a.Look(t.Context()); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
	b := w.start("b")
	w.run(one, a, b)
	for _, r := range []*replica{a, b} {
		if lag := r.Lag(); lag == nil || !strings.Contains(lag.Why, "put it back from a backup") {
			t.Errorf("lag %+v", lag)
		}
	}
	if b.Fresh(w.clock()) || len(w.exceptions()) != 2 {
		t.Errorf("fresh %v, exceptions %q", b.Fresh(w.clock()), w.exceptions())
	}
	w.pass(freshFor + time.Second)
	if a.Fresh(w.clock()) {
		t.Error("money goes on where the head can't be read")
	}
	w.execute("INSERT INTO policy_head (name, activation_id, version, changes, changed_at, mac) VALUES ('head', $1, $2, $3, $4, $5)",
		head.Activation, string(head.Version), head.Changes, head.ChangedAt, head.MAC)
	w.look(a, b)
	if !a.Fresh(w.clock()) || !b.Fresh(w.clock()) || len(w.exceptions()) != 0 {
		t.Errorf("put back: fresh %v %v, exceptions %s", a.Fresh(w.clock()), b.Fresh(w.clock()), fmt.Sprint(w.exceptions()))
	}
}
