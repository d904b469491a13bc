package sdktest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/conformance"
	"github.com/seed-f006e74d/gerbang/sdk/sdktest"
)

func TestMain(m *testing.M) { sdktest.Main(m, serveReference) }

// planted are bugs that were planted in a sound plugin, each with the case that must
// catch it and what that says.
var planted = []struct{ bug, where, want string }{
	{"serves another manifest", "manifest", "serves a manifest with digest"},
	{"uses one account for all merchants", "accounts", "want exactly one"},
	{"uses one account for both modes", "accounts", "want exactly one"},
	{"locks for all merchants", "other merchants", "hangs"},
	{"keeps the first credentials", "rotation", "want exactly one"},
	{"takes a bad key for a refusal", "revoked credentials", "no refusal of the payer"},
	{"takes a bad key for not found", "revoked credentials", "has status not_found"},
	{"keeps what it verified", "verify", "want exactly one"},
	{"never says not found", "unknown reference", "want not found"},
	{"verifies anything", "verify", "want usable false"},
	{"verifies what it could not ask", "verify under faults", "are said to be good"},
	{"takes an outage for bad credentials", "verify under faults", "are said to be bad"},
	{"reads answers without end", "endless answers", "MiB of memory"},
	{"stops the whole process", "health", "no answer within"},
	{"remembers every call", "leaks", "MiB of memory"},
	{"takes a thread for each call", "leaks", "threads more"},
	{"leaves answers open", "leaks", "open descriptors more"},
	{"makes a client for each call", "leaks", "open descriptors more"},

	{"makes a second one", "pay/twice", "want exactly one"},
	{"asks for another amount", "pay/outcome", "want exactly one"},
	{"answers what it did not declare", "pay/outcome", "not as declared"},
	{"names no currency", "pay/outcome", "want reference"},
	{"halves amounts", "pay/outcome", "want reference"},
	{"takes an open payment for a paid one", "pay/outcome", "nobody has paid"},
	{"forgets the upstream's name in a lookup", "pay/outcome", "want reference"},
	{"shows the key", "pay/outcome", "has the credential"},
	{"shows a secret within another member", "pay/outcome", "has the credential reports/feed"},
	{"logs its requests", "pay/echo", "standard error has the credential"},
	{"logs the passphrase", "pay/echo", "standard error has the credential passphrase"},
	{"quotes the upstream", "pay/echo", "has the credential"},
	{"counts with 32 bits", "pay/amounts", "want exactly one"},
	{"counts with floats", "pay/amounts", "want exactly one"},
	{"looks at send_by only once", "pay/late preparation", "the plugin went on"},
	{"does not hear that its time is over", "pay/hang", "outlived its context"},
	{"takes the end of its time for not sent", "pay/hang", "want unknown"},
	{"finds nothing", "pay/hang", "status not_found, while the upstream has 1"},
	{"asks its memory", "pay/crash", "status not_found, while the upstream has 1"},
	{"takes every failure for not sent", "pay/faults", "said not to be sent"},
	{"takes an error for not sent", "pay/upstream errors", "said not to be sent"},
	{"hears no end", "pay/upstream errors", "is true, the plugin says false"},
	{"hears an end in any failure", "pay/faults", "is false, the plugin says true"},
	{"blames nobody", "pay/faults", "blame 0"},
	{"takes a limit for an outage", "pay/faults", "429 of a proxy, request 1 of 2: blame 1"},
	{"takes a limit for bad credentials", "verify under faults", "are said to be bad"},
	{"sends again what was cut", "pay/faults", "the upstream has 2"},
	{"sends again after a 502", "pay/faults", "the upstream has 2"},
	{"follows redirects", "pay/faults", "followed a redirect"},
	{"takes any 4xx for a refusal", "pay/faults", "a fault is no refusal"},
	{"believes what it can't read", "pay/faults", "without a provider reference"},
	{"takes an empty answer for a good one", "pay/faults", "without a provider reference"},
	{"takes any 404 for not found", "pay/lookup under faults", "status not_found"},
	{"takes a failed lookup for not found", "pay/lookup under faults", "status not_found"},
	{"takes a failed lookup for a failed payment", "pay/lookup under faults", "status failed"},
	{"takes a failed lookup for a payment", "pay/lookup under faults", "status done"},
	{"names each fact anew", "pay/genuine notification", "on a repeat of"},
	{"tells another channel", "pay/genuine notification", "the notification by"},
	{"tells what was asked for", "pay/other amounts", "was paid of"},
	{"refunds again", "pay/refunds", "1 refunds were made"},
	{"remembers refunds", "pay/refunds", "1 refunds were made"},
	{"asks for another refund", "pay/refunds", "is told as"},
	{"refunds what it can", "pay/refunds", "a refund of more than was paid"},
	{"believes in refunds", "pay/refunds", "want done"},
	{"finds no refund", "pay/refunds", "want done"},
	{"tells the payment's amount of a refund", "pay/refunds", "want done"},
	{"tells no refund", "pay/refunds", "as returns are told"},
	{"tells no refund", "pay/returns", "returns are told of"},
	{"tells half of a refund", "pay/returns", "is told as"},
	{"takes chargebacks for refunds", "pay/returns", "the chargeback"},
	{"tells money that came again as gone", "pay/returns", "(undone: true) is told as"},
	{"does not say which refund", "pay/refunds", "is told as"},
	{"tells half of a refund", "pay/refunds", "is told as"},
	{"takes a lost refund for a refusal", "pay/refunds under faults", "a fault is no refusal"},
	{"takes a lost refund for not sent", "pay/refunds under faults", "said not to be sent"},
	{"takes a failed lookup for no refund", "pay/refunds under faults", "status not_found"},
	{"trusts anybody", "pay/forged notification", "another merchant's"},
	{"does not ask for a signature", "pay/forged notification", "without X-Signature"},
	{"looks at half of the signature", "pay/forged notification", "with another X-Signature"},
	{"does not sign the amount", "pay/forged notification", "with another /amount"},
	{"tells what it did not verify", "pay/forged notification", "want no status update"},
	{"welcomes what it did not verify", "pay/forged notification", "want no status update and a 4xx"},
	{"asks the upstream before it verifies", "pay/forged notification", "not genuine"},
	{"panics at a broken body", "pay/forged notification", "with a broken body"},
	{"takes not found for expired", "late/outcome", "status expired"},
	{"does not believe refusals", "unlucky/declined", "outcome unknown, want refused"},
	{"ends nothing", "end/end", "status pending afterwards"},
	{"ends the newest", "end/end", "another movement was ended"},
	{"ends what is paid", "end/end of a paid one", "a paid payment was ended"},
	{"takes a failed end for an end", "end/end under faults", "said to have ended"},
	{"takes a failed end for a refusal", "end/end under faults", "a fault is no refusal"},
	{"takes a failed end for not sent", "end/end under faults", "said not to be sent"},
	{"answers one merchant with another's data", "rate/query", "another was answered without asking"},
	{"answers another query", "rate/query", "not as declared"},
	{"answers a query with nothing", "rate/query under faults", "answered all the same"},
	{"answers a query from nowhere", "rate/query under faults", "answered all the same"},
	{"refuses a query that failed", "rate/query under faults", "a fault is no refusal"},

	{"orders: buys in the quote", "buy/quote", "want nothing"},
	{"orders: quotes nothing", "buy/quote", "want price, cost and data"},
	{"orders: refuses to quote", "buy/quote", "no quote"},
	{"orders: ignores the quote", "buy/outcome", "want exactly one"},
	{"orders: buys again", "buy/outcome", "want exactly one"},
	{"orders: tells another price", "buy/outcome", "want reference"},
	{"orders: tells another event", "buy/genuine notification", "a lookup says"},
	{"orders: lists nothing", "buy/outcome", "the list has no product"},

	{"collections: makes one code for all amounts", "collect/code", "two amounts have one code"},
	{"collections: makes a code of nobody", "collect/code", "two accounts have one code"},
	{"collections: forgets the code", "collect/code", "when looked up"},
	{"collections: answers what it did not declare", "collect/code", "not as declared"},
	{"collections: reads nothing", "statements", "want a statement that was read"},
	{"collections: uses one account for all merchants", "statements", "the statement has"},
	{"collections: loses a row", "statements", "the statement has"},
	{"collections: names rows anew", "statements", "one by one the statement has"},
	{"collections: reads pages by time", "statements", "the new lines are"},
	{"collections: promises the future", "statements", "which has not come yet"},
	{"collections: keeps the cursor", "a statement read twice", "the same cursor led to"},
	{"collections: trusts the cursor", "a foreign cursor", "leads to"},
	{"collections: takes books that it could not read for empty ones", "statements under faults", "lines are missing"},

	{"transfers: takes books that it could not read for empty ones", "send/mutations under faults", "lines are missing"},
	{"transfers: skips a row at each page", "send/mutations", "one by one the mutations are"},
	{"transfers: reads one page only", "send/mutations", "one by one the mutations are"},
	{"transfers: names rows by the upstream's own ids", "send/mutations", "none of ours"},
	{"transfers: takes money out for money in", "send/mutations", "the mutations were"},
}

