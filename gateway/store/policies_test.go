package store_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/policy"
)

// opsSays is an operator's audit entry.
func opsSays(who, action string) store.Audit {
	return store.Audit{Operator: who, Action: "policy." + action, At: epoch}
}

// policyOf is a version of its own, as it is pushed.
func policyOf(text string) store.PolicyVersion {
	source := policy.Source{"data.json": []byte(text)}
	return store.PolicyVersion{
		Version: source.Version(), Source: source, Author: "ayu", Message: "why " + text, PushedAt: epoch, MAC: []byte("mac"), State: store.PolicyPushed,
	}
}

// withFirst is a store in which the policy "first" is in force.
func withFirst(t *testing.T) (*store.Store, string) {
	t.Helper()
	url := database(t)
	s := open(t, url, store.Options{MaxConns: 8})
	if err := firstPolicy(t, s); err != nil {
		t.Fatal(err)
	}
	return s, url
}

func firstPolicy(t *testing.T, s *store.Store) error {
	t.Helper()
	done := store.Activation{ID: uuid.New(), Version: policyOf("first").Version, RequestedBy: "gerbang", State: store.ActivationDone, MAC: []byte("done")}
	return s.FirstPolicy(t.Context(), opsSays("gerbang", "first"), policyOf("first"), store.PolicyHead{Activation: done.ID, MAC: []byte("mac")}, done)
}

// wish is an activation of one operator's, as it is proposed to replace the first version.
func wish(version policy.Version) store.Activation {
	return store.Activation{
		ID: uuid.New(), Version: version, Replaces: policyOf("first").Version, RequestedBy: "ayu", State: store.ActivationProposed, Changes: 1, MAC: []byte("proposed"),
	}
}

