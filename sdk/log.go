package sdk

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/pluginpb"
)

// Log writes into the gateway's log. Within a handler that got the handler's context its
// lines have the id of the request that they are about, under which operators find it.
// Credentials do not belong there; the gateway removes those that it knows.
func Log(ctx context.Context) *slog.Logger {
	about, ok := ctx.Value(requestKey{}).(*request)
	if !ok {
		return slog.New(slog.NewJSONHandler(os.Stderr, nil))
	}
	return about.lines.With("request_id", about.id)
}

// request is what a handler's context knows of the request.
type request struct {
	id    string
	lines *slog.Logger
	trace string // "" for none
	begun time.Time

	mu        sync.Mutex
	exchanges []*pluginpb.Exchange
}

type requestKey struct{}

// about makes a handler's context. An id is not known of every call, nor is a trace kept.
func (s *server) about(ctx context.Context, id, trace string) (context.Context, context.CancelFunc) {
	if id != "" || trace != "" {
		ctx = context.WithValue(ctx, requestKey{}, &request{id: id, lines: s.lines, trace: trace, begun: time.Now()})
	}
	return withMargin(ctx)
}
