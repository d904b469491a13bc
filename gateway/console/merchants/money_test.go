package merchants

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console/page"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// longStatement is an admin API whose account statement has some pages and then perhaps a fault.
type longStatement struct {
	pages, asked int
	fails        bool
}

func (l *longStatement) RoundTrip(*http.Request) (*http.Response, error) {
	l.asked++
	statement := adminapi.AccountStatement{Entries: []adminapi.AccountEntry{{Reference: fmt.Sprintf("=order-%d", l.asked)}}}
	if l.asked < l.pages {
		statement.Next = "more"
	} else if l.fails {
		return nil, errors.New("down")
	}
	text, err := json.Marshal(map[string]any{"data": statement})
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(text))}, err
}

// timed notes when it has to be written, and what was when the time was set.
type timed struct {
	*httptest.ResponseRecorder

	deadlines []time.Time
	flushed   []int
}

func (w *timed) SetWriteDeadline(at time.Time) error {
	w.deadlines = append(w.deadlines, at)
	w.flushed = append(w.flushed, strings.Count(w.Body.String(), "order-"))
	return nil
}

// TestALongStatementIsNotCut: each batch has a minute of its own and is out before the next one is read; what can't be read
// is said in the last line.
func TestALongStatementIsNotCut(t *testing.T) {
	t.Parallel()
	for _, fails := range []bool{false, true} {
		api, w := &longStatement{pages: 3, fails: fails}, &timed{ResponseRecorder: httptest.NewRecorder()}
		c := &Console{deps: Dependencies{Dependencies: page.Dependencies{Now: time.Now}}}
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/balance/statement.csv", http.NoBody)
		r := &room{Visit: &page.Visit{Writer: w, Request: request}, Mode: tenants.Test, admin: adminapi.NewClientOver(api)}
		begun := time.Now()
		if err := c.statementCSV(r); err != nil {
			t.Fatal(err)
		}
		batches, lines := 3, 4
		if fails {
			batches = 2
		}
		text := w.Body.String()
		if len(w.deadlines) != batches || strings.Count(text, "\n") != lines || strings.Contains(text, "\n\"incomplete: ") != fails {
			t.Errorf("%d times of a batch, and\n%s", len(w.deadlines), text)
		}
		for i, at := range w.deadlines {
			if at.Before(begun.Add(batchTime)) || w.flushed[i] != i {
				t.Errorf("before batch %d, %d were out; the time ends at %v", i+1, w.flushed[i], at)
			}
		}
	}
}
