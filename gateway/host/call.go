package host

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

const defaultTimeout = 15 * time.Second

// Call runs an operation at a provider. It returns no error: a request that
// certainly did not leave this process is [sdk.NotSent], and a failure after the
// request was handed to the transport is [sdk.Unknown]. The context's end cuts the
// call; money work passes a context that does not end with its client.
func (h *Host) Call(ctx context.Context, provider string, c sdk.Call, timeout time.Duration) sdk.Result {
	started := time.Now()
	result := h.call(ctx, provider, c, orDefault(timeout))
	h.record(Observation{
		Provider: provider, Mode: c.Connection.Mode, Operation: c.Operation,
		Method: "call", Outcome: result.Outcome.String(), Took: time.Since(started),
	})
	return result
}

func (h *Host) call(ctx context.Context, name string, c sdk.Call, timeout time.Duration) sdk.Result {
	return h.use(ctx, name, c.Connection, c.SendBy, func(running *process) (sdk.Result, health) {
		return send(ctx, running, c, timeout)
	})
}

// use acquires the provider's semaphore, a process and the breaker's permission
// for one call. A call that is turned away here was not sent.
func (h *Host) use(
	ctx context.Context, name string, with sdk.Connection, sendBy time.Time, call func(*process) (sdk.Result, health),
) sdk.Result {
	p, ok := h.providers[name]
	if !ok {
		return sdk.DidNotSend(sdk.BlameNone, "there is no such provider: "+name)
	}
	if err := p.calls.acquire(); err != nil {
		return sdk.DidNotSend(sdk.BlameNone, err.Error())
	}
	defer p.calls.release()
	running, err := p.ready(ctx, sendBy)
	if err != nil {
		return sdk.DidNotSend(sdk.BlameNone, err.Error())
	}
	// Waiting for the process or for a processor may have used up the time.
	if passed(sendBy) {
		return sdk.DidNotSend(sdk.BlameNone, "send_by had passed before the call was sent")
	}
	p.secrets.learn(with)
	return p.breaker(with.Mode).run(func() (sdk.Result, health) { return call(running) })
}

func passed(sendBy time.Time) bool { return !sendBy.IsZero() && time.Now().After(sendBy) }

func send(caller context.Context, running *process, c sdk.Call, timeout time.Duration) (sdk.Result, health) {
	ctx, cancel := context.WithTimeout(caller, timeout)
	defer cancel()
	started := time.Now()
	result, err := running.wire.Call(ctx, c)
	if err != nil {
		running.suspect(err)
		result = sdk.DontKnow(sdk.BlameNone, "plugin transport: "+err.Error())
	}
	return result, healthOf(caller, result, err, time.Since(started), timeout)
}

// Quote asks a provider what an operation would cost. It returns no error: what
// went wrong is in the outcome. Nothing is reserved yet, so an open breaker turns
// it away.
func (h *Host) Quote(ctx context.Context, provider string, q sdk.Quote, timeout time.Duration) sdk.Quoted {
	started := time.Now()
	quoted := h.quote(ctx, provider, q, orDefault(timeout))
	h.record(Observation{
		Provider: provider, Mode: q.Connection.Mode, Operation: q.Operation,
		Method: "quote", Outcome: quoted.Outcome.String(), Took: time.Since(started),
	})
	return quoted
}

func (h *Host) quote(caller context.Context, name string, q sdk.Quote, timeout time.Duration) sdk.Quoted {
	var quoted *sdk.Quoted
	turnedAway := h.use(caller, name, q.Connection, time.Time{}, func(running *process) (sdk.Result, health) {
		ctx, cancel := context.WithTimeout(caller, timeout)
		defer cancel()
		started := time.Now()
		said, err := running.wire.Quote(ctx, q)
		if err != nil {
			running.suspect(err)
			said = sdk.NoQuote(sdk.DontKnow(sdk.BlameNone, "plugin transport: "+err.Error()))
		}
		quoted = &said
		result := sdk.Result{Outcome: said.Outcome, Blame: said.Blame}
		return result, healthOf(caller, result, err, time.Since(started), timeout)
	})
	if quoted == nil {
		return sdk.NoQuote(turnedAway)
	}
	return *quoted
}

