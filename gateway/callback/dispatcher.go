package callback

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/queue"
	"github.com/seed-f006e74d/gerbang/gateway/tracing"
)

// Queue reads the callbacks that are due and records each attempt. An attempt that
// is not recorded is made again, under the same event id.
type Queue interface {
	DueCallbacks(ctx context.Context, due movement.DueCallbacks) ([]movement.Callback, error)
	// RecordAttempt is false where another replica has recorded one first.
	RecordAttempt(ctx context.Context, attempt movement.CallbackAttempt) (bool, error)
	// RecordAttempts records attempts of different callbacks, all of them or none.
	RecordAttempts(ctx context.Context, all []movement.CallbackAttempt) ([]bool, error)
	PostponeCallbacks(ctx context.Context, now time.Time, postponed []movement.Postponed) error
	// GiveUpCallbacks ends deliveries that are still due, without a try.
	GiveUpCallbacks(ctx context.Context, now time.Time, over []movement.CallbackKey) error
}

// Dependencies is what a dispatcher works with.
type Dependencies struct {
	Queue  Queue
	Leases *queue.Leases
	// Send makes one attempt, as [Sender.Send] does.
	Send func(ctx context.Context, m Message, s Secrets) Attempt
	// Secrets finds what a merchant's callbacks are signed with.
	Secrets func(ctx context.Context, owner movement.Owner) (Secrets, error)
	// Dead is called for each delivery that ends without success, before that is recorded;
	// after an error nothing is recorded, and it is called again. Nil tells nobody.
	Dead func(ctx context.Context, c movement.Callback, reason string) error
	// Observe sees each attempt, from many goroutines at once.
	Observe func(Attempt)
	Tracer  *tracing.Tracer // nil for no traces
	Log     *slog.Logger
}

// Dispatcher delivers the callbacks of the buckets that its replica holds. Each
// endpoint has a lane of its own, so that one that is slow or dead delays nobody
// else.
type Dispatcher struct {
	*queue.Runner[movement.Callback]

	Dependencies
	lanes      *lanes
	exclusions exclusions
	recorder   recorder
	sends      sync.WaitGroup
}

const (
	dispatchEvery = 250 * time.Millisecond
	dispatchPage  = 512 // as much as can be under way
	deadAtOnce    = 8
	// postponeFrom is from where on waiting for a lane is written down; shorter
	// waits leave the callback due.
	postponeFrom = 2 * time.Second
	// unsignedWait is when a callback that can't be signed is tried again.
	unsignedWait = 30 * time.Second
	// unwrittenWait is how long a callback is left alone when what became of it
	// can't be written: a database that is only read must not make us send without
	// end.
	unwrittenWait = 5 * time.Second
)

// NewDispatcher makes a dispatcher.
func NewDispatcher(dependencies Dependencies) *Dispatcher {
	d := &Dispatcher{Dependencies: dependencies, lanes: newLanes(laneLimits{}), exclusions: newExclusions(), recorder: recorder{queue: dependencies.Queue}}
	// A bucket that another replica shall have waits for what is under way of it.
	d.Leases.KeepWhile(d.exclusions.uses)
	d.Runner = queue.NewRunner(queue.Work[movement.Callback]{
		Name: "dispatcher", Every: dispatchEvery, Page: dispatchPage, Room: d.lanes.room, Eager: true,
		Due: d.due, Handle: d.dispatch, Drain: d.sends.Wait,
	}, d.Leases, d.Log)
	return d
}

// due leaves out what is under way when the read begins. Otherwise it would fill
// the page, or be read as due and sent again just when it has ended.
func (d *Dispatcher) due(ctx context.Context, b queue.Batch) ([]movement.Callback, error) {
	return d.Queue.DueCallbacks(ctx, movement.DueCallbacks{
		Buckets: b.Buckets, Held: d.exclusions.held(b.Now), UnderWay: d.exclusions.underWay(), Since: b.Since, Now: b.Now, Most: b.Most,
	})
}

// dispatch starts what can be sent now, gives up what is too old to wait for its
// receiver, and postpones what has to wait long.
func (d *Dispatcher) dispatch(ctx context.Context, page []movement.Callback) error {
	now := d.Now()
	var postponed []movement.Postponed
	var over []movement.Callback
	for _, c := range page {
		switch retryAt, ok := d.start(ctx, c, now); {
		case ok, retryAt.Sub(now) < postponeFrom:
		case scheduleOf(c).Over(c.Begun(), now):
			over = append(over, c)
		default:
			postponed = append(postponed, movement.Postponed{CallbackKey: c.CallbackKey, Until: retryAt})
		}
	}
	if len(over) > 0 {
		d.Warn(ctx, "give callbacks up", d.giveUp(ctx, now, over))
	}
	if len(postponed) > 0 {
		d.Warn(ctx, "postpone callbacks", d.postpone(ctx, now, postponed...))
	}
	return nil // what can't be written rests by itself
}

