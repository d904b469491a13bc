package callback

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// written is a queue that takes a moment to write, and can't write what is locked.
type written struct {
	Queue

	locked   uuid.UUID
	mu       sync.Mutex
	together []int
	alone    []uuid.UUID
}

const writes = 10 * time.Millisecond

var errLocked = errors.New("locked")

func (q *written) RecordAttempts(_ context.Context, all []movement.CallbackAttempt) ([]bool, error) {
	<-time.After(writes)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.together = append(q.together, len(all))
	ours := make([]bool, len(all))
	for i, a := range all {
		if a.Callback.EventID == q.locked {
			return nil, errLocked
		}
		ours[i] = a.Callback.Tries == 0
	}
	return ours, nil
}

func (q *written) RecordAttempt(_ context.Context, a movement.CallbackAttempt) (bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.alone = append(q.alone, a.Callback.EventID)
	if a.Callback.EventID == q.locked {
		return false, errLocked
	}
	return a.Callback.Tries == 0, nil
}

// TestAttemptsShareWrites: what ends while attempts are being written shares the next write. Each is told what became of
// its own; where one can't be written, every other one is, by itself.
func TestAttemptsShareWrites(t *testing.T) {
	t.Parallel()
	for _, locked := range []int{-1, 0, 7} {
		synctest.Test(t, func(t *testing.T) {
			ids := make([]uuid.UUID, 3*mostTogether)
			for i := range ids {
				ids[i] = uuid.New()
			}
			q := &written{}
			if locked >= 0 {
				q.locked = ids[locked]
			}
			r := recorder{queue: q}
			var group sync.WaitGroup
			for i, id := range ids {
				if i == 1 {
					synctest.Wait() // the first is being written
				}
				group.Go(func() {
					a := movement.CallbackAttempt{Callback: movement.Callback{CallbackKey: movement.CallbackKey{EventID: id}, Tries: i % 2}}
					ours, err := r.record(t.Context(), a)
					if unwritten := i == locked; errors.Is(err, errLocked) != unwritten || ours != (i%2 == 0 && !unwritten) {
						t.Errorf("attempt %d: %v, %v", i, ours, err)
					}
				})
			}
			group.Wait()
			if want := []int{1, mostTogether, mostTogether, mostTogether - 1}; !slices.Equal(q.together, want) {
				t.Errorf("written together: %d, want %d", q.together, want)
			}
			alone := map[int][]int{-1: {0}, 0: {1}, 7: {mostTogether, mostTogether - 1}}[locked] // by whom it shared the write with
			if !slices.Contains(alone, len(q.alone)) || len(r.waiting) != 0 || r.writing {
				t.Errorf("%d were written by themselves, want one of %d; %d wait", len(q.alone), alone, len(r.waiting))
			}
		})
	}
}

// TestAWriteThatDoesNotAnswerHoldsNobodyLong: each attempt is then written by itself.
func TestAWriteThatDoesNotAnswerHoldsNobodyLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &silentTogether{}
		r := recorder{queue: q}
		began := time.Now()
		if ours, err := r.record(t.Context(), movement.CallbackAttempt{Callback: movement.Callback{CallbackKey: movement.CallbackKey{EventID: uuid.New()}}}); !ours || err != nil || time.Since(began) != togetherWithin {
			t.Errorf("%v, %v after %v", ours, err, time.Since(began))
		}
	})
}

type silentTogether struct{ written }

func (*silentTogether) RecordAttempts(ctx context.Context, _ []movement.CallbackAttempt) ([]bool, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
