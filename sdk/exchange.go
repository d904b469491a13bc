package sdk

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/seed-f006e74d/gerbang/sdk/pluginpb"
)

// Exchange is one request to the upstream and its answer. It names no path and no query:
// either may hold what is secret.
type Exchange struct {
	Method, Host string
	Status       int           // 0 where there was no answer
	After, Took  time.Duration // counted from when the call arrived in the plugin
}

// maxExchanges is how many exchanges one call tells of at most.
const maxExchanges = 16

// TraceParent is the trace that a handler's call belongs to, as the header of that name
// has it; "" where none is kept. Package upstream passes it on.
func TraceParent(ctx context.Context) string {
	if about, ok := ctx.Value(requestKey{}).(*request); ok {
		return about.trace
	}
	return ""
}

// Exchanged tells, for the trace of a handler's call, of one exchange that began at a time
// and is over. Where no trace is kept it does nothing. Package upstream calls it.
func Exchanged(ctx context.Context, e Exchange, begun time.Time) {
	about, ok := ctx.Value(requestKey{}).(*request)
	if !ok || about.trace == "" {
		return
	}
	e.After, e.Took = begun.Sub(about.begun), time.Since(begun)
	about.mu.Lock()
	defer about.mu.Unlock()
	if len(about.exchanges) < maxExchanges {
		about.exchanges = append(about.exchanges, &pluginpb.Exchange{
			Method: text(e.Method), Host: text(e.Host), Status: int32(e.Status), //nolint:gosec // of HTTP
			After: durationpb.New(e.After), Took: durationpb.New(e.Took),
		})
	}
}

// told are the exchanges of a handler's call.
func told(ctx context.Context) []*pluginpb.Exchange {
	about, ok := ctx.Value(requestKey{}).(*request)
	if !ok || about.trace == "" {
		return nil
	}
	about.mu.Lock()
	defer about.mu.Unlock()
	return about.exchanges
}

type tracedKey struct{}

// traced is what the gateway's side of a call wants to know for its trace.
type traced struct {
	parent string
	heard  func([]Exchange)
}

// Traced has the calls of a [Client] in this context belong to a trace, and their answers
// say what the plugin asked of its upstream.
func Traced(ctx context.Context, parent string, heard func([]Exchange)) context.Context {
	return context.WithValue(ctx, tracedKey{}, traced{parent, heard})
}

func parentOf(ctx context.Context) string {
	of, _ := ctx.Value(tracedKey{}).(traced)
	return of.parent
}

// hear hands over what an answer tells, which is a plugin's word: at most so much of it.
func hear(ctx context.Context, wire []*pluginpb.Exchange) {
	of, ok := ctx.Value(tracedKey{}).(traced)
	if !ok || len(wire) == 0 {
		return
	}
	var all []Exchange
	for _, e := range wire[:min(len(wire), maxExchanges)] {
		all = append(all, Exchange{Method: e.GetMethod(), Host: e.GetHost(), Status: int(e.GetStatus()), After: e.GetAfter().AsDuration(), Took: e.GetTook().AsDuration()})
	}
	of.heard(all)
}
