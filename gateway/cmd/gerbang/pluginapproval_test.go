package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/conformance"
)

// The evidence of an approval is of the binary that it names.
func TestAFileThatChangesIsNotApproved(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "plugin")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	sum, err := host.SHA256File(file)
	if err != nil {
		t.Fatal(err)
	}
	c := &pluginApprove{File: file}
	if err := c.unchanged(sum); err != nil {
		t.Errorf("the same file: %v", err)
	}
	write("two")
	if err := c.unchanged(sum); err == nil || !strings.Contains(err.Error(), "has changed while it was tested") {
		t.Errorf("another file: %v", err)
	}
}

// A binary of which nothing can be proven is approved only where an operator says so.
func TestApprovalWithoutExamples(t *testing.T) {
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
	f := newConsole(t, 200, `[]`)
	code, p := run(t, f.environment(), "", "plugin", "approve", binary, "--yes")
	if code != exitUsage || !strings.Contains(p.errors.String(), "--untested approves it without a test") || len(f.requests) != 0 {
		t.Errorf("exit code %d: %s, %d requests", code, &p.errors, len(f.requests))
	}
}

// What a test has not proven is told before the question, each reason once.
func TestWhatIsNotProvenIsTold(t *testing.T) {
	t.Parallel()
	passed, skipped, failed, unproven := counted([]conformance.Verdict{
		{Name: "a/creation", Proves: "It moves."}, {Name: "b/tampered", Skipped: true, Words: []string{"the simulator can't pay"}},
		{Name: "a/tampered", Skipped: true, Words: []string{"the simulator can't pay"}}, {Name: "rotation", Skipped: true, Words: []string{"no revoke"}},
	})
	const want = "not proven  the simulator can't pay (a/tampered, b/tampered)\nnot proven  no revoke (rotation)\n"
	if passed != 1 || skipped != 3 || failed != 0 || unproven != want {
		t.Errorf("%d, %d, %d, %q; want %q", passed, skipped, failed, unproven, want)
	}
}

// Where nothing is said about files and ports, a plugin reaches what the version in force
// does, unless that is not believed.
func TestTheReachOfAnApproval(t *testing.T) {
	t.Parallel()
	inForce := store.PluginReach{Read: []string{"/srv"}, Ports: []uint16{443, 8443}, MemoryMB: 64, User: "warung"}
	for what, c := range map[string]struct {
		approve  pluginApprove
		unsigned bool
		want     store.PluginReach
	}{
		"nothing":      {want: inForce},
		"memory":       {approve: pluginApprove{MemoryMB: 128}, want: store.PluginReach{Read: inForce.Read, Ports: inForce.Ports, MemoryMB: 128, User: "warung"}},
		"a port":       {approve: pluginApprove{Port: []uint16{443}}, want: store.PluginReach{Ports: []uint16{443}}},
		"a directory":  {approve: pluginApprove{Read: []string{"/lib"}}, want: store.PluginReach{Read: []string{"/lib"}}},
		"a forged row": {unsigned: true},
	} {
		was := adminapi.Plugin{Provider: "warung", Approval: &adminapi.PluginApproval{Reach: inForce, Unsigned: c.unsigned}}
		if diff := cmp.Diff(c.want, c.approve.reach(was)); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
}
