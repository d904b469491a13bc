package console_test

import (
	"bytes"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/browser"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

// TestAProviderIsReplaced plays replace.mjs, which judges every page as TestConsoles
// does, on a gateway whose approvals need two operators.
func TestAProviderIsReplaced(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	d := harness.NewDeployment(t)
	plugins := filepath.Join(d.Dir, "plugins")
	if err := os.Mkdir(plugins, 0o700); err != nil {
		t.Fatal(err)
	}
	g := d.Launch(t, dbtest.New(t, "", nil), d.Approved, "plugins_dir: "+plugins, "plugin_second_operator: true", "operators_console_url: http://127.0.0.1:8081")
	d.Join(t, g)
	shop := d.NewShop(t, g, "scale")
	for _, version := range []string{"1.0.1", "1.0.2"} {
		approve(t, d, g, version)
	}
	if out := b.Run(t, "replace.mjs", []string{
		"STORY=replace", "OPERATOR_URL=" + invite(t, d, g), "API_URL=" + g.APIURL, "MERCHANT=" + shop.MerchantID, "KEY=" + shop.Key,
	}); out != "" {
		t.Errorf("what is wrong with the pages:\n%s", strings.TrimSpace(out))
	}
}

// approve approves another version of the payments' plugin by the first operator's command.
// Its manifest lies in the binary as text, so the version can be changed there.
func approve(t *testing.T, d *harness.Deployment, g *harness.Program, version string) {
	t.Helper()
	content, err := os.ReadFile(d.Approved.Path)
	if err != nil {
		t.Fatal(err)
	}
	was, is := []byte(`"version": "1.0.0"`), []byte(`"version": "`+version+`"`)
	if bytes.Count(content, was) != 1 {
		t.Fatalf("%s is not once in %s", was, d.Approved.Path)
	}
	path := filepath.Join(t.TempDir(), d.Approved.Name)
	if err := os.WriteFile(path, bytes.Replace(content, was, is, 1), 0o755); err != nil {
		t.Fatal(err)
	}
	arguments := []string{"plugin", "approve", path, "--yes", "--untested"}
	for _, port := range d.Approved.Ports {
		arguments = append(arguments, "--port", port)
	}
	for _, dir := range d.Approved.Read {
		arguments = append(arguments, "--read", dir)
	}
	g.MustRun(t, "", nil, arguments...)
}

// invite is a link into the operators' console of a replica that listens anywhere.
func invite(t *testing.T, d *harness.Deployment, g *harness.Program) string {
	t.Helper()
	configs, err := filepath.Glob(filepath.Join(d.Dir, "replica-*.yaml"))
	if err != nil || len(configs) != 1 {
		t.Fatalf("configurations: %v %v", configs, err)
	}
	var invited struct {
		URL string `json:"url"`
	}
	g.MustRun(t, "", &invited, "operator", "invite", mail("replace", "operator"), "--role", "admin", "--config", configs[0])
	link, err := url.Parse(invited.URL)
	if err != nil {
		t.Fatal(err)
	}
	return g.ConsoleURL + link.Path
}
