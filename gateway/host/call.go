package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/tracing"
	"github.com/seed-f006e74d/gerbang/sdk"
)

const defaultTimeout = 15 * time.Second

// Use is what a provider is used for: the request of a merchant, who may use an
// account that is another's, and whether it is about money or a mere read.
type Use struct {
	Provider, MerchantID string
	Money                bool
	// Declared names what the request was checked by. A process that declares something
	// else of the operation, because it has replaced that one since, is not called: what
	// it answers could not be read. "" is whatever it declares.
	Declared string
}

// UseOf is what a movement uses its provider for.
func UseOf(m movement.Movement) Use {
	return Use{Provider: m.Provider, MerchantID: m.Owner.MerchantID, Money: true}
}

func (u Use) place(mode string) place {
	return place{merchant: u.MerchantID, live: mode == live, money: u.Money}
}

const live = "live"

// shares tells whether an account is another's than the merchant's own.
func (u Use) shares(with sdk.Connection) bool { return u.MerchantID != with.MerchantID }

// Call runs an operation at a provider. It returns no error: a request that
// certainly did not leave this process is [sdk.NotSent], and a failure after the
// request was handed to the transport is [sdk.Unknown]. The context's end cuts the
// call; money work passes a context that does not end with its client.
func (h *Host) Call(ctx context.Context, of Use, c sdk.Call, timeout time.Duration) sdk.Result {
	ctx, span, started := h.follow(ctx, "call", of.Provider, c.Operation)
	result := h.call(ctx, of, c, orDefault(timeout))
	end(ctx, span, started, result.Outcome.String())
	h.record(Observation{
		Provider: of.Provider, Mode: c.Connection.Mode, Operation: c.Operation,
		Method: "call", Outcome: result.Outcome.String(), Took: time.Since(started),
	})
	return result
}

func (h *Host) call(ctx context.Context, of Use, c sdk.Call, timeout time.Duration) sdk.Result {
	return h.use(ctx, of, c.Operation, c.Connection, c.SendBy, func(running *process) (sdk.Result, health) {
		c.SendBy = h.onThisMachine(c.SendBy)
		return send(ctx, running, c, timeout)
	})
}

// use acquires a place at the provider, a process and the breakers' permission
// for one call. A call that is turned away here was not sent.
func (h *Host) use(
	ctx context.Context, of Use, operation string, with sdk.Connection, sendBy time.Time, call func(*process) (sdk.Result, health),
) sdk.Result {
	p, ok := h.plugin(of.Provider)
	if !ok {
		return sdk.DidNotSend(sdk.BlameNone, "there is no such provider: "+of.Provider)
	}
	taken := of.place(with.Mode)
	if err := p.calls.acquire(taken); err != nil {
		return sdk.DidNotSend(sdk.BlameNone, err.Error())
	}
	defer p.calls.release(taken)
	running, err := p.ready(ctx, h.onThisMachine(sendBy))
	if err != nil {
		return sdk.DidNotSend(sdk.BlameNone, err.Error())
	}
	defer running.leave()
	if of.Declared != "" && running.manifest.Declared(operation) != of.Declared {
		return sdk.DidNotSend(sdk.BlameNone, "the plugin was replaced by one that declares this operation otherwise, after the request was checked")
	}
	// Waiting for the process or for a processor may have used up the time.
	if h.passed(sendBy) {
		return sdk.DidNotSend(sdk.BlameNone, "send_by had passed before the call was sent")
	}
	p.secrets.learn(with)
	return p.in(with.Mode).run(with, of.shares(with), func() (sdk.Result, health) {
		started := time.Now()
		result, healthy := call(running)
		p.noteCall(result, time.Since(started))
		return result, healthy
	})
}

var errDown = errors.New("its process is down")

// fails reports whether the last try to start a process failed: nobody knows when
// another will run, so nothing waits for it.
func (p *provider) fails() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failing
}

