package neighbours_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/tier"
)

// tableVariable names the file that gets the table; make neighbours sets it. Without it
// each attack is short.
const tableVariable = "GERBANG_NEIGHBOURS_TABLE"

const (
	short = 2 * time.Second
	long  = 20 * time.Second
	// callsEvery is the merchant's pace, whether it is answered or not.
	callsEvery = 50 * time.Millisecond
	// patience is for what comes about by itself, on the busiest machine.
	patience = 2 * time.Minute
	// tries is how often an attack must take the merchant down to be a fault: others use the
	// machine too, and what they do is over by then or also beside no attack.
	tries = 3
)

// bound is how much longer than without an attack the merchant's calls may take.
func bound(quiet time.Duration) time.Duration { return 5*quiet + 200*time.Millisecond }

// street is a gateway with a merchant that does nothing wrong, and others.
type street struct {
	*testing.T
	*harness.Deployment
	database *harness.PostgreSQL
	at       harness.Addresses
	replica  *harness.Program
	hostile  harness.Approval
	merchant harness.Shop
	lasts    time.Duration
	quiet    time.Duration // the median of the merchant's calls without an attack
}

// TestNeighbours makes each attack while the merchant goes on at its pace.
func TestNeighbours(t *testing.T) { //nolint:paralleltest // it measures
	if runtime.GOOS != "linux" {
		t.Skip("needs confinement, /proc and the addresses of 127.0.0.0/8")
	}
	tier.Long(t, "times of calls beside each attack")
	file := os.Getenv(tableVariable)
	s := settle(t)
	s.lasts = short
	if file != "" {
		s.lasts = long
	}
	text := head(s.lasts)
	for _, a := range attacks {
		text += s.beside(a)
	}
	t.Logf("\n%s", text)
	if file != "" && !t.Failed() {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

const columns = "| what one does | before | what comes of it | the merchant's calls | median | 99 % | longest |\n| --- | --- | --- | --- | --- | --- | --- |\n"

func head(lasts time.Duration) string {
	return fmt.Sprintf(`# What one does, and what others get

`+"`make neighbours`"+` writes this file. A merchant creates payments and asks for their status, 20 calls a second in all, each when its time has come whether
or not the one before was answered. Beside it another merchant, a stranger, a plugin, the database or an operator does what once took others down, for at
least %v each. *Before* is what others got once, measured from outside before there was anything against it. All are on one machine: a gateway, PostgreSQL, the simulated provider, the attackers and the merchant. The first row is without an attack. A
shorter run is a test: the merchant is refused nothing and cut nothing, but for money that the database can't take, and its calls take at most five times
as long as without an attack, and 200 ms.

Measured on %s with %d processors.

`, lasts, time.Now().UTC().Format("2 January 2006"), runtime.NumCPU()) + columns
}

// TestTableHasEveryAttack: what make neighbours has written is of the attacks that it makes.
func TestTableHasEveryAttack(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(filepath.Join(harness.Root, "deploy", "bench", "NEIGHBOURS.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rows, found := strings.Cut(string(content), columns)
	if !found {
		t.Fatalf("the table's head is not %q", columns)
	}
	var made, told []string
	for _, a := range attacks {
		made = append(made, a.what+" | "+a.before)
	}
	for line := range strings.Lines(rows) {
		cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "| "), " |\n"), " | ")
		if len(cells) != 7 || slices.Contains(cells, "") {
			t.Errorf("no row of the table: %q", line)
		}
		told = append(told, strings.Join(cells[:min(2, len(cells))], " | "))
	}
	if !slices.Equal(told, made) {
		t.Errorf("make neighbours writes it anew: the file has\n%q, made are\n%q", told, made)
	}
}

// settle starts a replica with a plugin that works, one that is hostile and one that is
// missing.
func settle(t *testing.T) *street {
	s := &street{T: t, Deployment: harness.NewDeployment(t), database: harness.NewPostgreSQL(t)}
	path := filepath.Join(s.Dir, "plugins", "hostile")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", path, "./hostile")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.hostile = harness.ApproveAt(t, path)
	s.at = harness.Addresses{Listen: harness.FreeAddress(t), Console: harness.FreeAddress(t)}
	s.replica = s.launch(s.at)
	s.Join(t, s.replica)
	s.merchant = s.NewShop(t, s.replica, "scale")
	s.follow(s.merchant, "live")
	return s
}

func (s *street) launch(at harness.Addresses) *harness.Program {
	missing := harness.Approve(s, "wallet1")
	missing.Path = filepath.Join(s.Dir, "wallet1")
	return s.LaunchAt(s, s.database.URL, at, s.hostile.Beside(), missing.Beside(), "stop_wait: 3s")
}

// call is one of the merchant's calls.
type call struct {
	money bool
	took  time.Duration
	harness.Answer
	err error
}

// good is what the merchant wants of any call.
func (c call) good() bool { return c.err == nil && c.Success }

// calls are what the merchant did beside an attack.
type calls struct {
	reads bool // at the hostile plugin
	mu    sync.Mutex
	ended []call
	last  string // a reference that was made
}

func (m *calls) add(c call, reference string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended = append(m.ended, c); c.money && c.good() {
		m.last = reference
	}
}

// next makes a payment, or asks for the last one.
func (m *calls) next(ctx context.Context, shop harness.Shop, n int) {
	m.mu.Lock()
	reference := m.last
	m.mu.Unlock()
	begun, c := time.Now(), call{money: !m.reads && (n%2 == 0 || reference == "")}
	switch {
	case m.reads:
		c.Answer, c.err = shop.Post(ctx, "/hostile/try", harness.Fields{"read": []string{}})
	case c.money:
		body := shop.PaymentBody(nil)
		reference, _ = body["external_id"].(string)
		c.Answer, c.err = shop.Post(ctx, "/payments/create", body)
	default:
		c.Answer, c.err = shop.Post(ctx, "/payments/status", harness.Fields{"external_id": reference})
	}
	c.took = time.Since(begun)
	m.add(c, reference)
}

// beside makes an attack, again where the merchant was not served, and tells what came of it.
func (s *street) beside(a attack) (row string) {
	s.Helper()
	for try := 1; ; try++ {
		came, ended := s.attack(a)
		if s.quiet == 0 {
			s.quiet = quantile(ended, 0.5)
		}
		row = fmt.Sprintf("| %s | %s | %s | %s |\n", a.what, a.before, came, told(ended))
		s.Log(row)
		switch why := s.unserved(a, ended); {
		case why == "":
			return row
		case try == tries:
			s.Errorf("beside %q, %d times: %s", a.what, tries, why)
			return row
		default:
			s.Logf("again: beside %q: %s", a.what, why)
		}
		_, ended = s.attack(attacks[0])
		s.quiet = quantile(ended, 0.5)
	}
}

// attack makes one attack while the merchant goes on.
func (s *street) attack(a attack) (came string, ended []call) {
	s.Helper()
	if !s.replica.Running() { // an attack before has stopped it
		s.replica = s.launch(s.at)
		s.Join(s, s.replica)
		s.merchant = s.merchant.At(s.replica)
	}
	shop, done := s.merchant, func() {}
	if a.prepare != nil {
		shop, done = a.prepare(s)
	}
	defer done()
	harness.Await(s, patience, "a payment before: "+a.what, func() bool {
		got, err := shop.Post(s.Context(), "/payments/create", shop.PaymentBody(nil))
		return err == nil && got.Success
	})
	m := calls{reads: a.reads}
	ctx, end := context.WithCancel(s.Context())
	defer end()
	var merchant sync.WaitGroup
	merchant.Go(func() { paced(ctx, callsEvery, func(n int) { m.next(s.Context(), shop, n) }) })
	attacking, enough := context.WithTimeout(ctx, s.lasts)
	defer enough()
	came = a.make(attacking, s)
	<-attacking.Done()
	end()
	merchant.Wait()
	return came, m.ended
}

// paced does something at a pace until the context ends, and waits for all of it.
func paced(ctx context.Context, every time.Duration, do func(n int)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var group sync.WaitGroup
	defer group.Wait()
	for n := 0; ; n++ {
		group.Go(func() { do(n) })
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// unserved says how the merchant was not served, but for what an attack may come to.
func (s *street) unserved(a attack, ended []call) string {
	for _, c := range ended {
		if !c.good() && (a.may == nil || !a.may(c)) {
			return fmt.Sprintf("money %t: %s, %v after %v", c.money, c.Answer, c.err, c.took)
		}
	}
	if median, most := quantile(ended, 0.5), bound(s.quiet); median > most {
		return fmt.Sprintf("the median is %v, want at most %v", median, most)
	}
	return ""
}

func quantile(ended []call, q float64) time.Duration {
	took := make([]time.Duration, len(ended))
	for i, c := range ended {
		took[i] = c.took
	}
	slices.Sort(took)
	return took[min(int(q*float64(len(took))), len(took)-1)]
}

// told is what the merchant got: how often, and how long it took.
func told(ended []call) string {
	counts, good := map[string]int{}, 0
	for _, c := range ended {
		switch {
		case c.good():
			good++
		case c.err != nil:
			counts["cut"]++
		default:
			counts["`"+string(c.Code)+"`"]++
		}
	}
	parts := []string{fmt.Sprintf("%d good", good)}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[name], name))
	}
	text := strings.Join(parts, ", ")
	for _, q := range []float64{0.5, 0.99, 1} {
		text += fmt.Sprintf(" | %d ms", quantile(ended, q).Milliseconds())
	}
	return text
}
