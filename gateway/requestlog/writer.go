package requestlog

import (
	"compress/flate"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"
)

const (
	// writeEvery is how long a call is in memory alone: a replica that dies loses no more.
	writeEvery = time.Second
	// mostParts and mostBytes bound what is written at once: CockroachDB refuses 16 MiB.
	mostParts = 200
	mostBytes = 4 << 20
	// mostWrite bounds a write: a database that does not answer is away.
	mostWrite = 5 * time.Second
	// lastWrite bounds the write of what is left when a replica ends.
	lastWrite = 3 * time.Second
)

// Part is what a replica writes of an owner's calls that ended in a span.
type Part struct {
	Owner   Owner
	Span    time.Time // its begin
	Number  int64     // of the replica's parts
	Replica uuid.UUID // where it was read
	Terms   string
	Dropped int    // calls of the owner that were not kept
	Calls   []byte // packed and sealed

	calls, bytes int // as they came
}

// ErrRefused says that the database is there and takes none of some parts: it never will.
var ErrRefused = errors.New("requestlog: refused")

// Writer writes a log.
type Writer struct {
	log  *Log
	add  func(context.Context, []Part) error // keeps each part once, however often it is given
	seal func(Owner, []byte) ([]byte, error)
	now  func() time.Time
	said *slog.Logger

	packer  *flate.Writer
	parts   int64
	waiting []Part
}

// NewWriter makes the writer of a log. Calls are sealed before they are stored.
func NewWriter(log *Log, add func(context.Context, []Part) error, seal func(Owner, []byte) ([]byte, error), now func() time.Time, said *slog.Logger) *Writer {
	packer, _ := flate.NewWriter(nil, flate.BestSpeed) // the level is right
	return &Writer{log: log, add: add, seal: seal, now: now, said: said, packer: packer}
}

// Run writes until the context ends, and then what is left.
func (w *Writer) Run(ctx context.Context) error {
	write := time.NewTicker(writeEvery)
	defer write.Stop()
	for {
		select {
		case <-ctx.Done():
			w.end(ctx)
			return nil
		case <-write.C:
			w.Write(ctx)
		}
	}
}

// end writes what is left when a replica ends.
func (w *Writer) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWrite)
	defer cancel()
	w.Write(ctx)
}

// Write writes all that was kept since the last time. What can't be written is tried again the next time: it counts as waiting, so that
// newer calls are dropped where there is too much. A part that the database refuses is lost.
func (w *Writer) Write(ctx context.Context) {
	stuck := len(w.waiting) > 0
	for of, k := range w.log.take() {
		if stuck && len(k.calls) == 0 { // a count alone waits without a part of its own
			w.log.lose(of, 0, k.dropped)
			continue
		}
		w.pack(of, k)
	}
	for len(w.waiting) > 0 {
		some := w.batch()
		err := w.addSome(ctx, some)
		if errors.Is(err, ErrRefused) && len(some) > 1 { // which of them?
			some = some[:1]
			err = w.addSome(ctx, some)
		}
		refused := errors.Is(err, ErrRefused)
		if err != nil {
			w.said.WarnContext(ctx, "the log of requests can't be written", "waiting", len(w.waiting), "lost", refused, "error", err)
		}
		if err != nil && !refused {
			return
		}
		for _, p := range some {
			w.log.free(p.Owner, p.bytes)
			if refused {
				w.log.lose(p.Owner, p.calls, p.Dropped)
			}
		}
		w.waiting = slices.Delete(w.waiting, 0, len(some))
	}
}

// batch are the parts that are written next.
func (w *Writer) batch() []Part {
	bytes := 0
	for i, p := range w.waiting {
		if bytes += len(p.Calls) + len(p.Terms); i == mostParts || i > 0 && bytes > mostBytes {
			return w.waiting[:i]
		}
	}
	return w.waiting
}

func (w *Writer) addSome(ctx context.Context, some []Part) error {
	ctx, cancel := context.WithTimeout(ctx, mostWrite)
	defer cancel()
	return w.add(ctx, some)
}

// pack makes parts of what was kept of an owner, one for each span.
func (w *Writer) pack(of Owner, k *kept) {
	spans := map[time.Time][]Entry{}
	sizes := map[time.Time]int{}
	for i := range k.calls {
		e := k.calls[i].masked()
		span := e.Ended.Truncate(Span)
		spans[span] = append(spans[span], e)
		sizes[span] += k.calls[i].size()
	}
	if len(spans) == 0 {
		spans[w.now().UTC().Truncate(Span)] = nil
	}
	dropped := k.dropped
	for span, entries := range spans {
		packed, err := pack(w.packer, entries)
		if err == nil {
			packed, err = w.seal(of, packed)
		}
		if err != nil {
			w.said.Warn("requests can't be sealed, so they are not kept", "requests", len(entries), "error", err)
			w.log.free(of, sizes[span])
			w.log.lose(of, len(entries), dropped)
			dropped = 0
			continue
		}
		w.parts++
		w.waiting = append(w.waiting, Part{
			Owner: of, Span: span, Number: w.parts, Terms: terms(entries), Dropped: dropped, Calls: packed, calls: len(entries), bytes: sizes[span],
		})
		dropped = 0
	}
}
