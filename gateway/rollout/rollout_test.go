package rollout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/gateway/store/migrated"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/tenants"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// epoch is when the tests begin.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// world is a database with replicas whose time stands still until a test moves it.
type world struct {
	*testing.T
	url       string
	store     *store.Store
	vault     *tenants.Vault
	publisher *Publisher
	mu        sync.Mutex
	now       time.Time
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, now: epoch}
	w.url = migrated.Database(t)
	w.store = migrated.Open(t, w.url, store.Options{MaxConns: 8})
	keyset := filepath.Join(t.TempDir(), "keyset.json")
	if err := tenants.CreateKeysetFile(keyset); err != nil {
		t.Fatal(err)
	}
	var err error
	if w.vault, err = tenants.OpenKeysetFile(keyset); err != nil {
		t.Fatal(err)
	}
	w.publisher = &Publisher{
		Record: w.store, Vault: w.vault, Judge: func(ctx context.Context, source policy.Source) ([]policy.Finding, error) {
			if text := string(source["data.json"]); strings.Contains(text, "wrong") {
				return []policy.Finding{{Check: policy.CheckCost, File: "data.json", Line: 1, Reason: "wrong"}, {Reason: "beware", Warning: true}}, nil
			} else if strings.Contains(text, "unwise") {
				return []policy.Finding{{Check: policy.CheckMeaning, File: "data.json", Line: 1, Reason: "unwise", Merchants: 7}}, nil
			} else if strings.Contains(text, "closed") {
				return []policy.Finding{{Check: policy.CheckMeaning, Warning: true, Confirm: true, File: "admit.rego", Line: 1, Reason: "it takes no money"}}, nil
			}
			return nil, nil
		},
		Wake: func() {}, Refused: func(string) {}, Now: w.clock, Log: slog.New(slog.DiscardHandler),
	}
	return w
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// replica is a follower that can be cut off from its database, and that refuses sets
// with a word in them.
type replica struct {
	*Follower
	*cuttable
	refuses string
	refused []string
	log     *bytes.Buffer
}

// cuttable is a store that a test can cut off.
type cuttable struct {
	*store.Store
	cut         bool
	cutVersions bool
}

var errCut = errors.New("the database is out of reach")

func (c *cuttable) PolicyHead(ctx context.Context) (store.PolicyHead, error) {
	if c.cut {
		return store.PolicyHead{}, errCut
	}
	return c.Store.PolicyHead(ctx)
}

func (c *cuttable) PolicyVersion(ctx context.Context, version policy.Version) (store.PolicyVersion, error) {
	if c.cutVersions {
		return store.PolicyVersion{}, errCut
	}
	return c.Store.PolicyVersion(ctx, version)
}

func (c *cuttable) ReportReplica(ctx context.Context, r store.Replica) error {
	if c.cut {
		return errCut
	}
	return c.Store.ReportReplica(ctx, r)
}

// compiled is any set with the default rules, under a source's own version.
var compiled sync.Map

// compile is quick where a set was compiled before.
func (r *replica) compile(ctx context.Context, source policy.Source) (*policy.Set, error) {
	if text := string(source["data.json"]); r.refuses != "" && strings.Contains(text, r.refuses) {
		return nil, &policy.Error{Problems: []policy.Problem{{File: "data.json", Line: 1, Col: 1, Message: r.refuses + " is not known"}}}
	}
	if set, ok := compiled.Load(source.Version()); ok {
		return set.(*policy.Set), nil
	}
	set, err := policy.Compile(ctx, source)
	if err == nil {
		compiled.Store(source.Version(), set)
	}
	return set, err
}

