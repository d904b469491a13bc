package requestlog

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"
)

// BenchmarkWrite is what the log costs beside the request: to mask, pack and seal a call, of one or of a hundred in a write,
// and how many bytes of its row are a call's.
func BenchmarkWrite(b *testing.B) {
	for _, calls := range []int{1, 100} {
		b.Run(fmt.Sprintf("calls=%d", calls), func(b *testing.B) { write(b, calls) })
	}
}

func write(b *testing.B, calls int) {
	l, bytes := NewLog(), 0
	w := NewWriter(l, func(_ context.Context, parts []Part) error {
		for _, p := range parts {
			bytes += len(p.Calls) + len(p.Terms)
		}
		return nil
	}, seal, func() time.Time { return noon }, slog.New(slog.DiscardHandler))
	c := call(1, "OK")
	c.Asked = []byte(`{"secret_key":"sk_live_0123456789abcdef_x","merchant_id":"mer_1","channel":"qris","amount":125000,"external_id":"INV/2026/#001","description":"Kopi susu","payer_email":"ani@example.com"}`)
	c.Answered = []byte(`{"success":true,"data":{"external_id":"INV/2026/#001","status":"PENDING","amount":125000,"payment_url":"https://pay.example/x","expires_at":"2026-03-04T13:00:00Z"},"request_id":"01a22445-11a0-76d3-9356-061ba17711fa"}`)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		l.Keep(c)
		if n++; n%calls == 0 {
			w.Write(context.Background())
		}
	}
	b.ReportMetric(float64(bytes)/float64(n), "packed_B/op")
}
