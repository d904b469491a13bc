package queue_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/queue"
)

var (
	middle = func(n int64) int64 { return n / 2 }
	lowest = func(int64) int64 { return 0 }
	most   = func(n int64) int64 { return n - 1 }

	epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

func TestSchedule(t *testing.T) {
	t.Parallel()
	const lasts = 30 * 24 * time.Hour
	schedule := queue.Schedule{Lasts: lasts}
	first := []time.Duration{
		5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute,
		time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 12 * time.Hour,
	}
	for attempts := range 1000 {
		want := 24 * time.Hour
		if attempts <= len(first) {
			want = first[max(attempts, 1)-1]
		}
		for random, part := range map[*func(int64) int64]time.Duration{&middle: 0, &lowest: -want / 10, &most: want / 10} {
			if next, ok := schedule.Next(attempts, epoch, epoch, *random); !ok || next.Sub(epoch) != want+part {
				t.Errorf("after %d attempts %s, %t; want %s", attempts, next.Sub(epoch), ok, want+part)
			}
		}
	}
}

// TestScheduleEndsByAge: whatever was tried meanwhile, the last try comes when the time
// is over, and none after it.
func TestScheduleEndsByAge(t *testing.T) {
	t.Parallel()
	const lasts = 24 * time.Hour
	schedule := queue.Schedule{Lasts: lasts}
	for _, attempts := range []int{1, 5, 10, 11, 1 << 30} {
		if next, ok := schedule.Next(attempts, epoch, epoch.Add(lasts-1), most); !ok || next.Sub(epoch) != lasts {
			t.Errorf("after %d attempts %s, %t; want the last one when it is over", attempts, next.Sub(epoch), ok)
		}
		for _, age := range []time.Duration{lasts, lasts + 1, 100 * lasts} {
			if next, ok := schedule.Next(attempts, epoch, epoch.Add(age), lowest); ok || !next.IsZero() || !schedule.Over(epoch, epoch.Add(age)) {
				t.Errorf("after %d attempts and %s: %s, %t; want none", attempts, age, next.Sub(epoch), ok)
			}
		}
	}
	if schedule.Over(epoch, epoch.Add(lasts-1)) {
		t.Error("it is over before its time")
	}
}

func TestJitterStaysWithinATenth(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var below, above int
	for range 1000 {
		next, _ := (queue.Schedule{Lasts: time.Hour}).Next(3, epoch, epoch, random.Int64N)
		switch wait := next.Sub(epoch); {
		case wait < 108*time.Second || wait > 132*time.Second:
			t.Fatalf("waits %s", wait)
		case wait < 120*time.Second:
			below++
		default:
			above++
		}
	}
	if below < 400 || above < 400 {
		t.Errorf("%d waits are shorter and %d longer", below, above)
	}
}
