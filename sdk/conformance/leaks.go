package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// usage is what a process has of the machine.
type usage struct {
	memory, peak         int64 // bytes
	threads, descriptors int
}

var errNoUsage = errors.New("what a process uses is read from /proc, which is not there")

// usage reads it where the kernel tells.
func (p *process) usage() (u usage, err error) {
	dir := filepath.Join("/proc", strconv.Itoa(p.pid))
	open, err := os.ReadDir(filepath.Join(dir, "fd"))
	if err != nil {
		return u, errNoUsage
	}
	u.descriptors = len(open)
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return u, errNoUsage
	}
	for line := range strings.Lines(string(status)) {
		name, rest, _ := strings.Cut(line, ":")
		fields := strings.Fields(rest)
		if len(fields) == 0 {
			continue
		}
		value, _ := strconv.ParseInt(fields[0], 10, 64)
		switch name {
		case "VmRSS":
			u.memory = value << 10
		case "VmHWM":
			u.peak = value << 10
		case "Threads":
			u.threads = int(value)
		}
	}
	return u, nil
}

// What a process may have more after many calls than after a tenth of them. Of memory
// it is as much as a collector that is in no hurry may leave.
const (
	moreMemory      = 48 << 20
	moreThreads     = 24
	moreDescriptors = 40
	atOnce          = 16
)

// checkLeaks makes many calls and lookups, of which some go wrong.
func checkLeaks(tr *trial) {
	examples := tr.acceptedExamples()
	if len(examples) == 0 {
		tr.Skip("this provider's upstream knows of no movement before it is paid")
	}
	tr.own()
	if _, err := tr.plugin.usage(); err != nil {
		tr.Skip(err.Error())
	}
	e, calls := examples[0], tr.suite.config.Calls
	tr.many(e, max(calls/10, 4*atOnce))
	before := tr.rest(usage{})
	tr.many(e, calls)
	after := tr.rest(before)
	if tr.failed {
		return
	}
	if more := after.memory - before.memory; more > moreMemory {
		tr.Errorf("%d calls took %d MiB of memory, which were not given back", calls, more>>20)
	}
	if more := after.threads - before.threads; more > moreThreads {
		tr.Errorf("after %d calls there are %d threads more", calls, more)
	}
	if more := after.descriptors - before.descriptors; more > moreDescriptors {
		tr.Errorf("after %d calls there are %d open descriptors more", calls, more)
	}
}

// rest lets the process come to rest: what is on its way may end, and idle connections
// may be closed. It waits no longer than until the process has no more than it had.
func (tr *trial) rest(had usage) (u usage) {
	for begun := time.Now(); time.Since(begun) < 3*time.Second; time.Sleep(100 * time.Millisecond) {
		var err error
		if u, err = tr.plugin.usage(); err != nil {
			tr.Fatalf("the process is gone: %v", err)
		}
		if u.memory-had.memory <= moreMemory && u.threads-had.threads <= moreThreads && u.descriptors-had.descriptors <= moreDescriptors {
			return u
		}
	}
	return u
}

// many makes so many calls, a few at once. Every other is looked up, and every fifth
// goes wrong.
func (tr *trial) many(e Example, count int) {
	var next atomic.Int64
	var running sync.WaitGroup
	wrong := []fault{faults[1], faults[2], faults[4], faults[7]}
	for worker := range atOnce {
		running.Go(func() {
			tr.guard(func() {
				a := tr.account("M"+strconv.Itoa(worker), "A", "test", 1)
				for n := next.Add(1); n <= int64(count) && tr.ctx.Err() == nil; n = next.Add(1) {
					o := tr.orderFor(e, a)
					if n%5 == 0 {
						a.arm(wrong[int(n/5)%len(wrong)], 1)
					}
					ctx, cancel := context.WithTimeout(tr.ctx, patience)
					_, err := tr.plugin.process.Call(ctx, o.call)
					a.calm()
					if n%2 == 0 && err == nil {
						_, err = tr.plugin.process.Lookup(ctx, tr.lookup(o, ""))
					}
					cancel()
					if err != nil {
						tr.Fatalf("call %d: %v", n, err)
					}
				}
			})
		})
	}
	running.Wait()
}

// moreForEndless is how much memory an answer without end may take.
const moreForEndless = 64 << 20

// checkEndless lets each request of a call be answered without end.
func checkEndless(tr *trial) {
	examples := tr.acceptedExamples()
	if len(examples) == 0 {
		tr.Skip("this provider's upstream knows of no movement before it is paid")
	}
	a := tr.connect("A", "test")
	e := examples[0]
	tr.own()
	requests, _ := tr.requestsOf(e, a)
	if requests == 0 {
		tr.Skip("nothing is asked of an upstream over HTTP")
	}
	before, err := tr.plugin.usage()
	if err != nil {
		tr.Skip(err.Error())
	}
	// A process that reads on may be too busy to answer: what it took is looked at all the same.
	within := func(n int, ask func()) {
		a.arm(endless, n)
		defer tr.mustStaySmall(before)
		ask()
		a.calm()
	}
	for n := 1; n <= requests; n++ {
		o := tr.fresh(e, a)
		within(n, func() {
			if r := tr.send(o); r.Outcome == sdk.Refused || accepted(r.Outcome) && len(tr.movements(o.call.Reference)) == 0 {
				tr.Errorf("an answer without end is understood as %s", shown(r))
			}
		})
		within(0, func() {
			if f := tr.find(o, ""); f.Status != sdk.StatusUnknown && !tr.resubmits() {
				tr.Errorf("an answer without end is understood as %+v", f)
			}
		})
	}
}

// mustStaySmall ends the case where the process has grown too much.
func (tr *trial) mustStaySmall(before usage) {
	after, err := tr.plugin.usage()
	if err != nil {
		tr.Fatal(fmt.Errorf("the process did not outlive an answer without end: %w", err))
	}
	if more := after.peak - before.peak; more > moreForEndless {
		tr.Fatalf("an answer without end took %d MiB of memory", more>>20)
	}
}
