package main

import (
	"testing"

	"github.com/seed-f006e74d/gerbang/sdk/sdktest"
)

func TestMain(m *testing.M) { sdktest.Main(m, main) }

// Links can be QR codes: the same operation, the other upstream call.
func TestConformance(t *testing.T) {
	t.Parallel()
	sdktest.Run(t, "examples.json", "examples-qr.json")
}
