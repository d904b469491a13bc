package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/app"
)

// TestInit: what is written is a configuration that loads, once, with secrets that only its owner reads; what was there stays.
func TestInit(t *testing.T) {
	t.Parallel()
	from, dir := filepath.Join(t.TempDir(), "plugins"), filepath.Join(t.TempDir(), "gateway")
	if err := os.MkdirAll(from, 0o755); err != nil {
		t.Fatal(err)
	}
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(binary, filepath.Join(from, "bank")); err != nil {
		t.Fatal(err)
	}
	database := map[string]string{"GERBANG_DATABASE_URL": "postgres://gerbang:hidden@127.0.0.1:1/gerbang"}
	args := []string{"init", dir, "--from", from, "--public-url", "https://api.example.com", "--merchants-console-url"}
	code, p := run(t, database, "", append(args, "http://console.example.com")...)
	if code != exitRefused || !strings.Contains(p.errors.String(), "merchants_console_url: must be an https URL") {
		t.Errorf("without https: exit code %d: %s", code, &p.errors)
	}
	if _, err := os.Stat(filepath.Join(dir, "gerbang.yaml")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a wrong configuration is written: %v", err)
	}
	keyset, err := os.ReadFile(filepath.Join(dir, "secrets", "keyset.json"))
	if err != nil {
		t.Fatal(err)
	}
	database = map[string]string{"GERBANG_DATABASE_URL": "postgres://gerbang:hidden@127.0.0.1:2/second\n"} // the one before was wrong
	args = append(args, "https://console.example.com", "--operators-console-url", "https://operators.example.com", "--console-allow", "10.0.0.0/24", "--trusted-proxy", "10.0.0.5/32")
	if code, p = run(t, database, "", args...); code != exitOK || strings.Contains(p.output.String(), "hidden") || !strings.Contains(p.output.String(), "gerbang check --config "+dir) {
		t.Fatalf("exit code %d, said %s%s", code, &p.output, &p.errors)
	}
	config, err := app.LoadConfig(filepath.Join(dir, "gerbang.yaml"), func(string) string { return "" })
	if err != nil || len(config.Plugins) != 1 || config.Plugins[0].Name != "bank" || filepath.Base(config.Plugins[0].Path) != config.Plugins[0].SHA256 ||
		!slices.Contains(config.ConsoleAllow, "10.0.0.0/24") || !slices.Contains(config.TrustedProxies, "10.0.0.5/32") || config.MerchantsConsoleURL != "https://console.example.com" || config.OperatorsConsoleURL != "https://operators.example.com" || config.DatabaseURL != "postgres://gerbang:hidden@127.0.0.1:2/second" {
		t.Errorf("written: %+v; %v", config, err)
	}
	for _, file := range []string{"keyset.json", "operator-admin.token", "database-url"} {
		if info, err := os.Stat(filepath.Join(dir, "secrets", file)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v; %v", file, info, err)
		}
	}
	if after, err := os.ReadFile(filepath.Join(dir, "secrets", "keyset.json")); err != nil || string(after) != string(keyset) {
		t.Errorf("the keyset of the attempt before is gone: %v", err)
	}
	if code, p = run(t, database, "", args...); code != exitRefused || !strings.Contains(p.errors.String(), "left as it is") {
		t.Errorf("a second time: exit code %d: %s", code, &p.errors)
	}
}

func TestInitSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	none := map[string]string{"GERBANG_DATABASE_URL": "postgres://gerbang@127.0.0.1:1/gerbang"}
	for _, c := range []struct {
		environment map[string]string
		args        []string
		code        int
		says        string
	}{
		{nil, []string{"init", t.TempDir(), "--public-url", "https://api.example.com"}, exitUsage, "GERBANG_DATABASE_URL must be given"},
		{none, []string{"init", t.TempDir()}, exitUsage, "--public-url"},
		{none, []string{"init", t.TempDir(), "--public-url", "https://api.example.com", "--from", t.TempDir() + "/none"}, exitRefused, "name their directory with --from"},
	} {
		if code, p := run(t, c.environment, "", c.args...); code != c.code || !strings.Contains(p.errors.String(), c.says) {
			t.Errorf("%v: exit code %d: %s", c.args, code, &p.errors)
		}
	}
}

func TestCheckAndDoctorTellFaults(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "gerbang.yaml")
	if err := os.WriteFile(file, []byte("unknown: 1\nlisten: :0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, p := run(t, nil, "", "check", "--config", file)
	if code != exitRefused || !strings.Contains(p.output.String(), "line 1: unknown") || !strings.Contains(p.errors.String(), "faults: 1") {
		t.Errorf("check: exit code %d, said %s%s", code, &p.output, &p.errors)
	}
	ready := `{"ready":true,"checks":[{"name":"database","ok":true}]}`
	answer := func(data string) string { return `{"data":` + data + `}` }
	replicas := `[{"name":"a","state":"live","binary":"1.0.0","runs_policy_in_force":true},{"name":"b","state":"live","binary":"1.1.0","runs_policy_in_force":true},{"name":"c","state":"silent"}]`
	good := newConsole(t, 200, ready, answer(replicas[:strings.Index(replicas, ",{\"name\":\"b\"")]+"]"),
		answer(`[{"provider":"bank","version":"1.2.3","running":true,"breakers":[{"mode":"live","calls":"closed","lookups":"closed"}],"replicas":[{"name":"a","runs":"ab"}]}]`),
		answer(`[]`), answer(`{}`), answer(`{"ok":true,"accounts":7}`), answer(`{"sequence":12,"breaks":[]}`))
	if code, p = run(t, good.environment(), "", "doctor"); code != exitOK || strings.Contains(p.output.String(), app.Warning) || !strings.Contains(p.output.String(), "7 accounts balance") || !strings.Contains(p.output.String(), "12 links prove it") {
		t.Errorf("a good one: exit code %d, said %s%s", code, &p.output, &p.errors)
	}
	bad := newConsole(t, 200, `{"ready":false,"checks":[{"name":"database","ok":false,"detail":"takes no writes"}]}`, answer(replicas),
		answer(`[{"provider":"bank","version":"1.2.3","running":false,"last_fault":"it ended"},{"provider":"shop","version":"1","running":true,"breakers":[{"mode":"live","calls":"open","lookups":"closed"}]}]`),
		answer(`[{"merchant_id":"mer_1","what":"transfers"}]`), answer(`{"exceptions":[{"id":"1"}]}`), answer(`{"ok":false}`), answer(`{"breaks":[{"what":"x"}]}`))
	code, p = run(t, bad.environment(), "", "doctor")
	for _, want := range []string{
		"takes no writes", "replica c", "1 of 1.0.0, 1 of 1.1.0", "down: it ended", "breakers live open/closed", "1 in force", "1 of them exceptions", "breaks an invariant", "gerbang audit verify",
	} {
		if code != exitRefused || !strings.Contains(p.output.String(), want) {
			t.Errorf("exit code %d without %q: %s%s", code, want, &p.output, &p.errors)
		}
	}
	if code, p = run(t, map[string]string{"GERBANG_ADMIN_URL": "http://127.0.0.1:1", "GERBANG_ADMIN_TOKEN": token}, "", "doctor"); code != exitUnreachable {
		t.Errorf("of none: exit code %d: %s%s", code, &p.output, &p.errors)
	}
}
