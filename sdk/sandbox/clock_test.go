package sandbox_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func arrived(ch <-chan time.Time) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

func TestManualClock(t *testing.T) {
	t.Parallel()
	clock := sandbox.NewManualClock(start)
	past, soon, later := clock.Reach(start), clock.Reach(start.Add(time.Second)), clock.Reach(start.Add(time.Minute))
	if !arrived(past) || arrived(soon) {
		t.Error("the present is reached at once, the future is not")
	}
	clock.Advance(time.Second)
	if !arrived(soon) || arrived(later) {
		t.Error("a second later, one of two is reached")
	}
	clock.Advance(time.Hour)
	if !arrived(later) || !clock.Now().Equal(start.Add(time.Hour+time.Second)) {
		t.Errorf("the clock shows %v", clock.Now())
	}
}

func TestAgendaGoesByTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		type event struct {
			name string
			at   time.Duration
		}
		began := time.Now()
		var got []event
		agenda := sandbox.NewAgenda(sandbox.SystemClock{}, func(_ context.Context, name string) {
			got = append(got, event{name, time.Since(began)})
		})
		ctx, cancel := context.WithCancel(t.Context())
		agenda.Add(began.Add(3*time.Second), "third")
		agenda.Add(began.Add(time.Second), "first")
		done := make(chan struct{})
		go func() {
			defer close(done)
			agenda.Run(ctx)
		}()
		synctest.Wait()
		// Added while an earlier one and while a later one is waited for.
		agenda.Add(began.Add(2*time.Second), "second")
		agenda.Add(began.Add(-time.Hour), "overdue")
		time.Sleep(10 * time.Second)
		cancel()
		<-done
		want := []event{{"overdue", 0}, {"first", time.Second}, {"second", 2 * time.Second}, {"third", 3 * time.Second}}
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func TestMovements(t *testing.T) {
	t.Parallel()
	m := sandbox.NewMovements("demo")
	m.Record("1", sandbox.Movement{Reference: "A", Amount: 100, State: "PENDING", At: start})
	m.Record("2", sandbox.Movement{Reference: "A", Amount: 100, State: "PENDING", At: start})
	before := m.All()
	m.SetState("2", "PAID")
	m.SetState("3", "PAID")
	after := m.All()
	if len(after) != 2 || after[0].State != "PENDING" || after[1].State != "PAID" || after[0].Provider != "demo" {
		t.Errorf("got %+v", after)
	}
	if before[1].State != "PENDING" {
		t.Error("an answer changed after it was given")
	}
}
