package host

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/go-plugin"
)

// TestWhatKilledHostsLeft: their directories are removed, those of others that run and
// of other programs stay.
func TestWhatKilledHostsLeft(t *testing.T) {
	t.Parallel()
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	in := t.TempDir()
	dead, alive, before := scratchPrefix+strconv.Itoa(ended.Process.Pid), scratchPrefix+strconv.Itoa(os.Getppid()), scratchPrefix+strconv.Itoa(os.Getpid())
	for _, name := range []string{dead, alive, before, scratchPrefix + "notes"} {
		if err := os.MkdirAll(filepath.Join(in, name, "plugin-dir1"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	own := ownDirectory(in, os.Getpid())
	inside, err := os.ReadDir(own)
	if filepath.Base(own) != before || err != nil || len(inside) > 0 {
		t.Errorf("ours is %s with %v, %v", own, inside, err)
	}
	var names []string
	entries, err := os.ReadDir(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	want := []string{alive, before, scratchPrefix + "notes"}
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Errorf("left are %v, want %v", names, want)
	}
}

// TestScratchIsOpenToPluginsUsers, whatever the umask of whoever starts the gateway.
func TestScratchIsOpenToPluginsUsers(t *testing.T) {
	t.Parallel()
	in := t.TempDir()
	masked := exec.Command(binary())
	masked.Env = append(os.Environ(), envRole+"=masked", envName+"="+in)
	out, err := masked.Output()
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(strings.TrimSpace(string(out)))
	if err != nil || info.Mode().Perm() != 0o711 || info.Name() == filepath.Base(in) {
		t.Errorf("%s: %v, %v", out, info, err)
	}
}

// TestFailedStartLeavesNothing where no process began.
func TestFailedStartLeavesNothing(t *testing.T) {
	t.Parallel()
	spec, in := testSpec("one"), t.TempDir()
	spec.User = "nobody-of-that-name"
	p := &process{lost: make(chan struct{})}
	config := p.clientConfig(t.Context(), spec, &output{log: slog.New(slog.DiscardHandler), secrets: &secrets{}}, patience)
	config.UnixSocketConfig = &plugin.UnixSocketConfig{TempDir: in}
	p.client = plugin.NewClient(config)
	if err := p.connect(t.Context()); err == nil || !strings.Contains(err.Error(), "there is none") {
		t.Errorf("it is started: %v", err)
	}
	p.end(0)
	if left, err := os.ReadDir(in); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}
