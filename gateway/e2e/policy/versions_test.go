package policy_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// versionsAcrossReplicas pushes, tries on the past, activates and rolls back under
// load, as an operator does: the limit changes on all three replicas, and no request
// fails.
func versionsAcrossReplicas(t *testing.T, r *replicaSet) {
	t.Helper()
	replicas := r.replicas
	operator := replicas[0]
	edit := &harness.PolicyData{File: filepath.Join(t.TempDir(), "data.json")}
	dir := filepath.Dir(edit.File)
	burst := func(n int) {
		edit.Change(t, func(tiers map[string]map[string]any, _ map[string]any) { tiers["scale"]["burst"] = n })
	}
	l := &limitWatch{Shop: r.newShop(t, operator), clients: 1, pause: 100 * time.Millisecond, seen: map[string]map[*harness.Program]time.Time{}}
	l.changes(t, replicas, dir, burst)
	var running []adminapi.Replica
	operator.MustRun(t, "", &running, "replica", "list")
	if len(running) != 3 || slices.ContainsFunc(running, func(r adminapi.Replica) bool {
		return r.State != "live" || !r.HeadIsHere || r.Binary == "" || len(r.Plugins) != 2
	}) {
		t.Errorf("%+v", running)
	}
	refusedByHand(t, operator, dir)
	l.tierInUse(t, replicas, edit)
}

// changes changes a limit twice and takes it back twice while every replica is asked all
// the time, and notes when each replica first told of it. No request fails.
func (l *limitWatch) changes(t *testing.T, replicas []*harness.Program, dir string, burst func(int)) {
	t.Helper()
	operator := replicas[0]
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var load sync.WaitGroup
	for _, p := range replicas {
		for range l.clients {
			load.Go(func() { l.run(ctx, p) })
		}
	}
	l.await(t, "before", "q=1000;", time.Now(), replicas)
	for _, n := range []int{900, 800} {
		burst(n)
		var v adminapi.PolicyVersion
		operator.MustRun(t, "", &v, "policy", "push", dir, "--message", fmt.Sprint("a burst of ", n))
		var found adminapi.Impact
		operator.MustRun(t, "", &found, "policy", "impact", v.Version[:10], "--since", "1h")
		if found.Version != v.Version || found.NewlyAllowed != 0 {
			t.Errorf("a smaller burst would have done %+v", found)
		}
		var a adminapi.PolicyActivation
		begun := time.Now()
		operator.MustRun(t, "", &a, "policy", "activate", v.Version[:10], "--wait")
		if a.State != "done" || !a.InForce || len(a.Behind) != 0 || a.Replicas != 3 {
			t.Errorf("%+v", a)
		}
		c := l.await(t, "activate", fmt.Sprintf("q=%d;", n), begun, replicas)
		c.decided = a.DecidedAt.Sub(*a.ProposedAt)
		l.changed = append(l.changed, c)
	}
	for _, want := range []string{"q=900;", "q=1000;"} {
		l.forget(want)
		begun := time.Now()
		replicas[1].MustRun(t, "", nil, "policy", "rollback", "--wait", "--reason", "too strict")
		l.changed = append(l.changed, l.await(t, "rollback", want, begun, replicas))
	}
	stop()
	load.Wait()
	l.wantNoFailure(t, replicas)
}

// change is a limit that was changed: when each replica told of it after the command
// began, and how long it took to be decided.
type change struct {
	what    string
	told    []time.Duration
	decided time.Duration
}

