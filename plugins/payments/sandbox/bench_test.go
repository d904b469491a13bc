package sandbox_test

import (
	"io"
	"net/http"
	"sync/atomic"
	"testing"
)

func benchmarkCreate(b *testing.B, w *world, call func(*world, int) *http.Request) {
	b.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128}}
	var n atomic.Int64
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			response, err := client.Do(call(w, int(n.Add(1))))
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
			if response.StatusCode/100 != 2 {
				b.Errorf("status %d", response.StatusCode)
			}
		}
	})
}
