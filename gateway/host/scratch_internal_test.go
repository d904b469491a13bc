package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
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
