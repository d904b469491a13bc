package main

import (
	"testing"

	"github.com/seed-f006e74d/gerbang/sdk/sdktest"
)

func TestMain(m *testing.M) { sdktest.Main(m, main) }

// In the second, rows come twice and backwards, and are the same rows.
func TestConformance(t *testing.T) {
	t.Parallel()
	sdktest.Run(t, "examples.json", "examples-untidy.json")
}
