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
	first := []time.Duration{
		5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute,
		time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 12 * time.Hour,
	}
	for name, c := range map[string]struct {
		schedule queue.Schedule
		tries    int
	}{"money": {queue.Schedule{Days: 30}, 41}, "others": {queue.Schedule{}, 11}} {
		for attempts := 1; attempts < c.tries; attempts++ {
			want := 24 * time.Hour
			if attempts <= len(first) {
				want = first[attempts-1]
			}
			for random, part := range map[*func(int64) int64]time.Duration{&middle: 0, &lowest: -want / 10, &most: want / 10} {
				if next, ok := c.schedule.Next(attempts, epoch, *random); !ok || next.Sub(epoch) != want+part {
					t.Errorf("%s: after %d attempts %s, %t; want %s", name, attempts, next.Sub(epoch), ok, want+part)
				}
			}
		}
		for _, attempts := range []int{c.tries, c.tries + 1, 1 << 30} {
			if next, ok := c.schedule.Next(attempts, epoch, middle); ok || !next.IsZero() {
				t.Errorf("%s: after %d attempts %s, %t; want dead", name, attempts, next, ok)
			}
		}
	}
	if next, ok := (queue.Schedule{}).Next(0, epoch, middle); !ok || next.Sub(epoch) != first[0] {
		t.Errorf("with no attempt counted: %s, %t", next.Sub(epoch), ok)
	}
}

func TestJitterStaysWithinATenth(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var below, above int
	for range 1000 {
		next, _ := (queue.Schedule{}).Next(3, epoch, random.Int64N)
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
