package audit_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/audit"
	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/queue"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/tenants"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// epoch is when the tests begin.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// shop is the merchant beside the platform.
const shop = "mer_shop"

// world is a database of the test's own with the replicas that work on it.
type world struct {
	*testing.T
	url, keyset string
	now         time.Time
	store       *store.Store
	vault       *tenants.Vault
	keeper      *audit.Keeper
	acts        int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, now: epoch, keyset: filepath.Join(t.TempDir(), "keyset.json")}
	w.url = dbtest.Reused(t, store.MigrationsDigest(), func(ctx context.Context, url string) error {
		return store.Migrate(ctx, url, slog.New(slog.DiscardHandler))
	})
	w.must(tenants.CreateKeysetFile(w.keyset))
	w.start(nil)
	w.must(w.store.CreateMerchant(t.Context(), w.entry("merchant.create"), tenants.Merchant{ID: shop, Name: "Toko", Tier: "starter", Status: tenants.Active}, nil, nil))
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// open opens the database as another replica would.
func (w *world) open(seal func([]byte) []byte) *store.Store {
	w.Helper()
	s, err := store.Open(w.Context(), w.url, store.Options{MaxConns: 4, Seal: seal})
	w.must(err)
	w.Cleanup(s.Close)
	return s
}

// start is a replica that starts, with the keyset as it is now.
func (w *world) start(sink audit.Sink) {
	w.Helper()
	var err error
	w.vault, err = tenants.OpenKeysetFile(w.keyset)
	w.must(err)
	w.store = w.open(w.vault.SealAudit)
	w.keeper = w.replica(w.store, sink)
}

func (w *world) replica(s *store.Store, sink audit.Sink) *audit.Keeper {
	now := func() time.Time { return w.now }
	return audit.New(s, w.vault, sink, queue.NewLeases(s, "audit", uuid.NewString(), 1, now), now, slog.New(slog.DiscardHandler))
}

func (w *world) entry(action string) store.Audit {
	w.acts++
	return store.Audit{Operator: "ayu", Action: action, Detail: fmt.Sprintf("act %d", w.acts), At: w.now.Add(time.Duration(w.acts) * time.Second)}
}

// act does something to a merchant or the platform, and returns the id of its entry.
func (w *world) act(on tenants.MerchantID) uuid.UUID {
	w.Helper()
	w.must(w.store.NoteAudit(w.Context(), w.entry("callback.test"), on))
	list, err := w.store.AuditOf(w.Context(), store.AuditRange{Most: 1})
	w.must(err)
	return list[0].ID
}

func (w *world) execute(statements ...string) {
	w.Helper()
	conn, err := pgx.Connect(w.Context(), w.url)
	w.must(err)
	defer conn.Close(context.WithoutCancel(w.Context()))
	for _, statement := range statements {
		if _, err := conn.Exec(w.Context(), statement); err != nil {
			w.Fatalf("%s: %v", statement, err)
		}
	}
}

// seal links what waits.
func (w *world) seal() {
	w.Helper()
	w.must(w.keeper.Seal(w.Context()))
}

// verify verifies as a replica that has just started would.
func (w *world) verify(anchors ...audit.Anchor) store.AuditReport {
	w.Helper()
	report, err := audit.Verify(w.Context(), w.store, w.vault, w.now, anchors...)
	w.must(err)
	return report
}

// right fails where something is broken.
func (w *world) right(links int64) store.AuditReport {
	w.Helper()
	report := w.verify()
	if len(report.Breaks) > 0 || report.Sequence != links {
		w.Fatalf("%+v, want %d links and no breaks", report, links)
	}
	return report
}

// finds fails unless exactly these breaks are found, by what each says.
func (w *world) finds(report store.AuditReport, want ...string) {
	w.Helper()
	var got []string
	for _, b := range report.Breaks {
		got = append(got, b.String())
	}
	if len(got) != len(want) {
		w.Fatalf("found %q, want %q", got, want)
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			w.Errorf("found %q, want %q", got[i], want[i])
		}
	}
}

