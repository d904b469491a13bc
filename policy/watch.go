package policy

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// pollEvery finds edits where the file system gives no events, as on network mounts.
	pollEvery = time.Second

	// settleFor is how long a directory must look the same before it is believed: editors write a set in several steps.
	settleFor = 100 * time.Millisecond
)

// Watch publishes each edit of a directory until the context is done. It watches the directory, not the files, because
// editors and mounts replace files; and it looks once a second besides. What differs from the active set is published
// within two seconds, once. Where publish answers an *Error nothing changes, and each problem is logged with its file and
// line; after any other error the same files are published again.
func Watch(ctx context.Context, dir string, active *Active, log *slog.Logger, publish func(context.Context, Source) error) {
	w := watcher{dir: dir, active: active, log: log, publish: publish}
	events, stop := notify(dir, log)
	defer stop()
	w.run(ctx, events, pollEvery)
}

// watcher follows one directory.
type watcher struct {
	dir     string
	active  *Active
	log     *slog.Logger
	publish func(context.Context, Source) error

	// judged is what the directory held when it was last published, pending what it held at the last look.
	judged, pending sight
}

// sight is what a look at the directory found: a version, or why there is none.
type sight struct {
	version Version
	failure string
}

// run looks whenever an event comes, and every so often without one.
func (w *watcher) run(ctx context.Context, events <-chan struct{}, every time.Duration) {
	poll := time.NewTicker(every)
	defer poll.Stop()
	var settled <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-events:
		case <-poll.C:
		case <-settled:
			settled = nil
		}
		if settled == nil && !w.look(ctx) {
			settled = time.After(settleFor)
		}
	}
}

// look compares the directory with the last looks and is done when nothing is left to wait for. What is new is judged
// only when it looks the same twice.
func (w *watcher) look(ctx context.Context) (done bool) {
	source, err := LoadDir(w.dir)
	seen := sight{}
	if err != nil {
		seen.failure = err.Error()
	} else {
		seen.version = source.Version()
	}
	switch seen {
	case w.judged, sight{version: w.active.Set().Version()}:
		w.judged, w.pending = seen, sight{}
		return true
	case w.pending:
		w.judged, w.pending = seen, sight{}
		w.judge(ctx, source, err)
		return true
	default:
		w.pending = seen
		return false
	}
}

// judge publishes what the directory holds, or tells why not.
func (w *watcher) judge(ctx context.Context, source Source, err error) {
	if err == nil {
		if err = w.publish(ctx, source); err == nil {
			return
		}
		if _, refused := errors.AsType[*Error](err); !refused {
			w.judged = sight{}
		}
	}
	if ctx.Err() == nil {
		w.refuse(err)
	}
}

// refuse logs why an edit is not in force.
func (w *watcher) refuse(err error) {
	const message = "policy edit refused; the old one stays in force"
	var faults *Error
	if !errors.As(err, &faults) {
		w.log.Error(message, "dir", w.dir, "error", err)
		return
	}
	for _, p := range faults.Problems {
		w.log.Error(message, "dir", w.dir, "file", p.File, "line", p.Line, "col", p.Col, "problem", p.Message)
	}
}

// notify turns a directory's events into one signal. Where that is impossible it says so and gives none; looking once a
// second is enough then.
func notify(dir string, log *slog.Logger) (events <-chan struct{}, stop func()) {
	files, err := fsnotify.NewWatcher()
	if err == nil {
		err = files.Add(dir)
	}
	if err != nil {
		log.Warn("policy directory can't be watched; it is looked at every second", "dir", dir, "error", err)
		if files != nil {
			_ = files.Close() // nothing was watched
		}
		return nil, func() {}
	}
	signal := make(chan struct{}, 1)
	go func() {
		for {
			select {
			case _, ok := <-files.Events:
				if !ok {
					return
				}
			case _, ok := <-files.Errors: // an overflow: something happened
				if !ok {
					return
				}
			}
			select {
			case signal <- struct{}{}:
			default:
			}
		}
	}()
	return signal, func() { _ = files.Close() } // only a handle is lost if it fails
}
