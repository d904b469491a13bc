package providers_test

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

// runsWithin is when every replica runs what is in force: a look, a start and a proof, on
// a busy machine.
const runsWithin = time.Minute

// TestReplacement replaces each provider by another build, again and again, while
// merchants use them all. No call fails. Twice a replica is killed in between.
func TestReplacement(t *testing.T) {
	t.Parallel()
	replace(t, 2, 1)
}

// TestTortureReplacement is TestReplacement with ten builds of each provider.
func TestTortureReplacement(t *testing.T) {
	t.Parallel()
	harness.TortureMinutes(t)
	replace(t, 10, 4)
}

func replace(t *testing.T, rounds, clients int) {
	t.Helper()
	f := newFleet(t)
	stop := f.load(clients)
	defer stop()
	ops, before := f.replicas[0], map[string]build{}
	for round := range rounds {
		for _, provider := range providers {
			b, flags := f.build(provider), []string{"--activate", "--untested"}
			if round == 0 && provider == "wallet2" {
				flags = flags[:1] // with the conformance run, which takes its time
			}
			begun, calls := time.Now(), len(f.done())
			f.approve(ops, b, flags...)
			f.awaitRuns(b)
			t.Logf("%s replaced after %v and %d calls", provider, time.Since(begun).Round(time.Millisecond), len(f.done())-calls)
			if round == rounds-1 && provider == "payments" {
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
	before["wallet1"] = f.killBetween("wallet1")
	before["ppob"] = f.killDuring("ppob")
	for _, b := range before {
		f.awaitRuns(b)
	}
	stop()
	f.wantNoFailure(providers...)
	f.resolve(harness.ResolvesWithin)
	f.check()
}

// build is another binary of a provider with the same manifest.
type build struct{ provider, path, sha256 string }

// build makes one. What follows the end of a program changes its digest alone.
func (f *fleet) build(provider string) build {
	f.Helper()
	content, err := os.ReadFile(f.of[provider].Approved.Path)
	if err != nil {
		f.Fatal(err)
	}
	content = append(content, rand.Text()...)
	sum, dir := sha256.Sum256(content), f.TempDir()
	b := build{provider, filepath.Join(dir, provider), hex.EncodeToString(sum[:])}
	if err := os.WriteFile(b.path, content, 0o755); err != nil {
		f.Fatal(err)
	}
	for _, name := range []string{"manifest.json", "examples.json"} { // for the conformance run
		content, err := os.ReadFile(filepath.Join(harness.Root, "plugins", provider, name))
		if err != nil {
			f.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			f.Fatal(err)
		}
	}
	return b
}

// forget takes a build's file away.
func (f *fleet) forget(b build) {
	f.Helper()
	if err := os.Remove(filepath.Join(f.plugins, b.sha256)); err != nil {
		f.Error(err)
	}
}

// approve approves a build by an operator's command.
func (f *fleet) approve(ops *harness.Program, b build, flags ...string) {
	f.Helper()
	reach := f.of[b.provider].Approved
	arguments := []string{"plugin", "approve", b.path, "--yes", "--untested"}
	for _, port := range reach.Ports {
		arguments = append(arguments, "--port", port)
	}
	for _, path := range reach.Read {
		arguments = append(arguments, "--read", path)
	}
	ops.MustRun(f, "", nil, append(arguments, flags...)...)
	if err := os.Remove(b.path); err != nil { // its copy lies in plugins_dir
		f.Error(err)
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
			return err == nil && last.Running && last.SHA256 == b.sha256
		}); late != nil {
			f.Fatalf("%s of %s runs %s (%t), not %s: %v, %s", b.provider, p.APIURL, last.SHA256, last.Running, b.sha256, err, last.LastFault)
		}
	}
}

// killBetween kills a replica after a build was approved, and starts it after the other
// one has activated it.
func (f *fleet) killBetween(provider string) build {
	f.Helper()
	dies, stays, b := f.replicas[0], f.replicas[1], f.build(provider)
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
	dies, stays, b := f.replicas[0], f.replicas[1], f.build(provider)
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
