package decision

import (
	"context"
	"log/slog"
	"slices"
	"time"
)

const (
	// writeEvery is how long a decision is in memory alone.
	writeEvery = 10 * time.Second
	// settled is after what time it is known whether a refused request is a replay.
	settled = 5 * time.Second
	// seriesAPart bounds a part of a minute: some hundred kilobytes.
	seriesAPart = 8_192
	// mostWaiting bounds what waits while nothing can be written, in parts.
	mostWaiting = 64
	// forgetEvery is how often what is too old is removed.
	forgetEvery = time.Hour
	// Kept is how long the log is kept.
	Kept = 7 * 24 * time.Hour
	// lastWrite bounds the write of what is left when a replica ends.
	lastWrite = 3 * time.Second
)

// Storage keeps a replica's log. Add keeps a part once, however often it is given. Forget removes all that is older.
type Storage interface {
	Add(ctx context.Context, p Part) error
	Forget(ctx context.Context, before time.Time) error
}

// Part is what is written of a minute at a time. Inputs are sealed, nil for none.
type Part struct {
	Minute time.Time
	Number int64 // of this replica's parts
	Counts []byte
	Inputs []byte

	of Minute
}

// Writer writes a log, a few rows a minute.
type Writer struct {
	log     *Log
	storage Storage
	seal    func([]byte) ([]byte, error)
	now     func() time.Time
	said    *slog.Logger

	parts   int64
	waiting []Part
}

// NewWriter makes the writer of a log. Inputs are sealed before they are stored.
func NewWriter(log *Log, storage Storage, seal func([]byte) ([]byte, error), now func() time.Time, said *slog.Logger) *Writer {
	return &Writer{log: log, storage: storage, seal: seal, now: now, said: said}
}

// Run writes until the context ends, and then what is left.
func (w *Writer) Run(ctx context.Context) error {
	write, forget := time.NewTicker(writeEvery), time.NewTicker(forgetEvery)
	defer write.Stop()
	defer forget.Stop()
	for {
		select {
		case <-ctx.Done():
			w.end(ctx)
			return nil
		case <-write.C:
			w.write(ctx, w.log.TakeSettled(w.now().Add(-settled)))
		case <-forget.C:
			if err := w.storage.Forget(ctx, w.now().Add(-Kept)); err != nil && ctx.Err() == nil {
				w.said.WarnContext(ctx, "decisions that are too old stay in the log", "error", err)
			}
		}
	}
}

// end writes what is left when a replica ends.
func (w *Writer) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWrite)
	defer cancel()
	w.Write(ctx)
}

// Write writes all that was counted and kept since the last time.
func (w *Writer) Write(ctx context.Context) { w.write(ctx, w.log.Take()) }

// write writes what was taken. What can't be written is tried again the next time, as long as it is not too much.
func (w *Writer) write(ctx context.Context, taken []Minute) {
	for _, minute := range taken {
		for len(minute.Counted) > seriesAPart {
			w.add(Minute{Start: minute.Start, Counted: minute.Counted[:seriesAPart]})
			minute.Counted = minute.Counted[seriesAPart:]
		}
		w.add(minute)
	}
	for len(w.waiting) > 0 {
		if err := w.storage.Add(ctx, w.waiting[0]); err != nil {
			w.said.WarnContext(ctx, "the log of decisions can't be written", "waiting", len(w.waiting), "error", err)
			break
		}
		w.waiting = slices.Delete(w.waiting, 0, 1)
	}
	for len(w.waiting) > mostWaiting {
		w.log.Lost(w.waiting[0].of)
		w.waiting = slices.Delete(w.waiting, 0, 1)
	}
}

// add makes a part of what is counted. Inputs that can't be sealed are not written.
func (w *Writer) add(m Minute) {
	w.parts++
	part := Part{Minute: m.Start, Number: w.parts, Counts: Pack(m.Counted), of: m}
	if len(m.Inputs) > 0 {
		packed, err := PackInputs(m.Inputs)
		if err == nil {
			part.Inputs, err = w.seal(packed)
		}
		if err != nil {
			w.said.Warn("inputs of refused requests can't be sealed, so they are not kept", "inputs", len(m.Inputs), "error", err)
			part.Inputs = nil
			w.log.Lost(Minute{Inputs: m.Inputs})
			part.of.Inputs = nil
		}
	}
	w.waiting = append(w.waiting, part)
}
