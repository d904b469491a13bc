package approval_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/approval"
	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/gateway/store/migrated"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// world is a database with replicas whose time stands still until a test moves it.
type world struct {
	*testing.T
	url   string
	store *store.Store
	vault *tenants.Vault
	now   time.Time
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, now: epoch}
	w.url = migrated.Database(t)
	w.store = migrated.Open(t, w.url, store.Options{MaxConns: 4})
	keyset := filepath.Join(t.TempDir(), "keyset.json")
	if err := tenants.CreateKeysetFile(keyset); err != nil {
		t.Fatal(err)
	}
	var err error
	if w.vault, err = tenants.OpenKeysetFile(keyset); err != nil {
		t.Fatal(err)
	}
	return w
}

// fakeHost runs what it is told, and fails as a test says.
type fakeHost struct {
	runs   map[string]host.Spec
	fails  error
	takes  func(name string) // what a Put lasts, nil for no time
	put    chan<- string     // told of each Put that was through, nil for nobody
	tried  int
	proven bool // the last one had a proof

	mu sync.Mutex
}

func (h *fakeHost) Put(_ context.Context, spec host.Spec, proof host.Proof) error {
	if h.takes != nil {
		h.takes(spec.Name)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.proven = proof != nil; h.fails != nil {
		return h.fails
	}
	h.runs[spec.Name] = spec
	if h.put != nil {
		h.put <- spec.Name + " " + spec.Manifest.Version
	}
	return nil
}

func (h *fakeHost) Try(context.Context, host.Spec, host.Proof) error {
	h.tried++
	return h.fails
}

func (h *fakeHost) Remove(_ context.Context, name string) error {
	delete(h.runs, name)
	return nil
}

func (h *fakeHost) Manifests() (all []*manifest.Manifest) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, spec := range h.runs {
		if spec.Manifest != nil {
			all = append(all, spec.Manifest)
		}
	}
	return all
}

// replica is a gateway on the world's database.
type replica struct {
	*approval.Approvals
	host  *fakeHost
	self  store.Replica
	files *approval.Files
	dir   string
	cut   *cuttable
}

// cuttable is a store that a test cuts off, or in which a plugin is in use.
type cuttable struct {
	*store.Store
	err error
	use store.PluginUse
}

func (c *cuttable) PluginHeads(ctx context.Context) ([]store.PluginHead, error) {
	if c.err != nil {
		return nil, c.err
	}
	return c.Store.PluginHeads(ctx)
}

func (c *cuttable) PluginUse(context.Context, string) (store.PluginUse, error) { return c.use, nil }

// start starts a replica; a second start of one has its directory.
func (w *world) start(name, dir string, changes ...func(*approval.Dependencies)) *replica {
	w.Helper()
	r := &replica{host: &fakeHost{runs: map[string]host.Spec{}}, self: store.Replica{ID: uuid.New(), Host: name, StartedAt: w.now}, dir: dir, cut: &cuttable{Store: w.store}}
	r.files = approval.NewFiles(dir)
	deps := approval.Dependencies{
		Store: r.cut, Vault: w.vault, Files: r.files, Self: r.self, Now: func() time.Time { return w.now }, Log: slog.New(slog.NewTextHandler(w.Output(), nil)),
		Proof: func(*manifest.Manifest) host.Proof {
			return func(context.Context, host.Candidate) error { return nil }
		},
	}
	for _, change := range changes {
		change(&deps)
	}
	var specs []host.Spec
	var err error
	if r.Approvals, specs, err = approval.Open(w.Context(), deps); err != nil {
		w.Fatal(err)
	}
	for _, spec := range specs {
		r.host.runs[spec.Name] = spec
	}
	r.Follow(r.host)
	w.beat(r)
	return r
}

// beat writes the replicas' heartbeats.
func (w *world) beat(replicas ...*replica) {
	w.Helper()
	for _, r := range replicas {
		self := r.self
		self.SeenAt, self.Files = w.now, r.files.List()
		if err := w.store.ReportReplica(w.Context(), self); err != nil {
			w.Fatal(err)
		}
	}
}

// look has replicas follow what is in force.
func (w *world) look(replicas ...*replica) {
	w.Helper()
	for _, r := range replicas {
		if err := r.Look(w.Context()); err != nil {
			w.Fatal(err)
		}
	}
}

func document(version string, paths ...string) []byte {
	var operations []string
	for _, path := range append(paths, "/coins/list") {
		operations = append(operations, fmt.Sprintf(`{"path": %q, "kind": "query", "summary": "List", "timeout": "5s", "request": {"type": "object", "additionalProperties": false, "properties": {}}, "result": {"type": "object"}, "response": {"type": "object"}}`, path))
	}
	return fmt.Appendf(nil, `{"manifest": 1, "name": "coins", "version": %q, "title": "Coins", "references": {"longest": 64, "alphabet": "0-9a-f"},
		"connection": {"type": "object"}, "operations": [%s]}`, version, strings.Join(operations, ", "))
}

func sumOf(version string) string {
	sum := sha256.Sum256([]byte(version))
	return hex.EncodeToString(sum[:])
}