// TestWhatIsDoneBySQLIsFound has five entries: 1 is the merchant's creation, 2 and 4 are of
// the platform, 3 and 5 of the merchant.
func TestWhatIsDoneBySQLIsFound(t *testing.T) {
	t.Parallel()
	const head = `UPDATE audit_head SET sequence = 4, hash = (SELECT hash FROM audit_chain WHERE sequence = 4)`
	for name, c := range map[string]struct {
		sql  []string // {n} stands for the id of entry n
		want []string
	}{
		"renamed":               {[]string{`UPDATE audit SET operator = 'budi' WHERE audit_id = '{3}'`}, []string{`link 3: entry {3} is altered; it reads now "callback.test" by "budi" at mer_shop`}},
		"action":                {[]string{`UPDATE audit SET action = 'merchant.credit' WHERE audit_id = '{3}'`}, []string{"link 3: entry {3} is altered"}},
		"detail":                {[]string{`UPDATE audit SET detail = '' WHERE audit_id = '{2}'`}, []string{"link 2: entry {2} is altered"}},
		"another merchant's":    {[]string{`UPDATE audit SET merchant_id = 'platform' WHERE audit_id = '{5}'`}, []string{"link 5: entry {5} is altered"}},
		"another time":          {[]string{`UPDATE audit SET at = at + INTERVAL '1 second' WHERE audit_id = '{1}'`}, []string{"link 1: entry {1} is altered"}},
		"from elsewhere":        {[]string{`UPDATE audit SET origin = '10.0.0.1' WHERE audit_id = '{4}'`}, []string{"link 4: entry {4} is altered"}},
		"more often":            {[]string{`UPDATE audit SET times = 7 WHERE audit_id = '{4}'`}, []string{"link 4: entry {4} is altered"}},
		"the first deleted":     {[]string{`DELETE FROM audit WHERE audit_id = '{1}'`}, []string{"link 1: entry {1} is deleted"}},
		"one between deleted":   {[]string{`DELETE FROM audit WHERE audit_id = '{3}'`}, []string{"link 3: entry {3} is deleted"}},
		"the newest deleted":    {[]string{`DELETE FROM audit WHERE audit_id = '{5}'`}, []string{"link 5: entry {5} is deleted"}},
		"two swapped":           {[]string{`UPDATE audit SET audit_id = '00000000-0000-4000-8000-000000000001' WHERE audit_id = '{2}'`, `UPDATE audit SET audit_id = '{2}', sequence = 2 WHERE audit_id = '{4}'`, `UPDATE audit SET audit_id = '{4}', sequence = 4 WHERE audit_id = '00000000-0000-4000-8000-000000000001'`}, []string{"link 2: entry {2} is altered", "link 4: entry {4} is altered"}},
		"inserted":              {[]string{`INSERT INTO audit (audit_id, merchant_id, at, operator, action, detail) VALUES ('00000000-0000-4000-8000-000000000001', 'mer_shop', now(), 'ayu', 'x', '')`}, []string{"entry 00000000-0000-4000-8000-000000000001 was inserted: no gateway"}},
		"inserted as if linked": {[]string{`INSERT INTO audit SELECT '00000000-0000-4000-8000-000000000001', merchant_id, at, operator, action, detail, origin, times, mac, sequence FROM audit WHERE audit_id = '{3}'`}, []string{"00000000-0000-4000-8000-000000000001 was inserted: link 3 is not its own"}},
		"inserted with a MAC of another": {
			[]string{`INSERT INTO audit SELECT '00000000-0000-4000-8000-000000000001', merchant_id, at, operator, action, detail, origin, times, mac, NULL FROM audit WHERE audit_id = '{3}'`},
			[]string{"00000000-0000-4000-8000-000000000001 was altered or inserted: its MAC is not valid"},
		},
		"altered, and without its link":     {[]string{`UPDATE audit SET operator = 'budi', sequence = NULL WHERE audit_id = '{3}'`}, []string{"entry {3} was altered or inserted"}},
		"altered, and as if it were linked": {[]string{`UPDATE audit SET operator = 'budi', sequence = 99 WHERE audit_id = '{3}'`}, []string{"entry {3} was inserted: link 99 is not its own"}},
		"the newest deleted with its link":  {[]string{`DELETE FROM audit WHERE audit_id = '{5}'`, `DELETE FROM audit_chain WHERE sequence = 5`}, []string{"link 5: is the last one by audit_head, and the links behind 4 are deleted"}},
		"and the head put back":             {[]string{`DELETE FROM audit WHERE audit_id = '{5}'`, `DELETE FROM audit_chain WHERE sequence = 5`, head}, []string{"link 4: is where audit_head ends the chain, and no gateway"}},
		"the head put back alone":           {[]string{head}, []string{"link 4: is where audit_head ends the chain, and no gateway", "link 5: is behind the end"}},
		"the head deleted":                  {[]string{`DELETE FROM audit_head`}, []string{"audit_head is gone"}},
		"a link deleted with its entry":     {[]string{`DELETE FROM audit WHERE audit_id = '{3}'`, `DELETE FROM audit_chain WHERE sequence = 3`}, []string{"link 3: is deleted, with all up to link 3"}},
		"the first link deleted":            {[]string{`DELETE FROM audit_chain WHERE sequence = 1`}, []string{"link 1: is deleted", "entry {1} was inserted: link 1 is not its own"}},
		"entry and link altered":            {[]string{`UPDATE audit SET operator = 'budi' WHERE audit_id = '{3}'`, `UPDATE audit_chain SET digest = '\x00' WHERE sequence = 3`}, []string{"link 3: its hash", "link 3: entry {3} is altered"}},
		"links swapped": {
			[]string{`UPDATE audit_chain SET sequence = -sequence WHERE sequence IN (2, 3)`, `UPDATE audit_chain SET sequence = 5 + sequence WHERE sequence < 0`, `UPDATE audit SET sequence = 5 - sequence WHERE sequence IN (2, 3)`},
			[]string{"link 2: its hash", "link 3: its hash", "link 4: its hash"},
		},
		"what a link says of its entry": {[]string{`UPDATE audit_chain SET proof = 'found' WHERE sequence = 3`}, []string{"link 3: its hash"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			list, err := w.store.AuditOf(t.Context(), store.AuditRange{Most: 1})
			w.must(err)
			ids := []string{"{1}", list[0].ID.String()}
			for i, on := range []tenants.MerchantID{tenants.Platform, shop, tenants.Platform, shop} {
				ids = append(ids, fmt.Sprintf("{%d}", i+2), w.act(on).String())
			}
			w.seal()
			w.now = epoch.Add(30 * time.Hour)
			w.right(5)
			put := strings.NewReplacer(ids...)
			for _, statement := range c.sql {
				w.execute(put.Replace(statement))
			}
			want := make([]string, len(c.want))
			for i := range want {
				want[i] = put.Replace(c.want[i])
			}
			w.finds(w.verify(), want...)
		})
	}
}

