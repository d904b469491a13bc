package faults_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/tier"
)

// tableVariable names the handbook, which gets the table of faults; make faults sets it.
// Without it some faults are made, briefly.
const tableVariable = "GERBANG_FAULTS_TABLE"

// town is three replicas behind haproxy, under a load of payments all the time.
type town struct {
	*testing.T
	*harness.Deployment
	database *harness.PostgreSQL
	upstream *harness.Proxy     // before the simulated provider
	disk     *harness.SmallDisk // of the database, nil where it is brief
	at       []harness.Addresses
	replicas []*harness.Program
	load     *harness.Load
	token    string // an operator's
	brief    bool
	killed   time.Time // when a replica was about to be
	gone     time.Time // when it was
}

// TestFaultTable makes every fault under load, and a table of what merchants saw, what
// operators were told and how long it took after the fault's end until every answer was
// good. Afterwards every reference is answered, and made once.
func TestFaultTable(t *testing.T) { //nolint:paralleltest // it measures
	tier.Long(t, "the whole table of faults before three replicas behind haproxy")
	file := os.Getenv(tableVariable)
	s := settle(t, file == "")
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var load sync.WaitGroup
	load.Go(func() { runPaced(ctx, s.load, 3) })
	text := tableHead
	for _, one := range troubles {
		if one.brief || !s.brief {
			text += s.during(one)
		}
	}
	end()
	load.Wait()
	s.load.Resolve(t)
	if file == "" {
		t.Logf("\n%s", text)
		return
	}
	if t.Failed() {
		t.Fatalf("nothing is written:\n%s", text)
	}
	before, _, after := handbook(t, file)
	measured := fmt.Sprintf("Measured on %s with %d processors.\n\n", time.Now().UTC().Format("2 January 2006"), runtime.NumCPU())
	if err := os.WriteFile(file, []byte(before+"\n"+measured+text+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

const (
	tableHead  = "| fault | merchants' payments | operators were told | good again after its end |\n| --- | --- | --- | --- |\n"
	tableBegin = "<!-- make faults writes from here -->\n"
	tableEnd   = "<!-- to here -->\n"
)

// handbook cuts the handbook around what make faults writes.
func handbook(t *testing.T, file string) (before, table, after string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := strings.Index(string(content), tableBegin), strings.Index(string(content), tableEnd)
	if begin < 0 || end < begin {
		t.Fatalf("%s has no place for the table: %q and %q", file, tableBegin, tableEnd)
	}
	begin += len(tableBegin)
	return string(content[:begin]), string(content[begin:end]), string(content[end:])
}

// TestHandbookHasEveryFault: what make faults has written is of the faults that it makes.
func TestHandbookHasEveryFault(t *testing.T) {
	t.Parallel()
	_, table, _ := handbook(t, filepath.Join(harness.Root, "deploy", "README.md"))
	_, rows, found := strings.Cut(table, tableHead)
	if !found {
		t.Fatalf("the table's head is not %q", tableHead)
	}
	var faults, told []string
	for _, one := range troubles {
		faults = append(faults, one.what)
	}
	for line := range strings.Lines(rows) {
		cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "| "), " |\n"), " | ")
		if len(cells) != 4 || slices.Contains(cells, "") {
			t.Errorf("no row of the table: %q", line)
		}
		told = append(told, cells[0])
	}
	if !slices.Equal(told, faults) {
		t.Errorf("make faults writes it anew: the handbook has\n%q, made are\n%q", told, faults)
	}
}