// place puts the binary of a version on replicas.
func (w *world) place(version string, replicas ...*replica) {
	w.Helper()
	for _, r := range replicas {
		if err := os.WriteFile(r.files.Path(sumOf(version)), []byte(version), 0o600); err != nil {
			w.Fatal(err)
		}
	}
	w.beat(replicas...)
}

func (w *world) approve(r *replica, operator, version string) store.PluginApproval {
	w.Helper()
	w.now = w.now.Add(time.Second)
	a, err := r.Approve(w.Context(), operator, approval.Wanted{SHA256: sumOf(version), Manifest: document(version), Reach: store.PluginReach{Ports: []uint16{8443}}})
	if err != nil {
		w.Fatal(err)
	}
	return a
}

func (w *world) activate(r *replica, a store.PluginApproval, only uuid.UUID) {
	w.Helper()
	if _, err := r.Activate(w.Context(), "ayu", a, only); err != nil {
		w.Fatal(err)
	}
}

// run holds which version replicas run.
func (w *world) run(version string, replicas ...*replica) {
	w.Helper()
	for _, r := range replicas {
		if got := r.host.runs["coins"]; got.SHA256 != sumOf(version) || got.Path != r.files.Path(sumOf(version)) || len(got.Ports) != 1 || got.Manifest == nil {
			w.Errorf("%s runs %+v, want version %s", r.self.Host, got, version)
		}
	}
}

func (w *world) exceptions() (details []string) {
	w.Helper()
	open, err := w.store.OpenExceptions(w.Context(), 100)
	if err != nil {
		w.Fatal(err)
	}
	for _, x := range open {
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
	defer conn.Close(w.Context())
	if _, err := conn.Exec(w.Context(), sql, args...); err != nil {
		w.Fatal(err)
	}
}

func refusedFor(err error, why string) bool {
	refused, ok := errors.AsType[*approval.Refusal](err)
	return ok && strings.Contains(refused.Why, why)
}

// TestActivation: a version comes into force where all have its file, each replica
// follows, and a rollback goes back and tests nothing.
func TestActivation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := w.start("node-1", t.TempDir()), w.start("node-2", t.TempDir())
	first := w.approve(one, "ayu", "1.0.0")
	if first.Evidence != approval.Unproven || first.ConfirmedBy != "" || w.approve(one, "ayu", "1.0.0").ID != first.ID {
		t.Errorf("approved %+v", first)
	}
	w.place("1.0.0", one)
	if _, err := one.Activate(t.Context(), "ayu", first, uuid.Nil); !refusedFor(err, "does not lie in plugins_dir of node-2/") {
		t.Errorf("without the file on one: %v", err)
	}
	w.place("1.0.0", two)
	w.activate(one, first, uuid.Nil)
	w.look(one, two)
	w.run("1.0.0", one, two)
	if !two.Newcomer("coins") || two.Newcomer("other") {
		t.Error("what an approval alone has brought is no newcomer")
	}
	if one.host.tried != 1 || two.host.tried != 0 || one.host.proven {
		t.Errorf("tried %d and %d times", one.host.tried, two.host.tried)
	}
	if _, err := two.Activate(t.Context(), "budi", first, uuid.Nil); !errors.Is(err, approval.ErrActive) {
		t.Errorf("again: %v", err)
	}
	second := w.approve(two, "budi", "1.1.0")
	if found, err := one.Find(t.Context(), "coins", ""); err != nil || found.ID != second.ID {
		t.Errorf("the newest is %+v, %v", found, err)
	}
	if found, err := one.Find(t.Context(), "coins", first.SHA256[:6]); err != nil || found.ID != first.ID {
		t.Errorf("found %+v, %v", found, err)
	}
	w.place("1.1.0", one, two)
	two.host.fails = errors.New("it does not start")
	if _, err := two.Activate(t.Context(), "budi", second, uuid.Nil); !refusedFor(err, "it does not start") {
		t.Errorf("one that can't be started: %v", err)
	}
	w.look(one, two)
	w.run("1.0.0", one, two)
	two.host.fails = nil
	w.activate(two, second, uuid.Nil)
	w.look(one, two)
	w.run("1.1.0", one, two)
	if !one.host.proven {
		t.Error("what takes another's place was not proven")
	}
	// A replica that is killed and comes back runs what is in force.
	w.run("1.1.0", w.start("node-2", two.dir))
	if _, err := one.Rollback(t.Context(), "ayu", "coins"); err != nil {
		t.Fatal(err)
	}
	w.look(one, two)
	w.run("1.0.0", one, two)
	if one.host.proven || one.host.tried != 1 {
		t.Error("a rollback was tested")
	}
	if _, err := one.Rollback(t.Context(), "ayu", "coins"); !errors.Is(err, approval.ErrNothingBack) {
		t.Errorf("back again: %v", err)
	}
	if all := w.exceptions(); len(all) != 0 {
		t.Errorf("exceptions %q", all)
	}
}

