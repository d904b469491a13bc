package worker

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/delivery"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

// Outbox reads the callbacks that are due and keeps what became of each try. A
// try that is not recorded is made again, under the same event id.
type Outbox interface {
	DueCallbacks(ctx context.Context, due store.Due) ([]store.Callback, error)
	RecordAttempt(ctx context.Context, attempt store.Attempt) (bool, error)
	PostponeCallback(ctx context.Context, key store.CallbackKey, until time.Time) error
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

	mu     sync.Mutex
	flying map[store.CallbackKey]bool
	held   map[string]time.Time // merchants whose lanes are full, and when to see again
	sends  sync.WaitGroup
}

// NewCourier makes a courier.
func NewCourier(outbox Outbox, sender Sender, secrets Secrets, share *Share, log *slog.Logger) *Courier {
	return &Courier{
		outbox: outbox, sender: sender, secrets: secrets, share: share, log: log,
		lanes: delivery.NewLanes(delivery.LaneLimits{}), wake: make(chan struct{}, 1),
		flying: map[store.CallbackKey]bool{}, held: map[string]time.Time{},
	}
}

const (
	courierEvery = 250 * time.Millisecond
	courierPage  = 256
	// breath is the least time between two looks, however often it is woken.
	breath = 20 * time.Millisecond
	// heldFor is from where on waiting for a lane is written down; shorter waits
	// leave the callback due.
	heldFor = 2 * time.Second
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
	for scan := 0; ; scan++ {
		for c.scan(ctx, scan%fullScan == 0) && ctx.Err() == nil {
			scan++ // whole pages, one after the other
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(breath):
		}
		select {
		case <-ctx.Done():
			return nil
		case <-c.wake:
		case <-ticker.C:
		}
	}
}

// scan starts what is due now, and tells whether it was a page of which some
// was new to us, so that there may be more.
func (c *Courier) scan(ctx context.Context, full bool) bool {
	buckets, err := c.share.Hold(ctx)
	if err != nil || len(buckets) == 0 {
		c.complain(ctx, "lease buckets", err)
		return false
	}
	reading, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	now := time.Now()
	since := now.Add(-lookBack)
	if full {
		since = time.Time{}
	}
	due, err := c.outbox.DueCallbacks(reading, store.Due{Buckets: buckets, Busy: c.full(now), Since: since, Now: now, Most: courierPage})
	if err != nil {
		c.complain(ctx, "read due callbacks", err)
		return false
	}
	fresh := false
	for _, callback := range due {
		fresh = c.start(ctx, callback, now) || fresh
	}
	return fresh && len(due) == courierPage
}

// start sends a callback on its way, or finds that its receiver can't take it
// now. It is false for one that is under way already.
func (c *Courier) start(ctx context.Context, callback store.Callback, now time.Time) bool {
	if !c.board(callback) {
		return false
	}
	merchant := callback.Owner.MerchantID
	lane := delivery.Lane{Merchant: merchant + "/" + callback.Owner.Mode, Receiver: delivery.ReceiverOf(callback.URL)}
	release, ok, retryAt := c.lanes.Admit(lane, now)
	if ok {
		c.sends.Go(func() {
			outcome := c.deliver(ctx, callback)
			release(outcome, time.Now())
			if c.leave(callback) {
				c.Wake() // its lane has room again
			}
		})
		return true
	}
	c.alight(callback)
	if retryAt.Sub(now) >= heldFor {
		c.complain(ctx, "postpone a callback", c.outbox.PostponeCallback(ctx, callback.CallbackKey, retryAt))
		return true
	}
	return c.hold(merchant, retryAt)
}

// deliver makes one try and writes it down. What is not written is tried again.
func (c *Courier) deliver(ctx context.Context, callback store.Callback) delivery.Outcome {
	secrets, err := c.secrets.CallbackSecrets(ctx, callback.Owner)
	if err != nil {
		c.complain(ctx, "open callback secrets", err)
		return delivery.Aborted
	}
	try := c.sender.Send(ctx, delivery.Message{
		ID: callback.EventID.String(), Sequence: callback.Sequence, URL: callback.URL, Body: callback.Body,
	}, secrets)
	if try.Outcome == delivery.Aborted {
		return try.Outcome
	}
	attempt := store.Attempt{
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
	return try.Outcome
}

// keepFor bounds how long a try that was made is held to be written down.
const keepFor = 5 * time.Second

// follow is what a try leads to: an end, or another try. Each event so far is
// about money, so it is tried for thirty days.
func follow(callback store.Callback, try delivery.Attempt) (store.CallbackState, time.Time) {
	switch try.Outcome {
	case delivery.Delivered:
		return store.CallbackDelivered, time.Time{}
	case delivery.Gone:
		return store.CallbackGone, time.Time{}
	case delivery.Failed, delivery.Refused, delivery.Aborted:
	}
	next, again := delivery.Money.Next(callback.Attempts+1, try.At.Add(try.Duration), rand.Int64N)
	if !again {
		return store.CallbackDead, time.Time{}
	}
	return store.CallbackWaiting, next
}

// board notes that a callback is under way here, if it was not.
func (c *Courier) board(callback store.Callback) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.flying[callback.CallbackKey] {
		return false
	}
	c.flying[callback.CallbackKey] = true
	return true
}

// alight undoes board: nothing was sent.
func (c *Courier) alight(callback store.Callback) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.flying, callback.CallbackKey)
}

// leave ends what board began, and tells whether its merchant was held.
func (c *Courier) leave(callback store.Callback) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.flying, callback.CallbackKey)
	_, held := c.held[callback.Owner.MerchantID]
	delete(c.held, callback.Owner.MerchantID)
	return held
}

// hold leaves a merchant out of the next pages, until one of its deliveries
// ends or the time comes, so that a full lane never fills a page. It is false
// when it was held already.
func (c *Courier) hold(merchant string, until time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, held := c.held[merchant]
	c.held[merchant] = until
	return !held
}

// full are the merchants that are held now.
func (c *Courier) full(now time.Time) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var merchants []string
	for merchant, until := range c.held {
		if now.Before(until) {
			merchants = append(merchants, merchant)
		} else {
			delete(c.held, merchant)
		}
	}
	return merchants
}

func (c *Courier) complain(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		c.log.WarnContext(ctx, "courier: "+what, "error", err)
	}
}
