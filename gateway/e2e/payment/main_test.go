package payment_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(roleVariable); path != "" {
		fmt.Fprintln(os.Stderr, serveBare(path)) // ends only by a fault, or killed
		os.Exit(1)
	}
	harness.Main(m)
}