// TestOneReplicaFirst: one replica tries a version, and the others stay with what there
// was until all follow.
func TestOneReplicaFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := w.start("node-1", t.TempDir()), w.start("node-2", t.TempDir())
	first, second := w.approve(one, "ayu", "1.0.0"), w.approve(one, "ayu", "1.1.0")
	w.place("1.0.0", one, two)
	w.activate(one, first, two.self.ID)
	w.look(one, two)
	if w.run("1.0.0", two); len(one.host.runs) != 0 || one.host.tried != 0 {
		t.Errorf("node-1 runs %+v", one.host.runs)
	}
	w.activate(one, first, uuid.Nil)
	w.look(one, two)
	w.run("1.0.0", one, two)
	w.place("1.1.0", two)
	w.activate(one, second, two.self.ID)
	w.look(one, two)
	w.run("1.0.0", one)
	w.run("1.1.0", two)
	if _, err := one.Activate(t.Context(), "ayu", second, uuid.Nil); !refusedFor(err, "node-1/") {
		t.Errorf("without the file: %v", err)
	}
	if _, err := one.Activate(t.Context(), "ayu", second, uuid.New()); !refusedFor(err, "no live replica has the id") {
		t.Errorf("on nobody: %v", err)
	}
	if _, err := one.Rollback(t.Context(), "ayu", "coins"); err != nil {
		t.Fatal(err)
	}
	w.look(one, two)
	w.run("1.0.0", one, two)
}

// TestRemovedThenTried: while one replica tries a plugin that was removed, nothing of it
// runs on the others, whatever their configuration names.
func TestRemovedThenTried(t *testing.T) {
	t.Parallel()
	for name, configured := range map[string][]host.Spec{"configured": {{Name: "coins", Path: "/opt/coins", SHA256: "ab"}}, "approved": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			names := func(d *approval.Dependencies) { d.Configured = configured }
			one, two := w.start("node-1", t.TempDir(), names), w.start("node-2", t.TempDir(), names)
			first := w.approve(one, "ayu", "1.0.0")
			w.place("1.0.0", one, two)
			if configured == nil {
				w.activate(one, first, uuid.Nil)
			}
			w.look(one, two)
			if _, err := one.Remove(t.Context(), "ayu", "coins", false); err != nil {
				t.Fatal(err)
			}
			w.look(one, two)
			w.activate(one, first, two.self.ID)
			w.look(one, two)
			w.run("1.0.0", two)
			if again := w.start("node-3", one.dir, names); len(one.host.runs)+len(again.host.runs) != 0 {
				t.Errorf("the others run %+v, %+v", one.host.runs, again.host.runs)
			}
			if all := w.exceptions(); len(all) != 0 {
				t.Errorf("exceptions %q", all)
			}
			w.activate(two, first, one.self.ID)
			two.cut.use = store.PluginUse{Open: map[string]int64{"/coins/list": 1}}
			w.look(one, two)
			w.run("1.0.0", one, two) // what was made in the first trial ends where it began
			two.cut.use, w.now = store.PluginUse{}, w.now.Add(20*time.Second)
			if w.look(one, two); len(two.host.runs) != 0 {
				t.Errorf("after its trial %s runs %+v", two.self.Host, two.host.runs)
			}
			w.activate(two, first, uuid.Nil)
			w.look(one, two)
			w.run("1.0.0", one, two)
			if _, err := one.Activate(t.Context(), "ayu", first, two.self.ID); !refusedFor(err, "could go back to") {
				t.Errorf("taken from the others: %v", err)
			}
		})
	}
}

// TestFirstTrial: a replica that does not try the first version of a plugin writes nothing
// while it waits, and nothing is there to go back to.
func TestFirstTrial(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	reports := 0
	one := w.start("node-1", t.TempDir(), func(d *approval.Dependencies) {
		d.Report = func(context.Context) error { reports++; return nil }
	})
	two := w.start("node-2", t.TempDir())
	first := w.approve(one, "ayu", "1.0.0")
	w.place("1.0.0", one, two)
	w.activate(one, first, two.self.ID)
	w.look(one, one, one)
	if reports != 1 || len(one.host.runs) != 0 {
		t.Errorf("%d reports, and it runs %+v", reports, one.host.runs)
	}
	if _, err := one.Rollback(t.Context(), "ayu", "coins"); !errors.Is(err, approval.ErrNothingBack) {
		t.Errorf("back: %v", err)
	}
	w.activate(one, first, uuid.Nil)
	if _, err := one.Rollback(t.Context(), "ayu", "coins"); !errors.Is(err, approval.ErrNothingBack) {
		t.Errorf("back from all: %v", err)
	}
}

