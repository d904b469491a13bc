package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/host"
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
