package sdktest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/sdk/conformance"
)

const envPlugin = "GERBANG_SDKTEST_PLUGIN"

// calls is how many calls a test makes to find a leak: gerbang plugin test makes more.
const calls = 400

// Main is for a TestMain: it runs serve, the plugin's own main, where a suite started
// this test binary as the plugin or its simulator, and the tests where it did not.
func Main(m *testing.M, serve func()) {
	if os.Getenv(envPlugin) == "" {
		os.Exit(m.Run())
	}
	serve()
	os.Exit(1) // serve came back
}

// Self runs the test binary as the plugin, or with the argument sandbox as its simulator.
func Self(arguments ...string) func() *exec.Cmd {
	return func() *exec.Cmd {
		command := exec.Command(os.Args[0], arguments...)
		command.Env = []string{envPlugin + "=1"}
		return command
	}
}

// Run runs the suite as subtests, once for each file of examples beside the test;
// examples.json unless given. The manifest is manifest.json.
func Run(t *testing.T, examples ...string) {
	t.Helper()
	if len(examples) == 0 {
		examples = []string{"examples.json"}
	}
	for _, file := range examples {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			t.Parallel()
			manifestJSON, examplesJSON, err := conformance.Files(".", file)
			if err != nil {
				t.Fatal(err)
			}
			RunWith(t, conformance.Config{
				Manifest: manifestJSON, Examples: examplesJSON, Plugin: Self(), Simulator: Self("sandbox"), Calls: calls,
			})
		})
	}
}

// RunWith runs a suite that is made of something else than the files beside the test.
func RunWith(t *testing.T, c conformance.Config) {
	t.Helper()
	c.Log = t.Output()
	suite, err := conformance.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := suite.Close(); err != nil {
			t.Error(err)
		}
		for _, leak := range suite.Leaks() { // now that standard error has come to its end
			t.Error(leak)
		}
	})
	for _, one := range suite.Cases() {
		t.Run(one.Name, func(t *testing.T) {
			if !one.Alone {
				t.Parallel()
			}
			switch v := suite.Run(t.Context(), one); {
			case v.Failed:
				t.Error(strings.Join(v.Words, "\n"))
			case v.Skipped:
				t.Skip(strings.Join(v.Words, "\n"))
			}
		})
	}
}
