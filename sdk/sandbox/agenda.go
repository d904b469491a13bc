package sandbox

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// Agenda holds what happens later: payments that run out, outcomes that come
// delayed. It is in memory; whoever uses it fills it again while replaying.
type Agenda[K any] struct {
	clock Clock
	due   func(context.Context, K)
	wake  chan struct{}

	mu    sync.Mutex
	items agendaHeap[K]
}

// NewAgenda returns an empty agenda. Run calls due for each item whose time
// has come, one after the other.
func NewAgenda[K any](clock Clock, due func(context.Context, K)) *Agenda[K] {
	return &Agenda[K]{clock: clock, due: due, wake: make(chan struct{}, 1)}
}

// Add puts an item on the agenda. The same item may stand there many times.
func (a *Agenda[K]) Add(at time.Time, item K) {
	a.mu.Lock()
	defer a.mu.Unlock()
	heap.Push(&a.items, agendaItem[K]{at, item})
	if !a.items[0].at.Equal(at) {
		return // somebody earlier is being waited for
	}
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// Run works through the agenda until the context ends.
func (a *Agenda[K]) Run(ctx context.Context) {
	for ctx.Err() == nil {
		item, next := a.take()
		if item != nil {
			a.due(ctx, *item)
			continue
		}
		select {
		case <-ctx.Done():
		case <-a.wake:
		case <-next:
		}
	}
}

// take returns an item that is due, or a channel for the first that will be
// (nil, which never fires, when the agenda is empty).
func (a *Agenda[K]) take() (*K, <-chan time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.items) == 0 {
		return nil, nil
	}
	if first := a.items[0].at; first.After(a.clock.Now()) {
		return nil, a.clock.Reach(first)
	}
	item, _ := heap.Pop(&a.items).(agendaItem[K])
	return &item.item, nil
}

type agendaItem[K any] struct {
	at   time.Time
	item K
}

// agendaHeap implements heap.Interface, the earliest first.
type agendaHeap[K any] []agendaItem[K]

func (h agendaHeap[K]) Len() int           { return len(h) }
func (h agendaHeap[K]) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h agendaHeap[K]) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

func (h *agendaHeap[K]) Push(x any) {
	item, _ := x.(agendaItem[K])
	*h = append(*h, item)
}

func (h *agendaHeap[K]) Pop() any {
	last := len(*h) - 1
	item := (*h)[last]
	*h = (*h)[:last]
	return item
}
