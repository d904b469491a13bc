package console

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// countedList is a list of exceptions that can only be counted.
type countedList struct {
	Exceptions
	counts map[string]int64
	err    error
	asked  int
}

func (l *countedList) CountExceptions(context.Context) (map[string]int64, error) {
	l.asked++
	return maps.Clone(l.counts), l.err
}

// scraped is what a scrape reads, as "reason value".
func scraped(t *testing.T, c *exceptionCollector) []string {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	var lines []string
	for line := range strings.Lines(answer.Body.String()) {
		if rest, ok := strings.CutPrefix(line, `gerbang_exceptions_open{reason="`); ok {
			lines = append(lines, strings.TrimSpace(strings.Replace(rest, `"}`, "", 1)))
		}
	}
	return lines
}

// However often it is scraped, the list is counted every thirty seconds, also
// while it can't be.
func TestExceptionsAreCountedNowAndThen(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 14, 30, 0, 0, time.UTC)
	list := &countedList{counts: map[string]int64{"our_account": 2, "paid_late": 1}}
	c := &exceptionCollector{list: list, now: func() time.Time { return at }, log: slog.New(slog.DiscardHandler)}
	check := func(asked int, want ...string) {
		t.Helper()
		for range 3 {
			if got := scraped(t, c); !slices.Equal(got, want) {
				t.Errorf("scraped %q, want %q", got, want)
			}
		}
		if list.asked != asked {
			t.Errorf("the list was counted %d times, want %d", list.asked, asked)
		}
	}
	check(1, "our_account 2", "paid_late 1")
	list.counts = map[string]int64{"paid_late": 3}
	at = at.Add(countEvery - time.Nanosecond)
	check(1, "our_account 2", "paid_late 1")
	at = at.Add(time.Nanosecond)
	check(2, "our_account 0", "paid_late 3")
	list.err = errors.New("no database")
	at = at.Add(countEvery)
	check(3)
	list.err = nil
	at = at.Add(countEvery)
	check(4, "our_account 0", "paid_late 3")
}