// refusedByHand pushes what can't be, and activates what is not in force any more.
func refusedByHand(t *testing.T, operator *harness.Program, dir string) {
	t.Helper()
	broken := filepath.Join(t.TempDir(), "data.json")
	if err := os.WriteFile(broken, []byte("{\n  \"tires\": {}\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := operator.Run(t, "policy", "push", filepath.Dir(broken), "--message", "broken"); err == nil || !strings.Contains(out, broken+":2:3: ") {
		t.Errorf("a broken set: %v\n%s", err, out)
	}
	var versions []adminapi.PolicyVersion
	operator.MustRun(t, "", &versions, "policy", "list")
	states := map[string]int{}
	for _, v := range versions {
		states[v.State]++
	}
	if len(versions) != 4 || states["active"] != 1 || states["past"] != 2 || states["refused"] != 1 {
		t.Errorf("versions in states %v", states)
	}
	if out, err := operator.Run(t, "policy", "push", dir, "--message", "again", "--activate", "--replaces", versions[1].Version[:12]); err == nil || !strings.Contains(out, "is in force, which this edit does not begin from") {
		t.Errorf("it replaces what is not in force: %v\n%s", err, out)
	}
	export := t.TempDir()
	operator.MustRun(t, "", nil, "policy", "show", versions[1].Version[:8], "--export", export)
	pushed, err := os.ReadFile(filepath.Join(dir, "data.json"))
	exported, other := os.ReadFile(filepath.Join(export, "data.json"))
	if err != nil || other != nil || string(pushed) != string(exported) {
		t.Errorf("exported %d bytes, pushed %d: %v %v", len(exported), len(pushed), err, other)
	}
	if out, err := operator.Run(t, "policy", "diff", "active", versions[1].Version[:8]); err != nil || !strings.Contains(out, `"burst": 800`) {
		t.Errorf("diff: %v\n%s", err, out)
	}
}

// tierInUse rolls back a version with a tier that a merchant has moved to since: every request of it would be refused.
func (l *limitWatch) tierInUse(t *testing.T, replicas []*harness.Program, edit *harness.PolicyData) {
	t.Helper()
	operator := replicas[0]
	edit.Change(t, func(tiers map[string]map[string]any, _ map[string]any) { tiers["gold"] = tiers["scale"] })
	operator.MustRun(t, "", nil, "policy", "push", filepath.Dir(edit.File), "--message", "a tier of gold", "--activate", "--wait")
	operator.MustRun(t, "", nil, "merchant", "tier", l.Shop.MerchantID, "gold")
	out, err := operator.Run(t, "policy", "rollback", "--wait")
	if err == nil || !strings.Contains(out, `data.json:2:3: meaning: merchants are on the tier "gold"`) || !strings.Contains(out, "(1 merchant)") {
		t.Errorf("a rollback that takes a merchant's tier away: %v\n%s", err, out)
	}
	for _, p := range replicas {
		if a := l.Shop.At(p).Ask(t, "/balance", harness.Fields{}); a.Code != "" {
			t.Errorf("the merchant can't read its balance: %+v", a)
		}
	}
	operator.MustRun(t, "", nil, "policy", "rollback", "--wait", "--force", "--reason", "an outage")
	operator.MustRun(t, "", nil, "merchant", "tier", l.Shop.MerchantID, "scale")
}

// limitWatch is requests at every replica, and when each replica first told of a limit.
type limitWatch struct {
	harness.Shop
	clients  int           // of each replica
	pause    time.Duration // between two requests of a client
	mu       sync.Mutex
	seen     map[string]map[*harness.Program]time.Time
	requests int
	late     int // cut by a deadline
	timeouts int // of the provider
	failures []string
	changed  []change
}

// run sends requests to a replica until the context ends.
func (l *limitWatch) run(ctx context.Context, p *harness.Program) {
	tick := time.NewTicker(l.pause)
	defer tick.Stop()
	for n := 0; ; n++ {
		path, body := "/payments/status", harness.Fields{"external_id": "none"}
		if n%4 == 0 {
			path, body = "/payments/create", l.PaymentBody(nil)
		}
		a, err := l.Shop.At(p).Post(ctx, path, body)
		if ctx.Err() == nil {
			l.note(p, path, a, err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (l *limitWatch) note(p *harness.Program, path string, a harness.Answer, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests++
	switch {
	case err == nil && (a.Success || path == "/payments/status" && a.Code == fault.NotFound):
	case err == nil && a.Code == fault.Internal:
		l.late++
	case err == nil && a.Code == fault.ProviderTimeout: // which no policy decides
		l.timeouts++
	default:
		l.failures = append(l.failures, fmt.Sprintf("%s: %v %s", path, err, a))
	}
	for part := range strings.SplitSeq(a.Header.Get("RateLimit-Policy"), ",") {
		_, limit, _ := strings.Cut(part, ";")
		if l.seen[limit] == nil {
			l.seen[limit] = map[*harness.Program]time.Time{}
		}
		if _, before := l.seen[limit][p]; !before {
			l.seen[limit][p] = time.Now()
		}
	}
}

// forget has a limit be seen anew.
func (l *limitWatch) forget(part string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for limit := range l.seen {
		if strings.HasPrefix(limit, part) {
			delete(l.seen, limit)
		}
	}
}

// await waits until every replica has told of a limit, and prints how long it took.
func (l *limitWatch) await(t *testing.T, what, part string, begun time.Time, replicas []*harness.Program) change {
	t.Helper()
	var took []time.Duration
	harness.Await(t, harness.ReadyWithin, what+": "+part, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		for limit, by := range l.seen {
			if strings.HasPrefix(limit, part) && len(by) == len(replicas) {
				took = took[:0]
				for _, at := range by {
					took = append(took, at.Sub(begun).Round(time.Millisecond))
				}
				return true
			}
		}
		return false
	})
	slices.Sort(took)
	t.Logf("%s: %s told by the replicas %v after the command began", what, part, took)
	return change{what: what, told: took}
}

// wantNoFailure wants every request answered well, but for those that a busy machine
// has no time for, which the replicas' logs tell of.
func (l *limitWatch) wantNoFailure(t *testing.T, replicas []*harness.Program) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	deadlines := 0
	for _, p := range replicas {
		deadlines += p.LogCount("deadline exceeded")
	}
	t.Logf("%d requests, %d of them failed, %d were late on this machine, and the provider was late for %d", l.requests, len(l.failures), l.late, l.timeouts)
	if len(l.failures) > 0 || l.requests == 0 || l.late > deadlines {
		t.Errorf("%d late, %d deadlines; failed: %s", l.late, deadlines, strings.Join(l.failures[:min(len(l.failures), 5)], "\n"))
	}
}