func settle(t *testing.T, brief bool) *town {
	s := &town{T: t, Deployment: harness.NewDeployment(t), brief: brief}
	if brief {
		s.database = harness.NewPostgreSQL(t)
	} else {
		s.disk = harness.NewSmallDisk(t)
		s.database = s.disk.PostgreSQL
		s.database.Steps(t)
	}
	whole := s.Approved.Path
	s.Approved.Path = filepath.Join(s.Dir, "payments")
	if err := os.Symlink(whole, s.Approved.Path); err != nil {
		t.Fatal(err)
	}
	s.upstream = harness.NewProxy(t, "http://127.0.0.1:"+s.Approved.Ports[0])
	behind, err := url.Parse(s.upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	before := "127.0.0.1:" + s.Approved.Ports[0]
	s.Approved.Ports = append(s.Approved.Ports, behind.Port())
	for range 3 {
		at := harness.Addresses{Listen: harness.FreeAddress(t), Console: harness.FreeAddress(t)}
		s.at, s.replicas = append(s.at, at), append(s.replicas, nil)
		s.start(len(s.at) - 1)
	}
	s.Join(t, s.replicas...)
	front := harness.NewHAProxy(t, s.at...)
	shop := s.NewShop(t, s.replicas[0], "scale")
	s.ConnectThrough(t, s.replicas[0], shop.MerchantID, func(credentials json.RawMessage) json.RawMessage {
		return json.RawMessage(strings.ReplaceAll(string(credentials), before, behind.Host))
	})
	door := s.replicas[0].Document
	door.APIURL, s.token = front.URL, door.AdminToken
	s.load = harness.NewLoad(shop.At(&harness.Program{Document: door}))
	return s
}

func (s *town) start(i int) {
	s.replicas[i] = s.LaunchAt(s, s.database.URL, s.at[i], "stop_wait: 3s")
}

// trouble is a fault that is made.
type trouble struct {
	what  string
	brief bool // it is made without a table, too
	make  func(*town)
	cuts  bool // it ends calls that are under way
	// lost tells which of merchants' calls it may cost; nil for any.
	lost func(*town, *harness.Attempt) bool
}

// troubles are all that is made, in turn.
var troubles = []trouble{
	{what: "database away for 20 s", brief: true, make: func(s *town) {
		s.database.Refuse()
		lasts(map[bool]time.Duration{false: 20 * time.Second, true: 3 * time.Second}[s.brief])
		s.database.Restore()
	}},
	{what: "a replica is killed, and started after 5 s", brief: true, make: (*town).kill, cuts: true, lost: func(s *town, a *harness.Attempt) bool {
		return a.Err != nil && a.Began.Before(s.gone) && a.Began.Add(a.Took).After(s.killed)
	}},
	{what: "database crashes and is started at once", make: func(s *town) { s.database.Kill(s.T, 0) }},
	{what: "database read-only for 10 s", make: func(s *town) {
		s.database.ReadOnly(s.T, true)
		lasts(10 * time.Second)
		s.database.ReadOnly(s.T, false)
	}},
	{what: "the database's disk is full for 30 s", make: func(s *town) { s.disk.Full(s.T, 30*time.Second) }},
	{what: "the database's clock is set 5 s ahead; 45 s", make: func(s *town) { s.database.Step(s.T, 5*time.Second); lasts(45 * time.Second) }},
	{what: "the database's clock is set back; 45 s", make: func(s *town) { s.database.Step(s.T, 0); lasts(45 * time.Second) }},
	{what: "one replica's plugin is killed", make: func(s *town) { s.signal(0, syscall.SIGKILL) }},
	{what: "one replica's plugin is stopped (SIGSTOP)", make: func(s *town) { s.signal(0, syscall.SIGSTOP); lasts(10 * time.Second) }},
	{what: "the plugin's file is missing on all replicas, and their plugins end; 20 s", make: (*town).missing},
	{what: "the provider's port is closed for 10 s", make: func(s *town) { s.upstream.Close(); lasts(10 * time.Second); s.upstream.Open(s.T) }},
	{what: "the provider answers 500 to 30 calls", make: func(s *town) {
		s.load.Inject(s, "error_500", harness.FaultOperations["payment_link"], 30)
		lasts(10 * time.Second)
	}},
	{what: "the provider is slow for 30 calls", make: func(s *town) {
		s.load.Inject(s, "latency", harness.FaultOperations["payment_link"], 30)
		lasts(10 * time.Second)
	}},
	{what: "rolling restart of three replicas", brief: true, make: (*town).restart, lost: func(*town, *harness.Attempt) bool { return false }},
}

// kill kills a replica while one of merchants' calls is inside its plugin.
func (s *town) kill() {
	s.Helper()
	const held = 6 // two rounds of the load's clients, whose calls haproxy gives to each replica in turn
	s.load.Inject(s, "latency", harness.FaultOperations["payment_link"], held)
	harness.Await(s, 10*time.Second, "a call at the replica that is to be killed", func() bool {
		plugin, err := s.replicas[1].Plugin(s.T, "payments")
		return err == nil && plugin.InFlight > 0
	})
	s.killed = time.Now()
	s.replicas[1].Kill(s)
	s.gone = time.Now()
	lasts(5 * time.Second)
	s.start(1)
	s.replicas[1].AwaitServing(s)
}

// restart replaces one replica after the other.
func (s *town) restart() {
	s.Helper()
	for i, p := range s.replicas {
		p.Stop(s)
		s.start(i)
		s.replicas[i].AwaitServing(s)
		lasts(2 * time.Second) // a check of haproxy's
	}
}

// lasts gives an outage its length, which is what the row is about. Nothing is waited
// for in it.
func lasts(d time.Duration) { <-time.After(d) }

// during makes a fault, which has ended when it returns, and tells what came of it.
func (s *town) during(one trouble) (row string) {
	s.Helper()
	what := one.what
	// What the fault before has listed ends by itself: circuit_open a minute after its breaker has closed.
	harness.Await(s, 3*time.Minute, "a quiet time before: "+what, func() bool { return s.well(20) && s.quiet() })
	from, begun, counted := s.tried(), time.Now(), s.counted()
	told, stop := s.listen()
	one.make(s)
	ended := time.Now()
	harness.Await(s, 3*time.Minute, "good answers after: "+what, func() bool { return s.wellSince(ended, 20) })
	recovered := s.lastBad(ended)
	stop()
	if one.lost != nil {
		s.wantLost(one, from)
	}
	after := "at once"
	if recovered > 50*time.Millisecond {
		after = fmt.Sprintf("%.1f s", recovered.Seconds())
	}
	words := told()
	if len(words) == 0 {
		words = s.quietly(counted)
	}
	row = fmt.Sprintf("| %s | %s | %s | %s |\n", what, s.answers(from), strings.Join(words, "; "), after)
	s.Logf("after %v: %s", time.Since(begun).Round(time.Second), row)
	return row
}

// good is an answer that a merchant wants.
func good(a *harness.Attempt) bool { return a.Err == nil && a.First != nil && a.First.Success }

func (s *town) tried() int { return len(s.load.Tried()) }

// well reports whether the last attempts that ended are good.
func (s *town) well(most int) bool {
	all := s.load.Tried()
	return len(all) >= most && !slices.ContainsFunc(all[len(all)-most:], func(a *harness.Attempt) bool { return !good(a) })
}

// wellSince wants so many good attempts that began after a moment, and none that is bad
// behind them.
func (s *town) wellSince(moment time.Time, most int) bool {
	all := s.load.Tried()
	return len(all) >= most && all[len(all)-most].Began.After(moment) && s.well(most)
}

// wantLost wants every call answered with success but for those that a fault may cost,
// and one of those at least where it may.
func (s *town) wantLost(one trouble, from int) {
	s.Helper()
	lost := 0
	for _, a := range s.load.Tried()[from:] {
		switch {
		case good(a):
		case one.lost(s, a):
			lost++
		default:
			s.Errorf("%s: %s, begun at %s: %v, %v after %v", one.what, a.Order["external_id"], a.Began.Format(time.StampMilli), a.First, a.Err, a.Took)
		}
	}
	if one.cuts && lost == 0 {
		s.Errorf("%s: no call was cut, and one was under way", one.what)
	}
}

// lastBad is how long after a moment the last bad attempt began, 0 for none.
func (s *town) lastBad(moment time.Time) (after time.Duration) {
	for _, a := range s.load.Tried() {
		if !good(a) {
			after = max(after, a.Began.Add(a.Took).Sub(moment))
		}
	}
	return after
}

// answers are the attempts from one on, by what came of them.
func (s *town) answers(from int) string {
	const well = "good"
	counts := map[string]int{}
	var longest time.Duration
	for _, a := range s.load.Tried()[from:] {
		longest = max(longest, a.Took)
		switch {
		case a.Err != nil && a.HTTP == http.StatusServiceUnavailable:
			counts["refused by haproxy"]++
		case a.Err != nil:
			counts["cut"]++
		case a.First.Success:
			counts[well]++
		default:
			counts["`"+string(a.First.Code)+"`"]++
		}
	}
	parts := []string{fmt.Sprintf("%d %s", counts[well], well)}
	delete(counts, well)
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[name], name))
	}
	return fmt.Sprintf("%s; longest %.1f s", strings.Join(parts, ", "), longest.Seconds())
}