func push(t *testing.T, s *store.Store, v store.PolicyVersion) store.PolicyVersion {
	t.Helper()
	kept, _, err := s.PushPolicy(t.Context(), opsSays(v.Author, "push"), v)
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

func headOf(t *testing.T, s *store.Store) store.PolicyHead {
	t.Helper()
	head, err := s.PolicyHead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return head
}

// activate proposes a version and puts it in force, as a replica does.
func activate(t *testing.T, s *store.Store, version policy.Version) {
	t.Helper()
	a := wish(version)
	a.Replaces, a.Changes = headOf(t, s).Version, headOf(t, s).Changes
	if _, err := s.Activate(t.Context(), opsSays("ayu", "activate"), a); err != nil {
		t.Fatal(err)
	}
	head := headOf(t, s)
	if ok, err := s.MovePolicyHead(t.Context(), opsSays("gateway", "active"), head, store.PolicyHead{Version: version, MAC: []byte("mac")}, store.Activation{MAC: []byte("done")}); !ok || err != nil {
		t.Fatalf("moved: %v, %v", ok, err)
	}
}

func stateOf(t *testing.T, s *store.Store, version policy.Version) store.PolicyState {
	t.Helper()
	v, err := s.PolicyVersion(t.Context(), version)
	if err != nil {
		t.Fatal(err)
	}
	return v.State
}

// TestFirstPolicy: of several first starts at once one stands, and all see the same.
func TestFirstPolicy(t *testing.T) {
	t.Parallel()
	s := open(t, database(t), store.Options{MaxConns: 8})
	if _, err := s.PolicyHead(t.Context()); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("before the first start: %v", err)
	}
	var starts sync.WaitGroup
	for range 6 {
		starts.Go(func() {
			if err := firstPolicy(t, s); err != nil {
				t.Error(err)
			}
		})
	}
	starts.Wait()
	versions, err := s.PolicyVersions(t.Context())
	if err != nil || len(versions) != 1 || versions[0].Number != 1 || versions[0].State != store.PolicyActive || headOf(t, s).Version != versions[0].Version {
		t.Errorf("%+v, %v", versions, err)
	}
	if all, err := s.Activations(t.Context(), 10); err != nil || len(all) != 1 || all[0].ID != headOf(t, s).Activation || all[0].State != store.ActivationDone {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestPushedVersions: what was pushed stays as it was, files and all, and only what was
// refused is judged anew.
func TestPushedVersions(t *testing.T) {
	t.Parallel()
	s, _ := withFirst(t)
	first := push(t, s, policyOf("a"))
	if first.Number != 2 || string(first.Source["data.json"]) != "a" || !first.PushedAt.Equal(epoch) || string(first.Digest()) != string(policyOf("a").Digest()) {
		t.Errorf("%+v", first)
	}
	again := policyOf("a")
	again.Message, again.Author = "another", "budi"
	if kept, pushed, err := s.PushPolicy(t.Context(), opsSays("budi", "push"), again); err != nil || pushed || kept.Message != "why a" || kept.Author != "ayu" {
		t.Errorf("pushed again: %v %v %+v", pushed, err, kept)
	}
	bad := policyOf("b")
	bad.State, bad.Findings = store.PolicyRefused, []policy.Finding{{File: "data.json", Line: 3, Reason: "no"}}
	if kept := push(t, s, bad); kept.State != store.PolicyRefused || len(kept.Findings) != 1 || kept.Findings[0].Line != 3 {
		t.Errorf("%+v", kept)
	}
	a := wish(bad.Version)
	if _, err := s.Activate(t.Context(), opsSays("ayu", "activate"), a); !errors.Is(err, store.ErrPolicyRefused) {
		t.Errorf("a refused version is activated: %v", err)
	}
	if kept, pushed, err := s.PushPolicy(t.Context(), opsSays("budi", "push"), policyOf("b")); err != nil || !pushed || kept.State != store.PolicyPushed || kept.Number != 3 {
		t.Errorf("judged anew: %v %v %+v", pushed, err, kept)
	}
	a.Version = "nothing"
	if _, err := s.Activate(t.Context(), opsSays("ayu", "activate"), a); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("nothing is activated: %v", err)
	}
	// What a MAC is over differs wherever a version differs.
	digests := map[string]bool{}
	for i, change := range []func(*store.PolicyVersion){
		func(*store.PolicyVersion) {}, func(v *store.PolicyVersion) { v.Author = "x" }, func(v *store.PolicyVersion) { v.Message = "x" },
		func(v *store.PolicyVersion) { v.Forced = "x" }, func(v *store.PolicyVersion) { v.Predecessor = "x" },
		func(v *store.PolicyVersion) { v.PushedAt = epoch.Add(time.Microsecond) }, func(v *store.PolicyVersion) { v.Version = "x" },
		func(v *store.PolicyVersion) { v.Author, v.Message = "", v.Author+v.Message },
	} {
		v := policyOf("a")
		change(&v)
		if digests[string(v.Digest())] = true; len(digests) != i+1 {
			t.Errorf("change %d is not in the digest", i)
		}
	}
}

// TestActivation names what it replaces: of eight operators at once one gets it.
func TestActivation(t *testing.T) {
	t.Parallel()
	s, _ := withFirst(t)
	first := policyOf("first").Version
	var won atomic.Int64
	var operators sync.WaitGroup
	for i := range 8 {
		v := push(t, s, policyOf(fmt.Sprint("v", i)))
		operators.Go(func() {
			_, err := s.Activate(t.Context(), opsSays(fmt.Sprint("op", i), "activate"), wish(v.Version))
			switch {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, store.ErrPolicyProposed):
				t.Error(err)
			}
		})
	}
	operators.Wait()
	if won.Load() != 1 {
		t.Fatalf("%d of 8 operators got it", won.Load())
	}
	// Of several replicas that decide at once one moves the head.
	head := headOf(t, s)
	var moved atomic.Int64
	var replicas sync.WaitGroup
	for range 4 {
		replicas.Go(func() {
			ok, err := s.MovePolicyHead(t.Context(), opsSays("gateway", "active"), head, store.PolicyHead{Version: head.Proposed, MAC: []byte("next")}, store.Activation{MAC: []byte("done")})
			if err != nil {
				t.Error(err)
			}
			if ok {
				moved.Add(1)
			}
		})
	}
	replicas.Wait()
	now := headOf(t, s)
	if moved.Load() != 1 || now.Version != head.Proposed || now.Changes != 2 || now.Proposal != uuid.Nil || string(now.MAC) != "next" || now.Activation != head.Proposal {
		t.Errorf("%d moved it, to %+v", moved.Load(), now)
	}
	if stateOf(t, s, first) != store.PolicyPast || stateOf(t, s, now.Version) != store.PolicyActive {
		t.Errorf("the first is %s, the new one %s", stateOf(t, s, first), stateOf(t, s, now.Version))
	}
	a := wish(policyOf("v0").Version)
	if a.Version == now.Version {
		a.Version = policyOf("v1").Version
	}
	if _, err := s.Activate(t.Context(), opsSays("ayu", "activate"), a); !errors.Is(err, store.ErrPolicyMoved) {
		t.Errorf("what is replaced is past: %v", err)
	}
	a.Version = now.Version
	if _, err := s.Activate(t.Context(), opsSays("ayu", "activate"), a); !errors.Is(err, store.ErrPolicyActive) {
		t.Errorf("what is in force: %v", err)
	}
}

