package main

import (
	"testing"

	"github.com/seed-f006e74d/gerbang/sdk/sdktest"
)

func TestMain(m *testing.M) { sdktest.Main(m, main) }

// The second without tokens, at the paths of another dialect, and with a fee for wallets.
func TestConformance(t *testing.T) {
	t.Parallel()
	sdktest.Run(t, "examples.json", "examples-dana.json")
}