// listen gathers what operators are told from now on, until it is stopped: which
// replicas are not ready and for what, and new exceptions.
func (s *town) listen() (told func() []string, stop func()) {
	seen := map[string]map[int]bool{} // which replicas have said what
	ctx, cancel := context.WithCancel(s.Context())
	old, err := s.listed(ctx)
	if err != nil {
		s.Error(err)
	}
	var asking sync.WaitGroup
	asking.Go(func() {
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			for i, at := range s.at {
				for _, word := range s.said(ctx, at, old) {
					if seen[word] == nil {
						seen[word] = map[int]bool{}
					}
					seen[word][i] = true
				}
			}
			<-tick.C
		}
	})
	told = func() (words []string) {
		for _, word := range slices.Sorted(maps.Keys(seen)) {
			if !strings.HasPrefix(word, exception) { // those are of all replicas
				word = fmt.Sprintf("%d of 3 %s", len(seen[word]), word)
			}
			words = append(words, word)
		}
		return words
	}
	return told, func() { cancel(); asking.Wait() }
}

const exception = "exception "

func (s *town) operator(at harness.Addresses) *adminapi.Client {
	return adminapi.NewClient("http://"+at.Console, s.token)
}

// listed are the exceptions that are open, by their ids: their reasons.
func (s *town) listed(ctx context.Context) (open map[string]string, err error) {
	open = map[string]string{}
	exceptions, err := adminapi.ListExceptions.Call(ctx, s.operator(s.at[0]), adminapi.ExceptionFilter{Limit: adminapi.MostListed})
	for _, x := range exceptions {
		open[x.ID] = x.Reason
	}
	return open, err
}