// TestProposalsEnd: one replica's refusal ends a proposal and none of the others can
// put it in force; one that nobody decides is given up by the next.
func TestProposalsEnd(t *testing.T) {
	t.Parallel()
	s, _ := withFirst(t)
	first, v, w := policyOf("first").Version, push(t, s, policyOf("v")), push(t, s, policyOf("w"))
	a, err := s.Activate(t.Context(), opsSays("ayu", "activate"), wish(v.Version))
	if err != nil {
		t.Fatal(err)
	}
	head, one, two := headOf(t, s), uuid.New(), uuid.New()
	for _, answer := range []store.PolicyAnswer{{Replica: one, Compiled: true, At: epoch}, {Replica: two, Reason: "too new", At: epoch}, {Replica: two, Compiled: true, At: epoch}} {
		if err := s.AnswerPolicy(t.Context(), a.ID, answer); err != nil {
			t.Fatal(err)
		}
	}
	if ok, err := s.MovePolicyHead(t.Context(), opsSays("gateway", "active"), head, store.PolicyHead{Version: v.Version, MAC: []byte("m")}, store.Activation{MAC: []byte("done")}); ok || err != nil {
		t.Errorf("moved against a replica's word: %v, %v", ok, err)
	}
	for _, want := range []bool{true, false} {
		if ok, err := s.RefuseProposal(t.Context(), opsSays("gateway", "refused"), head, "two: too new", []policy.Finding{{Reason: "too new"}}); ok != want || err != nil {
			t.Errorf("refused: %v, %v", ok, err)
		}
	}
	if a, err = s.Activation(t.Context(), a.ID); err != nil || a.State != store.ActivationRefused || a.Detail != "two: too new" || stateOf(t, s, v.Version) != store.PolicyRefused {
		t.Errorf("%+v, %v; the version is %s", a, err, stateOf(t, s, v.Version))
	}
	if head := headOf(t, s); head.Version != first || head.Proposal != uuid.Nil {
		t.Errorf("%+v", head)
	}

	forgotten := wish(w.Version)
	if _, err := s.Activate(t.Context(), opsSays("ayu", "activate"), forgotten); err != nil {
		t.Fatal(err)
	}
	next := wish(w.Version)
	late := opsSays("budi", "activate")
	if _, err := s.Activate(t.Context(), late, next); !errors.Is(err, store.ErrPolicyProposed) {
		t.Errorf("beside another: %v", err)
	}
	late.At = epoch.Add(store.ProposalLasts + time.Second)
	if _, err := s.Activate(t.Context(), late, next); err != nil {
		t.Errorf("a minute later: %v", err)
	}
	if a, err := s.Activation(t.Context(), forgotten.ID); err != nil || a.State != store.ActivationWithdrawn {
		t.Errorf("%+v, %v", a, err)
	}
	if ok, err := s.WithdrawProposal(t.Context(), late, headOf(t, s), "nobody compiled it"); !ok || err != nil || headOf(t, s).Proposal != uuid.Nil {
		t.Errorf("withdrawn: %v, %v", ok, err)
	}
}

