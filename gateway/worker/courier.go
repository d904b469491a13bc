package worker

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	delivery "github.com/seed-f006e74d/gerbang/gateway/callback"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// Outbox reads the callbacks that are due and keeps what became of each try. A
// try that is not recorded is made again, under the same event id.
type Outbox interface {
	DueCallbacks(ctx context.Context, due movement.DueCallbacks) ([]movement.Callback, error)
	RecordAttempt(ctx context.Context, attempt movement.CallbackAttempt) (bool, error)
	PostponeCallbacks(ctx context.Context, now time.Time, put []movement.Postponed) error
}

// Sender sends one callback to one receiver.
type Sender interface {
	Send(ctx context.Context, m delivery.Message, s delivery.Secrets) delivery.Attempt
}

// Secrets finds what a merchant's callbacks are signed with.
type Secrets interface {
	CallbackSecrets(ctx context.Context, owner movement.Owner) (delivery.Secrets, error)
}

// Courier delivers callbacks of the buckets that its replica holds. Receivers
// have lanes of their own, so that one who is slow or dead delays nobody else.
type Courier struct {
	outbox  Outbox
	sender  Sender
	secrets Secrets
	share   *Share
	lanes   *delivery.Lanes
	log     *slog.Logger
	wake    chan struct{}
	observe func(delivery.Attempt)

	board board
	sends sync.WaitGroup
}

// NewCourier makes a courier.
func NewCourier(outbox Outbox, sender Sender, secrets Secrets, share *Share, log *slog.Logger) *Courier {
	c := &Courier{
		outbox: outbox, sender: sender, secrets: secrets, share: share, log: log,
		lanes: delivery.NewLanes(delivery.LaneLimits{}), wake: make(chan struct{}, 1),
		board: newBoard(), observe: func(delivery.Attempt) {},
	}
	// A bucket that another replica shall have waits for what is under way of it.
	share.inUse = c.board.uses
	return c
}

// OnAttempt has every try told to an observer, from many goroutines at once. It
// must be called before Run.
func (c *Courier) OnAttempt(observe func(delivery.Attempt)) { c.observe = observe }

const (
	courierEvery = 250 * time.Millisecond
	courierPage  = 256
	// breath is the least time between two looks, however often it is woken.
	breath = 20 * time.Millisecond
	// putOffFrom is from where on waiting for a lane is written down; shorter
	// waits leave the callback due.
	putOffFrom = 2 * time.Second
	// unsignedWait is when a callback that can't be signed is tried again.
	unsignedWait = 30 * time.Second
	// unwrittenWait is how long a callback is left alone when what became of it
	// can't be written, and a postman's mails likewise: a database that is only
	// read must not make us send without end.
	unwrittenWait = 5 * time.Second
	// keepFor bounds how long a try that was made is held to be written down.
	keepFor = 5 * time.Second
)

// Wake has the courier look at once: somebody has just committed a callback.
func (c *Courier) Wake() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Run delivers until the context ends. What is under way then is aborted and
// sent again by whoever holds the bucket next.
func (c *Courier) Run(ctx context.Context) error {
	defer c.share.Release(context.WithoutCancel(ctx))
	defer c.sends.Wait()
	ticker := time.NewTicker(courierEvery)
	defer ticker.Stop()
	behind := false
	for scan := 0; ctx.Err() == nil; scan++ {
		full := scan%fullScan == 0 || behind && scan%2 == 0
		more := c.scan(ctx, full)
		if full {
			behind = more
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(breath):
		}
		if more {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-c.wake:
		case <-ticker.C:
		}
	}
	return nil
}

// scan starts what is due now, and tells whether it was a whole page, so that
// there may be more.
func (c *Courier) scan(ctx context.Context, full bool) bool {
	buckets, err := c.share.Hold(ctx)
	if err != nil || len(buckets) == 0 {
		c.complain(ctx, "lease buckets", err)
		return false
	}
	working, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	now := time.Now()
	since := now.Add(-lookBack)
	if full {
		since = time.Time{}
	}
	// What is under way when the read begins is left out of it. Otherwise it would
	// fill the page, or be read as due and sent again just when it has ended.
	due, err := c.outbox.DueCallbacks(working, movement.DueCallbacks{
		Buckets: buckets, Held: c.board.held(now), UnderWay: c.board.underWay(), Since: since, Now: now, Most: courierPage,
	})
	if err != nil {
		c.complain(ctx, "read due callbacks", err)
		return false
	}
	var put []movement.Postponed
	for _, callback := range due {
		if retryAt, ok := c.start(ctx, callback, now); !ok && retryAt.Sub(now) >= putOffFrom {
			put = append(put, movement.Postponed{CallbackKey: callback.CallbackKey, Until: retryAt})
		}
	}
	if len(put) > 0 {
		c.complain(ctx, "put callbacks off", c.outbox.PostponeCallbacks(working, now, put))
	}
	return len(due) == courierPage
}