// TestConfigured: the configuration fills only names that have no approval, and a
// rollback from the first approval returns to it.
func TestConfigured(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	configured := host.Spec{Name: "coins", Path: "/opt/coins", SHA256: "ab"}
	names := func(d *approval.Dependencies) {
		d.Configured = []host.Spec{configured, {Name: "other", Path: "/opt/other"}}
	}
	one := w.start("node-1", t.TempDir(), names)
	first := w.approve(one, "ayu", "1.0.0")
	w.place("1.0.0", one)
	if w.look(one); one.host.runs["coins"].Path != "/opt/coins" {
		t.Errorf("an approval alone changes %+v", one.host.runs)
	}
	w.activate(one, first, uuid.Nil)
	w.look(one)
	w.run("1.0.0", one)
	again := w.start("node-1", one.dir, names)
	if w.run("1.0.0", again); again.Newcomer("coins") || again.host.runs["other"].Path != "/opt/other" || len(again.host.runs) != 2 {
		t.Errorf("started anew it runs %+v", again.host.runs)
	}
	if _, err := one.Rollback(t.Context(), "ayu", "coins"); err != nil {
		t.Fatal(err)
	}
	w.look(one)
	if got := one.host.runs["coins"]; got.Path != "/opt/coins" {
		t.Errorf("after the rollback it runs %+v", got)
	}
	if got := w.start("node-1", one.dir, names).host.runs["coins"]; got.Path != "/opt/coins" {
		t.Errorf("started anew it runs %+v", got)
	}
	// Without plugins_dir nothing that is approved runs, and it says why.
	w.activate(one, first, one.self.ID)
	w.activate(one, first, uuid.Nil)
	bare := w.start("node-3", "", names)
	if got := bare.host.runs["coins"]; !strings.Contains(got.Refused, "plugins_dir") || got.Manifest == nil {
		t.Errorf("without plugins_dir: %+v", got)
	}
}

// TestSetAside: in development what the configuration names runs, and is told to be in
// force, also where an approval was; another activation counts again.
func TestSetAside(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.start("node-1", t.TempDir())
	first := w.approve(one, "ayu", "1.0.0")
	w.place("1.0.0", one)
	w.activate(one, first, uuid.Nil)
	own := func(d *approval.Dependencies) {
		d.Configured, d.SetAside = []host.Spec{{Name: "coins", Path: "/home/ayu/coins"}}, []string{"coins"}
	}
	inForce := func(r *replica, want bool) {
		t.Helper()
		if got, err := r.InForce(t.Context(), "coins"); got != want || err != nil {
			t.Errorf("an approval is in force: %v, %v", got, err)
		}
	}
	inForce(one, true)
	for range 2 {
		w.now = w.now.Add(time.Second)
		again := w.start("node-1", one.dir, own)
		w.look(again)
		if got := again.host.runs["coins"]; got.Path != "/home/ayu/coins" || again.Newcomer("coins") {
			t.Errorf("it runs %+v", got)
		}
		inForce(again, false)
		w.now = w.now.Add(time.Second)
		w.activate(again, first, uuid.Nil)
		w.look(again)
		w.run("1.0.0", again)
		inForce(again, true)
	}
}

// TestNeverHealthy: a replica on which the new version can't be put into use goes on with
// the old one, tells, tries again, and takes the exception back.
func TestNeverHealthy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := w.start("node-1", t.TempDir()), w.start("node-2", t.TempDir())
	first, second := w.approve(one, "ayu", "1.0.0"), w.approve(one, "ayu", "1.1.0")
	w.place("1.0.0", one, two)
	w.place("1.1.0", one, two)
	w.activate(one, first, uuid.Nil)
	w.look(one, two)
	w.activate(one, second, uuid.Nil)
	two.host.fails = errors.New("it does not answer its health check")
	w.look(one, two)
	w.look(one, two)
	w.run("1.1.0", one)
	w.run("1.0.0", two)
	if all := w.exceptions(); len(all) != 1 || !strings.Contains(all[0], "version of plugin coins on node-2: on node-2/") || !strings.Contains(all[0], "health check") {
		t.Errorf("exceptions %q", all)
	}
	// Another gateway of the same machine has put it into use, and ends the exception of both.
	if err := w.store.ResolveExceptions(t.Context(), w.now, movement.Owner{MerchantID: string(tenants.Platform), Mode: string(tenants.Live)}, "version of plugin coins on node-2", []string{movement.ReasonPlugin}, "gateway", "used"); err != nil {
		t.Fatal(err)
	}
	w.look(two)
	if all := w.exceptions(); len(all) != 0 {
		t.Errorf("resolved, exceptions %q", all)
	}
	w.now = w.now.Add(20 * time.Second)
	w.look(two)
	if all := w.exceptions(); len(all) != 1 {
		t.Errorf("resolved and tried again, exceptions %q", all)
	}
	two.host.fails = nil
	w.look(two)
	w.run("1.0.0", two) // not yet
	w.now = w.now.Add(20 * time.Second)
	w.look(two)
	w.run("1.1.0", two)
	if all := w.exceptions(); len(all) != 0 {
		t.Errorf("exceptions %q", all)
	}
	// The database is gone: everything stays, and is followed once it is back.
	if _, err := one.Rollback(t.Context(), "ayu", "coins"); err != nil {
		t.Fatal(err)
	}
	two.cut.err = errors.New("the database is gone")
	if err := two.Look(t.Context()); err == nil {
		t.Error("a look at no database went well")
	}
	w.run("1.1.0", two)
	two.cut.err = nil
	w.look(two)
	w.run("1.0.0", two)
}