// TestSecondOperator: the first one's word waits for another one's, and ends when
// something else is put in force.
func TestSecondOperator(t *testing.T) {
	t.Parallel()
	s, _ := withFirst(t)
	first, v, w := policyOf("first").Version, push(t, s, policyOf("v")), push(t, s, policyOf("w"))
	waits := func(version policy.Version) store.Activation {
		a := wish(version)
		a.State, a.Back = store.ActivationWaiting, uuid.New()
		return a
	}
	waiting, err := s.Activate(t.Context(), opsSays("ayu", "activate"), waits(v.Version))
	if err != nil || waiting.State != store.ActivationWaiting {
		t.Fatalf("%+v, %v", waiting, err)
	}
	other, err := s.Activate(t.Context(), opsSays("ayu", "activate"), waits(w.Version))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Activate(t.Context(), opsSays("budi", "activate"), waits(v.Version)); !errors.Is(err, store.ErrPolicyProposed) {
		t.Errorf("a second one waits: %v", err)
	}
	if found, err := s.WaitingActivation(t.Context(), v.Version, first); err != nil || found.ID != waiting.ID || string(found.Digest()) != string(waiting.Digest()) {
		t.Errorf("%+v, %v", found, err)
	}
	if _, err := s.WaitingActivation(t.Context(), first, first); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
	if stateOf(t, s, v.Version) != store.PolicyWaiting || headOf(t, s).Proposal != uuid.Nil {
		t.Errorf("%s, %+v", stateOf(t, s, v.Version), headOf(t, s))
	}
	waiting.State, waiting.ConfirmedBy, waiting.MAC = store.ActivationProposed, "budi", []byte("confirmed")
	confirmed, err := s.Activate(t.Context(), opsSays("budi", "activate"), waiting)
	if err != nil || confirmed.ID != waiting.ID || confirmed.State != store.ActivationProposed || confirmed.RequestedBy != "ayu" ||
		string(confirmed.Digest()) != string(waiting.Digest()) || string(confirmed.MAC) != "confirmed" || headOf(t, s).Proposal != waiting.ID {
		t.Errorf("%+v, %v, %+v", confirmed, err, headOf(t, s))
	}
	head := headOf(t, s)
	if ok, err := s.MovePolicyHead(t.Context(), opsSays("gateway", "active"), head, store.PolicyHead{Version: v.Version, MAC: []byte("m")}, store.Activation{MAC: []byte("done")}); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if other, err := s.Activation(t.Context(), other.ID); err != nil || other.State != store.ActivationWithdrawn || stateOf(t, s, w.Version) != store.PolicyPushed {
		t.Errorf("%+v, %v; the version is %s", other, err, stateOf(t, s, w.Version))
	}
}