// reference is the suite of a reference plugin with a bug, or of a sound one.
func reference(bug string) conformance.Config {
	provider, _, named := strings.Cut(bug, ": ")
	c := conformance.Config{Manifest: []byte(exampleManifest), Examples: []byte(exampleExamples), Calls: 160, Simulator: sdktest.Self("sandbox")}
	switch {
	case !named:
		bug = "payments: " + bug
	case provider == "orders":
		c.Manifest, c.Examples = []byte(orderManifest), []byte(orderExamples)
	case provider == "collections":
		c.Manifest, c.Examples = []byte(collectionManifest), []byte(collectionExamples)
	case provider == "transfers":
		c.Manifest, c.Examples = []byte(transferManifest), []byte(transferExamples)
	}
	plugin := sdktest.Self()
	c.Plugin = func() *exec.Cmd {
		command := plugin()
		command.Env = append(command.Env, envBug+"="+bug)
		return command
	}
	return c
}

func TestSoundPluginsConform(t *testing.T) {
	t.Parallel()
	for _, provider := range []string{"payments", "orders", "collections", "transfers"} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			sdktest.RunWith(t, reference(provider+": "))
		})
	}
}

// Each property of the suite is proven by plugins that lack it.
func TestPlantedBugsAreCaught(t *testing.T) {
	t.Parallel()
	var running sync.WaitGroup
	places := make(chan struct{}, 6) // more than there are processors: they wait more than they compute
	for _, p := range planted {
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			v, err := caseOf(t.Context(), p.bug, p.where)
			if err != nil || !v.Failed || !strings.Contains(strings.Join(v.Words, "\n"), p.want) {
				t.Errorf("%s: got %+v, %v, want a failure with %q", p.bug, v, err, p.want)
			}
			t.Log(v.Took.Round(10*time.Millisecond), p.bug)
		})
	}
	running.Wait()
}