// TestHangingStart: a start that hangs is tried again some time after it has ended.
func TestHangingStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.start("node-1", t.TempDir())
	first := w.approve(one, "ayu", "1.0.0")
	w.place("1.0.0", one)
	w.activate(one, first, uuid.Nil)
	starts := 0
	one.host.fails = errors.New("it hangs")
	one.host.takes = func(string) { starts, w.now = starts+1, w.now.Add(15*time.Second) }
	w.look(one)
	w.now = w.now.Add(14 * time.Second)
	if w.look(one); starts != 1 {
		t.Errorf("%d starts within 14 s of the first one's end", starts)
	}
	w.now = w.now.Add(time.Second)
	if w.look(one); starts != 2 {
		t.Errorf("%d starts after 15 s", starts)
	}
}

// TestAHangingSwap: while the swap of a plugin hangs, another one is activated and rolled
// back, and so may it be itself: what was decided meanwhile is done after its end.
func TestAHangingSwap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.start("node-1", t.TempDir())
	approved := map[string]store.PluginApproval{}
	for _, version := range []string{"1.0.0", "1.1.0"} {
		approved["coins "+version] = w.approve(one, "ayu", version)
		w.place(version, one)
		cards := strings.ReplaceAll(string(document(version)), "coins", "cards")
		var err error
		if approved["cards "+version], err = one.Approve(t.Context(), "ayu", approval.Wanted{SHA256: sumOf(version), Manifest: []byte(cards)}); err != nil {
			t.Fatal(err)
		}
	}
	w.activate(one, approved["coins 1.0.0"], uuid.Nil)
	w.activate(one, approved["cards 1.0.0"], uuid.Nil)
	w.look(one)

	put, hangs, goOn := make(chan string, 10), make(chan struct{}), make(chan struct{})
	var first sync.Once
	one.host.put = put
	one.host.takes = func(name string) {
		if name == "coins" {
			first.Do(func() { close(hangs); <-goOn })
		}
	}
	want := func(what string) {
		t.Helper()
		select {
		case got := <-put:
			if got != what {
				t.Errorf("%s is put into use, want %s", got, what)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("%s is not put into use", what)
		}
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- one.Run(ctx) }()
	w.activate(one, approved["coins 1.1.0"], uuid.Nil)
	<-hangs
	w.activate(one, approved["cards 1.1.0"], uuid.Nil)
	want("cards 1.1.0")
	if _, err := one.Rollback(t.Context(), "ayu", "cards"); err != nil {
		t.Fatal(err)
	}
	want("cards 1.0.0")
	if _, err := one.Rollback(t.Context(), "ayu", "coins"); err != nil {
		t.Fatal(err)
	}
	close(goOn)
	want("coins 1.1.0")
	want("coins 1.0.0")
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestOrder: providers are in the order of their first approvals, behind those of the
// configuration, on a replica that runs and on one that starts; a later approval, an
// activation and a row without a MAC change nothing of it.
func TestOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	configures := func(d *approval.Dependencies) { d.Configured = []host.Spec{{Name: "zebra"}} }
	one := w.start("node-1", t.TempDir(), configures)
	approve := func(name, version string) store.PluginApproval {
		w.now = w.now.Add(time.Second)
		made, err := one.Approve(t.Context(), "ayu", approval.Wanted{SHA256: sumOf(version), Manifest: []byte(strings.ReplaceAll(string(document(version)), "coins", name))})
		if err != nil {
			t.Fatal(err)
		}
		w.place(version, one)
		return made
	}
	names := []string{"coins", "beads", "zebra", "cards"}
	var manifests []*manifest.Manifest
	approved := map[string]store.PluginApproval{}
	for _, name := range names {
		approved[name] = approve(name, "1.0.0")
		m, err := manifest.Parse([]byte(strings.ReplaceAll(string(document("1.0.0")), "coins", name)))
		if err != nil {
			t.Fatal(err)
		}
		manifests = append(manifests, m)
	}
	want := func(when string, r *replica) {
		t.Helper()
		var got []string
		for _, m := range r.InOrder(manifests) {
			got = append(got, m.Name)
		}
		if fmt.Sprint(got) != "[zebra coins beads cards]" {
			t.Errorf("%s the order is %v", when, got)
		}
	}
	slices.Reverse(manifests)
	for _, name := range []string{"cards", "coins", "zebra", "beads"} {
		w.activate(one, approved[name], uuid.Nil)
		w.look(one)
	}
	want("as they came", one)
	w.activate(one, approve("coins", "1.1.0"), uuid.Nil)
	w.look(one)
	w.execute(`INSERT INTO plugin_approvals (approval_id, provider, sha256, manifest_digest, plugin_version, reach, evidence, approved_by, approved_at, confirmed_by, mac)
		SELECT $1, provider, sha256, manifest_digest, plugin_version, reach, evidence, approved_by, '2020-01-01T00:00:00Z', '', mac FROM plugin_approvals WHERE provider = 'cards'`, uuid.New())
	want("after another approval", one)
	want("started anew", w.start("node-1", one.dir, configures))
	want("on another replica", w.start("node-2", t.TempDir(), configures))
}

