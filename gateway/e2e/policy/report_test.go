package policy_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/tier"
)

// reportVariable names the file that gets the report; make policy-report sets it.
const reportVariable = "GERBANG_POLICY_REPORT"

// TestPolicyReport measures over three replicas how soon a limit changes and how exactly a
// rate holds, beside a program without it what the log of decisions costs, and how long a
// candidate is tried on a day of it. It fails where a goal is missed, and writes all the
// same.
func TestPolicyReport(t *testing.T) { //nolint:paralleltest // it measures
	file := os.Getenv(reportVariable)
	tier.Long(t, "figures of a quarter of an hour")
	if file == "" {
		t.Skip("it takes a quarter of an hour: make policy-report")
	}
	text := "# Measured: policies over three replicas\n\n`make policy-report` writes this file, and fails where a goal is missed. The load of the machine is of the minute before a section\n" +
		"begins and of its last one, its own work included: beside a high one, times are those of a busy machine.\n\n" +
		fmt.Sprintf("%s, %d processors, %s.\n", time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), runtime.Version())
	for _, section := range []struct {
		name    string
		measure func(*testing.T) string
	}{{"changes", reportChanges}, {"rates", reportRates}, {"log", reportLog}, {"costs", reportCosts}, {"impact", reportImpact}} {
		t.Run(section.name, func(t *testing.T) {
			before := load()
			text += "\n" + section.measure(t)
			text += fmt.Sprintf("\nLoad of the machine: %s before, %s after.\n", before, load())
		})
	}
	t.Logf("\n%s", text)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// load is how many have wanted a processor in the last minute, "" where the machine does
// not tell.
func load() string {
	average, _ := os.ReadFile("/proc/loadavg")
	one, _, _ := strings.Cut(string(average), " ")
	return one
}

// changedWithin is the goal for a limit that changes on every replica.
const changedWithin = time.Second

// reportChanges changes a limit and takes it back under load.
func reportChanges(t *testing.T) string {
	t.Helper()
	databaseURL := dbtest.New(t, "", nil)
	d := harness.NewDeployment(t)
	replicas := d.Start(t, databaseURL, databaseURL, databaseURL)
	edit := &harness.PolicyData{File: filepath.Join(t.TempDir(), "data.json")}
	l := &limitWatch{Shop: d.NewShop(t, replicas[0], "scale"), clients: 2, pause: 20 * time.Millisecond, seen: map[string]map[*harness.Program]time.Time{}}
	l.changes(t, replicas, filepath.Dir(edit.File), func(n int) {
		edit.Change(t, func(tiers map[string]map[string]any, _ map[string]any) { tiers["scale"]["burst"] = n })
	})
	var text strings.Builder
	text.WriteString("## A limit is changed and taken back\n\nAn edit is pushed, tried on the past, activated and rolled back, each by its command, while two clients ask each replica all\n" +
		"the time. A replica has changed when it first answers with the new limit. The time is from the start of the command; the goal is a\n" +
		"second.\n\n| command | first replica | second | third |\n| --- | --- | --- | --- |\n")
	for _, c := range l.changed {
		fmt.Fprintf(&text, "| `policy %s` | %v | %v | %v |\n", c.what, c.told[0], c.told[1], c.told[2])
		if last := c.told[len(c.told)-1]; last >= changedWithin {
			t.Errorf("policy %s: the last replica has changed after %v, the goal is %v", c.what, last, changedWithin)
		}
	}
	fmt.Fprintf(&text, "\n%d requests were sent, of which %d failed and %d were late on this machine.\n", l.requests, len(l.failures), l.late)
	for _, p := range replicas {
		p.Stop(t)
	}
	return text.String()
}

// Each way of spreading sends so many requests a second for a minute, and is to admit so
// many.
const (
	asksASecond             = 20
	asksFor                 = 60
	fewestAdmit, mostAdmits = 305, 313
)

// spread is what came of the requests of a minute, and when the last was answered.
type spread struct {
	admitted, slowed, unasked atomic.Int64
	lasted                    time.Duration
}

// minute sends a merchant's requests to the replica that a way chooses, whether or not the
// ones before are answered. What happens at a second is begun then.
func minute(t *testing.T, s harness.Shop, way func(request int) *harness.Program, happens map[int]func()) *spread {
	t.Helper()
	var came spread
	var group sync.WaitGroup
	began := time.Now()
	for request := range asksASecond * asksFor {
		if event := happens[request/asksASecond]; event != nil && request%asksASecond == 0 {
			group.Go(event)
		}
		to := s.At(way(request))
		group.Go(func() {
			a, err := to.Post(t.Context(), "/payments/status", harness.Fields{"external_id": "none"})
			switch {
			case err == nil && a.Code == fault.RateLimited:
				came.slowed.Add(1)
			case err == nil && a.Header.Get("RateLimit") != "":
				came.admitted.Add(1)
			default: // its rate was not asked: the replica was dead, or could not know the key
				came.unasked.Add(1)
			}
		})
		<-time.After(time.Until(began.Add(time.Duration(request+1) * time.Second / asksASecond))) // the pace
	}
	group.Wait()
	came.lasted = time.Since(began)
	return &came
}

