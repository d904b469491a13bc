package console

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// readEvery is how old a reading may be before a scrape has it read anew, so that
	// scrapes, however many there are, cost the database next to nothing.
	readEvery = 30 * time.Second
	// readWithin bounds one reading.
	readWithin = 5 * time.Second
	// scrapeWait is how long a scrape waits for what is being read. After that it tells what
	// was read before.
	scrapeWait = 500 * time.Millisecond
)

var readingAge = prometheus.NewDesc("gerbang_reading_age_seconds",
	"How long ago this replica last read the metrics of a sort from the database: exceptions, backlog, waiting or pauses. Those are as old as this.", []string{"reading"}, nil)

// reading reads metrics of one sort from the database.
type reading struct {
	name string
	read func(ctx context.Context, now time.Time) ([]prometheus.Metric, error)
}

// readings is the collector of what has to be read from the database. A scrape that finds
// the last reading old begins another, beside it. A reading that fails leaves what was known.
type readings struct {
	all   []reading
	descs []*prometheus.Desc
	now   func() time.Time
	log   *slog.Logger

	mu    sync.Mutex
	begun time.Time     // the last time that all were read
	ended chan struct{} // closed once they are
	known map[string]known
}

// known is what a reading has told, and when.
type known struct {
	at      time.Time
	metrics []prometheus.Metric
}

func newReadings(all []reading, descs []*prometheus.Desc, now func() time.Time, log *slog.Logger) *readings {
	return &readings{all: all, descs: append(slices.Clone(descs), readingAge), now: now, log: log, known: map[string]known{}}
}

// Describe implements prometheus.Collector.
func (r *readings) Describe(to chan<- *prometheus.Desc) {
	for _, d := range r.descs {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (r *readings) Collect(to chan<- prometheus.Metric) {
	select {
	case <-r.refresh():
	case <-time.After(scrapeWait):
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	for name, k := range r.known {
		for _, m := range k.metrics {
			to <- m
		}
		to <- prometheus.MustNewConstMetric(readingAge, prometheus.GaugeValue, max(0, now.Sub(k.at).Seconds()), name)
	}
}

// refresh begins to read where that is due and nobody does. What it returns is closed when
// the last that was begun has ended.
func (r *readings) refresh() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if r.begun.IsZero() {
		for _, one := range r.all { // what was never read is as old as the first scrape
			r.known[one.name] = known{at: now}
		}
	} else if now.Sub(r.begun) < readEvery {
		return r.ended
	}
	if r.ended != nil {
		select {
		case <-r.ended:
		default: // a slow database is not asked twice at once
			return r.ended
		}
	}
	r.begun, r.ended = now, make(chan struct{})
	go r.readAll(now, r.ended)
	return r.ended
}

func (r *readings) readAll(now time.Time, ended chan<- struct{}) {
	defer close(ended)
	for _, one := range r.all { // one after the other: merchants' requests need the connections
		if err := r.readOne(one, now); err != nil {
			r.log.Warn("metrics can't be read", "reading", one.name, "error", err)
		}
	}
}

func (r *readings) readOne(one reading, now time.Time) error {
	ctx, cancel := context.WithTimeout(context.Background(), readWithin) // a collector gets no context
	defer cancel()
	metrics, err := one.read(ctx, now)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[one.name] = known{now, metrics}
	return nil
}
