package callback_test

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	wire "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

// traces takes what a gateway exports, as a collector does.
type traces struct {
	mu    sync.Mutex
	spans []*wire.Span
	raw   []byte
}

func (c *traces) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		if unpacked, err := gzip.NewReader(r.Body); err == nil {
			body = unpacked
		}
	}
	raw, _ := io.ReadAll(body)
	var said collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(raw, &said); err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw = append(c.raw, raw...)
	for _, resource := range said.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			c.spans = append(c.spans, scope.GetSpans()...)
		}
	}
}

// of are the spans of a trace, by what leads to each from the root on.
func (c *traces) of(trace string) map[string]*wire.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	byID := map[string]*wire.Span{}
	for _, s := range c.spans {
		byID[string(s.GetSpanId())] = s
	}
	paths := map[string]*wire.Span{}
	for _, s := range c.spans {
		if hex.EncodeToString(s.GetTraceId()) != trace {
			continue
		}
		path := s.GetName()
		for up := byID[string(s.GetParentSpanId())]; up != nil; up = byID[string(up.GetParentSpanId())] {
			path = up.GetName() + " > " + path
		}
		paths[path] = s
	}
	return paths
}

func attribute(s *wire.Span, key string) string {
	for _, a := range s.GetAttributes() {
		if a.GetKey() == key {
			return strings.TrimPrefix(strings.TrimPrefix(a.GetValue().String(), "string_value:"), "int_value:")
		}
	}
	return ""
}

// TestTraces follows one payment from the merchant's own trace to its upstream, and the
// callback that its notification led to.
func TestTraces(t *testing.T) {
	t.Parallel()
	kept := new(traces)
	server := httptest.NewServer(kept)
	t.Cleanup(server.Close)
	d := harness.NewDeployment(t)
	p := d.LaunchWith(t, harness.ServeDatabase(t), nil, "traces: {url: "+server.URL+"/v1/traces, share: 1}", "allow_http_callbacks: true", "trusted_proxies: [127.0.0.0/8]")
	d.Join(t, p)
	s := d.NewShop(t, p, "growth")
	box := harness.NewReceiver(t, 0)

	const trace, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	made := s.Ask(t, "/payments/create", s.PaymentBody(harness.Fields{"type": "qris", "amount": 31000, "payer_email": "ani@example.com"}),
		"X-Callback-URL", box.URL+"/shop", "Traceparent", "00-"+trace+"-"+span+"-00")
	own := s.Ask(t, "/payments/create", s.PaymentBody(harness.Fields{"type": "qris", "amount": 31001}))
	if !made.Success || !own.Success {
		t.Fatalf("%s\n%s", made, own)
	}
	const payer = "198.51.100.7"
	visit, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.APIURL+"/checkout/00000000", nil)
	if err != nil {
		t.Fatal(err)
	}
	visit.Header.Set("X-Forwarded-For", payer)
	page, err := http.DefaultClient.Do(visit)
	if err != nil {
		t.Fatal(err)
	}
	page.Body.Close()
	p.Pay(t, harness.Fields{"qr_string": made.Payment().QRString})
	told := box.Wait(t, made.Payment().ExternalID, 1)[0]
	parent := strings.Split(told.Header.Get("Traceparent"), "-")
	if len(parent) != 4 {
		t.Fatalf("the callback has no trace: %v", told.Header)
	}
	requested := strings.ReplaceAll(own.Header.Get("X-Request-Id"), "-", "")
	want := []string{"POST /payments/create > authenticate", "POST /payments/create > admit > policy", "POST /payments/create > sql room + movements + polls",
		"POST /payments/create > plugin call", "POST /payments/create > plugin call > upstream"}
	harness.Await(t, harness.ReadyWithin, "the spans of three traces", func() bool {
		first, second := kept.of(trace), kept.of(requested)
		return len(kept.of(parent[1])) > 0 && !slices.ContainsFunc(want, func(path string) bool {
			return first[path] == nil || second[path] == nil && !strings.Contains(path, "policy")
		})
	})
	root, upstream := kept.of(trace)["POST /payments/create"], kept.of(trace)["POST /payments/create > plugin call > upstream"]
	if hex.EncodeToString(root.GetParentSpanId()) != span {
		t.Errorf("the merchant's span is not the root's parent: %v", root)
	}
	address := strings.Trim(attribute(upstream, "server.address"), `"`)
	if attribute(upstream, "http.response.status_code") != "201" || !slices.Contains(d.Approved.Ports, address[strings.LastIndex(address, ":")+1:]) {
		t.Errorf("the upstream's span: %v", upstream)
	}
	sent := kept.of(parent[1])["callback"]
	if links := sent.GetLinks(); len(links) != 1 || len(kept.of(hex.EncodeToString(links[0].GetTraceId()))) == 0 {
		t.Errorf("the callback's span is linked to %v", links)
	}
	if kept.of(requested)["POST /payments/create"] == nil {
		t.Error("an X-Request-Id names no trace")
	}
	if strings.Contains(p.Log.String(), payer) {
		t.Error("the log has a payer's address")
	}
	for _, secret := range []string{payer, s.Key, "ani@example.com", made.Payment().QRString, p.AdminToken, "Toko Contoh"} {
		if bytes.Contains(kept.raw, []byte(secret)) {
			t.Errorf("a trace holds %s", secret)
		}
	}
	if line := p.Log.String(); !strings.Contains(line, `"trace_id":"`+trace+`"`) || !strings.Contains(line, `"provider_ms":`) || !strings.Contains(line, `"movement_id":"`) {
		t.Errorf("the log has no trace, time of the provider or movement:\n%s", p.Log.Tail(20))
	}
}
