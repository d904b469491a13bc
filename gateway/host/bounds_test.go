//go:build linux

package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// TestGreedyPlugin: one that takes too much of the machine is killed, is told of, and
// runs again.
func TestGreedyPlugin(t *testing.T) {
	t.Parallel()
	for do, want := range map[string]string{
		"eat": " MiB of memory, and may use 256; signal: killed", "fill": "it had more than 10000 files in its scratch directory; signal: killed",
		"multiply": " threads, and may have 1024; signal: killed",
	} {
		t.Run(do, func(t *testing.T) {
			t.Parallel()
			spec := testSpec("one")
			spec.Memory = 256 << 20
			h := startHost(t, calm, Config{Specs: []Spec{spec}})
			before := h.Status()[0].PID
			if r := h.Call(t.Context(), ofOne, callTo(do), patience); r.Outcome != sdk.Unknown {
				t.Fatalf("got %+v", r)
			}
			until(t, "it runs again", func() bool { s := h.Status()[0]; return s.Running && s.PID != before })
			if fault := h.Status()[0].LastFault; !strings.Contains(fault, want) {
				t.Errorf("the fault is %q, want %q in it", fault, want)
			}
		})
	}
}

// TestExchangedBinary: the file is another when the plugin is started again. What is
// hashed is what runs, so it does not.
func TestExchangedBinary(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(binary())
	if err != nil {
		t.Fatal(err)
	}
	spec := testSpec("one")
	spec.Path = filepath.Join(t.TempDir(), "plugin")
	if err := os.WriteFile(spec.Path, content, 0o700); err != nil {
		t.Fatal(err)
	}
	h := startHost(t, calm, Config{Specs: []Spec{spec}})
	// While it runs the very file is written over, which a copy on disk would not survive.
	if err := os.WriteFile(spec.Path, append(content, "more"...), 0o700); err != nil {
		t.Fatal(err)
	}
	if r := h.Call(t.Context(), ofOne, callTo("accept"), patience); r.Outcome != sdk.Pending {
		t.Errorf("the running one: %+v", r)
	}
	if r := h.Call(t.Context(), ofOne, callTo("exit"), patience); r.Outcome != sdk.Unknown {
		t.Fatalf("got %+v", r)
	}
	until(t, "the exchanged file is refused", func() bool {
		s := h.Status()[0]
		return !s.Running && strings.Contains(s.LastFault, "is not the approved binary")
	})
}

// TestPluginOfAnotherUser runs as nobody, who reads what everybody may.
func TestPluginOfAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can run a plugin as another user")
	}
	spec := testSpec("one")
	spec.User = "65534"
	h := startHost(t, calm, Config{Specs: []Spec{spec}})
	if w := worldOf(t, h); w.UID != 65534 {
		t.Errorf("it runs as user %d", w.UID)
	}
	if r := h.Call(t.Context(), ofOne, callTo("accept"), patience); r.Outcome != sdk.Pending {
		t.Errorf("got %+v", r)
	}
}
