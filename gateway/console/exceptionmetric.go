package console

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// countEvery is how old a count of the exceptions may be, so that scrapes, however
	// many there are, cost the database next to nothing.
	countEvery = 30 * time.Second
	// countTimeout bounds a scrape that has to count.
	countTimeout = 2 * time.Second
)

var exceptionsOpen = prometheus.NewDesc("gerbang_exceptions_open",
	"Open exceptions by reason, over all replicas; up to 30 s old.", []string{"reason"}, nil)

// exceptionCollector counts the open exceptions. A reason that it has seen stays
// there with 0, and all are left out while they can't be read.
type exceptionCollector struct {
	list Exceptions
	now  func() time.Time
	log  *slog.Logger

	mu     sync.Mutex
	at     time.Time // of the last count
	known  bool      // whether it succeeded
	counts map[string]int64
}

// Describe implements prometheus.Collector.
func (c *exceptionCollector) Describe(to chan<- *prometheus.Desc) { to <- exceptionsOpen }

// Collect implements prometheus.Collector.
func (c *exceptionCollector) Collect(to chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.now(); c.at.IsZero() || now.Sub(c.at) >= countEvery {
		c.at = now
		c.count()
	}
	if !c.known {
		return
	}
	for reason, n := range c.counts {
		to <- prometheus.MustNewConstMetric(exceptionsOpen, prometheus.GaugeValue, float64(n), reason)
	}
}

// count reads the counts. The caller holds the lock.
func (c *exceptionCollector) count() {
	ctx, cancel := context.WithTimeout(context.Background(), countTimeout) // a collector gets no context
	defer cancel()
	counted, err := c.list.CountExceptions(ctx)
	if c.known = err == nil; !c.known {
		c.log.Warn("exceptions can't be counted", "error", err)
		return
	}
	for reason := range c.counts {
		if _, open := counted[reason]; !open {
			counted[reason] = 0
		}
	}
	c.counts = counted
}