// start starts a replica.
func (w *world) start(host string, changes ...func(*replica, *Dependencies)) *replica {
	w.Helper()
	r := &replica{cuttable: &cuttable{Store: w.store}, log: &bytes.Buffer{}}
	deps := Dependencies{
		Store: r.cuttable, Vault: w.vault, Self: store.Replica{ID: uuid.New(), Host: host, Binary: "v1", StartedAt: w.clock()},
		First: policy.Default(), FirstMessage: "the first start", Refused: func(what string) { r.refused = append(r.refused, what) },
		Now: w.clock, Log: slog.New(slog.NewTextHandler(r.log, nil)), Compile: r.compile,
	}
	for _, change := range changes {
		change(r, &deps)
	}
	var err error
	if r.Follower, err = Open(w.Context(), deps); err != nil {
		w.Fatal(err)
	}
	if err := r.Report(w.Context()); err != nil {
		w.Fatal(err)
	}
	return r
}

// look has replicas look once, one after the other.
func (w *world) look(replicas ...*replica) {
	w.Helper()
	for _, r := range replicas {
		if _, err := r.Look(w.Context()); err != nil && !errors.Is(err, errCut) {
			w.Fatal(err)
		}
	}
}

// edited is a set that differs by a word.
func edited(word string) policy.Source {
	data := bytes.Replace(policy.Default()["data.json"], []byte(`"tiers": {`), []byte(`"tiers": { "`+word+`": {"rate_per_second": 1, "burst": 1},`), 1)
	return policy.Source{"data.json": data}
}

func (w *world) push(source policy.Source) policy.Version {
	w.Helper()
	v, _, err := w.publisher.Push(w.Context(), Push{Source: source, Author: "ayu", Message: "a try"})
	if err != nil {
		w.Fatal(err)
	}
	return v.Version
}

func (w *world) activate(version policy.Version) store.Activation {
	w.Helper()
	a, err := w.publisher.Activate(w.Context(), version, Wish{Operator: "ayu"})
	if err != nil {
		w.Fatal(err)
	}
	return a
}

// became is what became of an activation.
func (w *world) became(a store.Activation, state store.ActivationState, detail string) {
	w.Helper()
	now, err := w.store.Activation(w.Context(), a.ID)
	if err != nil || now.State != state || !strings.Contains(now.Detail, detail) || detail == "" && now.Detail != "" {
		w.Errorf("the activation is %q (%q), %v; want %q (%q)", now.State, now.Detail, err, state, detail)
	}
}

// run says which version replicas run.
func (w *world) run(version policy.Version, replicas ...*replica) {
	w.Helper()
	for _, r := range replicas {
		if got := r.Active().Set().Version(); got != version {
			w.Errorf("%s runs %s, want %s", r.deps.Self.Host, Short(got), Short(version))
		}
	}
}

func (w *world) exceptions() (details []string) {
	w.Helper()
	open, err := w.store.OpenExceptions(w.Context(), 10)
	if err != nil {
		w.Fatal(err)
	}
	for _, x := range open {
		if x.Reason != movement.ReasonPolicy {
			w.Errorf("%+v", x)
		}
		details = append(details, x.Subject+": "+x.Detail)
	}
	return details
}

func (w *world) execute(sql string, args ...any) {
	w.Helper()
	conn, err := pgx.Connect(w.Context(), w.url)
	if err != nil {
		w.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(w.Context()))
	if _, err := conn.Exec(w.Context(), sql, args...); err != nil {
		w.Fatal(err)
	}
}