// TestByHand: no row that somebody writes into the database brings a binary into use, nor
// takes one out of it.
func TestByHand(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ sql, why, starts string }{
		"another binary":   {`UPDATE plugin_approvals SET sha256 = repeat('0', 64)`, "MAC is not valid", "MAC is not valid"},
		"more ports":       {`UPDATE plugin_approvals SET reach = '{"ports":[22]}'`, "MAC is not valid", "MAC is not valid"},
		"no reach":         {`UPDATE plugin_approvals SET reach = 'x'`, "MAC is not valid", "MAC is not valid"},
		"another evidence": {`UPDATE plugin_approvals SET evidence = 'all of it'`, "MAC is not valid", "MAC is not valid"},
		"no approval":      {`DELETE FROM plugin_approvals`, "gone", "gone"},
		"another head":     {`UPDATE plugin_heads SET changed_by = 'eve'`, "plugin_heads is not valid", "plugin_heads is not valid"},
		"removed":          {`UPDATE plugin_heads SET approval_id = NULL`, "plugin_heads is not valid", "plugin_heads is not valid"},
		"no head":          {`DELETE FROM plugin_heads`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			one := w.start("node-1", t.TempDir())
			first := w.approve(one, "ayu", "1.0.0")
			w.place("1.0.0", one)
			w.activate(one, first, uuid.Nil)
			w.look(one)
			w.execute(c.sql)
			w.execute(`UPDATE plugin_heads SET changes = changes + 1`) // what a replica looks at
			w.look(one)
			w.run("1.0.0", one)
			if all := w.exceptions(); c.why != "" && (len(all) != 1 || !strings.Contains(all[0], c.why)) {
				t.Errorf("exceptions %q, want %q", all, c.why)
			}
			if got := w.start("node-2", one.dir).host.runs["coins"]; c.starts != "" && !strings.Contains(got.Refused, c.starts) || c.starts == "" && got.Name != "" {
				t.Errorf("a replica that starts runs %+v", got)
			}
			if name == "another head" || name == "removed" { // an operator mends it
				w.activate(one, first, uuid.Nil)
				w.now = w.now.Add(20 * time.Second)
				w.look(one)
				if all := w.exceptions(); len(all) != 1 { // node-2's
					t.Errorf("mended: %q", all)
				}
			}
		})
	}
}

// TestAnOlderHead: a row that was right once is not followed when it is put back.
func TestAnOlderHead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.start("node-1", t.TempDir())
	first, second := w.approve(one, "ayu", "1.0.0"), w.approve(one, "ayu", "1.1.0")
	w.place("1.0.0", one)
	w.place("1.1.0", one)
	w.activate(one, first, uuid.Nil)
	w.look(one)
	w.execute(`CREATE TABLE kept AS SELECT * FROM plugin_heads`)
	w.activate(one, second, uuid.Nil)
	w.look(one)
	w.execute(`DELETE FROM plugin_heads`)
	w.execute(`INSERT INTO plugin_heads SELECT * FROM kept`)
	w.look(one)
	w.run("1.1.0", one)
	if all := w.exceptions(); len(all) != 1 || !strings.Contains(all[0], "an older row was put back") {
		t.Errorf("exceptions %q", all)
	}
}

// TestSecondOperator: where the configuration wants two, one operator brings nothing into
// force.
func TestSecondOperator(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.start("node-1", t.TempDir(), func(d *approval.Dependencies) { d.SecondOperator = true })
	first := w.approve(one, "ayu", "1.0.0")
	w.place("1.0.0", one)
	if _, err := one.Activate(t.Context(), "ayu", first, uuid.Nil); !errors.Is(err, approval.ErrUnconfirmed) {
		t.Errorf("by one: %v", err)
	}
	if again := w.approve(one, "ayu", "1.0.0"); again.ConfirmedBy != "" {
		t.Errorf("confirmed by the same: %+v", again)
	}
	confirmed := w.approve(one, "budi", "1.0.0")
	if confirmed.ID != first.ID || confirmed.ConfirmedBy != "budi" || confirmed.ApprovedBy != "ayu" {
		t.Errorf("confirmed %+v", confirmed)
	}
	w.activate(one, confirmed, uuid.Nil)
	w.look(one)
	w.run("1.0.0", one)
	w.execute(`UPDATE plugin_approvals SET confirmed_by = ''`)
	if got := w.start("node-2", one.dir).host.runs["coins"]; got.Refused == "" {
		t.Errorf("without the second one's name it runs %+v", got)
	}
}

