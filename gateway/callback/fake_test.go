package callback_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/callback"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// callbacks are those of the store, in memory.
type callbacks struct {
	mu       sync.Mutex
	rows     map[uuid.UUID]*movement.Callback
	attempts map[uuid.UUID][]movement.CallbackAttempt
	read     time.Duration // how long a read takes, after which it returns what was due when it began
	unwrites error         // of RecordAttempt and RecordAttempts
	silent   bool          // PostponeCallbacks does not answer
	reads    int
	put      int // statements that put off
	untold   int // of tell, that fail
	told     map[uuid.UUID]int
	tells    time.Duration // how long tell takes
}

func newCallbacks() *callbacks {
	return &callbacks{rows: map[uuid.UUID]*movement.Callback{}, attempts: map[uuid.UUID][]movement.CallbackAttempt{}, told: map[uuid.UUID]int{}}
}

// add makes a callback due now.
func (q *callbacks) add(merchant, url string) uuid.UUID {
	q.mu.Lock()
	defer q.mu.Unlock()
	id := uuid.New()
	q.rows[id] = &movement.Callback{
		CallbackKey: movement.CallbackKey{Owner: movement.Owner{MerchantID: merchant, Mode: "live"}, EventID: id},
		MovementID:  movement.NewID(),
		Sequence:    1, URL: url, Body: []byte(`{}`), State: movement.CallbackWaiting,
		CreatedAt: time.Now(), DueAt: time.Now(),
	}
	return id
}

func (q *callbacks) DueCallbacks(ctx context.Context, due movement.DueCallbacks) ([]movement.Callback, error) {
	page := q.page(due)
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(q.read):
		return page, nil
	}
}

// readCount is how often it was read.
func (q *callbacks) readCount() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.reads
}

func (q *callbacks) page(due movement.DueCallbacks) []movement.Callback {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.reads++
	var page []movement.Callback
	for _, c := range q.rows {
		if c.State == movement.CallbackWaiting && !c.DueAt.After(due.Now) && !c.DueAt.Before(due.Since) &&
			slices.Contains(due.Buckets, movement.ID(c.EventID).Bucket()) && !slices.Contains(due.UnderWay, c.EventID) &&
			!slices.Contains(due.Held, c.MerchantKey()) && !slices.Contains(due.Held, c.ReceiverKey()) {
			page = append(page, *c)
		}
	}
	slices.SortFunc(page, func(a, b movement.Callback) int {
		return cmp.Or(a.DueAt.Compare(b.DueAt), slices.Compare(a.EventID[:], b.EventID[:]))
	})
	return page[:min(len(page), due.Most)]
}

func (q *callbacks) RecordAttempt(_ context.Context, a movement.CallbackAttempt) (bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.unwrites != nil {
		return false, q.unwrites
	}
	c := q.rows[a.Callback.EventID]
	if c.Tries != a.Callback.Tries || c.State != movement.CallbackWaiting {
		return false, nil
	}
	c.Tries, c.Attempts, c.State, c.DueAt = c.Tries+1, c.Attempts+1, a.Then, a.DueAt
	q.attempts[c.EventID] = append(q.attempts[c.EventID], a)
	return true, nil
}

func (q *callbacks) RecordAttempts(ctx context.Context, all []movement.CallbackAttempt) (ours []bool, err error) {
	for _, a := range all {
		one, err := q.RecordAttempt(ctx, a)
		if err != nil {
			return nil, err
		}
		ours = append(ours, one)
	}
	return ours, nil
}

func (q *callbacks) PostponeCallbacks(ctx context.Context, now time.Time, put []movement.Postponed) error {
	q.mu.Lock()
	silent := q.silent
	q.mu.Unlock()
	if silent {
		<-ctx.Done()
		return ctx.Err()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.put++
	for _, p := range put {
		if c := q.rows[p.EventID]; c.State == movement.CallbackWaiting && !c.DueAt.After(now) {
			c.DueAt = p.Until
		}
	}
	return nil
}

// tell notes what is told to be dead, of which the first can't be told.
func (q *callbacks) tell(ctx context.Context, c movement.Callback, _ string) error {
	q.mu.Lock()
	takes := q.tells
	q.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return ctx.Err()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.untold > 0 {
		q.untold--
		return errors.New("nobody can be told")
	}
	q.told[c.EventID]++
	return nil
}

func (q *callbacks) GiveUpCallbacks(_ context.Context, now time.Time, over []movement.CallbackKey) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, key := range over {
		if c := q.rows[key.EventID]; c.State == movement.CallbackWaiting && !c.DueAt.After(now) {
			c.State, c.DueAt = movement.CallbackDead, time.Time{}
		}
	}
	return nil
}

func (q *callbacks) change(work func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	work()
}

func (q *callbacks) of(id uuid.UUID) (movement.Callback, []movement.CallbackAttempt) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return *q.rows[id], q.attempts[id]
}

// left counts what waits.
func (q *callbacks) left() (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, c := range q.rows {
		if c.State == movement.CallbackWaiting {
			n++
		}
	}
	return n
}

// sent is one send that began.
type sent struct {
	url string
	at  time.Time
}

// sender answers by URL. What is not named is delivered at once.
type sender struct {
	mu      sync.Mutex
	answers map[string]reply
	sends   map[string][]sent // by event
}

type reply struct {
	outcome callback.Outcome
	takes   time.Duration
}

func newSender() *sender { return &sender{answers: map[string]reply{}, sends: map[string][]sent{}} }

func (s *sender) Send(ctx context.Context, m callback.Message, _ callback.Secrets) callback.Attempt {
	s.mu.Lock()
	answer := s.answers[m.URL]
	at := time.Now()
	s.sends[m.ID] = append(s.sends[m.ID], sent{m.URL, at})
	s.mu.Unlock()
	select {
	case <-ctx.Done():
		answer.outcome = callback.Aborted
	case <-time.After(answer.takes):
	}
	return callback.Attempt{At: at, Duration: time.Since(at), Outcome: cmp.Or(answer.outcome, callback.Delivered)}
}

func (s *sender) answer(url string, r reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[url] = r
}

// times are when an event was sent.
func (s *sender) times(id uuid.UUID) []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	var times []time.Time
	for _, one := range s.sends[id.String()] {
		times = append(times, one.at)
	}
	return times
}

// to counts the sends to a URL.
func (s *sender) to(url string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sends := range s.sends {
		for _, one := range sends {
			if one.url == url {
				n++
			}
		}
	}
	return n
}

// twice lists the events that were sent more than once.
func (s *sender) twice() (events []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, sends := range s.sends {
		if len(sends) > 1 {
			events = append(events, fmt.Sprint(id, " ", len(sends), " times"))
		}
	}
	return events
}

// keys has a secret for everybody but one merchant.
type keys struct{ without string }

func (k keys) CallbackSecrets(_ context.Context, owner movement.Owner) (callback.Secrets, error) {
	if owner.MerchantID == k.without {
		return callback.Secrets{}, errors.New("no callback secret")
	}
	return callback.Secrets{}, nil
}

// pass lets the clock of a synctest bubble run on.
func pass(d time.Duration) { <-time.After(d) }
