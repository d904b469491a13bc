package providers_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

// tortureVariable names the file that gets the tables of a torture; make replacement sets
// it.
const tortureVariable = "GERBANG_REPLACEMENT_TABLE"

// tortureRounds is how often each provider is replaced.
const tortureRounds = 10

// TestTortureProviders replaces each provider ten times, and then kills plugins at random
// for minutes.
func TestTortureProviders(t *testing.T) {
	t.Parallel()
	lasts, seed := time.Duration(harness.TortureMinutes(t)*float64(time.Minute)), uint64(time.Now().UnixNano())
	replaced := newFleet(t)
	replace(t, replaced, tortureRounds, 4)
	killed := newFleet(t)
	killPlugins(t, killed, seed, lasts)
	file := os.Getenv(tortureVariable)
	if file == "" || t.Failed() {
		return
	}
	text := fmt.Sprintf(tortureText, tortureRounds, replaced.table(), lasts.Round(time.Second), killed.table())
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

const tortureText = `# All providers replaced and killed under load

` + "`make replacement`" + ` writes this file where nothing has failed. Two replicas serve five providers, and three merchants use all of them without a pause, by any replica.
Afterwards all that was not answered for good is sent again, what the simulators have is counted, and ` + "`gerbang ledger check --full`" + ` finds nothing.

*failed*: a call that was refused or got no answer while its provider was there; a call that was cut, repeated and then refused is one. *cut*: a
replica was killed with the call inside; the merchant repeated it at the other one. *met a kill*: answered
` + "`PROVIDER_TIMEOUT` or `PROVIDER_UNAVAILABLE`" + ` by the replica whose plugin of the very provider had just been killed. *doubled*: made twice
at the provider.

## Replacement

Each provider is replaced by another build in %d rounds, in one of them by a build with another version, and for payments with one more field in its
manifest; one build in the first round is approved with its conformance run. A rollback and an activation follow, and a
replica is killed before and during an activation.

%s
## Kills

For %s a plugin is killed by SIGKILL at random: any provider's, on any replica, half a second after the one before on average.

%s`

// table is what came of the calls, a row for each provider.
func (f *fleet) table() string {
	text := "| provider | replaced | killed | calls | failed | met a kill | cut | made | doubled |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
	for _, provider := range providers {
		of, made := f.tallies[provider], "-"
		if of.made > 0 {
			made = fmt.Sprint(of.made)
		}
		text += fmt.Sprintf("| %s | %d | %d | %d | %d | %d | %d | %s | %d |\n",
			provider, of.replaced, of.killed, of.calls, of.failed, of.met, of.cut, made, of.doubled)
	}
	return text
}
