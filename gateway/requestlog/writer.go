package requestlog

import (
	"compress/flate"
	"context"
	"log/slog"
	"slices"
	"time"
)

const (
	// writeEvery is how long a call is in memory alone: a replica that dies loses no more.
	writeEvery = time.Second
	// mostParts is how many parts are written at once.
	mostParts = 200
	// lastWrite bounds the write of what is left when a replica ends.
	lastWrite = 3 * time.Second
)

// Part is what a replica writes of an owner's calls that ended in a span.
type Part struct {
	Owner   Owner
	Span    time.Time // its begin
	Number  int64     // of this replica's parts
	Terms   string
	Dropped int    // calls of the owner that were not kept
	Calls   []byte // packed and sealed

	bytes int // as they came
}

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
// newer calls are dropped where there is too much.
func (w *Writer) Write(ctx context.Context) {
	for of, k := range w.log.take() {
		w.pack(of, k)
	}
	for len(w.waiting) > 0 {
		some := w.waiting[:min(len(w.waiting), mostParts)]
		if err := w.add(ctx, some); err != nil {
			w.said.WarnContext(ctx, "the log of requests can't be written", "waiting", len(w.waiting), "error", err)
			return
		}
		written := 0
		for _, p := range some {
			written += p.bytes
		}
		w.log.free(written)
		w.waiting = slices.Delete(w.waiting, 0, len(some))
	}
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
		if len(w.waiting) > 0 { // a count alone waits without a part of its own
			w.log.lose(of, 0, k.dropped)
			return
		}
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
			w.log.free(sizes[span])
			w.log.lose(of, len(entries), dropped)
			dropped = 0
			continue
		}
		w.parts++
		w.waiting = append(w.waiting, Part{
			Owner: of, Span: span, Number: w.parts, Terms: terms(entries), Dropped: dropped, Calls: packed, bytes: sizes[span],
		})
		dropped = 0
	}
}