// ready returns the process to call, whose use has begun. While the process is being replaced it waits,
// as long as a restart usually takes and never past until.
func (p *provider) ready(ctx context.Context, until time.Time) (*process, error) {
	running, changed := p.process()
	if running != nil {
		return running, nil // nearly always
	}
	wait := p.tune.restartWait
	if !until.IsZero() {
		wait = min(wait, time.Until(until))
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for running == nil {
		if p.fails() {
			return nil, errDown
		}
		select {
		case <-ctx.Done():
			return nil, errDown
		case <-changed:
		}
		running, changed = p.process()
	}
	return running, nil
}

func (p *provider) process() (*process, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current != nil && !p.current.usable() {
		p.current = nil
	}
	if p.current != nil {
		p.current.enter()
	}
	return p.current, p.changed
}

func (h *Host) passed(sendBy time.Time) bool { return !sendBy.IsZero() && h.now().After(sendBy) }

// onThisMachine is a moment of the shared time by this machine's clock: the SDK counts
// from there what is left when it sends.
func (h *Host) onThisMachine(sendBy time.Time) time.Time {
	if sendBy.IsZero() {
		return sendBy
	}
	return time.Now().Add(sendBy.Sub(h.now()))
}

func send(caller context.Context, running *process, c sdk.Call, timeout time.Duration) (sdk.Result, health) {
	ctx, cancel := context.WithTimeout(caller, timeout)
	defer cancel()
	started := time.Now()
	result, err := running.wire.Call(ctx, c)
	if err != nil {
		err = running.suspect(err)
		result = sdk.DontKnow(sdk.BlameNone, "plugin transport: "+err.Error())
	}
	return result, healthOf(caller, result, err, time.Since(started), timeout)
}

// Quote asks a provider what an operation would cost. It returns no error: what
// went wrong is in the outcome. Nothing is reserved yet, so an open breaker turns
// it away.
func (h *Host) Quote(ctx context.Context, of Use, q sdk.Quote, timeout time.Duration) sdk.Quoted {
	ctx, span, started := h.follow(ctx, "quote", of.Provider, q.Operation)
	quoted := h.quote(ctx, of, q, orDefault(timeout))
	end(ctx, span, started, quoted.Outcome.String())
	h.record(Observation{
		Provider: of.Provider, Mode: q.Connection.Mode, Operation: q.Operation,
		Method: "quote", Outcome: quoted.Outcome.String(), Took: time.Since(started),
	})
	return quoted
}

func (h *Host) quote(caller context.Context, of Use, q sdk.Quote, timeout time.Duration) sdk.Quoted {
	var quoted *sdk.Quoted
	turnedAway := h.use(caller, of, q.Operation, q.Connection, time.Time{}, func(running *process) (sdk.Result, health) {
		ctx, cancel := context.WithTimeout(caller, timeout)
		defer cancel()
		started := time.Now()
		said, err := running.wire.Quote(ctx, q)
		if err != nil {
			err = running.suspect(err)
			said = sdk.NoQuote(sdk.DontKnow(sdk.BlameNone, "plugin transport: "+err.Error()))
		}
		quoted = &said
		result := sdk.Result{Outcome: said.Outcome, Blame: said.Blame, Detail: said.Detail}
		return result, healthOf(caller, result, err, time.Since(started), timeout)
	})
	if quoted == nil {
		return sdk.NoQuote(turnedAway)
	}
	return *quoted
}

// Lookup asks a provider for the status of a movement. It returns no error: where
// the provider can't be asked the status is unknown. No breaker stops it.
func (h *Host) Lookup(ctx context.Context, of Use, l sdk.Lookup, timeout time.Duration) sdk.StatusUpdate {
	ctx, span, started := h.follow(ctx, "lookup", of.Provider, l.Operation)
	update := h.lookup(ctx, of, l, orDefault(timeout))
	end(ctx, span, started, update.Status.String())
	h.record(Observation{
		Provider: of.Provider, Mode: l.Connection.Mode, Operation: l.Operation,
		Method: "lookup", Outcome: update.Status.String(), Took: time.Since(started),
	})
	return update
}

func (h *Host) lookup(caller context.Context, of Use, l sdk.Lookup, timeout time.Duration) sdk.StatusUpdate {
	p, running, release, err := h.inquire(caller, of, l.Connection)
	if err != nil {
		return sdk.NoStatus(sdk.BlameNone, err.Error())
	}
	defer release()
	if h.passed(l.SendBy) {
		return sdk.NoStatus(sdk.BlameNone, "send_by had passed before the lookup was sent")
	}
	l.SendBy = h.onThisMachine(l.SendBy)
	ctx, cancel := context.WithTimeout(caller, timeout)
	defer cancel()
	started := time.Now()
	update, err := running.wire.Lookup(ctx, l)
	if err != nil {
		err = running.suspect(err)
		update = sdk.NoStatus(sdk.BlameNone, "plugin transport: "+err.Error())
	}
	p.in(l.Connection.Mode).looked(l.Connection, of.shares(l.Connection), healthOfLookup(caller, update, err, time.Since(started), timeout), update.Detail)
	return update
}

// Notify hands an inbound notification to a provider. After an error the
// notification was not read: the upstream should send it again.
func (h *Host) Notify(ctx context.Context, provider string, n sdk.Notification, timeout time.Duration) (sdk.Acknowledgement, error) {
	ctx, span, started := h.follow(ctx, "notify", provider, "")
	ack, err := h.notify(ctx, provider, n, orDefault(timeout))
	outcome := "answered"
	if err != nil {
		outcome = "failed"
	}
	end(ctx, span, started, outcome)
	h.record(Observation{
		Provider: provider, Mode: n.Connection.Mode, Method: "notify", Outcome: outcome, Took: time.Since(started),
	})
	return ack, err
}

func (h *Host) notify(ctx context.Context, name string, n sdk.Notification, timeout time.Duration) (sdk.Acknowledgement, error) {
	_, running, release, err := h.inquire(ctx, Use{Provider: name, MerchantID: n.Connection.MerchantID, Money: true}, n.Connection)
	if err != nil {
		return sdk.Acknowledgement{}, err
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ack, err := running.wire.Notify(ctx, n)
	if err != nil {
		err = running.suspect(err)
		return sdk.Acknowledgement{}, fmt.Errorf("provider %s: notification: %w", name, err)
	}
	return ack, nil
}

// inquire acquires a place beside those of calls, and a process to ask.
func (h *Host) inquire(ctx context.Context, of Use, with sdk.Connection) (p *provider, running *process, release func(), err error) {
	p, ok := h.plugin(of.Provider)
	if !ok {
		return nil, nil, nil, &Unavailable{Provider: of.Provider, Reason: "there is no such provider"}
	}
	taken := of.place(with.Mode)
	if err := p.inquiries.acquire(taken); err != nil {
		return nil, nil, nil, &Unavailable{Provider: of.Provider, Reason: err.Error()}
	}
	if running, err = p.ready(ctx, time.Time{}); err != nil {
		p.inquiries.release(taken)
		return nil, nil, nil, &Unavailable{Provider: of.Provider, Reason: err.Error()}
	}
	p.secrets.learn(with)
	return p, running, func() { running.leave(); p.inquiries.release(taken) }, nil
}

// Available reports, before a movement is reserved, whether a provider takes calls
// on an account. The error is an [*Unavailable]. A nil error is no promise.
func (h *Host) Available(of Use, with sdk.Connection) error {
	p, ok := h.plugin(of.Provider)
	if !ok {
		return &Unavailable{Provider: of.Provider, Reason: "there is no such provider"}
	}
	if p.fails() {
		return &Unavailable{Provider: of.Provider, Reason: errDown.Error()}
	}
	if wait, whose := p.in(with.Mode).retryAfter(with, of.shares(with)); wait > 0 {
		return &Unavailable{Provider: of.Provider, Reason: "circuit breaker " + whose + " is open", RetryAfter: wait}
	}
	return nil
}

// follow begins the part of a trace that is a plugin's. What the plugin tells of its upstream
// lies within it, whatever times it gives.
func (h *Host) follow(ctx context.Context, method, provider, operation string) (context.Context, tracing.Span, time.Time) {
	ctx, span := tracing.Start(ctx, "plugin "+method, tracing.Outside)
	started := time.Now()
	if !span.On() {
		return ctx, span, started
	}
	span.Text("gerbang.provider", provider)
	span.Text("gerbang.operation", operation)
	return sdk.Traced(ctx, tracing.Parent(ctx), func(exchanges []sdk.Exchange) {
		whole := time.Since(started)
		for _, e := range exchanges {
			after := min(max(e.After, 0), whole)
			tracing.Past(ctx, "upstream", started.Add(after), min(max(e.Took, 0), whole-after), func(s tracing.Span) {
				s.Number("http.response.status_code", e.Status)
				s.Text("http.request.method", h.clean(provider, e.Method))
				s.Text("server.address", h.clean(provider, e.Host))
			})
		}
	}), span, started
}

// clean is a plugin's text without the secrets that are known.
func (h *Host) clean(provider, text string) string {
	p, ok := h.plugin(provider)
	if !ok {
		return ""
	}
	return p.secrets.clean(text)
}

func end(ctx context.Context, span tracing.Span, started time.Time, outcome string) {
	tracing.AtProvider(ctx, time.Since(started))
	if span.On() {
		span.Text("gerbang.outcome", outcome)
	}
	span.End()
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

// heard is the wire to a plugin. What an answer tells operators leaves here fit for logs
// and exceptions, and nowhere else: without the secrets that are known, valid, and cut.
type heard struct {
	*sdk.Client
	secrets *secrets
}

func (w heard) fit(detail string) string {
	if detail == "" {
		return ""
	}
	return strings.ToValidUTF8(w.secrets.clean(detail), "")
}

// failure is an error of the transport, whose words may be the plugin's own.
type failure struct {
	error
	text string
}

func (f failure) Error() string { return f.text }

func (f failure) Unwrap() error { return f.error }

func (w heard) failed(err error) error {
	if err == nil {
		return nil
	}
	return failure{err, w.fit(err.Error())}
}

// Call is [sdk.Client.Call].
func (w heard) Call(ctx context.Context, c sdk.Call) (sdk.Result, error) {
	r, err := w.Client.Call(ctx, c)
	r.Detail = w.fit(r.Detail)
	return r, w.failed(err)
}

// Quote is [sdk.Client.Quote].
func (w heard) Quote(ctx context.Context, q sdk.Quote) (sdk.Quoted, error) {
	r, err := w.Client.Quote(ctx, q)
	r.Detail = w.fit(r.Detail)
	return r, w.failed(err)
}

// Lookup is [sdk.Client.Lookup].
func (w heard) Lookup(ctx context.Context, l sdk.Lookup) (sdk.StatusUpdate, error) {
	u, err := w.Client.Lookup(ctx, l)
	u.Detail = w.fit(u.Detail)
	return u, w.failed(err)
}

// Verify is [sdk.Client.Verify].
func (w heard) Verify(ctx context.Context, c sdk.Connection) (sdk.Result, error) {
	r, err := w.Client.Verify(ctx, c)
	r.Detail = w.fit(r.Detail)
	return r, w.failed(err)
}

// Statement is [sdk.Client.Statement].
func (w heard) Statement(ctx context.Context, s sdk.Statement) (sdk.StatementPage, error) {
	page, err := w.Client.Statement(ctx, s)
	page.Detail = w.fit(page.Detail)
	return page, w.failed(err)
}

// Notify is [sdk.Client.Notify].
func (w heard) Notify(ctx context.Context, n sdk.Notification) (sdk.Acknowledgement, error) {
	ack, err := w.Client.Notify(ctx, n)
	ack.Detail = w.fit(ack.Detail)
	for i := range ack.Updates {
		ack.Updates[i].Detail = w.fit(ack.Updates[i].Detail)
	}
	return ack, w.failed(err)
}

const (
	recentCalls  = 256
	recentFaults = 8
)

// Fault is why a process ended or could not be started, or why a call got no answer.
type Fault struct {
	At  time.Time
	Why string
}

// Latency is how long the last calls took.
type Latency struct {
	Calls       int // that were measured, at most 256
	Median, P99 time.Duration
}

// recent is what operators are shown of a plugin's last calls and faults. The zero value
// has none.
type recent struct {
	mu     sync.Mutex
	took   [recentCalls]time.Duration
	calls  int // ever
	faults []Fault
}

// call notes a call that was made.
func (r *recent) call(took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.took[r.calls%recentCalls] = took
	r.calls++
}

// fault notes a fault.
func (r *recent) fault(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.faults = append(r.faults, Fault{At: time.Now(), Why: why}); len(r.faults) > recentFaults {
		r.faults = slices.Clone(r.faults[1:])
	}
}

// shown is what is known, the newest fault first.
func (r *recent) shown() (Latency, []Fault) {
	r.mu.Lock()
	n := min(r.calls, recentCalls)
	took, faults := slices.Clone(r.took[:n]), slices.Clone(r.faults)
	r.mu.Unlock()
	slices.Reverse(faults)
	if n == 0 {
		return Latency{}, faults
	}
	slices.Sort(took)
	return Latency{Calls: n, Median: took[n/2], P99: took[n*99/100]}, faults
}

// noteCall keeps how a call went. What was turned away here is no call.
func (p *provider) noteCall(r sdk.Result, took time.Duration) {
	if r.Outcome == sdk.NotSent && r.Blame == sdk.BlameNone {
		return
	}
	p.recent.call(took)
	if r.Outcome == sdk.Unknown || r.Outcome == sdk.NotSent {
		p.recent.fault(r.Detail)
	}
}