// TestNewEvidence: what is proven after an approval without proof is another approval,
// also where the second operator has proven it; less than is known changes nothing, and
// another operator's proof confirms the first one's.
func TestNewEvidence(t *testing.T) {
	t.Parallel()
	const none, proof, more, elsewhere = approval.Unproven + ": --untested", "conformance: 50 cases passed", "conformance: 55 cases passed", "conformance: 50 cases passed; confined: no"
	w := newWorld(t)
	approve := func(r *replica, operator, evidence string) store.PluginApproval {
		t.Helper()
		w.now = w.now.Add(time.Second)
		a, err := r.Approve(t.Context(), operator, approval.Wanted{SHA256: sumOf("1.0.0"), Manifest: document("1.0.0"), Evidence: evidence})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	one := w.start("node-1", t.TempDir())
	untested := approve(one, "ayu", none)
	for _, step := range []struct{ evidence, want string }{{"", none}, {proof, proof}, {proof, proof}, {none, proof}, {more, more}} {
		if got := approve(one, "ayu", step.evidence); got.Evidence != step.want || got.ID == untested.ID && step.want != none {
			t.Errorf("%q: it says %q, want %q", step.evidence, got.Evidence, step.want)
		}
	}
	if newest, err := one.Find(t.Context(), "coins", ""); err != nil || newest.Evidence != more {
		t.Errorf("the newest says %q, %v", newest.Evidence, err)
	}
	two := newWorld(t)
	w = two
	both := w.start("node-1", t.TempDir(), func(d *approval.Dependencies) { d.SecondOperator = true })
	untested = approve(both, "ayu", none)
	tested := approve(both, "budi", proof)
	if tested.ID == untested.ID || tested.ConfirmedBy != "" || tested.Evidence != proof {
		t.Errorf("the second operator's proof: %+v", tested)
	}
	if confirmed := approve(both, "ayu", elsewhere); confirmed.ID != tested.ID || confirmed.ConfirmedBy != "ayu" {
		t.Errorf("the first operator's proof: %+v", confirmed)
	}
}

// TestSecondOperatorWantedLater: what one operator has put in force before two were asked
// for is nothing to go back to, and is said to wait for another one.
func TestSecondOperatorWantedLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.start("node-1", t.TempDir())
	for _, version := range []string{"1.0.0", "1.1.0"} {
		approved := w.approve(one, "ayu", version)
		w.place(version, one)
		w.activate(one, approved, uuid.Nil)
	}
	two := w.start("node-2", one.dir, func(d *approval.Dependencies) { d.SecondOperator = true })
	if _, err := two.Rollback(t.Context(), "ayu", "coins"); !errors.Is(err, approval.ErrUnconfirmed) {
		t.Errorf("to what one operator has approved: %v", err)
	}
	w.approve(two, "budi", "1.0.0") // the same, which confirms it
	if _, err := two.Rollback(t.Context(), "ayu", "coins"); err != nil {
		t.Errorf("to what two have approved: %v", err)
	}
}

// TestInUse: what somebody needs is not removed, and no operation goes of which movements
// are open.
func TestInUse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.start("node-1", t.TempDir())
	first := w.approve(one, "ayu", "1.0.0")
	w.place("1.0.0", one)
	one.cut.use = store.PluginUse{Open: map[string]int64{"/coins/gone": 2, "/coins/list": 1}}
	if _, err := one.Activate(t.Context(), "ayu", first, uuid.Nil); !refusedFor(err, "/coins/gone (2 open). They") {
		t.Errorf("without an operation: %v", err)
	}
	one.cut.use = store.PluginUse{}
	w.activate(one, first, uuid.Nil)
	w.look(one)
	for _, use := range []store.PluginUse{{Connections: 1}, {Open: map[string]int64{"/coins/list": 1}}} {
		one.cut.use = use
		if _, err := one.Remove(t.Context(), "ayu", "coins", false); !refusedFor(err, "must end") && !refusedFor(err, "open movements") {
			t.Errorf("in use: %v", err)
		}
	}
	if _, err := one.Remove(t.Context(), "ayu", "coins", true); err != nil { // with an open movement, by who insists
		t.Fatal(err)
	}
	w.look(one)
	if again := w.start("node-1", one.dir); len(one.host.runs)+len(again.host.runs) != 0 {
		t.Errorf("removed: %+v, %+v", one.host.runs, again.host.runs)
	}
	if _, err := one.Remove(t.Context(), "ayu", "nobody", false); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("nobody: %v", err)
	}
	if _, err := one.Rollback(t.Context(), "ayu", "coins"); err != nil {
		t.Fatal(err)
	}
	w.look(one)
	w.run("1.0.0", one)
}

// TestBackInUse: a rollback is refused, too, where it takes an operation away of which
// movements are open, and a replica on which one was made meanwhile goes on until it ends.
func TestBackInUse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.start("node-1", t.TempDir())
	first, second := w.approve(one, "ayu", "1.0.0"), w.approve(one, "ayu", "1.1.0")
	for _, version := range []string{"1.0.0", "1.1.0"} {
		w.place(version, one)
	}
	w.activate(one, first, uuid.Nil)
	w.look(one)
	w.activate(one, second, uuid.Nil)
	w.look(one)
	one.cut.use = store.PluginUse{Open: map[string]int64{"/coins/gone": 1}}
	if _, err := one.Rollback(t.Context(), "ayu", "coins"); !refusedFor(err, "/coins/gone (1 open). They") {
		t.Errorf("without an operation: %v", err)
	}
	one.cut.use = store.PluginUse{}
	if _, err := one.Rollback(t.Context(), "ayu", "coins"); err != nil {
		t.Fatal(err)
	}
	one.cut.use = store.PluginUse{Open: map[string]int64{"/coins/gone": 1}}
	w.look(one)
	w.run("1.1.0", one)
	if all := w.exceptions(); len(all) != 1 || !strings.Contains(all[0], "/coins/gone (1 open)") {
		t.Errorf("exceptions %q", all)
	}
	one.cut.use = store.PluginUse{}
	w.now = w.now.Add(20 * time.Second)
	w.look(one)
	w.run("1.0.0", one)
}

