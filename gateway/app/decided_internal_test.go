package app

import (
	"context"
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
	if _, err := r.get(t.Context(), now, time.Second, func(context.Context) (int64, error) { return 0, errors.New("down") }); err == nil {
		t.Error("a failure is an answer")
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if n, err := r.get(t.Context(), now, time.Second, func(context.Context) (int64, error) { return made.Add(1), nil }); n != 1 || err != nil {
				t.Errorf("%d, %v", n, err)
			}
		})
	}
	all.Wait()
	if n, _ := r.get(t.Context(), now.Add(time.Second), time.Second, func(context.Context) (int64, error) { return made.Add(1), nil }); n != 2 {
		t.Errorf("an old answer is given: %d", n)
	}
}

// TestNobodyIsHeldByWhatIsMade: who asked first may leave, and who waits too, while the
// answer is made for the others.
func TestNobodyIsHeldByWhatIsMade(t *testing.T) {
	t.Parallel()
	var r recent[int64]
	now, begun, release := time.Now(), make(chan struct{}), make(chan struct{})
	ask := func(ctx context.Context) <-chan error {
		answered := make(chan error, 1)
		go func() {
			_, err := r.get(ctx, now, time.Second, func(ctx context.Context) (int64, error) {
				close(begun)
				<-release
				return 1, ctx.Err()
			})
			answered <- err
		}()
		return answered
	}
	leaving, leave := context.WithCancel(t.Context())
	first := ask(leaving)
	<-begun
	stays, leaves := ask(t.Context()), ask(leaving)
	leave()
	for who, answered := range map[string]<-chan error{"the first": first, "one who waits": leaves} {
		if err := <-answered; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", who, err)
		}
	}
	close(release)
	if err := <-stays; err != nil {
		t.Errorf("who stays: %v", err)
	}
}