// TestHeadMovesToWhatMayBeInForce: neither a refused version nor an activation that nobody
// proposes comes into force, whatever the head's row says.
func TestHeadMovesToWhatMayBeInForce(t *testing.T) {
	t.Parallel()
	s, url := withFirst(t)
	v := push(t, s, policyOf("v"))
	a, err := s.Activate(t.Context(), opsSays("ayu", "activate"), wish(v.Version))
	if err != nil {
		t.Fatal(err)
	}
	head := headOf(t, s)
	moves := func() (bool, error) {
		return s.MovePolicyHead(t.Context(), opsSays("gateway", "active"), head, store.PolicyHead{Version: v.Version, MAC: []byte("m")}, store.Activation{MAC: []byte("done")})
	}
	execute(t, url, "UPDATE policy_versions SET state = 'refused' WHERE version = '"+string(v.Version)+"'")
	if ok, err := moves(); ok || !errors.Is(err, store.ErrPolicyRefused) {
		t.Errorf("to a refused version: %v, %v", ok, err)
	}
	execute(t, url, "UPDATE policy_versions SET state = 'pushed' WHERE version = '"+string(v.Version)+"'")
	execute(t, url, "UPDATE policy_activations SET state = 'waiting' WHERE activation_id = '"+a.ID.String()+"'")
	if ok, err := moves(); ok || err != nil {
		t.Errorf("by an activation that waits: %v, %v", ok, err)
	}
	execute(t, url, "UPDATE policy_activations SET state = 'proposed' WHERE activation_id = '"+a.ID.String()+"'")
	if now := headOf(t, s); now.Changes != 1 || now.Proposal != a.ID {
		t.Errorf("%+v", now)
	}
	if ok, err := moves(); !ok || err != nil {
		t.Errorf("moved: %v, %v", ok, err)
	}
	if done, err := s.Activation(t.Context(), a.ID); err != nil || done.State != store.ActivationDone || string(done.MAC) != "done" {
		t.Errorf("%+v, %v", done, err)
	}
	digests := map[string]bool{}
	for i, change := range []func(*store.Activation){
		func(*store.Activation) {}, func(a *store.Activation) { a.ID = uuid.New() }, func(a *store.Activation) { a.Version = "x" },
		func(a *store.Activation) { a.Replaces = "x" }, func(a *store.Activation) { a.Back = uuid.New() }, func(a *store.Activation) { a.RequestedBy = "x" },
		func(a *store.Activation) { a.ConfirmedBy = "x" }, func(a *store.Activation) { a.State = store.ActivationDone }, func(a *store.Activation) { a.Changes++ },
	} {
		changed := a
		change(&changed)
		if digests[string(changed.Digest())] = true; len(digests) != i+1 {
			t.Errorf("change %d is not in the digest", i)
		}
	}
}

