package operators

import (
	"context"
	"sync"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/tenants"
)

const (
	// awaited is how long a trial goes on after its page was last asked for, and keptFor how long its result stays.
	awaited = time.Minute
	keptFor = 30 * time.Minute
	// mostTrials bounds the trials and results that are kept.
	mostTrials = 32
)

// question is what is tried on the past. Its result is shown to the operator who asked, in the role that was judged.
type question struct {
	by            string
	role          tenants.Role
	version, span string
}

// trial is a question on its way, or its result.
type trial struct {
	cancel context.CancelFunc
	ended  chan struct{}
	forget *time.Timer

	// The lock of the trials guards these.
	over     bool
	asked    time.Time
	progress adminapi.ImpactProgress
	result   *picture
	err      error
}

// trials are what this process tries on the past for operators' pages, and what came of it. The admin API runs one at a time.
// Each operator has one that runs: another question ends it.
type trials struct {
	now func() time.Time

	mu      sync.Mutex
	of      map[question]*trial
	closed  bool
	running sync.WaitGroup
}

func newTrials(now func() time.Time) *trials {
	return &trials{now: now, of: map[question]*trial{}}
}

// try is what answers a question.
type try func(context.Context, func(adminapi.ImpactProgress)) (*picture, error)

// begin starts a trial, unless it runs already, and ends the one that its operator had before. It outlives the request that
// began it.
func (ts *trials) begin(ctx context.Context, q question, ask try) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if was := ts.of[q]; was != nil && !was.over {
		return
	}
	var before []*trial
	for other, t := range ts.of {
		if other.by == q.by && !t.over {
			ts.drop(other)
			before = append(before, t)
		}
	}
	ts.start(ctx, q, ask, before)
}

// resume starts a trial whose page is open, unless its operator has one that runs: of two pages neither ends the other's.
func (ts *trials) resume(ctx context.Context, q question, ask try) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for other, t := range ts.of {
		if other.by == q.by && !t.over {
			return
		}
	}
	ts.start(ctx, q, ask, nil)
}

// start starts a trial once those before it have ended. The lock is held.
func (ts *trials) start(ctx context.Context, q question, ask try, before []*trial) {
	if ts.closed {
		return
	}
	ts.makeRoom()
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	t := &trial{cancel: cancel, ended: make(chan struct{}), asked: ts.now()}
	t.forget = time.AfterFunc(awaited, func() { ts.unasked(q, t) })
	ts.of[q] = t
	ts.running.Go(func() {
		defer close(t.ended)
		defer cancel()
		for _, earlier := range before {
			<-earlier.ended
		}
		result, err := ask(ctx, func(p adminapi.ImpactProgress) {
			ts.mu.Lock()
			defer ts.mu.Unlock()
			t.progress = p
		})
		ts.end(q, t, result, err)
	})
}

// end keeps what came of a trial, unless it was dropped meanwhile.
func (ts *trials) end(q question, t *trial, result *picture, err error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.of[q] == t {
		t.over, t.result, t.err = true, result, err
		t.forget.Reset(keptFor)
	}
}

// unasked forgets what nobody has asked for.
func (ts *trials) unasked(q question, t *trial) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.of[q] == t {
		ts.drop(q)
	}
}

// drop ends a trial and forgets it. The lock is held.
func (ts *trials) drop(q question) {
	t := ts.of[q]
	t.cancel()
	t.forget.Stop()
	delete(ts.of, q)
}

// makeRoom drops what was not asked for the longest, where there is too much. The lock is held.
func (ts *trials) makeRoom() {
	for len(ts.of) >= mostTrials {
		var oldest question
		for q, t := range ts.of {
			if first := ts.of[oldest]; first == nil || t.asked.Before(first.asked) {
				oldest = q
			}
		}
		ts.drop(oldest)
	}
}

// look tells how a trial stands, so that it goes on; nil where there is none.
func (ts *trials) look(q question) *standing {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.of[q]
	if t == nil {
		return nil
	}
	t.asked = ts.now()
	if t.over {
		t.forget.Reset(keptFor)
	} else {
		t.forget.Reset(awaited)
	}
	return &standing{over: t.over, progress: t.progress, result: t.result, err: t.err}
}

// standing is a trial as a page shows it.
type standing struct {
	over     bool
	progress adminapi.ImpactProgress
	result   *picture
	err      error
}

// run ends the trials when the context ends, and returns once none runs.
func (ts *trials) run(ctx context.Context) error {
	<-ctx.Done()
	ts.mu.Lock()
	ts.closed = true
	for q := range ts.of {
		ts.drop(q)
	}
	ts.mu.Unlock()
	ts.running.Wait()
	return nil
}