// Lookup asks a provider for the status of a movement. It returns no error: where
// the provider can't be asked the status is unknown. No breaker stops it.
func (h *Host) Lookup(ctx context.Context, provider string, l sdk.Lookup, timeout time.Duration) sdk.StatusUpdate {
	started := time.Now()
	update := h.lookup(ctx, provider, l, orDefault(timeout))
	h.record(Observation{
		Provider: provider, Mode: l.Connection.Mode, Operation: l.Operation,
		Method: "lookup", Outcome: update.Status.String(), Took: time.Since(started),
	})
	return update
}

func (h *Host) lookup(caller context.Context, name string, l sdk.Lookup, timeout time.Duration) sdk.StatusUpdate {
	p, running, release, err := h.inquire(caller, name, l.Connection)
	if err != nil {
		return sdk.NoStatus(sdk.BlameNone, err.Error())
	}
	defer release()
	if passed(l.SendBy) {
		return sdk.NoStatus(sdk.BlameNone, "send_by had passed before the lookup was sent")
	}
	ctx, cancel := context.WithTimeout(caller, timeout)
	defer cancel()
	started := time.Now()
	update, err := running.wire.Lookup(ctx, l)
	if err != nil {
		running.suspect(err)
		update = sdk.NoStatus(sdk.BlameNone, "plugin transport: "+err.Error())
	}
	p.breaker(l.Connection.Mode).record(healthOfLookup(caller, update, err, time.Since(started), timeout))
	return update
}

// Notify hands an inbound notification to a provider. After an error the
// notification was not read: the upstream should send it again.
func (h *Host) Notify(ctx context.Context, provider string, n sdk.Notification, timeout time.Duration) (sdk.Acknowledgement, error) {
	started := time.Now()
	ack, err := h.notify(ctx, provider, n, orDefault(timeout))
	outcome := "answered"
	if err != nil {
		outcome = "failed"
	}
	h.record(Observation{
		Provider: provider, Mode: n.Connection.Mode, Method: "notify", Outcome: outcome, Took: time.Since(started),
	})
	return ack, err
}

func (h *Host) notify(ctx context.Context, name string, n sdk.Notification, timeout time.Duration) (sdk.Acknowledgement, error) {
	_, running, release, err := h.inquire(ctx, name, n.Connection)
	if err != nil {
		return sdk.Acknowledgement{}, err
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ack, err := running.wire.Notify(ctx, n)
	if err != nil {
		running.suspect(err)
		return sdk.Acknowledgement{}, fmt.Errorf("provider %s: notification: %w", name, err)
	}
	return ack, nil
}

// inquire acquires the semaphore of everything but calls, and a process to ask.
func (h *Host) inquire(ctx context.Context, name string, with sdk.Connection) (p *provider, running *process, release func(), err error) {
	p, ok := h.providers[name]
	if !ok {
		return nil, nil, nil, &Unavailable{Provider: name, Reason: "there is no such provider"}
	}
	if err := p.inquiries.acquire(); err != nil {
		return nil, nil, nil, &Unavailable{Provider: name, Reason: err.Error()}
	}
	if running, err = p.ready(ctx, time.Time{}); err != nil {
		p.inquiries.release()
		return nil, nil, nil, &Unavailable{Provider: name, Reason: err.Error()}
	}
	p.secrets.learn(with)
	return p, running, p.inquiries.release, nil
}

// Available reports, before a movement is reserved, whether a provider takes calls
// in a mode. The error is an [*Unavailable]. A nil error is no promise.
func (h *Host) Available(provider, mode string) error {
	p, ok := h.providers[provider]
	if !ok {
		return &Unavailable{Provider: provider, Reason: "there is no such provider"}
	}
	if wait := p.breaker(mode).retryAfter(); wait > 0 {
		return &Unavailable{Provider: provider, Reason: "circuit breaker is open", RetryAfter: wait}
	}
	return nil
}

func (h *Host) record(o Observation) {
	if h.observe != nil {
		h.observe(o)
	}
}

func orDefault(timeout time.Duration) time.Duration {
	if timeout <= 0 {
		return defaultTimeout
	}
	return timeout
}
