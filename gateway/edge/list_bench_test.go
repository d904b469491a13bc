package edge_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
)

// BenchmarkList is a request for a list of 10,000 products: made of its items for each
// caller (made), sent as it was finished once (finished), and packed (gzip).
func BenchmarkList(b *testing.B) {
	items := make([]string, 10_000)
	for i := range items {
		items[i] = fmt.Sprintf(`{"buyer_sku_code":"sku%d","product_name":"Pulsa %d","category":"Pulsa","brand":"XL","type":"Prepaid","price":%d,"seller_product_status":true,"desc":"-"}`, i, i, 10_000+i)
	}
	data := json.RawMessage("[" + strings.Join(items, ",") + "]")
	finished := catalog.Finish(data, true)
	for name, answer := range map[string]lifecycle.Answer{"made": {Data: data}, "finished": {Finished: finished}, "gzip": {Finished: finished}} {
		b.Run(name, func(b *testing.B) {
			h := build(b)
			real(b, h)
			if err := h.Use(shop(b, "query")); err != nil {
				b.Fatal(err)
			}
			h.run = func(lifecycle.Request) (lifecycle.Answer, error) { return answer, nil }
			body := `{"secret_key":"` + h.key + `"}`
			reader := strings.NewReader(body)
			r := httptest.NewRequest(http.MethodPost, listPath, reader)
			if name == "gzip" {
				r.Header.Set("Accept-Encoding", "gzip")
			}
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
		})
	}
}
