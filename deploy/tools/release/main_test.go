package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSameCommitSameBytes: neither when nor where a commit's files were written is seen in an archive.
func TestSameCommitSameBytes(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	var packed [][]byte
	for n := range 2 {
		dir := t.TempDir()
		for _, file := range append([]string{"deploy/tools/x", "bin/gerbang", "clients/c.tgz"}, files[:5]...) {
			mode := os.FileMode(0o640)
			if file == "bin/gerbang" {
				mode = 0o750
			}
			to := filepath.Join(dir, file)
			if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(to, []byte(file), mode); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(to, at, at.Add(time.Duration(n)*time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
		to := filepath.Join(dir, "out.tar.gz")
		if err := (commit{dir: dir, at: at}).pack(to, "gerbang-1.2.3", filepath.Join(dir, "bin"), filepath.Join(dir, "clients")); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(to)
		if err != nil {
			t.Fatal(err)
		}
		packed = append(packed, content)
		list, err := exec.Command("tar", "-tzvf", to).CombinedOutput()
		if err != nil || strings.Contains(string(list), "tools") || !strings.Contains(string(list), "gerbang-1.2.3/clients/c.tgz") ||
			!strings.Contains(strings.Split(string(list), "bin/gerbang")[0], "-rwxr-xr-x") {
			t.Errorf("packed %s; %v", list, err)
		}
	}
	if !bytes.Equal(packed[0], packed[1]) {
		t.Error("the same files give other bytes")
	}
}
