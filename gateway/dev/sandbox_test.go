package dev

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/sandbox"
)

// TestASimulatorThatIsBuiltAnewIsBackEachTime: however often that was, it does not wait as one that ends by itself does.
func TestASimulatorThatIsBuiltAnewIsBackEachTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	runs := func() bool {
		content, err := os.ReadFile(filepath.Join(dir, "pid"))
		pid, wrong := strconv.Atoi(strings.TrimSpace(string(content)))
		return err == nil && wrong == nil && syscall.Kill(pid, 0) == nil
	}
	control := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !runs() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(control.Close)
	binary := filepath.Join(dir, "simulator")
	program := "#!/bin/sh\necho $$ >" + filepath.Join(dir, "pid") + "\necho '{\"URL\":\"" + control.URL + "\"}' >\"$7\"\nexec sleep 600\n"
	if err := os.WriteFile(binary, []byte(program), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	log := slog.New(slog.DiscardHandler)
	s := &simulator{Simulator: sandbox.NewSimulator("own", dir, "", "", log), plugin: plugin{name: "own", path: binary}, dir: dir, log: log, renewed: make(chan struct{}, 1)}
	if err := s.start(ctx, context.WithoutCancel(ctx)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.End)
	ended := make(chan error, 1)
	go func() { ended <- s.supervise(ctx) }()
	const rebuilt = 15 // beyond ten, one that ended by itself waits longer than a renewal
	for i := range rebuilt {
		s.renew(ctx)
		if !runs() {
			t.Fatalf("built anew for the %d. time, the simulator is not back", i+1)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
