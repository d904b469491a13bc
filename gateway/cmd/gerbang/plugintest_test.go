package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/confine"
	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/sdk/conformance"
	"github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// bankSimulator opens accounts, and has no API.
type bankSimulator struct{}

func (bankSimulator) Handler() http.Handler { return http.NotFoundHandler() }
func (bankSimulator) Pay(sandbox.PayRequest) (sandbox.Receipt, error) {
	return sandbox.Receipt{}, sandbox.ErrUnknown
}
func (bankSimulator) Describe(string) sandbox.Description { return sandbox.Description{} }
func (bankSimulator) Connect(_, key, _, base string) sandbox.Connection {
	credentials := map[string]string{"url": base}
	if reachesMuch() {
		credentials["reaches"] = "much"
	}
	return sandbox.Connection{Account: key, Credentials: credentials}
}

func bankSandbox() sandbox.Program {
	return sandbox.Program{Provider: "bank", Build: func(env *sandbox.Env) (sandbox.Upstream, error) {
		return bankSimulator{}, env.Begin()
	}}
}

// What is proven is of the plugin with the memory that it is approved for.
func TestTheMemoryOfATest(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "plugin")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	approve := &pluginApprove{File: file, MemoryMB: 64, Read: []string{"/srv/reports"}}
	found, err := approve.test().confinement(file)
	trial, ok := found.(host.Trial)
	if err != nil || !ok && runtime.GOOS == "linux" {
		t.Fatal(found, err)
	}
	for what, spec := range map[string]host.Spec{"tested": trial.Spec, "asked for its manifest": approve.spec("ab")} {
		if (ok || what != "tested") && (spec.Memory != 64<<20 || !slices.Equal(spec.Read, approve.Read)) {
			t.Errorf("%s with %+v", what, spec)
		}
	}
	if flags := approve.testFlags(); flags != " --read /srv/reports --memory-mb 64" {
		t.Errorf("to be shown with %q", flags)
	}
}

func TestPluginTest(t *testing.T) {
	t.Parallel()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "plugins")
	binary := filepath.Join(dir, "bank")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(executable, binary); err != nil {
		t.Fatal(err)
	}
	if code, p := run(t, nil, "", "plugin", "test", binary); code != exitRefused || !strings.Contains(p.errors.String(), "needs manifest.json and examples.json") {
		t.Errorf("without files: exit code %d: %s", code, &p.errors)
	}
	const examples = `{"examples": [{"name": "a name", "operation": "/bank/name", "body": {}, "outcome": "done"}]}`
	for name, content := range map[string]string{"manifest.json": bank, "examples.json": examples} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	code, p := run(t, nil, "", "plugin", "test", "--unconfined", binary)
	if code != exitRefused || !strings.Contains(p.errors.String(), "bank 1.2.3 does not conform") {
		t.Errorf("exit code %d: %s", code, &p.errors)
	}
	for _, want := range []string{
		"PROVEN OF bank 1.2.3\n", "\n  The process serves the manifest that lies beside it.\n",
		"\nNOT PROVEN\n", "\n  this plugin does not verify connections (verify, verify under faults)\n", "\nFAILED\n  a name/query  ", "want outcome done",
	} {
		if !strings.Contains(p.output.String(), want) {
			t.Errorf("it prints no %q:\n%s", want, &p.output)
		}
	}
	if strings.HasPrefix(confine.Level(), "yes") {
		liar := filepath.Join(dir, "liar")
		if err := os.Symlink(executable, liar); err != nil {
			t.Fatal(err)
		}
		if code, p := run(t, nil, "", "plugin", "test", liar); code != exitRefused || !strings.Contains(p.errors.String(), `listens at "http://127.0.0.1:1"`) {
			t.Errorf("a simulator that leads elsewhere: exit code %d: %s", code, &p.errors)
		}
		_, p = run(t, nil, "", "plugin", "test", binary)
		if !strings.Contains(p.output.String(), "The answer is as declared, and nothing moves. (a name)") {
			t.Errorf("confined, plugin or simulator reach what they need not, or do not run:\n%s", &p.output)
		}
		other := filepath.Join(dir, "own", "plugins", "bank") // reaches what it likes, and says so to the plugin
		if err := os.MkdirAll(filepath.Dir(other), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(executable, other); err != nil {
			t.Fatal(err)
		}
		if _, p = run(t, nil, "", "plugin", "test", "--simulator="+other+" sandbox", binary); !strings.Contains(p.output.String(), "a name/query") {
			t.Errorf("beside the confined plugin an operator's own simulator is confined, too, or does not run:\n%s%s", &p.output, &p.errors)
		}
	}
	code, p = run(t, nil, "", "--json", "plugin", "test", "--unconfined", binary)
	var verdicts []conformance.Verdict
	if err := json.Unmarshal(p.output.Bytes(), &verdicts); code != exitRefused || err != nil || len(verdicts) < 10 {
		t.Errorf("as JSON: exit code %d, %v, %+v", code, err, verdicts)
	}
	nowhere := "--simulator=" + filepath.Join(dir, "none")
	if code, p := run(t, nil, "", "plugin", "test", "--unconfined", binary, nowhere); code != exitRefused || !strings.Contains(p.errors.String(), "the simulator does not start") {
		t.Errorf("without a simulator: exit code %d: %s", code, &p.errors)
	}
}
