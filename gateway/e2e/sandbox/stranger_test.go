package sandbox_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/tier"
	"github.com/seed-f006e74d/gerbang/gateway/version"
)

// TestStrangersHour goes the handbook's way from the last release's files: two replicas behind haproxy, a merchant and a payment, an
// upgrade and a failover of the database under load, a restore, and an alert that fires when nothing is left. What was acknowledged is
// there each time. It logs how long each step took.
func TestStrangersHour(t *testing.T) {
	t.Parallel()
	tier.Long(t, "the way of a whole deployment's life, each part of which has a test of its own")
	began := time.Now()
	step := func(name string) {
		t.Helper()
		t.Logf("%6.1f s  %s", time.Since(began).Seconds(), name)
		began = time.Now()
	}
	releases := version.Releases()
	bin := harness.Released(t, releases[len(releases)-1].Commit)
	step("the last release is built")

	primary := harness.NewPostgreSQL(t)
	standby := primary.NewStandby(t)
	database, err := url.Parse(primary.URL)
	if err != nil {
		t.Fatal(err)
	}
	second, err := url.Parse(standby.URL)
	if err != nil {
		t.Fatal(err)
	}
	database.Host += "," + second.Host
	query := database.Query()
	query.Set("target_session_attrs", "read-write")
	database.RawQuery = query.Encode()
	step("a database with a standby runs")

	dir := filepath.Join(t.TempDir(), "gateway")
	said := func(p *harness.Program, want string, arguments ...string) {
		t.Helper()
		if out, err := p.Run(t, arguments...); err != nil || !strings.Contains(out, want) {
			t.Fatalf("gerbang %s: %v, without %q:\n%s", strings.Join(arguments, " "), err, want, out)
		}
	}
	var at [4]harness.Addresses // of two replicas, and of the two that take their places
	for i := range at {
		at[i] = harness.Addresses{Listen: harness.FreeAddress(t), Console: harness.FreeAddress(t)}
	}
	simulators, old := harness.FreeAddress(t), harness.Another(filepath.Join(bin, "gerbang"))
	config := filepath.Join(dir, "gerbang.yaml")
	said(old, "gerbang check", "init", dir, "--database-url", database.String(), "--public-url", "http://"+at[0].Listen,
		"--listen", at[0].Listen, "--console", at[0].Console)
	token, err := os.ReadFile(filepath.Join(dir, "secrets", "operator-admin.token"))
	if err != nil {
		t.Fatal(err)
	}
	old.AdminToken = strings.TrimSpace(string(token))
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	write := func(i int, more string, replace ...string) string {
		t.Helper()
		file := filepath.Join(dir, "replica"+string(rune('1'+i))+".yaml")
		changed := strings.NewReplacer(append(replace, at[0].Listen, at[i].Listen, at[0].Console, at[i].Console)...).Replace(string(text))
		if err := os.WriteFile(file, []byte(changed+"\nstop_wait: 2s\n"+more+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	keeps, asks := "sandbox_listen: "+simulators, "sandbox_url: http://"+simulators
	fresh := &harness.Program{Document: harness.Document{AdminToken: old.AdminToken}}
	said(fresh, "the start makes", "check", "--config", config)
	start := func(of *harness.Program, config string) *harness.Program {
		t.Helper()
		p := of.Serve(t, config)
		p.AwaitServing(t)
		return p
	}
	first := start(old, write(0, keeps))
	other := start(old, write(1, asks))
	front := harness.NewHAProxy(t, at[:]...)
	said(first, "every check of /readyz passes", "doctor")
	step("two replicas of it serve behind haproxy")

	fired := alerting(t, at[0].Console, at[1].Console, at[2].Console, at[3].Console)
	_, shop := newMerchant(t, first)
	made := shop.Create(t, harness.Fields{"external_id": "first"})
	must(t, play(t, first, idOf(made), "pay", 0))
	shop.AwaitStatus(t, "first", "PAID", harness.PaidWithin)
	step("a merchant's first payment is paid")

	public := &harness.Program{Document: harness.Document{APIURL: front.URL}}
	load := harness.NewLoad(harness.Shop{Program: public, MerchantID: shop.MerchantID, Key: shop.Key})
	ctx, end := context.WithCancel(t.Context())
	defer end()
	loaded := make(chan struct{})
	go func() {
		defer close(loaded)
		for ctx.Err() == nil { // a client whose answer was cut begins again
			load.CreateUntilDone(ctx, 2)
		}
	}()
	third := start(fresh, write(2, asks))
	other.Stop(t)
	first.Stop(t) // and with it the simulators
	fourth := start(fresh, write(3, keeps))
	step("both replicas are of this version, under load")

	primary.Crash(t)
	standby.Promote(t)
	known := len(load.Tried())
	harness.Await(t, harness.ReadyWithin, "payments on the standby", func() bool {
		tried := load.Tried()
		return slices.ContainsFunc(tried[min(known, len(tried)):], func(a *harness.Attempt) bool { return a.First != nil && a.First.Success })
	})
	step("the standby has taken the database's place")
	end()
	<-loaded
	acknowledged := 0
	for _, a := range load.Tried() {
		if a.First == nil || !a.First.Success {
			continue
		}
		acknowledged++
		if again := load.Ask(t, "/payments/create", a.Order); !again.Success || !again.Replayed() {
			t.Errorf("%s was acknowledged, and is answered %s", a.Order["external_id"], again)
		}
	}
	if acknowledged < 20 {
		t.Errorf("only %d payments were acknowledged of %d", acknowledged, len(load.Attempts))
	}
	said(fourth, "accounts balance", "doctor")
	step("each acknowledged payment is there")

	backup := harness.BackUp(t, standby.URL)
	third.Stop(t)
	fourth.Stop(t)
	restored := write(3, keeps, "database_url_file: secrets/database-url", "database_url_file: secrets/restored-url")
	if err := os.WriteFile(filepath.Join(dir, "secrets", "restored-url"), []byte(backup.Restore(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	recovering := fresh.Serve(t, restored, "--recovery")
	harness.Await(t, harness.ReadyWithin, "a gateway in recovery", recovering.Serves)
	said(recovering, "", "recovery", "open", "--yes", "--reason", "nothing was lost")
	recovering.AwaitServing(t)
	shop.Program = recovering
	if again := shop.Status(t, "first"); again.Status != "PAID" {
		t.Errorf("after the restore the first payment is %s", again.Status)
	}
	anew := shop.PaymentBody(nil)
	harness.Await(t, harness.ReadyWithin, "a payment after the restore", func() bool { return shop.Ask(t, "/payments/create", anew).Success }) // the provider is asked first whether it has it
	step("a backup of it is restored and moves money")

	recovering.Stop(t)
	fired(t, "GerbangNoReplica")
	step("an alert has fired, as no replica answers")
}

// alerting has Prometheus scrape consoles and judge the alerts that ship, and returns what waits for one of them to fire. Where there is
// no Prometheus nothing is waited for.
func alerting(t *testing.T, consoles ...string) func(t *testing.T, alert string) {
	t.Helper()
	prometheus, err := exec.LookPath("prometheus")
	if err != nil {
		return func(t *testing.T, alert string) {
			t.Helper()
			t.Logf("%s is not waited for: %v", alert, err)
		}
	}
	dir, address := t.TempDir(), harness.FreeAddress(t)
	rules, err := filepath.Abs(filepath.Join("..", "..", "..", "deploy", "prometheus", "alerts.yml"))
	if err != nil {
		t.Fatal(err)
	}
	config := "global: {scrape_interval: 2s, evaluation_interval: 2s}\nrule_files: [" + rules + "]\nscrape_configs:\n  - job_name: gerbang\n    static_configs:\n      - targets: [" +
		strings.Join(consoles, ", ") + "]\n"
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(prometheus, "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	return func(t *testing.T, alert string) {
		t.Helper()
		harness.Await(t, 5*time.Minute, alert, func() bool {
			response, err := http.Get("http://" + address + "/api/v1/alerts")
			if err != nil {
				return false
			}
			defer response.Body.Close()
			var said struct {
				Data struct {
					Alerts []struct {
						Labels map[string]string
						State  string
					}
				}
			}
			if err := json.NewDecoder(response.Body).Decode(&said); err != nil {
				return false
			}
			for _, a := range said.Data.Alerts {
				if a.Labels["alertname"] == alert && a.State == "firing" {
					return true
				}
			}
			return false
		})
	}
}