// TestRollout: a version comes into force once every replica has compiled it, and then
// everywhere; a rollback goes one further back each time.
func TestRollout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b, c := w.start("a"), w.start("b"), w.start("c")
	first := policy.Default().Version()
	w.run(first, a, b, c)
	one, two := w.push(edited("one")), w.push(edited("two"))
	asked := w.activate(one)
	w.look(a, b)
	w.became(asked, store.ActivationProposed, "")
	w.run(first, a, b, c)
	w.look(c) // the last to answer moves the head, and runs it
	w.became(asked, store.ActivationDone, "")
	w.run(one, c)
	w.look(a, b)
	w.run(one, a, b)
	if live, err := w.store.LiveReplicas(t.Context(), w.clock()); err != nil || len(live) != 3 || live[0].Policy != one || live[2].Policy != one {
		t.Errorf("%+v, %v", live, err)
	}

	w.activate(two)
	w.look(a, b, c, a, b)
	w.run(two, a, b, c)
	for _, want := range []policy.Version{one, first} {
		from := w.head().Version
		if _, err := w.publisher.Rollback(t.Context(), Wish{Operator: "ayu", Replaces: from, Reason: "too strict"}); err != nil {
			t.Fatal(err)
		}
		w.look(a, b, c, a, b)
		w.run(want, a, b, c)
		if _, err := w.publisher.Rollback(t.Context(), Wish{Operator: "budi", Replaces: from}); want != first && !errors.Is(err, store.ErrPolicyMoved) {
			t.Errorf("the same rollback again: %v", err)
		}
	}
	if _, err := w.publisher.Rollback(t.Context(), Wish{Operator: "ayu", Replaces: first}); !errors.Is(err, ErrNothingBack) {
		t.Errorf("before the first: %v", err)
	}
	// What was activated after a rollback goes back to where that was.
	w.activate(two)
	w.look(a, b, c, a, b)
	if back, err := w.publisher.Rollback(t.Context(), Wish{Operator: "ayu", Replaces: two}); err != nil || back.Version != first {
		t.Errorf("%+v, %v", back, err)
	}
	if found := w.exceptions(); len(found) != 0 || len(a.refused) != 0 {
		t.Errorf("%v %v", found, a.refused)
	}
}

// TestOneReplicaRefuses: the activation ends and says who and why, and nobody runs it.
func TestOneReplicaRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b, c := w.start("a"), w.start("b", func(r *replica, _ *Dependencies) { r.refuses = "novel" }), w.start("c")
	version := w.push(edited("novel"))
	asked := w.activate(version)
	w.look(a, b, c, a)
	w.became(asked, store.ActivationRefused, "b/")
	w.became(asked, store.ActivationRefused, "novel is not known")
	w.run(policy.Default().Version(), a, b, c)
	if v, err := w.store.PolicyVersion(t.Context(), version); err != nil || v.State != store.PolicyRefused {
		t.Errorf("%s, %v", v.State, err)
	}
	if found := w.exceptions(); len(found) != 1 || !strings.HasPrefix(found[0], "policy "+Short(version)) || !strings.Contains(found[0], "novel is not known") {
		t.Errorf("exceptions %v", found)
	}
	if fmt.Sprint(b.refused) != "[proposal]" || !strings.Contains(b.log.String(), "novel is not known") {
		t.Errorf("counted %v, logged %s", b.refused, b.log)
	}
}

// TestCutOff: a replica that is silent is named and passed over; cut off for ten
// minutes it takes no money after half a minute, keeps what it has, and catches up.
func TestCutOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b, c := w.start("a"), w.start("b"), w.start("c")
	first, one := policy.Default().Version(), w.push(edited("one"))
	w.look(c)
	c.cut = true
	asked := w.activate(one)
	w.look(a, b, c)
	w.pass(silentAfter - time.Millisecond)
	w.look(a, b, c)
	w.became(asked, store.ActivationProposed, "")
	if !c.Fresh(w.clock()) {
		t.Error("it takes no money after five seconds")
	}
	w.pass(time.Millisecond)
	w.look(a, b, c)
	w.became(asked, store.ActivationDone, "without an answer within 5s: c/")
	w.run(one, a, b)
	w.run(first, c)
	w.pass(freshFor - silentAfter + time.Millisecond)
	w.look(a, b, c)
	if c.Fresh(w.clock()) || !a.Fresh(w.clock()) {
		t.Errorf("fresh after half a minute: cut off %v, the others %v", c.Fresh(w.clock()), a.Fresh(w.clock()))
	}
	// It is no longer live by now, so nobody waits for it.
	two := w.push(edited("two"))
	w.pass(10*time.Minute - 30*time.Second)
	for _, r := range []*replica{a, b} {
		if err := r.Report(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	asked = w.activate(two)
	w.look(a, b, a)
	w.became(asked, store.ActivationDone, "")
	w.run(two, a, b)
	c.cut = false
	w.look(c)
	w.run(two, c)
	if !c.Fresh(w.clock()) || c.Lag() != nil {
		t.Errorf("fresh %v, lag %+v", c.Fresh(w.clock()), c.Lag())
	}
}

// TestOthers: a heartbeat tells since when the others run, as long as they live.
func TestOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.start("a")
	if others, read := a.Others(); others != nil || !read.IsZero() || a.Members() != 0 {
		t.Errorf("before the first heartbeat: %v, read %v, %d members", others, read, a.Members())
	}
	w.pass(time.Minute)
	started := w.clock()
	b := w.start("b")
	wantOthers := func(when string, r *replica, want ...time.Time) {
		t.Helper()
		if err := r.beat(t.Context()); err != nil {
			t.Fatal(err)
		}
		others, read := r.Others()
		if !slices.EqualFunc(others, want, time.Time.Equal) || !read.Equal(w.clock()) || r.Members() != len(want)+1 {
			t.Errorf("%s: %v, read %v, %d members, want %v", when, others, read, r.Members(), want)
		}
	}
	wantOthers("the older", a, started)
	wantOthers("the younger", b, epoch)
	w.pass(20 * time.Second)
	wantOthers("one that is silent for 20 s", a, started)
	w.pass(10 * time.Second)
	wantOthers("one that is silent for 30 s", a)
	b.cut = true
	w.pass(time.Second)
	if err := b.beat(t.Context()); err == nil {
		t.Error("a heartbeat without a database")
	}
	if others, read := b.Others(); len(others) != 1 || w.clock().Sub(read) != 31*time.Second {
		t.Errorf("cut off: %v, read %v", others, read)
	}
}

