package app

import (
	"context"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// stopWithin bounds how long requests under way may take when a gateway stops: the
	// longest operation with room to spare.
	stopWithin = 30 * time.Second

	// farewell is how long a gateway that stops still answers on open connections. Each
	// learns from its answer that the connection closes; closing one between two
	// requests could cut the next.
	farewell = time.Second
)

// phases are the contexts of a gateway's parts, in the order in which a stop ends them.
type phases struct {
	work      context.Context // what other replicas take over: polls, callbacks, mails
	merchants context.Context // the merchants' listener
	rest      context.Context // what is needed until the last request is answered, and the console
}

// begin makes the phases and the group of all parts. When one part fails all end at
// once. When ctx ends they end in order: the console says that this replica is not
// ready, and for stop_wait merchants are served as before, so that a load balancer
// takes it away before anybody finds a closed door; then the listener closes, and what
// is under way gets its answer.
func (a *App) begin(ctx context.Context, served <-chan struct{}) (phases, *errgroup.Group) {
	group, all := errgroup.WithContext(context.WithoutCancel(ctx))
	work, endWork := context.WithCancel(all)
	merchants, endMerchants := context.WithCancel(all)
	rest, endRest := context.WithCancel(all)
	group.Go(func() error {
		defer endRest()
		defer endMerchants()
		defer endWork()
		if !wait(all, ctx.Done()) {
			return nil
		}
		begun := time.Now()
		a.stopping.Store(true)
		a.log.InfoContext(all, "gateway stops: not ready from now on", "serves_for", a.config.StopWait)
		endWork()
		if !wait(all, time.After(a.config.StopWait)) {
			return nil
		}
		endMerchants()
		if wait(all, served) {
			a.log.InfoContext(all, "gateway stops: every request is answered or cut", "took", time.Since(begun).Round(time.Millisecond))
		}
		return nil
	})
	return phases{work, merchants, rest}, group
}

// wait is false when the context ends first.
func wait[T any](ctx context.Context, sign <-chan T) bool {
	select {
	case <-ctx.Done():
		return false
	case <-sign:
		return true
	}
}

// serve serves until its phase ends, and then to the end of what is under way.
func serve(ctx context.Context, server *http.Server, on net.Listener) error {
	answers := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ctx.Err() != nil {
			w.Header().Set("Connection", "close")
		}
		answers.ServeHTTP(w, r)
	})
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(on) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	_ = on.Close() // nobody new is let in
	<-time.After(farewell)
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	if err := server.Shutdown(stopping); err != nil {
		return server.Close() // open requests are cut; their movements are polled
	}
	return nil
}