// giveUp ends callbacks without a try, but for those of which nobody could be mailed: they
// are due again.
func (d *Dispatcher) giveUp(ctx context.Context, now time.Time, over []movement.Callback) error {
	faults := make([]error, len(over))
	var group errgroup.Group
	group.SetLimit(deadAtOnce)
	for i, c := range over {
		group.Go(func() error {
			faults[i] = d.dead(ctx, c, "")
			return nil
		})
	}
	_ = group.Wait() // each has a fault of its own
	var keys []movement.CallbackKey
	for i, c := range over {
		if faults[i] == nil {
			keys = append(keys, c.CallbackKey)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	return errors.Join(errors.Join(faults...), d.Queue.GiveUpCallbacks(ctx, now, keys))
}

// dead calls Dead, which has as long as a write.
func (d *Dispatcher) dead(ctx context.Context, c movement.Callback, reason string) error {
	if d.Dead == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	return d.Dead(ctx, c, reason)
}

func (d *Dispatcher) postpone(ctx context.Context, now time.Time, postponed ...movement.Postponed) error {
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	return d.Queue.PostponeCallbacks(ctx, now, postponed)
}

// start begins to send a callback, or finds that its endpoint can't take it now,
// and until when.
func (d *Dispatcher) start(ctx context.Context, c movement.Callback, now time.Time) (time.Time, bool) {
	lane := laneKey{merchant: c.MerchantKey(), receiver: receiverOf(c.URL)}
	release, ok, retryAt := d.lanes.admit(lane, now)
	if !ok {
		d.exclusions.hold(c, now, retryAt)
		return retryAt, false
	}
	d.exclusions.begin(c)
	d.sends.Go(func() {
		outcome, written := d.deliver(ctx, c)
		release(outcome, d.Now())
		if !written {
			d.rest(ctx, c, outcome)
		}
		if d.exclusions.end(c) {
			d.Wake() // its lane has room again
		}
	})
	return time.Time{}, true
}

// rest keeps a callback from being sent again at once, and again, when nothing
// could be written of an attempt.
func (d *Dispatcher) rest(ctx context.Context, c movement.Callback, outcome Outcome) {
	if ctx.Err() != nil {
		return
	}
	if outcome == Aborted {
		err := d.restUnsigned(ctx, c)
		if err == nil {
			return
		}
		d.Warn(ctx, "postpone a callback that can't be signed", err)
	}
	select {
	case <-ctx.Done():
	case <-time.After(unwrittenWait):
	}
}

// restUnsigned tries a callback that can't be signed again later, and gives it up
// once it is too old, as any other.
func (d *Dispatcher) restUnsigned(ctx context.Context, c movement.Callback) error {
	now := d.Now()
	if scheduleOf(c).Over(c.Begun(), now) {
		return d.giveUp(ctx, now, []movement.Callback{c})
	}
	return d.postpone(ctx, now, movement.Postponed{CallbackKey: c.CallbackKey, Until: now.Add(unsignedWait)})
}

// deliver makes one attempt and records it, and tells whether it could. What is
// not recorded is tried again.
func (d *Dispatcher) deliver(ctx context.Context, c movement.Callback) (Outcome, bool) {
	secrets, err := d.Secrets(ctx, c.Owner)
	if err != nil {
		d.Warn(ctx, "open callback secrets", err)
		return Aborted, false
	}
	traced, span := d.Tracer.Work(ctx, "callback", tracing.Outside, c.Trace)
	try := d.Send(traced, Message{ID: c.EventID.String(), Sequence: c.Sequence, URL: c.URL, Body: c.Body}, secrets)
	if span.On() {
		span.Text("gerbang.movement_id", c.MovementID.String())
		span.Text("gerbang.event_id", c.EventID.String())
		span.Text("gerbang.outcome", string(try.Outcome))
		span.Number("http.response.status_code", try.Status)
	}
	span.End()
	d.Observe(try)
	if try.Outcome == Aborted {
		if ctx.Err() == nil {
			d.Log.WarnContext(ctx, "dispatcher: a callback can't be signed", "event", c.EventID.String(), "error", try.Error)
		}
		return try.Outcome, false
	}
	return try.Outcome, d.record(ctx, c, try)
}

// record is not ended with the gateway: the receiver has the callback, and what
// became of it is kept.
func (d *Dispatcher) record(ctx context.Context, c movement.Callback, try Attempt) bool {
	attempt := movement.CallbackAttempt{
		Callback: c, At: try.At, Took: try.Duration, Outcome: string(try.Outcome),
		Status: try.Status, Fault: try.Error, Answer: try.Answer,
	}
	attempt.Then, attempt.DueAt = follow(c, try)
	if attempt.Then == movement.CallbackDead || attempt.Then == movement.CallbackGone {
		if err := d.dead(context.WithoutCancel(ctx), c, reasonOf(try)); err != nil {
			d.Warn(ctx, "tell of a callback that ends", err)
			return false
		}
	}
	ours, err := d.recorder.record(context.WithoutCancel(ctx), attempt)
	d.Warn(ctx, "record an attempt", err)
	if err == nil && !ours {
		d.Log.InfoContext(ctx, "another replica has sent the same event", "event", c.EventID.String())
	}
	return err == nil
}

// reasonOf is why an attempt failed: what was answered, or a phrase of ours.
func reasonOf(try Attempt) string {
	if try.Status != 0 {
		return fmt.Sprintf("HTTP %d", try.Status)
	}
	return try.Error
}

// What is about a movement is about money, and tried for thirty days; a test for one.
var (
	ofMoney = queue.Schedule{Lasts: 30 * 24 * time.Hour}
	ofTests = queue.Schedule{Lasts: 24 * time.Hour}
)

func scheduleOf(c movement.Callback) queue.Schedule {
	if c.MovementID == (movement.ID{}) {
		return ofTests
	}
	return ofMoney
}

// follow is what an attempt leads to: an end, or another attempt.
func follow(c movement.Callback, try Attempt) (movement.CallbackState, time.Time) {
	if try.Outcome == Delivered {
		return movement.CallbackDelivered, time.Time{}
	}
	if try.Outcome == Gone {
		return movement.CallbackGone, time.Time{}
	}
	next, again := scheduleOf(c).Next(c.Attempts+1, c.Begun(), try.At.Add(try.Duration), rand.Int64N)
	if !again {
		return movement.CallbackDead, time.Time{}
	}
	return movement.CallbackWaiting, next
}
