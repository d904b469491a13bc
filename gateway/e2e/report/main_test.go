// Package report_test measures the whole program beside the floor under it, and writes
// what came of it to a file: make bench-report. Each contestant is a process of its own
// on this machine, gets the same closed loop of clients, takes turns with the others,
// and has its answers checked. It must not judge: goals are printed beside the figures.
package report_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		fmt.Fprintln(os.Stderr, serveFloor(role))
		os.Exit(1)
	}
	harness.Main(m)
}