// reportRates spreads a merchant's requests in five ways.
func reportRates(t *testing.T) string {
	t.Helper()
	databaseURL := dbtest.New(t, "", nil)
	link := harness.NewProxy(t, databaseURL)
	d := harness.NewDeployment(t)
	replicas := d.Start(t, databaseURL, databaseURL, link.URL)
	known := func() {
		for _, p := range replicas {
			harness.Await(t, harness.ReadyWithin, "a replica that knows the others", func() bool { return p.LogCount("rates are leased") > 0 })
		}
	}
	known()
	serving := atomic.Pointer[[]*harness.Program]{}
	serving.Store(&replicas)
	robin := func(request int) *harness.Program { all := *serving.Load(); return all[request%len(all)] }
	var text strings.Builder
	fmt.Fprintf(&text, "## A rate over three replicas\n\n%d requests a second for a minute, of a merchant whose rate is 5 a second with a burst of 10: 310 are right, %d to %d the goal.\n"+
		"An answer that does not tell of a rate is of a replica that was dead or away, and was not asked for one.\n"+
		"Of one token that comes back each replica may admit a request, and all but one of these are paid later. Where the last answer comes late, the\n"+
		"machine was busy, and the rate has given five more for each second.\n\n"+
		"| connections | admitted | slowed | without a rate | last answer after |\n| --- | --- | --- | --- | --- |\n", asksASecond, fewestAdmit, mostAdmits)
	for _, way := range []struct {
		name    string
		way     func(int) *harness.Program
		happens map[int]func()
	}{
		{"round-robin", robin, nil},
		{"sticky: all to one", func(int) *harness.Program { return replicas[0] }, nil},
		{"round-robin, one is partitioned from the database for 20 s", robin, map[int]func(){20: link.Silence, 40: link.Restore}},
		{"round-robin, a fourth joins after 20 s", robin, map[int]func(){20: func() {
			p := d.Launch(t, databaseURL, d.Approved)
			d.Join(t, p)
			more := append(slices.Clone(*serving.Load()), p)
			serving.Store(&more)
		}}},
		{"round-robin, one is killed after 20 s", robin, map[int]func(){20: func() {
			all := *serving.Load()
			left := all[:len(all)-1]
			serving.Store(&left)
			all[len(all)-1].Kill(t)
		}}},
	} {
		came := minute(t, d.NewShop(t, replicas[0], "starter"), way.way, way.happens)
		admitted, lasted := came.admitted.Load(), came.lasted.Round(10*time.Millisecond)
		fmt.Fprintf(&text, "| %s | %d | %d | %d | %v |\n", way.name, admitted, came.slowed.Load(), came.unasked.Load(), lasted)
		t.Logf("%s: %d admitted, %d slowed, %d without a rate, in %v", way.name, admitted, came.slowed.Load(), came.unasked.Load(), lasted)
		if admitted < fewestAdmit || admitted > mostAdmits {
			t.Errorf("%s: %d are admitted in %v, the goal is %d to %d", way.name, admitted, lasted, fewestAdmit, mostAdmits)
		}
		known()
	}
	for _, p := range *serving.Load() {
		p.Stop(t)
	}
	return text.String()
}

// How the log is measured: short turns of the programs follow one another, so that a busy
// moment of the machine is every program's. By logApart p99 may differ.
const (
	logTurns   = 80
	logLasts   = 500 * time.Millisecond
	logClients = 8
	logApart   = 0.05
)

// asked are merchants of one program whose requests are all admitted, and all refused.
type asked struct{ admitted, refused harness.Shop }

