package policy_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// The goals for what a decision costs in the log, in processor time.
const (
	countWithin  = 300 * time.Nanosecond
	storedWithin = 6 * time.Microsecond
)

// reportCosts measures what a decision costs in the log, part by part.
func reportCosts(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	text.WriteString("## What a decision costs in the log\n\nProcessor time of one, collecting garbage included. Each decision is named and counted; in a flood at most 100 refusals a second are\n" +
		"stored, and at most 100 are asked for their rule.\n\n| | processor time | goal |\n| --- | --- | --- |\n")
	file := filepath.Join(t.TempDir(), "keyset.json")
	if out, err := (&harness.Program{}).Run(t, "keyset", "create", file); err != nil {
		t.Fatal(err, out)
	}
	vault, err := tenants.OpenKeysetFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c := &costs{log: decision.NewLog(), namer: decision.NewNamer(decision.NewKey([]byte("key")), 1), vault: vault, at: time.Now()}
	source := policy.Default()
	source["data.json"] = []byte(`{"tiers": {"starter": {"rate_per_second": 5, "burst": 10}}, "amounts": {"transfer": {"max": 1000000}}}`)
	if c.set, err = policy.Compile(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	c.series = decision.Series{Merchant: "mer_" + uuid.NewString(), Operation: "/wallet1/transfer/bank", Version: string(c.set.Version()), Record: 1, Live: true}
	for _, part := range []struct {
		name string
		goal time.Duration
		one  func(*testing.B)
	}{
		{"a count", countWithin, c.count},
		{"the id of a refusal", 0, c.name},
		{"a stored refusal: kept, with its answer, and sealed", storedWithin, c.store},
		{"which rule refused: the rules are asked again", 0, c.explain},
	} {
		took := used(part.one)
		goal := ""
		if part.goal > 0 {
			goal = fmt.Sprintf("%.1f us", float64(part.goal)/float64(time.Microsecond))
		}
		fmt.Fprintf(&text, "| %s | %.2f us | %s |\n", part.name, float64(took)/float64(time.Microsecond), goal)
		t.Logf("%s: %v", part.name, took)
		if part.goal > 0 && took > part.goal {
			t.Errorf("%s costs %v, the goal is %v", part.name, took, part.goal)
		}
	}
	return text.String()
}

// used is the processor time of what a benchmark does once.
func used(one func(*testing.B)) (each time.Duration) {
	testing.Benchmark(func(b *testing.B) {
		before := processUsed()
		one(b)
		each = (processUsed() - before) / time.Duration(b.N)
	})
	return each
}

// processUsed is what this process has used of the processors so far.
func processUsed() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // the arguments are right
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// costs are the parts of the log, beside each other as in a replica.
type costs struct {
	log    *decision.Log
	namer  *decision.Namer
	vault  *tenants.Vault
	set    *policy.Set
	series decision.Series
	at     time.Time
}

func (c *costs) count(b *testing.B) {
	for b.Loop() {
		c.at = c.at.Add(time.Millisecond)
		c.log.Count(c.at, c.series)
	}
	c.log.Take()
}

func (c *costs) name(b *testing.B) {
	for b.Loop() {
		_ = c.namer.Name(c.at, c.series.Version, c.series.Merchant, true, c.series.Operation, decision.Policy(3)).String()
	}
}

// store keeps as many a second as are kept at most, and writes as often as a replica does.
func (c *costs) store(b *testing.B) {
	const kept, written = 10 * time.Millisecond, 10 * time.Second
	refused, amount := c.series, int64(2_000_000)
	refused.Rule = decision.Policy(3)
	in := decision.Input{Series: refused, Amount: &amount, Fields: map[string]any{"bank_code": "014", "account_no": "1234567890", "account_name": "BUDI"}}
	last := c.at
	for b.Loop() {
		c.at = c.at.Add(kept)
		in.At, in.ID = c.at, decision.ID(uuid.UUID{byte(c.at.UnixMilli()), byte(c.at.UnixMilli() >> 8)})
		if c.log.Keep(in); inputsDropped(c.log) > 0 {
			b.Fatal("it is not kept")
		}
		if c.at.Sub(last) >= written {
			last = c.at
			c.seal(b)
		}
	}
	c.seal(b)
}

func (c *costs) seal(b *testing.B) {
	for _, minute := range c.log.Take() {
		packed, err := decision.PackInputs(minute.Inputs)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := c.vault.SealDecisions(packed); err != nil {
			b.Fatal(err)
		}
	}
}

func (c *costs) explain(b *testing.B) {
	in := policy.AdmitInput{
		Merchant: policy.Merchant{ID: c.series.Merchant, Tier: "starter", Status: string(tenants.Active), Version: 1}, Mode: "live",
		Operation: policy.Operation{Path: c.series.Operation, Kind: "transfer", Provider: "wallet1"}, Amount: new(int64(2_000_000)), Now: c.at,
	}
	for b.Loop() {
		if explained, err := c.set.Explain(b.Context(), in); err != nil || len(explained.Because) != 1 {
			b.Fatal(explained, err)
		}
	}
}

func inputsDropped(l *decision.Log) int64 {
	_, inputs := l.Dropped()
	return inputs
}