// start sends a callback on its way, or finds that its receiver can't take it
// now, and until when.
func (c *Courier) start(ctx context.Context, callback movement.Callback, now time.Time) (time.Time, bool) {
	lane := delivery.Lane{Merchant: callback.MerchantKey(), Receiver: delivery.ReceiverOf(callback.URL)}
	release, ok, retryAt := c.lanes.Admit(lane, now)
	if !ok {
		c.board.hold(callback, now, retryAt)
		return retryAt, false
	}
	c.board.begin(callback)
	c.sends.Go(func() {
		outcome, written := c.deliver(ctx, callback)
		release(outcome, time.Now())
		if !written {
			c.rest(ctx, callback, outcome)
		}
		if c.board.end(callback) {
			c.Wake() // its lane has room again
		}
	})
	return time.Time{}, true
}

// rest keeps a callback from being sent at once again and again, when nothing
// could be written of a try.
func (c *Courier) rest(ctx context.Context, callback movement.Callback, outcome delivery.Outcome) {
	if ctx.Err() != nil {
		return
	}
	if outcome == delivery.Aborted {
		writing, cancel := context.WithTimeout(ctx, keepFor)
		defer cancel()
		now := time.Now()
		err := c.outbox.PostponeCallbacks(writing, now, []movement.Postponed{{CallbackKey: callback.CallbackKey, Until: now.Add(unsignedWait)}})
		if err == nil {
			return
		}
		c.complain(ctx, "put a callback off", err)
	}
	select {
	case <-ctx.Done():
	case <-time.After(unwrittenWait):
	}
}

// deliver makes one try and writes it down, and tells whether it could. What is
// not written is tried again.
func (c *Courier) deliver(ctx context.Context, callback movement.Callback) (delivery.Outcome, bool) {
	secrets, err := c.secrets.CallbackSecrets(ctx, callback.Owner)
	if err != nil {
		c.complain(ctx, "open callback secrets", err)
		return delivery.Aborted, false
	}
	try := c.sender.Send(ctx, delivery.Message{
		ID: callback.EventID.String(), Sequence: callback.Sequence, URL: callback.URL, Body: callback.Body,
	}, secrets)
	c.observe(try)
	if try.Outcome == delivery.Aborted {
		if ctx.Err() == nil {
			c.log.WarnContext(ctx, "courier: a callback can't be signed", "event", callback.EventID.String(), "error", try.Error)
		}
		return try.Outcome, false
	}
	attempt := movement.CallbackAttempt{
		Callback: callback, At: try.At, Took: try.Duration, Outcome: string(try.Outcome),
		Status: try.Status, Fault: try.Error, Answer: try.Answer,
	}
	attempt.Then, attempt.DueAt = follow(callback, try)
	// The receiver has it: what became of it is kept also when we stop now.
	keeping, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepFor)
	defer cancel()
	ours, err := c.outbox.RecordAttempt(keeping, attempt)
	c.complain(ctx, "write a delivery's try", err)
	if err == nil && !ours {
		c.log.InfoContext(ctx, "another replica has sent the same event", "event", callback.EventID.String())
	}
	return try.Outcome, err == nil
}

// follow is what a try leads to: an end, or another try. What is about a
// movement is about money, and tried for thirty days; the rest is a test.
func follow(callback movement.Callback, try delivery.Attempt) (movement.CallbackState, time.Time) {
	switch try.Outcome {
	case delivery.Delivered:
		return movement.CallbackDelivered, time.Time{}
	case delivery.Gone:
		return movement.CallbackGone, time.Time{}
	case delivery.Failed, delivery.Refused, delivery.Aborted:
	}
	schedule := delivery.Money
	if callback.MovementID == (movement.ID{}) {
		schedule = delivery.Others
	}
	next, again := schedule.Next(callback.Attempts+1, try.At.Add(try.Duration), rand.Int64N)
	if !again {
		return movement.CallbackDead, time.Time{}
	}
	return movement.CallbackWaiting, next
}

func (c *Courier) complain(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		c.log.WarnContext(ctx, "courier: "+what, "error", err)
	}
}
