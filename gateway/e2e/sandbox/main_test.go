package sandbox_test

import (
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