// TestFirstPolicyIsTheFirst: where the head's row is gone, nobody begins anew beside what is left.
func TestFirstPolicyIsTheFirst(t *testing.T) {
	t.Parallel()
	for _, left := range []string{"policy_versions", "policy_activations"} {
		t.Run(left, func(t *testing.T) {
			t.Parallel()
			s, url := withFirst(t)
			execute(t, url, "DELETE FROM policy_head")
			gone := map[string]string{"policy_versions": "policy_activations", "policy_activations": "policy_versions"}[left]
			execute(t, url, "DELETE FROM "+gone)
			if err := firstPolicy(t, s); !errors.Is(err, store.ErrPolicyHeadGone) {
				t.Error(err)
			}
			if _, err := s.PolicyHead(t.Context()); !errors.Is(err, store.ErrNotFound) {
				t.Error(err)
			}
			execute(t, url, "DELETE FROM "+left)
			if err := firstPolicy(t, s); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestHundredVersionsAreKept, refused ones apart, and everything that is or ever was in force,
// however old, also where nothing but its activation tells.
func TestHundredVersionsAreKept(t *testing.T) {
	t.Parallel()
	s, url := withFirst(t)
	const were = 22
	for i := range were {
		activate(t, s, push(t, s, policyOf(fmt.Sprint("past", i))).Version)
	}
	execute(t, url, `UPDATE policy_versions SET state = 'refused' WHERE version = '`+string(policyOf("past0").Version)+`'`)
	fill := func(state string, from int) {
		execute(t, url, fmt.Sprintf(`INSERT INTO policy_versions (version, number, files, author, message, forced, predecessor, pushed_at, mac, state, state_at, findings)
			SELECT '%s' || n, n, '', 'ayu', '', '', '', now(), '', '%s', now(), '[]' FROM generate_series(%d, %d) AS n`, state, state, from, from+99))
	}
	count := func() map[store.PolicyState]int {
		versions, err := s.PolicyVersions(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		states := map[store.PolicyState]int{}
		for _, v := range versions {
			states[v.State]++
		}
		return states
	}
	fill("refused", 1000)
	push(t, s, policyOf("one more"))
	if got := count(); got[store.PolicyRefused] != 101 || got[store.PolicyPast] != were-1 || got[store.PolicyActive] != 1 || got[store.PolicyPushed] != 1 {
		t.Errorf("after a hundred refusals: %v", got)
	}
	fill("pushed", 2000)
	push(t, s, policyOf("and another"))
	if got := count(); got[store.PolicyRefused] != 101 || got[store.PolicyPast] != were-1 || got[store.PolicyActive] != 1 || got[store.PolicyPushed] != 100 {
		t.Errorf("after a hundred pushes: %v", got)
	}
	for i := range were {
		was := policyOf(fmt.Sprint("past", i))
		if kept, err := s.PolicyVersion(t.Context(), was.Version); err != nil || kept.Source.Version() != was.Version {
			t.Errorf("version %d of those that were in force: %+v, %v", i, kept, err)
		}
	}
}

// TestDamagedVersions: a row that can't be read is marked in lists.
func TestDamagedVersions(t *testing.T) {
	t.Parallel()
	s, url := withFirst(t)
	v, first := push(t, s, policyOf("v")).Version, policyOf("first").Version
	execute(t, url, "UPDATE policy_versions SET findings = 'no JSON' WHERE version = '"+string(v)+"'", "UPDATE policy_versions SET files = 'x' WHERE version = '"+string(first)+"'")
	if _, err := s.PolicyVersion(t.Context(), first); !errors.Is(err, store.ErrPolicyDamaged) {
		t.Errorf("files: %v", err)
	}
	if read, err := s.PolicyVersion(t.Context(), v); err != nil || !read.Damaged || len(read.Findings) != 1 || string(read.Source["data.json"]) != "v" {
		t.Errorf("findings: %+v, %v", read, err)
	}
	if list, err := s.PolicyVersions(t.Context()); err != nil || len(list) != 2 || !list[0].Damaged || list[1].Damaged {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestLiveReplicas are those with a heartbeat, until they say that they end.
func TestLiveReplicas(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	r := store.Replica{
		ID: uuid.New(), Tag: 65535, Host: "node-1", Policy: "v1", Binary: "v1.2.3", StartedAt: epoch, SeenAt: epoch,
		Plugins: map[string]string{"payments": "ab12"},
	}
	silent, old := r, uuid.New()
	silent.ID, silent.SeenAt = uuid.New(), epoch.Add(-31*time.Second)
	for _, one := range []store.Replica{r, silent} {
		if err := s.ReportReplica(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}
	if problem, err := s.Probe(t.Context(), old, epoch.Add(time.Second)); problem != "" || err != nil { // a gateway of before reports nothing
		t.Fatal(problem, err)
	}
	if problem, err := s.Probe(t.Context(), r.ID, epoch.Add(2*time.Second)); problem != "" || err != nil {
		t.Fatal(problem, err)
	}
	live, err := s.LiveReplicas(t.Context(), epoch.Add(3*time.Second))
	if err != nil || len(live) != 2 || live[0].ID != r.ID || live[0].Tag != 65535 || live[0].Plugins["payments"] != "ab12" || live[0].SchemaFrom == 0 ||
		!live[0].SeenAt.Equal(epoch.Add(2*time.Second)) || live[1].ID != old || live[1].Binary != "" {
		t.Errorf("%+v, %v", live, err)
	}
	if err := s.EndReplica(t.Context(), r.ID, epoch.Add(3*time.Second)); err != nil {
		t.Fatal(err)
	}
	if live, err := s.LiveReplicas(t.Context(), epoch.Add(3*time.Second)); err != nil || len(live) != 1 || live[0].ID != old {
		t.Errorf("%+v, %v", live, err)
	}
	if seen, err := s.ReplicasSeen(t.Context(), epoch.Add(-time.Minute)); err != nil || len(seen) != 3 {
		t.Errorf("%+v, %v", seen, err)
	}
}
