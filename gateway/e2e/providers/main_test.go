// Package providers_test holds the stories of several providers behind one gateway: all
// of them replaced by other builds while merchants go on, plugins that are killed at random
// beside the others, and two of payments of which the first fails in every way.
// Each story holds what merchants are answered against what the simulators have made, so
// nothing is made twice and nobody is refused for another's fault. It sees the program as
// merchants and operators do, and knows nothing of its packages.
package providers_test

import (
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
