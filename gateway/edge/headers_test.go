package edge_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/edge"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

func TestCallbackURLs(t *testing.T) {
	t.Parallel()
	const nowhere, production, development = 0, 1, 2
	tests := map[string]int{
		"https://shop.example/callback?a=1":                 production,
		"https://shop.example:8443/":                        production,
		"https://203.0.113.9/":                              nowhere,
		"https://[2001:db8::1]/":                            nowhere,
		"http://shop.example/":                              development,
		"http://localhost:9000/x":                           development,
		"https://localhost/":                                development,
		"https://LocalHost./":                               nowhere,
		"https://api.localhost/":                            development,
		"https://8.8.8.8/":                                  production,
		"https://[2606:4700::1111]/":                        production,
		"https://shop.example:9000/":                        development,
		"https://intranet/":                                 development,
		"https://127.0.0.1/":                                development,
		"https://[::1]/":                                    development,
		"https://[::ffff:127.0.0.1]/":                       nowhere,
		"https://10.1.2.3/":                                 nowhere,
		"https://192.168.0.1/":                              nowhere,
		"https://169.254.169.254/latest":                    nowhere,
		"https://100.64.0.1/":                               nowhere,
		"https://0.0.0.0/":                                  nowhere,
		"https://user:pass@shop.example/":                   nowhere,
		"https://shop.example/#part":                        nowhere,
		"https://shop.example/#":                            nowhere,
		"https://shop.example:0/":                           nowhere,
		"https://shop.example:99999/":                       nowhere,
		"https:///path":                                     nowhere,
		"https:shop.example":                                nowhere,
		"/callback":                                         nowhere,
		"ftp://shop.example/":                               nowhere,
		"javascript:alert(1)":                               nowhere,
		"https://shop.example/a b":                          nowhere,
		"https://shop.example/\u00e9":                       nowhere,
		"https://shop.example/" + strings.Repeat("x", 2048): nowhere,
	}
	strict, loose := build(t), build(t, func(c *edge.Config) { c.AllowHTTPCallbacks = true })
	for callback, level := range tests {
		for house, allowed := range map[*house]bool{strict: level == production, loose: level != nowhere} {
			got := house.create(t, house.right(""), header{"X-Callback-URL", callback})
			if accepted := got.StatusCode == http.StatusOK; accepted != allowed {
				t.Errorf("%q (development %v): %d %s", callback, house == loose, got.StatusCode, got.text)
			}
			if !allowed {
				got.wantField(t, "X-Callback-URL", "must")
			}
		}
	}
}

func TestCallbackURLIsReadOnlyWhereMoneyMoves(t *testing.T) {
	t.Parallel()
	h := build(t)
	got := h.send(t, http.MethodPost, "/payments/status", `{"secret_key":"`+h.key+`","external_id":"a"}`, header{"X-Callback-URL", "nonsense"})
	if got.StatusCode != http.StatusOK || h.requests[0].CallbackURL != "" {
		t.Errorf("got %d %s", got.StatusCode, got.text)
	}
	h.create(t, h.right(""), header{"X-Callback-URL", "https://a.example/"}, header{"X-Callback-URL", "https://b.example/"}).
		wantFault(t, fault.InvalidRequest)
	if got := h.create(t, h.right(""), header{"X-Callback-URL", ""}); got.StatusCode != http.StatusOK {
		t.Errorf("an empty header is not absent: %s", got.text)
	}
}

func TestIdempotencyKeyOfBoundaries(t *testing.T) {
	t.Parallel()
	h := build(t)
	for _, key := range []string{"a", strings.Repeat("x", 255), "INV/2026/#001", strings.Repeat("é", 255)} {
		if got := h.create(t, h.right(""), header{"Idempotency-Key", key}); got.StatusCode != http.StatusOK {
			t.Errorf("%q: %s", key, got.text)
		}
		if got := h.requests[len(h.requests)-1].IdempotencyKey; got != key {
			t.Errorf("%q became %q", key, got)
		}
	}
	h.create(t, h.right(""), header{"Idempotency-Key", "a"}, header{"Idempotency-Key", "b"}).wantFault(t, fault.InvalidRequest)
	h.create(t, h.right(""), header{"Idempotency-Key", "\xff"}).wantFault(t, fault.InvalidRequest)
}