// caseOf runs one case on a plugin with a bug.
func caseOf(ctx context.Context, bug, where string) (conformance.Verdict, error) {
	suite, err := conformance.Open(ctx, reference(bug))
	if err != nil {
		return conformance.Verdict{}, err
	}
	defer func() { _ = suite.Close() }() // it removes a directory of this test's
	cases := suite.Cases()
	i := slices.IndexFunc(cases, func(c conformance.Case) bool { return c.Name == where })
	if i < 0 {
		return conformance.Verdict{}, errors.New("there is no case " + where)
	}
	return suite.Run(ctx, cases[i]), nil
}

// The table in the README is this one.
func TestPlantedBugsAreListed(t *testing.T) {
	t.Parallel()
	var table strings.Builder
	for _, p := range planted {
		fmt.Fprintf(&table, "| %s | %s |\n", p.bug, p.where)
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), table.String()) {
		t.Errorf("README.md must have these rows:\n%s", table.String())
	}
}

// A suite that tests nothing must not pass.
func TestExamplesThatTestNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ from, to, want string }{
		{`{"name": "pay",`, `{"name": "pay", "surprise": 1,`, "surprise"},
		{`"name": "pay"`, `"name": "a/b"`, "without a slash"},
		{`"name": "late"`, `"name": "pay"`, "a name of its own"},
		{`"amount": 100}`, `"amount": "100"}`, "no test of this plugin"},
		{`"operation": "/example/pay"`, `"operation": "/example/none"`, "the manifest has no operation"},
		{`"ends": "pay", `, ``, "for operations that end a movement"},
		{`"returns": ["refund", "chargeback"]`, `"returns": ["chargeback"]`, `"returns" must have refund`},
		{`"ends": "pay"`, `"ends": "rate"`, "is no example of /example/pay"},
		{`"outcome": "pending"`, `"outcome": "unknown"`, "none of done, pending"},
		{`{"name": "rate",`, `{"name": "back", "operation": "/example/refund", "body": {"id": "1", "refund": "1"}, "outcome": "refused"}, {"name": "rate",`, "one that a paid payment allows"},
		{`{"name": "rate", "operation": "/example/rate", "body": {}, "outcome": "done"}`, `{"name": "again", "operation": "/example/pay", "body": {"amount": 1}, "outcome": "pending"}`, "/example/rate: has no accepted example"},
	} {
		config := reference("")
		config.Examples = []byte(strings.Replace(exampleExamples, c.from, c.to, 1))
		suite, err := conformance.Open(t.Context(), config)
		if err == nil {
			_ = suite.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.to, err, c.want)
		}
	}
	config := reference("")
	config.Manifest = []byte(`{}`)
	if _, err := conformance.Open(t.Context(), config); err == nil || !strings.Contains(err.Error(), "the manifest:") {
		t.Errorf("got %v", err)
	}
}

// What a suite starts ends with it, also what a plugin has started.
func TestNothingIsLeftRunning(t *testing.T) {
	t.Parallel()
	const bug = "starts a child of its own"
	config := reference(bug)
	simulator := config.Simulator
	config.Simulator = func() *exec.Cmd {
		command := simulator()
		command.Env = append(command.Env, envBug+"=payments: "+bug)
		return command
	}
	suite, err := conformance.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	before := running(bug)
	if err := suite.Close(); err != nil {
		t.Error(err)
	}
	if len(before) == 0 {
		t.Skip("processes are not seen in /proc here")
	}
	if len(before) < 3 {
		t.Errorf("%q run, want plugin, its child and simulator", before)
	}
	for deadline := time.Now().Add(10 * time.Second); len(running(bug)) > 0; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("still there: %q", running(bug))
		}
	}
}

// running are the processes that have a bug in their environment.
func running(bug string) (found []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range all {
		if environ, err := os.ReadFile(file); err == nil && strings.Contains(string(environ), envBug+"=payments: "+bug) {
			found = append(found, filepath.Dir(file))
		}
	}
	return found
}
