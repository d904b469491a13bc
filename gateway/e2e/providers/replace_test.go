package providers_test

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/tier"
)

// runsWithin is when every replica runs what is in force: a look, a start and a proof, on
// a busy machine.
const runsWithin = 5 * time.Minute

// TestReplacement replaces providers by other builds, again and again, while
// merchants use them all. No call fails, also where what a provider declares changes.
// In the change tier that is two of the providers. In the long tier it is each, one with its conformance run, and twice a
// replica is killed in between.
func TestReplacement(t *testing.T) {
	t.Parallel()
	replace(t, newFleet(t), 2, 1)
}

func replace(t *testing.T, f *fleet, rounds, clients int) {
	t.Helper()
	stop := f.load(clients)
	defer stop()
	ops, before := f.replicas[0], map[string]build{}
	replaced := tier.Sample(t, providers, 2)
	for round := range rounds {
		for _, provider := range replaced {
			b, flags := f.build(provider, round == 1), []string{"--activate", "--untested"}
			if proven := round == 0 && provider == "midtrans" && tier.IsLong(); proven {
				flags = flags[:1] // with the conformance run, which takes its time
			}
			begun, calls := time.Now(), len(f.done())
			approved := f.approve(ops, b, flags...)
			f.awaitRuns(b)
			f.wantEvidence(approved, len(flags) == 1)
			f.tallies[provider].replaced++
			t.Logf("%s replaced after %v and %d calls", provider, time.Since(begun).Round(time.Millisecond), len(f.done())-calls)
			if round == rounds-1 && provider == replaced[0] {
				ops.MustRun(t, "", nil, "plugin", "rollback", provider)
				f.awaitRuns(before[provider])
				ops.MustRun(t, "", nil, "plugin", "activate", provider, b.sha256)
				f.awaitRuns(b)
			}
			if old, there := before[provider]; there && round > 1 {
				f.forget(old) // nothing goes back to it: disks are small
			}
			before[provider] = b
		}
	}
	if tier.IsLong() {
		before["wallet1"] = f.killBetween("wallet1")
		before["ppob"] = f.killDuring("ppob")
	}
	for _, b := range before {
		f.awaitRuns(b)
	}
	stop()
	f.wantNoFailure()
	f.resolve(harness.EndsWithin)
	f.check()
}

// build is another binary of a provider.
type build struct{ provider, path, sha256, version string }

// build makes one, of the same manifest or of another one. What follows the end of a
// program changes its digest alone.
func (f *fleet) build(provider string, otherManifest bool) build {
	f.Helper()
	content, err := os.ReadFile(f.of[provider].Approved.Path)
	if err != nil {
		f.Fatal(err)
	}
	b := build{provider: provider, version: "1.0.0"}
	if otherManifest {
		b.version = "1.1.0"
		was := f.shippedFile(provider, "manifest.json")
		if bytes.Count(content, was) != 1 {
			f.Fatalf("the manifest is not once in the binary of %s", provider)
		}
		content = bytes.Replace(content, was, f.declaresMore(was, b.version), 1)
	}
	content = append(content, rand.Text()...)
	sum, dir := sha256.Sum256(content), f.TempDir()
	b.path, b.sha256 = filepath.Join(dir, provider), hex.EncodeToString(sum[:])
	if err := os.WriteFile(b.path, content, 0o755); err != nil {
		f.Fatal(err)
	}
	for _, name := range []string{"manifest.json", "examples.json"} { // for the conformance run
		if err := os.WriteFile(filepath.Join(dir, name), f.shippedFile(provider, name), 0o600); err != nil {
			f.Fatal(err)
		}
	}
	return b
}

func (f *fleet) shippedFile(provider, name string) []byte {
	f.Helper()
	content, err := os.ReadFile(filepath.Join(harness.Root, "plugins", provider, name))
	if err != nil {
		f.Fatal(err)
	}
	return content
}

// declaresMore is a manifest of another version, in which a payment's creation may be
// answered with one field more. It is as long as it was: it lies in a binary.
func (f *fleet) declaresMore(document []byte, version string) []byte {
	f.Helper()
	var m map[string]any
	if err := json.Unmarshal(document, &m); err != nil {
		f.Fatal(err)
	}
	m["version"] = version
	if m["implements"] == "payments@1" {
		operations, _ := m["operations"].([]any)
		isCreate := func(op any) bool { return op.(map[string]any)["path"] == "/payments/create" }
		if !slices.ContainsFunc(operations, isCreate) {
			operations = append(operations, map[string]any{"path": "/payments/create"})
		}
		create := operations[slices.IndexFunc(operations, isCreate)].(map[string]any)
		create["adds"] = map[string]any{"till": map[string]any{"type": "string", "maxLength": 9, "description": "The till."}}
		m["operations"] = operations
	}
	changed, err := json.Marshal(m)
	if err != nil {
		f.Fatal(err)
	}
	if len(changed) > len(document) {
		f.Fatalf("the manifest has grown from %d to %d bytes", len(document), len(changed))
	}
	return append(changed, bytes.Repeat([]byte(" "), len(document)-len(changed))...)
}

