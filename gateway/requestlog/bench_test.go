package requestlog

import (
	"context"
	"log/slog"
	"testing"
	"time"
)

// BenchmarkWrite is what the log costs beside the request: to mask, pack and seal a call, of a hundred in a write.
func BenchmarkWrite(b *testing.B) {
	l := NewLog()
	w := NewWriter(l, func(context.Context, []Part) error { return nil }, seal, func() time.Time { return noon }, slog.New(slog.DiscardHandler))
	c := call(1, "OK")
	c.Asked = []byte(`{"secret_key":"sk_live_0123456789abcdef_x","merchant_id":"mer_1","channel":"qris","amount":125000,"external_id":"INV/2026/#001","description":"Kopi susu","payer_email":"ani@example.com"}`)
	c.Answered = []byte(`{"success":true,"data":{"external_id":"INV/2026/#001","status":"PENDING","amount":125000,"payment_url":"https://pay.example/x","expires_at":"2026-03-04T13:00:00Z"},"request_id":"01a22445-11a0-76d3-9356-061ba17711fa"}`)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		l.Keep(c)
		if n++; n%100 == 0 {
			w.Write(context.Background())
		}
	}
}