func TestWhatIsDoneBeforeTheLinkIsFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seal()
	altered := w.act(shop)
	w.execute(fmt.Sprintf(`UPDATE audit SET operator = 'budi' WHERE audit_id = '%s'`, altered))
	w.finds(w.verify(), "entry "+altered.String()+" was altered or inserted")
	w.seal()
	w.finds(w.verify(), "link 2: entry "+altered.String()+" was altered before it had a link")
}

// TestWhatWasCutOffIsFoundByWhoKnowsIt restores everything as it was two entries ago, the
// head with its valid MAC, too: only who has seen the chain can tell.
func TestWhatWasCutOffIsFoundByWhoKnowsIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seal()
	backup := `DELETE FROM audit_head; DELETE FROM audit_chain WHERE sequence > 1; DELETE FROM audit WHERE sequence > 1 OR sequence IS NULL`
	before, err := w.store.AuditHead(t.Context())
	w.must(err)
	w.act(shop)
	w.act(shop)
	w.seal()
	after, err := w.store.AuditHead(t.Context())
	w.must(err)
	for _, statement := range strings.Split(backup, ";") {
		w.execute(statement)
	}
	w.execute(fmt.Sprintf(`INSERT INTO audit_head (name, sequence, hash, mac) VALUES ('head', %d, '\x%x', '\x%x')`, before.Sequence, before.Hash, before.MAC))
	w.right(1)
	w.finds(w.verify(audit.Anchor{Sequence: after.Sequence, Hash: after.Hash, From: "was exported"}), "link 3: is not the one that was exported")
	report, err := w.keeper.Verify(t.Context(), nil)
	w.must(err)
	w.finds(report, "link 3: is not the one that this replica has seen")
	w.act(shop)
	w.act(shop)
	w.seal()
	w.finds(w.verify(audit.Anchor{Sequence: after.Sequence, Hash: after.Hash, From: "was exported"}), "link 3: is not the one that was exported")
	for _, statement := range []string{`DELETE FROM audit_head`, `DELETE FROM audit_chain`, `DELETE FROM audit`} {
		w.execute(statement)
	}
	if report, err := w.keeper.Verify(t.Context(), nil); err != nil || len(report.Breaks) != 1 {
		t.Errorf("all is gone: %+v, %v", report, err)
	}
}

