package main

import (
	"testing"

	"github.com/seed-f006e74d/gerbang/sdk/sdktest"
)

func TestMain(m *testing.M) { sdktest.Main(m, main) }

func TestConformance(t *testing.T) {
	t.Parallel()
	sdktest.Run(t)
}
