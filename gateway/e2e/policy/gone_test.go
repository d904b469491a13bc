package policy_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/tier"
)

// databaseGone loses the database of all replicas while they decide, and gives it back: the version comes into force,
// once, on each that lives. A replica that was killed and is counted as live is named; in the long tier the command that
// waits for it ends with exit code 5 after a minute.
func databaseGone(t *testing.T, r *replicaSet) {
	t.Helper()
	replicas := []*harness.Program{r.replicas[0], r.replicas[1], r.replicas[3]} // the third was killed
	shop := r.newShop(t, replicas[0])
	conn, err := pgx.Connect(t.Context(), r.databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	// The others wait for the one that is silent, so the version is not decided at once.
	if _, err := conn.Exec(t.Context(), `UPDATE replicas SET seen_at = now() + INTERVAL '1 hour' WHERE ended_at IS NULL
		AND seen_at = (SELECT min(seen_at) FROM replicas WHERE ended_at IS NULL)`); err != nil {
		t.Fatal(err)
	}
	edit := &harness.PolicyData{File: filepath.Join(t.TempDir(), "data.json")}
	burst := func(n int) {
		edit.Change(t, func(tiers map[string]map[string]any, _ map[string]any) { tiers["scale"]["burst"] = n })
	}
	burst(700)
	if out, err := replicas[0].Run(t, "policy", "push", filepath.Dir(edit.File), "--message", "one is gone", "--activate"); err != nil || !strings.Contains(out, "without an answer within 5s: ") {
		t.Errorf("a replica is gone: %v\n%s", err, out)
	}
	awaitBurst(t, shop, 700, replicas)

	burst(900)
	v, err := adminapi.PushPolicy.Call(t.Context(), replicas[0].Admin(), adminapi.NewPolicy{Files: filesOf(t, filepath.Dir(edit.File)), Message: "a burst of 900"})
	if err != nil {
		t.Fatal(err)
	}
	state := func() (state string) {
		if err := conn.QueryRow(t.Context(), "SELECT state FROM policy_activations ORDER BY requested_at DESC LIMIT 1").Scan(&state); err != nil {
			t.Fatal(err)
		}
		return state
	}
	waits := r.activate(t, v.Version)
	harness.Await(t, harness.ReadyWithin, "a proposal", func() bool { return state() == "proposed" })
	for _, link := range r.links {
		link.Refuse()
	}
	<-time.After(8 * time.Second) // longer than they wait for the silent one
	if got := state(); got != "proposed" {
		t.Errorf("without a database it is %s", got)
	}
	if a, err := shop.Post(t.Context(), "/payments/create", shop.PaymentBody(nil)); err == nil && a.Success {
		t.Errorf("without a database money moves: %s", a)
	}
	for _, link := range r.links {
		link.Restore()
	}
	waits()
	harness.Await(t, harness.ReadyWithin, "a decision with the database again", func() bool { return state() == "done" })
	awaitBurst(t, shop, 900, replicas)
	for _, p := range replicas {
		harness.Await(t, harness.ReadyWithin, "money on those that live", func() bool {
			a, err := shop.At(p).Post(t.Context(), "/payments/create", shop.PaymentBody(nil))
			return err == nil && a.Success
		})
	}
	versions, err := adminapi.ListPolicies.Call(t.Context(), replicas[0].Admin(), adminapi.None{})
	if err != nil {
		t.Fatal(err)
	}
	active := 0
	for _, one := range versions {
		if one.State == "active" {
			active++
			if one.Version != v.Version {
				t.Errorf("in force is %s, not %s", one.Version, v.Version)
			}
		}
	}
	if active != 1 {
		t.Errorf("%d versions are in force", active)
	}
}

// activate activates a version and returns once its activation is asked for. The wait ends with the activation: in the
// long tier by the command, which waits for the replica that was killed and says so.
func (r *replicaSet) activate(t *testing.T, version string) (wait func()) {
	t.Helper()
	p := r.replicas[0]
	if !tier.IsLong() {
		if _, err := adminapi.ActivatePolicy.Call(t.Context(), p.Admin(), adminapi.ActivatedPolicy{Version: version, Wish: adminapi.Wish{}}); err != nil {
			t.Fatal(err)
		}
		return func() {}
	}
	const incomplete = 5
	asked := p.LogCount(askedFor)
	ended := make(chan func(), 1)
	go func() {
		out, err := p.Run(t, "policy", "activate", version[:10], "--wait")
		ended <- func() {
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != incomplete || !strings.Contains(out, "do not run it after 1m0s: ") {
				t.Errorf("%v\n%s", err, out)
			}
		}
	}()
	// The command has its first answer, or it could not know what it waits for.
	harness.Await(t, harness.ReadyWithin, "the command asking how it goes", func() bool { return p.LogCount(askedFor) > asked })
	return func() { (<-ended)() }
}

// askedFor is in the log for each question about an activation.
const askedFor = `"path":"/admin/policies/activations/`

// awaitBurst waits until replicas tell of a burst.
func awaitBurst(t *testing.T, shop harness.Shop, burst int, replicas []*harness.Program) {
	t.Helper()
	for _, p := range replicas {
		harness.Await(t, harness.ReadyWithin, "the limit on those that live", func() bool {
			a := shop.At(p).Ask(t, "/payments/status", harness.Fields{"external_id": "none"})
			return a.Code == fault.NotFound && strings.Contains(a.Header.Get("RateLimit-Policy"), fmt.Sprintf("q=%d;", burst))
		})
	}
}