func TestAHeadThatIsGoneIsNotBegunAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seal()
	w.execute(`DELETE FROM audit_head`)
	if err := w.keeper.Seal(t.Context()); err == nil || !strings.Contains(err.Error(), "audit_head is gone") {
		t.Errorf("sealed: %v", err)
	}
	w.execute(`INSERT INTO audit_head (name, sequence, hash, mac) SELECT 'head', sequence, hash, mac FROM audit_chain`)
	if err := w.keeper.Seal(t.Context()); err == nil || !strings.Contains(err.Error(), "no gateway with this keyset") {
		t.Errorf("sealed: %v", err)
	}
}

// TestEntriesBeforeTheChain are told as such, and only while the chain begins.
func TestEntriesBeforeTheChain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := w.open(nil) // of the version before
	w.must(old.NoteAudit(t.Context(), store.Audit{Operator: "ayu", Action: "x", At: epoch.Add(-9 * time.Hour)}, shop))
	w.must(old.NoteAudit(t.Context(), store.Audit{Operator: "ayu", Action: "x", At: epoch}, shop))
	w.seal()
	if report := w.right(2); report.Found != 1 || report.Waiting != 1 || !report.Since.Equal(epoch) {
		t.Errorf("%+v", report)
	}
	w.now = epoch.Add(2 * time.Hour)
	w.seal()
	if report := w.right(3); report.Found != 2 || report.Waiting != 0 {
		t.Errorf("%+v", report)
	}
	w.now = epoch.Add(30 * time.Hour)
	w.must(old.NoteAudit(t.Context(), store.Audit{Operator: "ayu", Action: "inserted", At: epoch.Add(time.Hour)}, shop))
	w.finds(w.verify(), "was inserted: no gateway")
	w.seal()
	w.finds(w.verify(), "link 4: entry")
}

func TestAnEntryThatCountsIsLinkedAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	who := tenants.Person{ID: uuid.New(), Email: "siti@example.com"}
	refuse := func(times int64) {
		t.Helper()
		w.must(w.store.NoteRefusal(t.Context(), who, "a wrong password", times, w.now))
	}
	refuse(2)
	w.seal()
	w.right(2)
	refuse(3)
	if report := w.right(2); report.Waiting != 1 {
		t.Errorf("%+v", report)
	}
	w.seal()
	w.right(3)
	list, err := w.store.AuditOf(t.Context(), store.AuditRange{Action: "signin.", Most: 5})
	if err != nil || len(list) != 1 || list[0].Times != 5 || list[0].Sequence != 3 {
		t.Errorf("%+v, %v", list, err)
	}
	w.execute(`UPDATE audit SET sequence = 1, times = 2 WHERE action = 'signin.refused'`)
	w.finds(w.verify(), "link 3: entry "+list[0].ID.String()+" is put back to what it was at link 1")
}

