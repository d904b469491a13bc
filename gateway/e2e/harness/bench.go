package harness

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

const (
	// BenchClients is how many clients ask at once.
	BenchClients = 64
	// benchRounds is how often what is compared takes turns, because a machine's
	// speed drifts; the first round warms up and is not counted.
	benchRounds = 6
	benchRound  = time.Second
)

// RequireDurable refuses to measure commits that cost nothing.
func RequireDurable(b *testing.B) {
	b.Helper()
	conn, err := pgx.Connect(b.Context(), dbtest.New(b, "", nil))
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(context.Background())
	var fsync string
	if err := conn.QueryRow(b.Context(), "SHOW fsync").Scan(&fsync); err != nil || fsync != "on" {
		b.Skipf("fsync is %q (%v): make bench measures on a server whose commits are durable", fsync, err)
	}
}

// WantOK is the fault of an answer that should be a success.
func WantOK(a Answer, err error) error {
	if err == nil && !a.Success {
		err = fmt.Errorf("answered %s", a)
	}
	return err
}

// measured is what one contestant did in all rounds that count.
type measured struct {
	took    []time.Duration
	elapsed time.Duration
}

func (m *measured) perSecond() float64 { return float64(len(m.took)) / m.elapsed.Seconds() }

func (m *measured) quantile(q float64) float64 {
	return m.took[min(int(q*float64(len(m.took))), len(m.took)-1)].Seconds() * 1000
}

// InTurns measures the program and what it is compared with, and reports both
// with their ratios. Its time is its own, so it runs once whatever b.N is.
func (p *Program) InTurns(b *testing.B, own func(int) error, compared map[string]func(int) error) {
	b.Helper()
	contestants := maps.Clone(compared)
	contestants[""] = own
	results, used := map[string]*measured{}, map[string]time.Duration{}
	for round := range benchRounds {
		for name, op := range contestants {
			before := p.processorTimes(b)
			m, err := hammer(op)
			if err != nil {
				b.Fatalf("%s: %v", name, err)
			}
			if round == 0 {
				results[name] = &measured{}
				continue
			}
			results[name].took = append(results[name].took, m.took...)
			results[name].elapsed += m.elapsed
			if name == "" {
				for who, until := range p.processorTimes(b) {
					used[who] += until - before[who]
				}
			}
		}
	}
	report(b, results, used)
}

func report(b *testing.B, results map[string]*measured, used map[string]time.Duration) {
	b.Helper()
	own := results[""]
	slices.Sort(own.took)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(own.perSecond(), "req/s")
	b.ReportMetric(own.quantile(0.5), "p50-ms")
	b.ReportMetric(own.quantile(0.99), "p99-ms")
	for name, m := range results {
		if name != "" {
			slices.Sort(m.took)
			b.ReportMetric(m.quantile(0.99), name+"-p99-ms")
			b.ReportMetric(m.perSecond(), name+"/s")
			b.ReportMetric(own.perSecond()/m.perSecond(), "of-"+name)
		}
	}
	for who, time := range used {
		b.ReportMetric(float64(time.Microseconds())/float64(len(own.took)), who+"-cpu-µs/req")
	}
}

// processorTimes are what the program's processes have used so far; nothing
// where the machine has no /proc to tell.
func (p *Program) processorTimes(b *testing.B) map[string]time.Duration {
	b.Helper()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		return nil
	}
	used := ProcessorTimes(b, os.Getpid(), p.Role)
	delete(used, "")
	return used
}

// Role names a process in a table of what each has used; "" is one that does not matter.
func (p *Program) Role(one Process) string {
	switch {
	case one.PID == os.Getpid():
		return "clients"
	case one.PID == p.Command.Process.Pid:
		return "gateway"
	case one.IsDatabase():
		return "database"
	case len(one.arguments) > 1 && one.arguments[1] == "sandbox":
		return "sandbox"
	case len(one.arguments) > 0 && filepath.Base(filepath.Dir(one.arguments[0])) == "plugins":
		return "plugin"
	}
	return ""
}

// hammer lets all clients do something for a round.
func hammer(op func(client int) error) (measured, error) {
	var group sync.WaitGroup
	took, faults := make([][]time.Duration, BenchClients), make([]error, BenchClients)
	began := time.Now()
	for client := range BenchClients {
		group.Go(func() {
			for at := time.Now(); at.Sub(began) < benchRound && faults[client] == nil; {
				faults[client] = op(client)
				now := time.Now()
				took[client] = append(took[client], now.Sub(at))
				at = now
			}
		})
	}
	group.Wait()
	elapsed := time.Since(began)
	for _, err := range faults {
		if err != nil {
			return measured{}, err
		}
	}
	return measured{slices.Concat(took...), elapsed}, nil
}

// BareStore is the gateway's store with nothing around it, on a database of its own
// on the same server.
type BareStore struct {
	B     *testing.B
	URL   string // of the database
	Store *store.Store
	Known [BenchClients]movement.Key // one that each client has created
}

// OpenBareStore opens a store whose writes have commits of their own, or as the
// gateway's.
func OpenBareStore(b *testing.B, ownCommits bool) *BareStore {
	b.Helper()
	url := dbtest.New(b, "", nil)
	if err := store.Migrate(b.Context(), url, slog.New(slog.DiscardHandler)); err != nil {
		b.Fatal(err)
	}
	options := store.Options{OwnCommits: ownCommits}
	if ownCommits {
		options.MaxConns = BenchClients // nobody waits for a connection
	}
	s, err := store.Open(b.Context(), url, options)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	return &BareStore{B: b, URL: url, Store: s}
}
