package tracing

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestExport counts what a collector takes, and says why it takes nothing.
func TestExport(t *testing.T) {
	t.Parallel()
	for status, want := range map[int][3]int64{http.StatusOK: {1, 1, 0}, http.StatusForbidden: {1, 0, 1}} {
		collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		t.Cleanup(collector.Close)
		var log bytes.Buffer
		e, err := Export(t.Context(), Config{URL: collector.URL + "/v1/traces", Share: 1, Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		_, span := e.Work(t.Context(), "poll", Inside, "")
		span.Text("gerbang.provider", strings.Repeat("a", maxText-1)+"é and more") // cut in the middle of a letter
		span.End()
		if err := e.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		made, sent, failed := e.Spans()
		if got := [3]int64{made, sent, failed}; got != want || strings.Contains(log.String(), "traces do not arrive") != (failed > 0) {
			t.Errorf("%d: %v\n%s", status, got, log.String())
		}
	}
}
