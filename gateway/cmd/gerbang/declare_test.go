package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/app"
	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

// declared is a gateway in this process, on a database of its own and with this binary as its plugin, and files that declare it.
type declared struct {
	*testing.T
	dir         string
	environment map[string]string
}

func newDeclared(t *testing.T) *declared {
	t.Helper()
	d := &declared{T: t, dir: t.TempDir()}
	database := map[string]string{"GERBANG_DATABASE_URL": dbtest.New(t, "", nil)}
	if err := store.Migrate(t.Context(), database["GERBANG_DATABASE_URL"], slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	binary, err := os.Executable()
	if err == nil {
		err = os.Mkdir(filepath.Join(d.dir, "plugins"), 0o755)
	}
	if err == nil {
		err = os.Symlink(binary, filepath.Join(d.dir, "plugins", "bank"))
	}
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(d.dir, "gateway")
	code, p := run(t, database, "", "init", home, "--from", filepath.Join(d.dir, "plugins"), "--public-url", "https://api.example.com",
		"--listen", "127.0.0.1:0", "--console", "127.0.0.1:0")
	if code != exitOK {
		t.Fatalf("init: exit code %d: %s", code, &p.errors)
	}
	config, err := app.LoadConfig(filepath.Join(home, "gerbang.yaml"), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	gateway, err := app.New(ctx, config, slog.New(slog.DiscardHandler))
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- gateway.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	d.environment = map[string]string{adminURLVariable: gateway.ConsoleURL(), adminTokenFile: filepath.Join(home, "secrets", "operator-admin.token")}
	return d
}

// write writes a file that is declared or named by one.
func (d *declared) write(name, content string) string {
	d.Helper()
	file := filepath.Join(d.dir, name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		d.Fatal(err)
	}
	return file
}

// run runs a command whose exit code is as wanted, and returns what it printed.
func (d *declared) run(want int, args ...string) (printed, said string) {
	d.Helper()
	code, p := run(d.T, d.environment, "", args...)
	if code != want {
		d.Fatalf("gerbang %s: exit code %d, want %d:\n%s%s", strings.Join(args, " "), code, want, &p.output, &p.errors)
	}
	for _, secret := range []string{"k-secret", "sk_live_", "sk_test_", "whsec_", `"op_`} {
		if strings.Contains(p.output.String()+p.errors.String(), secret) {
			d.Errorf("gerbang %s tells a secret: %s%s", strings.Join(args, " "), &p.output, &p.errors)
		}
	}
	return p.output.String(), p.errors.String()
}

// states runs a command with --json and returns the states of its changes by what they are.
func (d *declared) states(want int, args ...string) (states map[string]string, name string) {
	d.Helper()
	printed, _ := d.run(want, append([]string{"--json"}, args...)...)
	var of plan
	if err := json.Unmarshal([]byte(printed), &of); err != nil {
		d.Fatalf("%v: %s", err, printed)
	}
	states = map[string]string{}
	for _, c := range of.Changes {
		states[c.Of+": "+c.What] = c.State
	}
	return states, of.Plan
}

func (d *declared) want(got map[string]string, want ...string) {
	d.Helper()
	var all []string
	for _, what := range slices.Sorted(maps.Keys(got)) {
		all = append(all, what+" | "+got[what])
	}
	slices.Sort(want)
	if !slices.Equal(all, want) {
		d.Errorf("changes:\n%s\nwant:\n%s", strings.Join(all, "\n"), strings.Join(want, "\n"))
	}
}

// audited is how many changes there were.
func (d *declared) audited(merchant string) int {
	d.Helper()
	printed, _ := d.run(exitOK, "--json", "merchant", "audit", merchant)
	var entries []store.Audit
	if err := json.Unmarshal([]byte(printed), &entries); err != nil {
		d.Fatal(err)
	}
	return len(entries)
}

const shop = `# A shop, with all that a merchant can be declared with.
kind: merchant
name: Toko Maju
tier: starter
status: suspended
labels: {city: Malang, class: "1", none: null}
limits:
  - {name: default, rate_per_second: 5, burst: 10}
  - {name: "payout:repeat_within", repeat_within: 10m}
callbacks: {live: "https://shop.example.com/callbacks?bare&key=k-secret"}
---
kind: connection
merchant: Toko Maju
provider: bank
mode: live
credentials_file: account.json
---
kind: operator
name: sari
role: finance
`

// TestDeclaredShop goes the whole way of a file: planned, done, done again, exported, changed.
func TestDeclaredShop(t *testing.T) {
	t.Parallel()
	d := newDeclared(t)
	file, secrets := d.write("shop.yaml", shop), filepath.Join(d.dir, "secrets")
	d.write("account.json", `{"api_key": "k-secret"}`)
	if err := os.Mkdir(secrets, 0o700); err != nil {
		t.Fatal(err)
	}
	planned := []string{
		"merchant Toko Maju: create, tier starter, label city=Malang, label class=1", "merchant Toko Maju: status active -> suspended", "merchant Toko Maju: callbacks in mode live: - -> https://shop.example.com/callbacks?…&key=…",
		"merchant Toko Maju: limits: default 5/s burst 10, payout:repeat_within 10m",
		"connection bank, live, of Toko Maju: set, with the credentials of account.json", "operator sari: create, role finance",
	}
	in := func(state string) (rows []string) {
		for _, what := range planned {
			rows = append(rows, what+" | "+state)
		}
		return rows
	}
	got, name := d.states(exitIncomplete, "diff", file)
	d.want(got, in(statePlanned)...)
	got, again := d.states(exitOK, "apply", file)
	d.want(got, in(statePlanned)...)
	if printed, _ := d.run(exitOK, "--json", "merchant", "list"); strings.TrimSpace(printed) != "[]" || again != name {
		t.Errorf("the plans %s and %s; a plan has made %s", name, again, printed)
	}

	// Without a place for its keys a merchant is not made, and nothing else is done.
	if _, said := d.run(exitUsage, "apply", file, "--yes", "--reason", "r"); !strings.Contains(said, "--secrets names a directory") {
		t.Errorf("said %s", said)
	}
	d.run(exitUsage, "apply", file, "--yes", "--secrets", secrets)

	got, _ = d.states(exitOK, "apply", file, "--yes", "--reason", "a new shop", "--secrets", secrets, "--plan", name)
	d.want(got, in(stateDone)...)
	for file, word := range map[string]string{"merchant-Toko%20Maju.json": `"live_key": "sk_live_`, "operator-sari.json": `"token": "op_`} {
		content, err := os.ReadFile(filepath.Join(secrets, file))
		info, statErr := os.Stat(filepath.Join(secrets, file))
		if err != nil || statErr != nil || info.Mode().Perm() != 0o600 || !strings.Contains(string(content), word) {
			t.Errorf("%s: %v, %v, %s", file, info, err, content)
		}
	}
	printed, _ := d.run(exitOK, "--json", "merchant", "list")
	var list []adminapi.Merchant
	if err := json.Unmarshal([]byte(printed), &list); err != nil || len(list) != 1 || list[0].Status != "suspended" || list[0].Labels["city"] != "Malang" {
		t.Fatalf("made %s, %v", printed, err)
	}
	id, before := list[0].MerchantID, d.audited(list[0].MerchantID)

	// Once more nothing changes, and nothing is audited.
	d.run(exitOK, "diff", file)
	const hidden = "merchant Toko Maju: callbacks in mode live: the values of the query are not compared | " + stateLeft
	got, _ = d.states(exitOK, "apply", file, "--yes", "--reason", "again")
	d.want(got, hidden, "connection bank, live, of Toko Maju: compare with the credentials of account.json | "+stateUnchanged)
	if after := d.audited(id); after != before {
		t.Errorf("%d audit entries, and %d after the same again", before, after)
	}
	d.write("account.json", `{"api_key": "k-secret-2"}`)
	got, _ = d.states(exitOK, "apply", file, "--yes", "--reason", "a new key")
	d.want(got, hidden, "connection bank, live, of Toko Maju: compare with the credentials of account.json | "+stateDone)

	// What is exported is what is there; what no file can hold is told.
	d.run(exitOK, "merchant", "limit", id, "--burst", "20", "--for", "2h", "--reason", "a sale")
	exported, said := d.run(exitOK, "export")
	if !strings.Contains(said, id+": limit default, which ends is not exported") || !strings.Contains(said, "whose query is hidden") {
		t.Errorf("said %s", said)
	}
	if got, _ := d.states(exitOK, "diff", d.write("platform.yaml", exported)); len(got) > 0 {
		t.Errorf("an export differs from what it is of: %v", got)
	}
	d.run(exitOK, "--json", "export", "--merchant", id)

	// What has changed meanwhile is planned anew, and a plan that has another name by now is not done.
	changed := d.write("shop.yaml", strings.NewReplacer("tier: starter", "tier: growth", "suspended", "active", "Malang", "Solo", "class: \"1\"", "class: null").Replace(shop))
	got, name = d.states(exitIncomplete, "diff", changed)
	wanted := []string{
		"merchant Toko Maju: tier starter -> growth", "merchant Toko Maju: label city=Solo, without label class",
		"merchant Toko Maju: status suspended -> active", "connection bank, live, of Toko Maju: compare with the credentials of account.json",
	}
	rows := []string{hidden, "merchant Toko Maju: limit default burst 20 -> default 5/s burst 10 | " + stateLeft} // the one that ends is somebody's answer to a sale
	for _, what := range wanted {
		rows = append(rows, what+" | "+statePlanned)
	}
	d.want(got, rows...)
	d.run(exitOK, "merchant", "label", id, "city=Solo")
	before = d.audited(id)
	_, said = d.run(exitRefused, "apply", changed, "--yes", "--reason", "r", "--plan", name)
	if !strings.Contains(said, "nothing was done: the plan is") || d.audited(id) != before {
		t.Errorf("said %s", said)
	}

	// So it is between the plan and its acts.
	content, err := os.ReadFile(d.environment[adminTokenFile])
	if err != nil {
		t.Fatal(err)
	}
	at := &platform{
		program: &program{}, admin: adminapi.NewClient(d.environment[adminURLVariable], strings.TrimSpace(string(content))), options: applying{Reason: "r"},
	}
	all, found, err := declaring{Files: []string{changed}}.against(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	d.run(exitOK, "merchant", "tier", id, "scale")
	before = d.audited(id)
	if done, err := at.apply(t.Context(), all, found); err == nil || !strings.Contains(err.Error(), "has changed since it was planned") ||
		done.Changes[0].State != stateFailed || done.Changes[1].State != stateNotDone || d.audited(id) != before {
		t.Errorf("done %+v, %v", done, err)
	}

	// An act that fails leaves what follows.
	d.write("shop.yaml", strings.Replace(shop, "{name: default,", "{name: nothing,", 1)+"---\nkind: operator\nname: budi\nrole: read\n")
	got, _ = d.states(exitIncomplete, "apply", file, "--yes", "--reason", "r", "--secrets", secrets)
	d.want(got, "merchant Toko Maju: tier scale -> starter | done", "merchant Toko Maju: label city=Malang | done", "merchant Toko Maju: limits: nothing 5/s burst 10 | failed", hidden,
		"connection bank, live, of Toko Maju: compare with the credentials of account.json | not done", "operator budi: create, role read | not done")

	// A name that two merchants have names none; an export has their ids.
	if _, err := adminapi.CreateMerchant.Call(t.Context(), at.admin, adminapi.NewMerchant{Name: "Toko Maju", Tier: "starter"}); err != nil {
		t.Fatal(err)
	}
	if _, said := d.run(exitRefused, "diff", file); !strings.Contains(said, "several merchants have the name") {
		t.Errorf("said %s", said)
	}
	exported, _ = d.run(exitOK, "export")
	d.run(exitOK, "diff", d.write("platform.yaml", exported))
}

// TestDeclaredPolicyAndPlugin: what comes into force does so where that is said.
func TestDeclaredPolicyAndPlugin(t *testing.T) {
	t.Parallel()
	d := newDeclared(t)
	binary := filepath.Join(d.dir, "plugins", "bank")
	sum, err := host.SHA256File(binary)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(d.dir, "policy")
	d.run(exitOK, "policy", "export", dir)
	data, err := os.ReadFile(filepath.Join(dir, "data.json"))
	if err != nil {
		t.Fatal(err)
	}
	d.write("data.json", strings.Replace(string(data), "{", "{\n", 1)) // another set, of the rules in force
	file := d.write("platform.yaml", fmt.Sprintf(`kind: plugin
provider: bank
sha256: %s
binary: plugins/bank
untested: true
---
kind: policy
path: data.json
message: numbers of our own
`, sum))
	got, _ := d.states(exitOK, "apply", file, "--yes", "--reason", "r")
	var version string
	for what := range got {
		if _, after, found := strings.Cut(what, "policy: push "); found {
			version, _, _ = strings.Cut(after, ":")
		}
	}
	printed, _ := d.run(exitOK, "--json", "policy", "list")
	var versions []adminapi.PolicyVersion
	if err := json.Unmarshal([]byte(printed), &versions); err != nil || len(versions) < 1 || !strings.HasPrefix(versions[0].Version, version) || versions[0].State != "pushed" {
		t.Fatalf("pushed %q, and there are %s", version, printed)
	}
	approve, force := "plugin bank: approve "+short(sum)+" from plugins/bank, untested", "plugin bank: put "+short(sum)+" in force"
	active := ""
	for _, v := range versions {
		if v.State == "active" {
			active = short(v.Version)
		}
	}
	put := "policy: put " + version + " in force, in place of " + dash(active) + ` of gerbang ("the default policy of the first start")`
	d.want(got, approve+" | done", force+" | left", "policy: push "+version+": numbers of our own | done", put+" | left")
	got, _ = d.states(exitOK, "apply", file, "--yes", "--reason", "r", "--activate")
	d.want(got, force+" | done", put+" | done")
	got, _ = d.states(exitOK, "apply", file, "--yes", "--reason", "r", "--activate")
	d.want(got)
	// What it may reach is a part of what is declared, however it is listed; the newest approval is what comes into force.
	for _, c := range []struct{ reach, told string }{
		{"ports: [8443, 443]", "ports 443 8443"}, {"memory_mb: 256", "ports 443, memory 256 MB"}, {"ports: [443, 8443]", "ports 443 8443"},
	} {
		file := d.write("plugin.yaml", fmt.Sprintf("kind: plugin\nprovider: bank\nsha256: %s\nbinary: plugins/bank\nuntested: true\n%s\n", sum, c.reach))
		got, _ = d.states(exitOK, "apply", file, "--yes", "--reason", "r", "--activate")
		d.want(got, "plugin bank: approve "+short(sum)+" from plugins/bank, "+c.told+", untested | done", force+" | done")
		d.run(exitOK, "diff", file)
	}
	exported, _ := d.run(exitOK, "export")
	if !strings.Contains(exported, "kind: plugin") || !strings.Contains(exported, "version: "+version) {
		t.Errorf("exported %s", exported)
	}
	d.run(exitOK, "diff", d.write("exported.yaml", exported))
}

func TestDeclarationsAreReadStrictly(t *testing.T) {
	t.Parallel()
	d := &declared{T: t, dir: t.TempDir(), environment: map[string]string{adminURLVariable: "http://127.0.0.1:1", adminTokenVariable: token}}
	for content, want := range map[string]string{
		"kind: merchant\nname: A\ntier: starter\n---\n\nkind: merchant\nname: B\ntierr: starter\n":      "file.yaml: line 8: field tierr not found in a merchant",
		"kind: merchant\nname: A\ntier: starter\nlimits:\n  - name: default\n    brust: 3\n":            "file.yaml: line 6: field brust not found in",
		"kind: merchant\nname: A\ntier: [x]\n":                                                          "file.yaml: line 3: cannot unmarshal",
		"kind: merchant\nname: A\ntier: x\ntier: y\n":                                                   `line 4: mapping key "tier" already defined at line 3`,
		"# nothing\n---\nkind: order\n":                                                                 `file.yaml:3: kind: "order" must be merchant`,
		"- a\n":                                                                                         "file.yaml:1: must be an object with a kind",
		"kind: merchant\nname: A\n":                                                                     "file.yaml:1: a merchant needs a name and a tier",
		"kind: merchant\nname: A\ntier: x\n---\nkind: merchant\nname: A\ntier: x\n":                     "file.yaml:5: merchant A is declared at " + d.dir + "/file.yaml:1 already",
		"kind: connection\nmerchant: A\nprovider: bank\nmode: live\ncredentials: {api_key: k-secret}\n": "line 5: field credentials not found in a connection",
		"kind: policy\npath: p\n":                                                                       "a policy needs a path and a message, or a version",
		"kind: plugin\nprovider: bank\nsha256: ab\n":                                                    "a plugin needs a provider, and the SHA-256",
		"kind: operator\nname: sari\n":                                                                  "an operator needs a name and a role",
		"kind: merchant\nname: A\ntier: x\ncallbacks: {prod: https://x.example}\n":                      `callbacks: "prod" must be live or test`,
		"kind: merchant\nname: >\n  Toko\ntier: x\n":                                                    `name: "Toko\n" must have no spaces or lines around it`,
		"kind: merchant\nname: A\ntier: x\n--- # the next one\nkind: order\n":                           `file.yaml:5: kind: "order" must be merchant`,
		"kind: merchant\nname: A\ntier: x\n...\nkind: order\n":                                          `file.yaml:`,
		"kind: merchant\nname: A\ntier: x\n--- {kind: order}\n":                                         `file.yaml:4: kind: "order" must be merchant`,
		"kind: plugin\nprovider: bank\nsha256: " + strings.Repeat("AB", 32) + "\n":                      "0-9 and a-f",
		"kind: policy\nversion: 5\n":                                                                    "4 digits of a version",
		"# nothing at all\n":                                                                            "there is nothing in the files",
	} {
		if _, said := d.run(exitRefused, "diff", d.write("file.yaml", content)); !strings.Contains(said, want) {
			t.Errorf("%s: said %s\nwant %s", content, said, want)
		}
	}
}

// TestDeclaredWhatWaitsForAnother: who applies the same as another operator confirms it; what still waits is told by the exit code.
func TestDeclaredWhatWaitsForAnother(t *testing.T) {
	t.Parallel()
	sum := strings.Repeat("ab", 32)
	approvals := `{"success":true,"data":[{"approval_id":"a-1","provider":"bank","sha256":"` + sum + `","state":"waiting","approved_by":"ayu"}]}`
	versions := `{"success":true,"data":[{"version":"51f0c3","state":"pushed"},{"version":"77aa00","state":"active"}]}`
	for content, c := range map[string]struct {
		code    int
		answers []string
		asked   request
		want    []string
	}{
		"kind: policy\nversion: 51f0\n": {exitIncomplete, []string{versions, versions, `{"success":true,"data":{"activation_id":"x","version":"51f0c3","state":"waiting"}}`},
			request{"POST", "/admin/policies/51f0c3/activate", `{"replaces":"77aa00","reason":"r"}`}, []string{"policy: put 51f0c3 in force, in place of 77aa00 | waiting"}},
		"kind: plugin\nprovider: bank\nsha256: " + sum + "\n": {exitIncomplete, []string{approvals, approvals, `{"success":true,"data":{"state":"waiting"}}`},
			request{"POST", "/admin/plugin-approvals/a-1/confirm", `{}`},
			[]string{"plugin bank: confirm that ayu approved abababababab, ports 443 | waiting", "plugin bank: put abababababab in force | waiting"}},
	} {
		f := newConsole(t, 200, c.answers...)
		d := &declared{T: t, dir: t.TempDir(), environment: f.environment()}
		got, _ := d.states(c.code, "apply", d.write("file.yaml", content), "--yes", "--reason", "r", "--activate")
		d.want(got, c.want...)
		if n := len(f.requests); n != 3 || f.requests[2] != c.asked {
			t.Errorf("asked %v", f.requests)
		}
	}
}
