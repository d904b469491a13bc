package console

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/seed-f006e74d/gerbang/gateway/store"
)

// countedList is a list of exceptions that can only be counted.
type countedList struct {
	Exceptions
	counts map[string]int64
	err    error
	takes  time.Duration
	asked  atomic.Int64
}

func (l *countedList) CountExceptions(ctx context.Context) (map[string]int64, error) {
	l.asked.Add(1)
	select {
	case <-time.After(l.takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return l.counts, l.err
}

// scraped is what a scrape reads, as "name value", and how long it took.
func scraped(t *testing.T, of prometheus.Collector) (lines []string, took time.Duration) {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(of)
	answer, begun := httptest.NewRecorder(), time.Now()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(answer.Body.String()) {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, strings.TrimSpace(strings.TrimPrefix(line, "gerbang_")))
		}
	}
	return lines, time.Since(begun)
}

func exceptionReadings(list *countedList) *readings {
	c := &Console{deps: Dependencies{Exceptions: list}}
	return newReadings([]reading{{"exceptions", c.readExceptions()}}, readFromAll, time.Now, slog.New(slog.DiscardHandler))
}

// However often it is scraped, the database is asked every thirty seconds, also while it
// can't be read. What is known is told with its age.
func TestReadingsAreReadNowAndThen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		list := &countedList{counts: map[string]int64{"our_account": 2, "paid_late": 1}}
		r := exceptionReadings(list)
		check := func(asked int64, want ...string) {
			t.Helper()
			for range 3 {
				if got, _ := scraped(t, r); !slices.Equal(got, want) {
					t.Errorf("scraped %q, want %q", got, want)
				}
			}
			if list.asked.Load() != asked {
				t.Errorf("the list was counted %d times, want %d", list.asked.Load(), asked)
			}
		}
		check(1, `exceptions_open{reason="our_account"} 2`, `exceptions_open{reason="paid_late"} 1`, `reading_age_seconds{reading="exceptions"} 0`)
		list.counts = map[string]int64{"paid_late": 3}
		time.Sleep(readEvery - time.Second)
		check(1, `exceptions_open{reason="our_account"} 2`, `exceptions_open{reason="paid_late"} 1`, `reading_age_seconds{reading="exceptions"} 29`)
		time.Sleep(time.Second)
		check(2, `exceptions_open{reason="our_account"} 0`, `exceptions_open{reason="paid_late"} 3`, `reading_age_seconds{reading="exceptions"} 0`)
		list.err = errors.New("no database")
		time.Sleep(readEvery)
		check(3, `exceptions_open{reason="our_account"} 0`, `exceptions_open{reason="paid_late"} 3`, `reading_age_seconds{reading="exceptions"} 30`)
	})
}

// A slow database keeps no scrape waiting, and is not asked twice at once.
func TestScrapeDoesNotWaitForTheDatabase(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		list := &countedList{counts: map[string]int64{"paid_late": 1}, takes: time.Second}
		r := exceptionReadings(list)
		lines, took := scraped(t, r)
		if took > scrapeWait || !slices.Equal(lines, []string{`reading_age_seconds{reading="exceptions"} 0.5`}) || list.asked.Load() != 1 {
			t.Errorf("after %s: %q, asked %d times", took, lines, list.asked.Load())
		}
		time.Sleep(time.Second)
		if lines, _ := scraped(t, r); !slices.Contains(lines, `exceptions_open{reason="paid_late"} 1`) || list.asked.Load() != 1 {
			t.Errorf("later: %q, asked %d times", lines, list.asked.Load())
		}
	})
}

func TestLedgerChecksAreKept(t *testing.T) {
	t.Parallel()
	m, at := NewMetrics(), time.Unix(1_800_000_000, 0)
	m.observeLedger(at, true, store.LedgerReport{Invariants: []store.LedgerCheck{{Invariant: "zero", Offences: make([]store.LedgerOffence, 2)}, {Invariant: "held"}}})
	for of, want := range map[prometheus.Collector][]string{
		m.ledgerChecked:  {`ledger_check_timestamp_seconds{scope="full"} 1.8e+09`},
		m.ledgerOffences: {`ledger_check_offences{invariant="held"} 0`, `ledger_check_offences{invariant="zero"} 2`},
	} {
		if got, _ := scraped(t, of); !slices.Equal(got, want) {
			t.Errorf("scraped %q, want %q", got, want)
		}
	}
}
