// Package neighbours_test has each party that a gateway serves do its worst beside a
// merchant that does nothing but pay its way, and holds what that merchant gets. Each
// attack was once one by which others were refused. It must not judge the attacker's
// lot more closely than the packages' own tests do: what counts is the others' numbers.
package neighbours_test

import (
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
