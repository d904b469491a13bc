package report_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

// report is the document.
func (b *bench) report(before string, deliveries backlogs) string {
	var out strings.Builder
	fmt.Fprintf(&out, `# Measured: the gateway beside the floor under it

`+"`make bench-report`"+` writes this file. %d clients, each with one connection and one request in flight, on the same machine as all
servers; %d turns of %v each after one that is not counted, and every answer is checked. A figure is the median of its turns, a ratio the
median of the ratios of turns that followed each other: ratios matter, absolutes belong to this machine. Noise is how far the turns of
req/s lie apart, as a part of their median. The gateway is that of `+"`gerbang dev`"+`, with a log line a request; nginx and haproxy write no log.

`, harness.BenchClients, b.turns, b.lasts)
	b.machine(&out, before)
	out.WriteString("\n| | req/s | noise | p50 ms | p99 ms | CPU us a request: gateway or floor | plugin | database | simulator | clients |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, c := range b.order {
		fmt.Fprintf(&out, "| %s | %.0f | %.0f %% | %.1f | %.1f | %.0f | %.0f | %.0f | %.0f | %.0f |\n", c.name,
			c.median(perSecond), 100*c.noise(perSecond), c.median(quantile(0.5)), c.median(quantile(0.99)),
			c.median(processor("gateway", "floor")), c.median(processor("plugin")), c.median(processor("database")), c.median(processor("sandbox")), c.median(processor("clients")))
	}
	out.WriteString("\n| memory after a turn, MiB | gateway | plugins | database | simulators |\n| --- | --- | --- | --- | --- |\n")
	for _, c := range b.order {
		if c.holds != nil {
			fmt.Fprintf(&out, "| %s | %.0f | %.0f | %.0f | %.0f |\n", c.name,
				c.median(memory("gateway")), c.median(memory("plugin")), c.median(memory("database")), c.median(memory("sandbox")))
		}
	}
	for name, f := range b.floor {
		if f.missing != "" {
			fmt.Fprintf(&out, "\n%s is not measured: %s.\n", name, f.missing)
		}
	}
	if len(deliveries.own) > 0 {
		fmt.Fprintf(&out, "\nA backlog of 10,000 callbacks: %.0f deliveries a second; the same by River, whose workers sign and post them: %.0f. Medians of three turns.\n",
			median(deliveries.own), median(deliveries.river))
	}
	out.WriteString("\n| goal | is | should be |\n| --- | --- | --- |\n")
	goals := b.goals()
	if len(deliveries.own) > 0 {
		goals = append(goals, goal{"a backlog of callbacks: deliveries a second beside River's", fmt.Sprintf("%.3g", deliveries.besideRiver()), ">= 2"})
	}
	for _, g := range goals {
		fmt.Fprintf(&out, "| %s | %s | %s |\n", g.what, g.is, g.should)
	}
	out.WriteString("\n## Where the gateway's processor time goes\n\nA profile of one more turn of each path: the parts of the time by package, then the functions that take most of it themselves.\n")
	for _, c := range b.order {
		if p, found := b.profiles[c.name]; found {
			fmt.Fprintf(&out, "\n- `%s`: %s. %s.\n", c.name, first(p.packages, 12), first(p.functions, 8))
		}
	}
	return out.String()
}

// goal is a figure and what it should be.
type goal struct{ what, is, should string }

// goals are ratios of turns in one run. What was set as a figure stands beside its ratio
// to the floor as the floor was then: an echo of 43,700 req/s, and 59 us a request
// where a key and a read are added.
func (b *bench) goals() []goal {
	alone := processor("gateway", "floor")
	ratio := func(path, floor string, of figure, beneath figure) string {
		c := b.all[path]
		f := c.turned(floor)
		if f == nil {
			return "not measured"
		}
		return fmt.Sprintf("%.3g", beside(c, f, of, beneath))
	}
	both := func(path, unit, floor string, of figure, beneath figure) string {
		return fmt.Sprintf("%.0f %s, and %s", b.all[path].median(of), unit, ratio(path, floor, of, beneath))
	}
	const perEcho, perRead = "req/s beside httprouter's echo", "processor time of the gateway beside that of httprouter with a key and a read"
	const rate, each = "req/s", "us"
	return []goal{
		{"`/balance`: " + perRead, ratio("/balance", floorRead, alone, alone), "<= 1.6"},
		{"`/payments/status`: the same", ratio("/payments/status", floorRead, alone, alone), "<= 1.9"},
		{"`/transfer/banks`: " + perEcho, ratio("/transfer/banks", echo, perSecond, perSecond), ">= 0.35"},
		{fmt.Sprintf("`/ppob/products`, %d products, gzip: processor time beside nginx with the same bytes", products), ratio("/ppob/products", floorPacked, alone, alone), "<= 2"},
		{"a small query through a plugin (`/quick/rate`): " + perEcho, ratio("/quick/rate", echo, perSecond, perSecond), ">= 0.4"},
		{"`/payments/create`: " + rate + ", and " + perEcho, both("/payments/create", rate, echo, perSecond, perSecond), ">= 2,500 req/s, and 0.057"},
		{"the same: " + perRead, both("/payments/create", each, floorRead, alone, alone), "<= 200 us, and 3.4"},
		{"the same: processor time of all servers beside that", both("/payments/create", each, floorRead, processor(ours...), alone), "<= 480 us, and 8.1"},
		{"`/ppob/order`, one merchant: " + rate + ", and " + perEcho, both("/ppob/order", rate, echo, perSecond, perSecond), ">= 1,200 req/s, and 0.027"},
		{"the same: " + perRead, both("/ppob/order", each, floorRead, alone, alone), "<= 500 us, and 8.5"},
	}
}

// machine says on what was measured.
func (b *bench) machine(out *strings.Builder, before string) {
	var database string
	b.program.QueryRow(b, &database, "SELECT version()")
	fsync := ""
	b.program.QueryRow(b, &fsync, "SHOW fsync")
	fmt.Fprintf(out, "%s, %d processors (%s), Linux %s. %s. %s, fsync %s.", time.Now().UTC().Format("2006-01-02"), runtime.NumCPU(), processorName(), said("uname", "-r"),
		runtime.Version(), strings.SplitN(database, " (", 2)[0], fsync)
	for _, program := range [][]string{{"nginx", "-v"}, {"haproxy", "-v"}} {
		if version := said(program...); version != "" {
			fmt.Fprintf(out, " %s.", version)
		}
	}
	fmt.Fprintf(out, " Load of the machine before: %s.\n", before)
}

// said is the first line that a command says, "" where it can't be run.
func said(command ...string) string {
	out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(out), "\n")
	first, _, _ = strings.Cut(first, " - ")
	return first
}

func processorName() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(text)) {
		if name, found := strings.CutPrefix(line, "model name"); found {
			return strings.TrimSpace(strings.TrimLeft(name, "\t :"))
		}
	}
	return "unknown"
}
