package app

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestRecentIsMadeOnce: all who look at once, and for a while after, share one answer; a
// failure is nobody's answer.
func TestRecentIsMadeOnce(t *testing.T) {
	t.Parallel()
	var r recent[int64]
	var made atomic.Int64
	now := time.Now()
	if _, err := r.get(now, time.Second, func() (int64, error) { return 0, errors.New("down") }); err == nil {
		t.Error("a failure is an answer")
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if n, err := r.get(now, time.Second, func() (int64, error) { return made.Add(1), nil }); n != 1 || err != nil {
				t.Errorf("%d, %v", n, err)
			}
		})
	}
	all.Wait()
	if n, _ := r.get(now.Add(time.Second), time.Second, func() (int64, error) { return made.Add(1), nil }); n != 2 {
		t.Errorf("an old answer is given: %d", n)
	}
}