// TestReplicasKeepOneChain has two of them link what two others do, all at once. One of those
// that act ends before its entries have links.
func TestReplicasKeepOneChain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const each = 25
	var acting, sealing sync.WaitGroup
	over := make(chan struct{})
	fail := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	for range 2 {
		keeper := w.replica(w.open(w.vault.SealAudit), nil)
		sealing.Go(func() {
			for {
				fail(keeper.Seal(t.Context()))
				select {
				case <-over:
					return
				default:
				}
			}
		})
		s, err := store.Open(t.Context(), w.url, store.Options{MaxConns: 4, Seal: w.vault.SealAudit})
		w.must(err)
		acting.Go(func() {
			defer s.Close() // as if killed: nothing but the database has its entries
			for i := range each {
				fail(s.NoteAudit(t.Context(), store.Audit{Operator: "ayu", Action: "x", At: epoch.Add(time.Duration(i))}, []tenants.MerchantID{shop, tenants.Platform}[i%2]))
			}
		})
	}
	acting.Wait()
	close(over)
	sealing.Wait()
	w.seal()
	if report := w.right(2*each + 1); report.Waiting != 0 {
		t.Errorf("%+v", report)
	}
}

func TestAKeyIsReplacedAndRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.act(shop)
	w.seal()
	first := w.vault.Keys()[0].Number
	edit := func(change func(k *tenants.Keyset) error) {
		t.Helper()
		w.must(tenants.EditKeysetFile(w.keyset, change))
	}
	edit(func(k *tenants.Keyset) error { _, err := k.Rotate(); return err })
	w.start(nil)
	w.right(2)
	w.seal() // nothing waits, but the head
	remove := func(k *tenants.Keyset) error { return k.Remove(first) }
	edit(remove)
	w.start(nil)
	if report := w.right(2); report.Inherited != 2 {
		t.Errorf("%+v", report)
	}
	w.execute(`UPDATE audit SET operator = 'budi' WHERE sequence = 1`)
	w.finds(w.verify(), "link 1: entry")
	w.execute(`UPDATE audit SET operator = 'ayu' WHERE sequence = 1`)
	w.act(shop)
	w.seal()
	if report := w.right(3); report.Inherited != 2 {
		t.Errorf("%+v", report)
	}
	edit(func(k *tenants.Keyset) error { _, err := k.Rotate(); return err }) // and no gateway sees it
	number := w.vault.Keys()[0].Number
	edit(func(k *tenants.Keyset) error { return k.Remove(number) })
	w.start(nil)
	w.finds(w.verify(), "link 3: is where audit_head ends the chain", "link 1: is the first of those at the end that nothing proves")
	if err := w.keeper.Seal(t.Context()); err == nil {
		t.Error("what nobody can judge is built upon")
	}
}

// sink takes lines while it is up.
type sink struct {
	down  bool
	lines []store.AuditLine
}

func (s *sink) Send(_ context.Context, lines []store.AuditLine) error {
	if s.down {
		return errors.New("down")
	}
	s.lines = append(s.lines, lines...)
	return nil
}

// TestASinkGetsEachLine also where it was down, or another replica sends on.
func TestASinkGetsEachLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	to := &sink{}
	w.keeper = w.replica(w.store, to)
	send := func() {
		t.Helper()
		w.seal()
		w.must(w.keeper.Send(t.Context()))
	}
	has := func(want ...int64) {
		t.Helper()
		var got []int64
		for _, l := range to.lines {
			got = append(got, l.Sequence)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("sent %v, want %v", got, want)
		}
	}
	send()
	has(1)
	to.down = true
	w.act(shop)
	w.act(shop)
	send()
	send()
	has(1)
	if behind := w.keeper.Figures(); !behind.SentAt.Equal(epoch) || behind.Sequence != 3 {
		t.Errorf("%+v", behind)
	}
	to.down, w.now = false, epoch.Add(time.Minute)
	send()
	has(1, 1, 2, 3) // what was on its way when it went down may be lost
	w.act(tenants.Platform)
	w.keeper = w.replica(w.store, to)
	send()
	has(1, 1, 2, 3, 4)
	if l := to.lines[4]; l.Entry == nil || l.Entry.Merchant != tenants.Platform || l.Entry.Operator != "ayu" || l.Proof != store.Written || len(l.Hash) != 64 {
		t.Errorf("%+v", l)
	}
}