// reportLog compares requests to two programs, one of which has no log of decisions.
func reportLog(t *testing.T) string {
	t.Helper()
	without := filepath.Join(t.TempDir(), "gerbang")
	link := exec.Command("go", "build", "-trimpath", "-ldflags", "-X github.com/seed-f006e74d/gerbang/gateway/app.unlogged=1", "-o", without, "./gateway/cmd/gerbang")
	link.Dir = harness.Root
	if out, err := link.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	logged, unlogged, again := start(t, ""), start(t, without), start(t, "")
	var text strings.Builder
	fmt.Fprintf(&text, "## The log of decisions\n\nThree programs take turns of %v, %d each: two as they are, and between them one that is linked without a log of decisions.\n"+
		"%d clients ask `/payments/status` without a pause. A quantile is that of all requests of all turns, and processor time\n"+
		"is the gateway's for each, with what it does beside. Both with the log are compared with the one without; how far these two\n"+
		"lie apart is what this machine can't tell. The goal for p99 is less than %.0f %%.\n\n"+
		"| requests | | with the log | without | with it again | both with / without | again / with |\n| --- | --- | --- | --- | --- | --- | --- |\n",
		logLasts, logTurns, logClients, 100*logApart)
	inTurns(t, &text, "all admitted", logged.admitted, unlogged.admitted, again.admitted)
	inTurns(t, &text, "all refused by the rate", logged.refused, unlogged.refused, again.refused)
	return text.String()
}

// start starts a program of a binary, and makes its merchants.
func start(t *testing.T, binary string) asked {
	t.Helper()
	d := harness.NewDeployment(t)
	d.Binary = binary
	p := d.Start(t, dbtest.New(t, "", nil))[0]
	made := asked{d.NewShop(t, p, "scale"), d.NewShop(t, p, "scale")}
	for s, rate := range map[harness.Shop][]string{made.admitted: {"1000000/s", "1000000"}, made.refused: {"1/h", "1"}} {
		p.MustRun(t, "", nil, "merchant", "limit", s.MerchantID, "--rate", rate[0], "--burst", rate[1], "--reason", "to measure")
		harness.Await(t, harness.ReadyWithin, "the merchant's own rate", func() bool {
			a := s.Ask(t, "/payments/status", harness.Fields{"external_id": "none"})
			return strings.Contains(a.Header.Get("RateLimit-Policy"), "q="+rate[1]+";")
		})
	}
	return made
}

// inTurns asks three merchants in turn, none always first, and adds to the table how the
// first and the third, which are the same, compare with the second.
func inTurns(t *testing.T, text *strings.Builder, name string, shops ...harness.Shop) {
	t.Helper()
	both := len(shops) // with the log
	took, used := make([][]time.Duration, both+1), make([]time.Duration, both+1)
	for i, s := range shops {
		used[i] = -gatewayUsed(t, s)
	}
	for turn := range logTurns {
		for i := range shops {
			i = (i + turn) % len(shops)
			took[i] = append(took[i], ask(t, shops[i], logLasts)...)
		}
	}
	for i, s := range shops {
		used[i] += gatewayUsed(t, s)
	}
	took[both], used[both] = slices.Concat(took[0], took[2]), used[0]+used[2]
	row := func(what, unit string, of func(i int) float64) (ratio float64) {
		first, without, again := of(0), of(1), of(2)
		ratio = of(both) / without
		fmt.Fprintf(text, "| %s | %s | %.2f %s | %.2f %s | %.2f %s | %.3f | %.3f |\n", name, what, first, unit, without, unit, again, unit, ratio, again/first)
		return ratio
	}
	row("processor time", "us", func(i int) float64 { return float64(used[i].Microseconds()) / float64(len(took[i])) })
	for _, times := range took {
		slices.Sort(times)
	}
	for _, q := range []struct {
		name string
		of   float64
	}{{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}} {
		ratio := row(q.name, "ms", func(i int) float64 { return float64(took[i][int(q.of*float64(len(took[i])))].Microseconds()) / 1000 })
		if q.name == "p99" && (ratio >= 1+logApart || ratio <= 1-logApart) {
			t.Errorf("%s: p99 with the log is %.3f of that without, the goal is less than %.0f %% apart", name, ratio, 100*logApart)
		}
	}
}

// gatewayUsed is what a merchant's gateway has used of the processors so far.
func gatewayUsed(t *testing.T, s harness.Shop) time.Duration {
	t.Helper()
	return harness.ProcessorTimes(t, s.Command.Process.Pid, s.Role)["gateway"]
}

// ask asks for a while, and tells how long each answer took.
func ask(t *testing.T, s harness.Shop, lasts time.Duration) []time.Duration {
	t.Helper()
	until := time.Now().Add(lasts)
	took := make([][]time.Duration, logClients)
	var group sync.WaitGroup
	for client := range took {
		group.Go(func() {
			for began := time.Now(); began.Before(until); began = time.Now() {
				a, err := s.Post(t.Context(), "/payments/status", harness.Fields{"external_id": uuid.NewString()})
				if err != nil || a.HTTP >= http.StatusInternalServerError {
					t.Errorf("%v %s", err, a)
					return
				}
				took[client] = append(took[client], time.Since(began))
			}
		})
	}
	group.Wait()
	all := slices.Concat(took...)
	if len(all) == 0 {
		t.Fatal("nothing was answered")
	}
	return all
}
