package policy_test

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// TestTheDatabaseIsGoneWhileAVersionIsActivated loses the database of all replicas while
// they decide, and gives it back: the version comes into force, once, on each that lives.
// One that is counted as live and never runs it is named, and the exit code is 5.
func TestTheDatabaseIsGoneWhileAVersionIsActivated(t *testing.T) {
	t.Parallel()
	const incomplete = 5
	databaseURL := dbtest.New(t, "", nil)
	link := harness.NewProxy(t, databaseURL)
	d := harness.NewDeployment(t)
	replicas := d.Start(t, link.URL, link.URL)
	dead := d.Start(t, link.URL)[0]
	shop := d.NewShop(t, replicas[0], "scale")
	edit := &harness.PolicyData{File: filepath.Join(t.TempDir(), "data.json")}
	edit.Change(t, func(tiers map[string]map[string]any, _ map[string]any) { tiers["scale"]["burst"] = 900 })
	var v adminapi.PolicyVersion
	replicas[0].MustRun(t, "", &v, "policy", "push", filepath.Dir(edit.File), "--message", "a burst of 900")

	// The others wait for the one that is silent, so the version is not decided at once.
	dead.Kill(t)
	conn, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if _, err := conn.Exec(t.Context(), "UPDATE replicas SET seen_at = now() + INTERVAL '1 hour' WHERE started_at = (SELECT max(started_at) FROM replicas)"); err != nil {
		t.Fatal(err)
	}
	type end struct {
		out string
		err error
	}
	ended := make(chan end, 1)
	go func() {
		out, err := replicas[0].Run(t, "policy", "activate", v.Version[:10], "--wait")
		ended <- end{out, err}
	}()
	state := func() (state string) {
		if err := conn.QueryRow(t.Context(), "SELECT state FROM policy_activations ORDER BY requested_at DESC LIMIT 1").Scan(&state); err != nil && !errors.Is(err, pgx.ErrNoRows) {
			t.Fatal(err)
		}
		return state
	}
	harness.Await(t, harness.ReadyWithin, "a proposal", func() bool { return state() == "proposed" })
	// The command has its first answer, or it could not know what it waits for.
	harness.Await(t, harness.ReadyWithin, "the command asking how it goes", func() bool {
		return replicas[0].LogCount(`"path":"/admin/policies/activations/`) > 0
	})
	link.Refuse()
	<-time.After(8 * time.Second) // longer than they wait for the silent one
	if got := state(); got != "proposed" {
		t.Errorf("without a database it is %s", got)
	}
	if a, err := shop.Post(t.Context(), "/payments/create", shop.PaymentBody(nil)); err == nil && a.Success {
		t.Errorf("without a database money moves: %s", a)
	}
	link.Restore()

	got := <-ended
	var exit *exec.ExitError
	if !errors.As(got.err, &exit) || exit.ExitCode() != incomplete || !strings.Contains(got.out, "do not run it after 1m0s: ") {
		t.Errorf("%v\n%s", got.err, got.out)
	}
	if got := state(); got != "done" {
		t.Errorf("with the database again it is %s", got)
	}
	for _, p := range replicas {
		harness.Await(t, harness.ReadyWithin, "the limit on those that live", func() bool {
			a := shop.At(p).Ask(t, "/payments/status", harness.Fields{"external_id": "none"})
			return a.Code == fault.NotFound && strings.Contains(a.Header.Get("RateLimit-Policy"), "q=900;")
		})
		harness.Await(t, harness.ReadyWithin, "money on those that live", func() bool {
			a, err := shop.At(p).Post(t.Context(), "/payments/create", shop.PaymentBody(nil))
			return err == nil && a.Success
		})
	}
	var versions []adminapi.PolicyVersion
	replicas[0].MustRun(t, "", &versions, "policy", "list")
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
