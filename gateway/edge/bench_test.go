package edge_test

import (
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/admission"
	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/gateway/edge"
	"github.com/seed-f006e74d/gerbang/gateway/limit"
	"github.com/seed-f006e74d/gerbang/gateway/requestlog"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// oneAccount is a directory's source that knows one merchant.
type oneAccount struct {
	tenants.Source
	account *tenants.Account
}

func (s oneAccount) AccountByKey(context.Context, tenants.KeyID) (*tenants.Account, error) {
	return s.account, nil
}

func (s oneAccount) AccountByID(context.Context, tenants.MerchantID) (*tenants.Account, error) {
	return s.account, nil
}

func (s oneAccount) ChangedSince(context.Context, time.Time) ([]tenants.Change, error) {
	return nil, nil
}

// silent is a writer that throws the answer away, so that a benchmark measures
// the edge and not the recorder.
type silent struct {
	header http.Header
	status int
}

func (s *silent) Header() http.Header            { return s.header }
func (s *silent) WriteHeader(status int)         { s.status = status }
func (s *silent) Write(text []byte) (int, error) { return len(text), nil }
func (s *silent) reset()                         { clear(s.header); s.status = 0 }

// real puts the real directory, policy and limiter behind a house's edge.
func real(b *testing.B, h *house) {
	b.Helper()
	issued, err := tenants.IssueKey(rand.Reader, tenants.KeySpec{MerchantID: h.merchant, Mode: tenants.Test}, noon)
	if err != nil {
		b.Fatal(err)
	}
	merchant := tenants.Merchant{ID: h.merchant, Name: "Toko Contoh", Tier: "scale", Status: tenants.Active, Version: 1, CreatedAt: noon}
	account, err := tenants.NewAccount(merchant, []tenants.Key{issued.Key}, nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	h.key = issued.Secret.Reveal()
	log := slog.New(slog.NewJSONHandler(io.Discard, nil)) //nolint:sloglint // to format a line is part of a request's cost
	directory := tenants.NewDirectory(oneAccount{account: account}, time.Now, log)
	polled, stop := context.WithCancel(b.Context())
	b.Cleanup(stop)
	go func() { _ = directory.Run(polled) }()
	set, err := policy.Compile(b.Context(), policy.Default())
	if err != nil {
		b.Fatal(err)
	}
	now := time.Now()
	dependencies := h.dependencies()
	dependencies.Authenticator, dependencies.Log, dependencies.Observer = freshly{directory}, log, nil
	dependencies.Admitter = admission.New(policy.NewActive(set), limit.New(), nil, admission.Config{Log: log, Decisions: h.counts})
	// A second a request: the rate is asked and never refuses.
	dependencies.Now = func() time.Time { now = now.Add(time.Second); return now }
	if h.Edge, err = edge.New(edge.Config{}, dependencies, snapshot(b)); err != nil {
		b.Fatal(err)
	}
}

// freshly is a directory whose clock the benchmark turns.
type freshly struct{ *tenants.Directory }

func (freshly) Fresh(time.Time) bool { return true }

// BenchmarkRequest is everything the edge does for a request but reading it
// from the wire: JSON, key, schema, policy with admit, rate, envelope, log.
func BenchmarkRequest(b *testing.B) {
	for _, path := range []string{"/payments/create", "/payments/status"} {
		for name, counts := range map[string]*decision.Log{"": nil, "/counted": decision.NewLog()} {
			b.Run(strings.TrimPrefix(path, "/payments/")+name, func(b *testing.B) { benchmarkRequest(b, path, counts, nil) })
		}
		b.Run(strings.TrimPrefix(path, "/payments/")+"/kept", func(b *testing.B) { benchmarkRequest(b, path, decision.NewLog(), &lastCalls{}) })
	}
}

// lastCalls keeps the last calls, as a log does between two writes.
type lastCalls struct {
	calls [256]requestlog.Call
	n     int
}

// Keep takes the place of the oldest.
func (l *lastCalls) Keep(c requestlog.Call) {
	l.calls[l.n%len(l.calls)] = c
	l.n++
}

func benchmarkRequest(b *testing.B, path string, counts *decision.Log, kept edge.Requests) {
	h := build(b)
	h.counts, h.kept = counts, kept
	real(b, h)
	body := h.right(`,"external_id":"INV/2026/#001","description":"Kopi susu"`)
	if path == "/payments/status" {
		body = `{"secret_key":"` + h.key + `","external_id":"INV/2026/#001"}`
	}
	reader := strings.NewReader(body)
	r := httptest.NewRequest(http.MethodPost, path, reader)
	w := &silent{header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		reader.Reset(body)
		r.Body = io.NopCloser(reader)
		w.reset()
		h.requests = h.requests[:0]
		h.ServeHTTP(w, r)
		if w.status != http.StatusOK {
			b.Fatalf("status %d", w.status)
		}
	}
}