// TestClash: a rollback to what can't be offered beside the others is refused, and a
// replica that finds such heads starts with the one that was there first.
func TestClash(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	coins := func(d *approval.Dependencies) {
		d.Offers = func(all []*manifest.Manifest) error {
			seen := map[string]bool{}
			for _, m := range all {
				for _, op := range m.Operations {
					if seen[op.Path] {
						return errors.New("both offer " + op.Path)
					}
					seen[op.Path] = true
				}
			}
			return nil
		}
	}
	one := w.start("node-1", t.TempDir(), coins)
	first := w.approve(one, "ayu", "1.0.0")
	other, err := one.Approve(t.Context(), "ayu", approval.Wanted{
		SHA256: sumOf("other"), Manifest: bytes.Replace(document("1.0.0"), []byte(`"name": "coins"`), []byte(`"name": "another"`), 1),
	})
	if err != nil {
		t.Fatal(err)
	}
	w.place("1.0.0", one)
	w.place("other", one)
	w.activate(one, first, uuid.Nil)
	w.look(one)
	if _, err := one.Remove(t.Context(), "ayu", "coins", false); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(time.Second)
	w.activate(one, other, uuid.Nil)
	w.look(one)
	if _, err := one.Rollback(t.Context(), "ayu", "coins"); !refusedFor(err, "both offer /coins/list") {
		t.Errorf("a rollback beside one with the same paths: %v", err)
	}
	// Two replicas that see each only their own plugins put both in force.
	w.now = w.now.Add(time.Second)
	if _, err := w.start("node-2", one.dir).Rollback(t.Context(), "ayu", "coins"); err != nil {
		t.Fatal(err)
	}
	again := w.start("node-1", one.dir, coins)
	if got := again.host.runs["coins"]; !strings.Contains(got.Refused, "both offer") || got.Manifest != nil {
		t.Errorf("the second to come into force: %+v", got)
	}
	if got := again.host.runs["another"]; got.Refused != "" || got.Manifest == nil {
		t.Errorf("the first: %+v", got)
	}
	if all := w.exceptions(); len(all) != 1 || !strings.Contains(all[0], "both offer /coins/list") {
		t.Errorf("exceptions %q", all)
	}
	w.look(again) // and tries again
	if got := again.host.runs["coins"]; got.Refused != "" {
		t.Errorf("it is not tried again: %+v", got)
	}
}

// TestFiles: a file counts once the whole of it is there.
func TestFiles(t *testing.T) {
	t.Parallel()
	files := approval.NewFiles(t.TempDir())
	path := files.Path(sumOf("a binary"))
	if err := os.WriteFile(path, []byte("a bin"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "README"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := files.List(); len(got) != 0 {
		t.Errorf("half of it counts: %q", got)
	}
	if err := os.WriteFile(path, []byte("a binary"), 0o600); err != nil {
		t.Fatal(err)
	}
	if !files.Has(sumOf("a binary")) || approval.NewFiles("").Has(sumOf("a binary")) || len(approval.NewFiles("/nowhere/at/all").List()) != 0 {
		t.Errorf("got %q", files.List())
	}
}

// TestReseal: a rotation of the keyset finds the MACs of approvals and heads.
func TestReseal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.start("node-1", t.TempDir())
	first := w.approve(one, "ayu", "1.0.0")
	w.place("1.0.0", one)
	w.activate(one, first, uuid.Nil)
	accounts, err := w.store.SealedAfter(t.Context(), "", 10)
	if err != nil || len(accounts) != 1 {
		t.Fatalf("%+v, %v", accounts, err)
	}
	was, becomes := accounts[0], accounts[0]
	becomes.Policies = nil
	for _, mac := range was.Policies {
		mac.MAC = []byte("of another key")
		becomes.Policies = append(becomes.Policies, mac)
	}
	changed, err := w.store.Reseal(t.Context(), store.Audit{Operator: "ayu", Action: "keyset.reseal", At: w.now}, was, becomes)
	if err != nil || changed != 2 {
		t.Errorf("%d rows, %v", changed, err)
	}
	heads, err := w.store.PluginHeads(t.Context())
	if err != nil || string(heads[0].MAC) != "of another key" {
		t.Errorf("%+v, %v", heads, err)
	}
	if again, err := w.store.PluginApproval(t.Context(), first.ID); err != nil || string(again.MAC) != "of another key" {
		t.Errorf("%+v, %v", again, err)
	}
}
