package sdk

import (
	"context"
	"log/slog"
	"os"
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
}

type requestKey struct{}

// about makes a handler's context. An id is not known of every call.
func (s *server) about(ctx context.Context, id string) (context.Context, context.CancelFunc) {
	if id != "" {
		ctx = context.WithValue(ctx, requestKey{}, &request{id, s.lines})
	}
	return withMargin(ctx)
}