// quiet reports whether nothing is listed that ends by itself.
func (s *town) quiet() bool {
	listed, err := s.listed(s.Context())
	for _, reason := range listed {
		if reason == movement.ReasonOutage || reason == movement.ReasonPlugin {
			return false
		}
	}
	return err == nil
}

// metrics are what tells of a fault that is on no list, each with a part of its labels.
var metrics = []struct{ name, label string }{
	{"gerbang_plugin_restarts_total", `provider="payments"`}, {"gerbang_plugin_calls_total", `outcome="unknown"`},
}

// counted are the metrics of each replica.
func (s *town) counted() (all [][]float64) {
	s.Helper()
	for _, p := range s.replicas {
		_, body, _ := p.Get(s, p.ConsoleURL+"/metrics")
		sums := make([]float64, len(metrics))
		for line := range strings.Lines(string(body)) {
			for i, m := range metrics {
				if !strings.HasPrefix(line, m.name+"{") || !strings.Contains(line, m.label) {
					continue
				}
				n, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]), 64)
				if err != nil {
					s.Error(err)
				}
				sums[i] += n
			}
		}
		all = append(all, sums)
	}
	return all
}

// quietly is how operators were told of what is on no list: by metrics, and by the log
// beside each of them.
func (s *town) quietly(before [][]float64) []string {
	s.Helper()
	now := s.counted()
	words := []string{"log"}
	for i, m := range metrics {
		for replica := range now {
			if now[replica][i] > before[replica][i] {
				words = append(words, fmt.Sprintf("`%s{%s}`", m.name, m.label))
				break
			}
		}
	}
	if len(words) == 1 {
		return []string{"nothing"}
	}
	return []string{strings.Join(words, ", ")}
}

// said is what a replica's console says that is not as it should be, and was not before.
func (s *town) said(ctx context.Context, at harness.Addresses, old map[string]string) (words []string) {
	ctx, cancel := context.WithTimeout(ctx, 4*time.Second)
	defer cancel()
	if err := s.operator(at).Ready(ctx); err != nil {
		_, why, told := strings.Cut(err.Error(), "the gateway is not ready")
		if !told {
			return []string{"no answer"}
		}
		why, _, _ = strings.Cut(why, ": its times hold again in") // which counts down
		words = append(words, "not ready"+why)
	}
	exceptions, err := adminapi.ListExceptions.Call(ctx, s.operator(at), adminapi.ExceptionFilter{Limit: adminapi.MostListed})
	if err != nil {
		return words
	}
	for _, x := range exceptions {
		if _, known := old[x.ID]; !known {
			words = append(words, exception+"`"+x.Reason+"`")
		}
	}
	return words
}

// signal sends a signal to a replica's plugin.
func (s *town) signal(i int, signal syscall.Signal) {
	s.Helper()
	plugin := s.replicas[i].OneProcess(s, "the plugin", harness.Process.IsPlugin)
	if err := syscall.Kill(plugin.PID, signal); err != nil {
		s.Fatal(err)
	}
}

// missing takes the plugin's file away, ends all its processes, and puts it back.
func (s *town) missing() {
	s.Helper()
	path := s.Approved.Path
	if err := os.Rename(path, path+".gone"); err != nil {
		s.Fatal(err)
	}
	for i := range s.replicas {
		s.signal(i, syscall.SIGKILL)
	}
	lasts(20 * time.Second)
	if err := os.Rename(path+".gone", path); err != nil {
		s.Fatal(err)
	}
}