// forget takes a build's file away.
func (f *fleet) forget(b build) {
	f.Helper()
	if err := os.Remove(filepath.Join(f.plugins, b.sha256)); err != nil {
		f.Error(err)
	}
}

// approve approves a build by an operator's command.
func (f *fleet) approve(ops *harness.Program, b build, flags ...string) (approved adminapi.PluginApproval) {
	f.Helper()
	ops.MustRun(f, "", &approved, append([]string{"plugin", "approve", b.path, "--yes"}, flags...)...) // it reaches what the one in force does
	if err := os.Remove(b.path); err != nil {                                                          // its copy lies in plugins_dir
		f.Error(err)
	}
	return approved
}

// wantEvidence wants an approval to say what was proven, and whether it was confined as a
// gateway would.
func (f *fleet) wantEvidence(approved adminapi.PluginApproval, proven bool) {
	f.Helper()
	one, err := f.alive()[0].Plugin(f.T, approved.Provider)
	if err != nil {
		f.Fatal(err)
	}
	level, _, _ := strings.Cut(one.Confined, ":")
	for _, says := range []string{"conformance: ", " cases passed", "confined: " + level} {
		if strings.Contains(approved.Evidence, says) != proven || strings.Contains(one.Approval.Evidence, says) != proven {
			f.Errorf("the evidence of %s is %q, in force %q; want %q in it: %t", approved.Provider, approved.Evidence, one.Approval.Evidence, says, proven)
		}
	}
}

// awaitRuns waits until every replica runs a build.
func (f *fleet) awaitRuns(b build) {
	f.Helper()
	for _, p := range f.alive() {
		var last adminapi.Plugin
		var err error
		if late := harness.Until(runsWithin, func() bool {
			last, err = p.Plugin(f.T, b.provider)
			return err == nil && last.Running && last.SHA256 == b.sha256 && last.Version == b.version
		}); late != nil {
			f.Fatalf("%s of %s runs %s (%t), not %s: %v, %s", b.provider, p.APIURL, last.SHA256, last.Running, b.sha256, err, last.LastFault)
		}
	}
}

// killBetween kills a replica after a build was approved, and starts it after the other
// one has activated it.
func (f *fleet) killBetween(provider string) build {
	f.Helper()
	dies, stays, b := f.replicas[0], f.replicas[1], f.build(provider, false)
	f.approve(dies, b, "--untested")
	f.kill(dies)
	harness.Await(f, runsWithin, "an activation without the replica that was killed", func() bool {
		out, err := stays.Run(f, "plugin", "activate", provider, b.sha256)
		if err != nil {
			f.Logf("activate: %v\n%s", err, out)
		}
		return err == nil
	})
	f.revive(dies)
	f.awaitRuns(b)
	return b
}

// killDuring kills the replica that is asked while it activates a build. Whether its head
// has moved by then or not, both replicas run the same, and another try brings the build.
func (f *fleet) killDuring(provider string) build {
	f.Helper()
	dies, stays, b := f.replicas[0], f.replicas[1], f.build(provider, false)
	f.approve(dies, b, "--untested")
	var was, is int64
	f.QueryRow(&was, provider)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		out, err := dies.Run(f, "plugin", "activate", provider, b.sha256)
		f.Logf("the activation of a replica that was killed meanwhile: %v\n%s", err, out)
	}()
	harness.Await(f, runsWithin, "a head that has moved", func() bool {
		f.QueryRow(&is, provider)
		return is > was
	})
	f.kill(dies)
	<-ended
	f.revive(dies)
	f.awaitRuns(b)
	if out, err := stays.Run(f, "ledger", "check"); err != nil {
		f.Errorf("%v\n%s", err, out)
	}
	return b
}

// QueryRow reads how often a provider's head has moved.
func (f *fleet) QueryRow(into *int64, provider string) {
	f.Helper()
	f.replicas[1].QueryRow(f, into, "SELECT changes FROM plugin_heads WHERE provider = $1", provider)
}