// TestKilledBetweenProposalAndHead: whoever is left decides, and a proposal that nobody
// was left to decide is given up by the first that comes.
func TestKilledBetweenProposalAndHead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.start("a")
	one := w.push(edited("one"))
	asked := w.activate(one)
	w.pass(40 * time.Second) // a is gone with whoever asked
	b := w.start("b")
	w.look(b)
	w.became(asked, store.ActivationDone, "")
	w.run(one, b)

	two := w.push(edited("two"))
	asked = w.activate(two)
	w.pass(store.ProposalLasts + time.Second)
	c := w.start("c")
	w.look(c)
	w.became(asked, store.ActivationWithdrawn, "nobody decided")
	w.run(one, c)
	_ = a
}

// TestByHand: what no gateway has written is never loaded, neither at once nor by who
// starts, and the reason is told.
func TestByHand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.start("a")
	first := policy.Default().Version()
	source := policy.Default()
	source["data.json"] = edited("forged")["data.json"]
	forged := store.PolicyVersion{Version: source.Version(), Source: source, Author: "ayu", PushedAt: epoch, MAC: []byte("by hand"), State: store.PolicyPushed}
	if _, _, err := w.store.PushPolicy(t.Context(), store.Audit{Operator: "ayu", Action: "policy.push", At: epoch}, forged); err != nil {
		t.Fatal(err)
	}
	asked := w.activate(forged.Version)
	w.look(a)
	w.became(asked, store.ActivationRefused, "its MAC is not valid")
	w.run(first, a)

	// A version that was pushed, with another author.
	one := w.push(edited("one"))
	w.execute("UPDATE policy_versions SET author = 'budi' WHERE version = $1", string(one))
	w.execute("UPDATE policy_head SET version = $1", string(one))
	w.look(a, a)
	w.run(first, a)
	if a.Lag() == nil || a.Lag().Head != one || !strings.Contains(a.Lag().Why, "the MAC of the head is not valid") || !a.Fresh(w.clock()) {
		t.Errorf("lag %+v, fresh %v", a.Lag(), a.Fresh(w.clock()))
	}
	b := w.start("b")
	w.run(first, b)
	if found := w.exceptions(); len(found) != 3 { // the version; the head, of either replica
		t.Errorf("exceptions %q", found)
	}
	if fmt.Sprint(a.refused) != "[proposal head]" {
		t.Errorf("counted %v", a.refused)
	}
	for range 2 { // nobody has to try to load it
		for _, r := range []*replica{a, b} {
			if err := r.Inspect(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if found := w.exceptions(); len(found) != 5 { // either row, once for both replicas
		t.Errorf("inspected, exceptions %q", found)
	}
	w.execute("UPDATE policy_head SET version = $1", string(first))
	w.look(a, b)
	if found := w.exceptions(); len(found) != 3 || a.Lag() != nil { // the forged version's, and the rows
		t.Errorf("mended, exceptions %q, lag %+v", found, a.Lag())
	}
}

// TestLastGood: whatever is wrong with the newest version, a replica starts from the one
// before; with none it starts on the default one and takes no money.
func TestLastGood(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.start("a")
	one, two := w.push(edited("one")), w.push(edited("two"))
	for _, version := range []policy.Version{one, two} {
		w.activate(version)
		w.look(a, a)
	}
	w.run(two, a)
	refusing := func(r *replica, _ *Dependencies) { r.refuses = `"two"` }
	b := w.start("b", refusing)
	w.run(one, b)
	if b.Lag() == nil || b.Lag().Head != two || !b.Fresh(w.clock()) {
		t.Errorf("lag %+v, fresh %v", b.Lag(), b.Fresh(w.clock()))
	}
	w.execute("UPDATE policy_versions SET mac = 'gone'")
	c := w.start("c")
	w.run(policy.Default().Version(), c)
	if c.Fresh(w.clock()) || !strings.Contains(c.log.String(), "no money is moved") {
		t.Errorf("fresh %v, logged %s", c.Fresh(w.clock()), c.log)
	}
}

// TestDamagedRows: a row that can't be read is told, and neither it nor the list of versions
// keeps a replica from starting.
func TestDamagedRows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.start("a")
	one, two := w.push(edited("one")), w.push(edited("two"))
	for _, version := range []policy.Version{one, two} {
		w.activate(version)
		w.look(a, a)
	}
	w.execute("UPDATE policy_versions SET findings = '{' WHERE version = $1", string(one))
	w.execute("UPDATE policy_versions SET files = 'no archive' WHERE version = $1", string(two))
	b := w.start("b")
	w.run(one, b)
	if lag := b.Lag(); lag == nil || lag.Head != two || !strings.Contains(lag.Why, "can't be read") {
		t.Errorf("lag %+v", lag)
	}
	for range 2 {
		if err := a.Inspect(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	found := strings.Join(w.exceptions(), "\n")
	if len(w.exceptions()) != 3 || !strings.Contains(found, "the findings can't be read") || !strings.Contains(found, "the files can't be read") {
		t.Errorf("exceptions %s", found)
	}
}

// TestTooSlow: a version that a replica has no time to compile is refused; where it is in
// force already, a slow replica goes on with the one before, tells so, and starts from it.
func TestTooSlow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	compiles := 0
	slow := func(_ *replica, d *Dependencies) {
		next := d.Compile
		d.Compile = func(ctx context.Context, source policy.Source) (*policy.Set, error) {
			if strings.Contains(string(source["data.json"]), "slow") {
				compiles++
				return nil, fmt.Errorf("cut short: %w", context.DeadlineExceeded)
			}
			return next(ctx, source)
		}
	}
	a, b := w.start("a", slow), w.start("b", slow)
	first, one, two := policy.Default().Version(), w.push(edited("slow")), w.push(edited("slow-two"))
	asked := w.activate(one)
	w.look(a, b)
	w.became(asked, store.ActivationRefused, "it does not compile within 10s")
	w.run(first, a, b)
	if len(w.exceptions()) != 1 {
		t.Errorf("exceptions %q", w.exceptions())
	}

	// A quick replica alone puts it in force: a is silent, b is new.
	if err := a.deps.Store.EndReplica(t.Context(), b.deps.Self.ID, w.clock()); err != nil {
		t.Fatal(err)
	}
	quick := w.start("quick")
	w.look(quick)
	asked = w.activate(two)
	w.look(quick)
	w.pass(silentAfter)
	w.look(quick)
	w.became(asked, store.ActivationDone, "without an answer")
	compiles = 0
	w.look(a, a, a)
	w.run(first, a)
	if compiles != 1 || a.Lag() == nil || a.Lag().Head != two || !strings.Contains(strings.Join(w.exceptions(), "\n"), "policy "+Short(two)) {
		t.Errorf("compiled %d times, lag %+v, exceptions %q", compiles, a.Lag(), w.exceptions())
	}
	c := w.start("c", slow)
	w.run(first, c)
	if c.Lag() == nil || !c.Fresh(w.clock()) {
		t.Errorf("lag %+v, fresh %v", c.Lag(), c.Fresh(w.clock()))
	}
}

// TestNobodyCanAnswer: a proposal that no replica can read to the end is given up after a minute.
func TestNobodyCanAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.start("a")
	asked := w.activate(w.push(edited("one")))
	a.cutVersions = true
	for range 2 {
		if _, err := a.Look(t.Context()); !errors.Is(err, errCut) {
			t.Error(err)
		}
		w.pass(store.ProposalLasts + time.Second)
	}
	w.became(asked, store.ActivationWithdrawn, "nobody decided")
}

// TestBehind: replicas that can't run the version in force stay on the list until the last
// of them can, and take no money after five minutes.
func TestBehind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b, c := w.start("a"), w.start("b"), w.start("c")
	one := w.push(edited("one"))
	w.activate(one)
	w.look(a, b, c)
	a.refuses, b.refuses = `"one"`, `"one"`
	a.compiled, b.compiled = nil, nil
	w.look(a, b)
	if len(w.exceptions()) != 2 || a.Lag() == nil || b.Lag() == nil || c.Lag() != nil {
		t.Fatalf("exceptions %q", w.exceptions())
	}
	pass := func(d time.Duration) {
		for ; d > 0; d -= 10 * time.Second {
			w.pass(10 * time.Second)
			w.look(a, b, c)
			for _, r := range []*replica{a, b, c} {
				if err := r.Report(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	b.refuses = ""
	pass(retryAfter)
	w.run(one, b)
	if len(w.exceptions()) != 2 {
		t.Errorf("one of two has caught up, exceptions %q", w.exceptions())
	}
	// An operator resolves what is still so.
	if err := w.store.ResolveExceptions(t.Context(), w.clock(), ofPlatform, subjectOf(one), []string{movement.ReasonPolicy}, "ayu", "seen"); err != nil {
		t.Fatal(err)
	}
	pass(repeatEvery)
	if found := w.exceptions(); len(found) != 1 || !strings.Contains(found[0], "replica a/") {
		t.Errorf("a minute later, exceptions %q", found)
	}
	pass(behindFor - repeatEvery - retryAfter)
	if !a.Fresh(w.clock()) {
		t.Error("no money after less than five minutes")
	}
	pass(10 * time.Second)
	if a.Fresh(w.clock()) || !b.Fresh(w.clock()) {
		t.Errorf("after five minutes: behind %v, the others %v", a.Fresh(w.clock()), b.Fresh(w.clock()))
	}
	a.refuses = ""
	pass(retryAfter)
	w.run(one, a)
	if !a.Fresh(w.clock()) || a.Lag() != nil || len(w.exceptions()) != 0 {
		t.Errorf("fresh %v, lag %+v, exceptions %q", a.Fresh(w.clock()), a.Lag(), w.exceptions())
	}
	// One that died behind leaves an exception, which the others end.
	a.list(t.Context(), subjectOf(one), "gone", "it is gone")
	pass(repeatEvery)
	if len(w.exceptions()) != 0 {
		t.Errorf("exceptions %q", w.exceptions())
	}
}

// TestPush: a set without rules takes those in force, what is refused is kept with its
// findings, and a reason overrules what is only unwise.
func TestPush(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.start("a")
	own := policy.Default()
	own["own.rego"] = []byte("package own\n\nmine := 1\n")
	w.activate(w.push(own))
	w.look(a)
	v, err := w.store.PolicyVersion(t.Context(), w.push(edited("one")))
	if err != nil || string(v.Source["own.rego"]) != string(own["own.rego"]) || v.Predecessor != own.Version() || len(v.Source) != len(own) {
		t.Errorf("%+v, %v", v, err)
	}
	for _, c := range []struct {
		word, force string
		state       store.PolicyState
		findings    int
		audited     string
	}{
		{"wrong", "", store.PolicyRefused, 2, "policy.push_refused"}, {"wrong", "I know", store.PolicyRefused, 2, "policy.push_refused"},
		{"unwise", "", store.PolicyRefused, 1, "policy.push_refused"}, {"unwise", "I know", store.PolicyPushed, 1, "policy.push_forced"},
	} {
		before := w.audit()
		v, pushed, err := w.publisher.Push(t.Context(), Push{Source: edited(c.word), Author: "ayu", Message: "m", Force: c.force})
		if err != nil || !pushed || v.State != c.state || len(v.Findings) != c.findings || v.Forced != c.force && c.state == store.PolicyPushed {
			t.Errorf("%+v: %v %v %+v", c, pushed, err, v)
		}
		added := slices.DeleteFunc(w.audit(), func(a store.Audit) bool {
			return slices.ContainsFunc(before, func(b store.Audit) bool { return a.ID == b.ID })
		})
		if len(added) != 1 || added[0].Action != c.audited || added[0].Operator != "ayu" || !strings.Contains(added[0].Detail, string(v.Version)[:12]) {
			t.Errorf("%+v is audited as %+v", c, added)
		}
	}
	if v, pushed, err := w.publisher.Push(t.Context(), Push{Source: edited("one"), Author: "budi", Message: "m", Replaces: w.head().Version}); err != nil || pushed || v.Author != "ayu" {
		t.Errorf("pushed again: %v %v %+v", pushed, err, v)
	}
	full := string(v.Version)
	for text, want := range map[string]error{full: nil, full[:12]: nil, strings.ToUpper(full[:8]): nil, full[:3]: store.ErrNotFound, "": store.ErrNotFound, full + "0": store.ErrNotFound} {
		if found, err := w.publisher.Find(t.Context(), text); !errors.Is(err, want) || want == nil && found.Version != v.Version {
			t.Errorf("%q: %s, %v", text, found.Version, err)
		}
	}
}

// TestFirstStaysAfterAnUpgrade: what a later program brings along changes nothing.
func TestFirstStaysAfterAnUpgrade(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start("a")
	b := w.start("b", func(_ *replica, d *Dependencies) { d.First = policy.Source{} })
	w.run(policy.Default().Version(), b)
}

// TestWhatDoesNotFitAnyMore: a version that was good when it was pushed is held against the merchants of now before it is
// proposed, and before a rollback. An operator overrules that; a judgement that is slow or fails holds nobody up.
func TestWhatDoesNotFitAnyMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.start("node-1")
	first, two, unwise := r.Active().Set().Version(), w.push(edited("two")), edited("unwise")
	forced, _, err := w.publisher.Push(t.Context(), Push{Source: unwise, Author: "ayu", Message: "m", Force: "I know"})
	if err != nil || forced.State != store.PolicyPushed {
		t.Fatal(forced.State, err)
	}
	w.activate(two)
	w.look(r)
	w.run(two, r)
	findings := []policy.Finding{{Check: policy.CheckMeaning, File: "data.json", Line: 1, Reason: "unwise", Merchants: 7}}
	w.publisher.Meaning = func(context.Context, policy.Source) ([]policy.Finding, error) { return slices.Clone(findings), nil }
	back := Wish{Operator: "ayu", Replaces: two}
	_, err = w.publisher.Rollback(t.Context(), back)
	if unfit, ok := errors.AsType[*Unfit](err); !ok || unfit.Version != first || unfit.Error() != "data.json:1:0: meaning: unwise (7 merchants)" {
		t.Errorf("a rollback to what does not fit: %v", err)
	}
	if head, err := w.store.PolicyHead(t.Context()); err != nil || head.Proposal != uuid.Nil {
		t.Errorf("it is proposed all the same: %+v, %v", head, err)
	}
	if _, err := w.publisher.Activate(t.Context(), forced.Version, Wish{Operator: "ayu"}); err != nil {
		t.Errorf("what was overruled at its push: %v", err)
	}
	w.look(r)
	w.run(forced.Version, r)
	findings[0].Merchants = 8 // one more by now
	if _, err := w.publisher.Activate(t.Context(), two, Wish{Operator: "ayu", Force: true, Reason: "a hurry"}); err != nil {
		t.Fatal(err)
	}
	w.look(r)
	if _, err := w.publisher.Activate(t.Context(), forced.Version, Wish{Operator: "ayu"}); err == nil {
		t.Error("what was overruled for fewer merchants comes into force")
	}
	back.Replaces, back.Reason, back.Force = two, "an outage", true
	if _, err := w.publisher.Rollback(t.Context(), back); err != nil {
		t.Errorf("overruled: %v", err)
	}
	w.look(r)
	w.run(forced.Version, r)
	if audit := w.audit(); !slices.ContainsFunc(audit, func(a store.Audit) bool {
		return a.Action == "policy.rollback_forced" && strings.Contains(a.Detail, "an outage")
	}) {
		t.Errorf("the audit does not say what was overruled: %v", audit)
	}
	w.publisher.Meaning = func(ctx context.Context, _ policy.Source) ([]policy.Finding, error) {
		return nil, context.DeadlineExceeded
	}
	if _, err := w.publisher.Rollback(t.Context(), Wish{Operator: "ayu", Replaces: forced.Version}); err != nil {
		t.Errorf("a judgement that can't be made holds an operator up: %v", err)
	}
}

// TestJudge is the table of what becomes of a proposal.
func TestJudge(t *testing.T) {
	t.Parallel()
	replicas := []store.Replica{
		{ID: uuid.UUID{1}, Host: "a", Policy: "then"}, {ID: uuid.UUID{2}, Host: "b", Policy: "then"},
		{ID: uuid.UUID{3}}, // that starts, and begins with what is in force by then
	}
	yes := func(id byte) store.PolicyAnswer { return store.PolicyAnswer{Replica: uuid.UUID{id}, Compiled: true} }
	no := store.PolicyAnswer{Replica: uuid.UUID{9}, Reason: "no"}
	for name, c := range map[string]struct {
		answers []store.PolicyAnswer
		alone   uuid.UUID
		age     time.Duration
		want    verdict
	}{
		"nobody yet":             {nil, uuid.Nil, 0, waits},
		"nobody for long":        {nil, uuid.Nil, 30 * time.Second, waits},
		"nobody at all":          {nil, uuid.Nil, 61 * time.Second, withdraws},
		"one of two":             {[]store.PolicyAnswer{yes(1)}, uuid.Nil, 4 * time.Second, waits},
		"one of two, and late":   {[]store.PolicyAnswer{yes(1)}, uuid.Nil, 5 * time.Second, moves},
		"one of two, too late":   {[]store.PolicyAnswer{yes(1)}, uuid.Nil, 61 * time.Second, withdraws},
		"all":                    {[]store.PolicyAnswer{yes(1), yes(2)}, uuid.Nil, 0, moves},
		"refused by a gone one":  {[]store.PolicyAnswer{yes(1), yes(2), no}, uuid.Nil, 0, refuses},
		"alone":                  {[]store.PolicyAnswer{yes(1)}, uuid.UUID{1}, 0, moves},
		"alone, and nobody else": {[]store.PolicyAnswer{yes(2)}, uuid.UUID{1}, 0, waits},
	} {
		if got, detail := judge(store.PolicyHead{ProposedAt: epoch}, c.answers, replicas, c.alone, epoch.Add(c.age)); got != c.want {
			t.Errorf("%s: %v (%s), want %v", name, got, detail, c.want)
		}
	}
}

// audit is the platform's audit, the newest entry first.
func (w *world) audit() []store.Audit {
	w.Helper()
	audit, err := w.store.AuditOf(w.Context(), store.AuditRange{MerchantID: tenants.Platform, Most: 50})
	if err != nil {
		w.Fatal(err)
	}
	return audit
}
