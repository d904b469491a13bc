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
)

// reportVariable names the file that gets the report; make policy-report sets it.
const reportVariable = "GERBANG_POLICY_REPORT"

// TestPolicyReport measures over three replicas how soon a limit changes and how exactly a
// rate holds, and beside a program without it what the log of decisions costs.
func TestPolicyReport(t *testing.T) { //nolint:paralleltest // it measures
	file := os.Getenv(reportVariable)
	if file == "" {
		t.Skip("it takes ten minutes: make policy-report")
	}
	before, _ := os.ReadFile("/proc/loadavg") // none elsewhere
	text := "# Measured: policies over three replicas\n\n`make policy-report` writes this file.\n\n" +
		fmt.Sprintf("%s, %d processors, %s. Load of the machine before: %.4s.\n", time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), runtime.Version(), before)
	for _, part := range []func(*testing.T) string{reportChanges, reportRates, reportLog} {
		text += "\n" + part(t)
	}
	t.Logf("\n%s", text)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// reportChanges changes a limit and takes it back under load.
func reportChanges(t *testing.T) string {
	t.Helper()
	databaseURL := dbtest.New(t, "", nil)
	d := harness.NewDeployment(t)
	replicas := d.Start(t, databaseURL, databaseURL, databaseURL)
	edit := &harness.PolicyData{File: filepath.Join(t.TempDir(), "data.json")}
	l := &limitWatch{Shop: d.NewShop(t, replicas[0], "scale"), seen: map[string]map[*harness.Program]time.Time{}}
	l.changes(t, replicas, filepath.Dir(edit.File), func(n int) {
		edit.Change(t, func(tiers map[string]map[string]any, _ map[string]any) { tiers["scale"]["burst"] = n })
	})
	var text strings.Builder
	text.WriteString("## A limit is changed and taken back\n\nAn edit is pushed, tried on the past, activated and rolled back, each by its command, while two clients ask each replica all\n" +
		"the time. A replica has changed when it first answers with the new limit. The time is from the start of the command; the goal is a\n" +
		"second.\n\n| command | first replica | second | third |\n| --- | --- | --- | --- |\n")
	for _, c := range l.changed {
		fmt.Fprintf(&text, "| `policy %s` | %v | %v | %v |\n", c.what, c.told[0], c.told[1], c.told[2])
	}
	fmt.Fprintf(&text, "\n%d requests were sent, of which %d failed and %d were late on this machine.\n", l.requests, len(l.failures), l.late)
	for _, p := range replicas {
		p.Stop(t)
	}
	return text.String()
}

// Each way of spreading sends so many requests a second for a minute.
const (
	asksASecond = 20
	asksFor     = 60
)

// spread is what came of the requests of a minute.
type spread struct {
	admitted, slowed, unasked atomic.Int64
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
	fmt.Fprintf(&text, "## A rate over three replicas\n\n%d requests a second for a minute, of a merchant whose rate is 5 a second with a burst of 10: 310 are right, 305 to 313 the goal.\n"+
		"An answer that does not tell of a rate is of a replica that was dead or away, and was not asked for one.\n"+
		"Each replica may admit one more, which is paid later, so four may reach 314. On a busy machine some requests come late.\n\n"+
		"| connections | admitted | slowed | without a rate |\n| --- | --- | --- | --- |\n", asksASecond)
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
		fmt.Fprintf(&text, "| %s | %d | %d | %d |\n", way.name, came.admitted.Load(), came.slowed.Load(), came.unasked.Load())
		t.Logf("%s: %d admitted, %d slowed, %d without a rate", way.name, came.admitted.Load(), came.slowed.Load(), came.unasked.Load())
		known()
	}
	for _, p := range *serving.Load() {
		p.Stop(t)
	}
	return text.String()
}

// How the log is measured: short turns of the programs follow one another, so that a busy
// moment of the machine is every program's.
const (
	logTurns   = 80
	logLasts   = 500 * time.Millisecond
	logClients = 8
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
		"is the gateway's for each, with what it does beside. How far the two that are the same lie\n"+
		"apart is what this machine can't tell; the goal for p99 is less than 5 %%.\n\n"+
		"| requests | | with the log | without | with it again | with / without | again / without |\n| --- | --- | --- | --- | --- | --- | --- |\n", logLasts, logTurns, logClients)
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
// first and the third compare with the second.
func inTurns(t *testing.T, text *strings.Builder, name string, shops ...harness.Shop) {
	t.Helper()
	took, used := make([][]time.Duration, len(shops)), make([]time.Duration, len(shops))
	for i, s := range shops {
		used[i] = -gatewayUsed(t, s)
	}
	for turn := range logTurns {
		for i := range shops {
			i = (i + turn) % len(shops)
			took[i] = append(took[i], ask(t, shops[i], logLasts)...)
		}
	}
	ms := make([]float64, len(shops))
	for i, s := range shops {
		ms[i] = float64((used[i] + gatewayUsed(t, s)).Microseconds()) / float64(len(took[i]))
	}
	fmt.Fprintf(text, "| %s | processor time | %.1f us | %.1f us | %.1f us | %.3f | %.3f |\n", name, ms[0], ms[1], ms[2], ms[0]/ms[1], ms[2]/ms[1])
	for _, times := range took {
		slices.Sort(times)
	}
	for _, q := range []struct {
		name string
		of   float64
	}{{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}} {
		for i, times := range took {
			ms[i] = float64(times[int(q.of*float64(len(times)))].Microseconds()) / 1000
		}
		fmt.Fprintf(text, "| %s | %s | %.2f ms | %.2f ms | %.2f ms | %.3f | %.3f |\n", name, q.name, ms[0], ms[1], ms[2], ms[0]/ms[1], ms[2]/ms[1])
	}
}

// gatewayUsed is what a merchant's gateway has used of the processors so far.
func gatewayUsed(t *testing.T, s harness.Shop) time.Duration {
	t.Helper()
	pid := s.Command.Process.Pid
	return harness.ProcessorTimes(t, pid, func(p harness.Process) string {
		if p.PID == pid {
			return "gateway"
		}
		return ""
	})["gateway"]
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
