package callback

import (
	"sync"
	"time"
)

const (
	// failuresToOpen is how many failures in a row close a receiver's lane to
	// all but single probes.
	failuresToOpen = 5
	firstPause     = 5 * time.Second
	longestPause   = 10 * time.Minute

	// slowAnswer is from when on an answer, even a good one, keeps a place too long.
	slowAnswer = 2 * time.Second

	busyWait  = 50 * time.Millisecond
	probeWait = time.Second

	// evictionSample is how many lanes are compared when one must be forgotten.
	evictionSample = 16
)

// laneKey names a queue of its own: the merchant (with its mode, if the caller has
// modes) and the receiver, as receiverOf writes it.
type laneKey struct {
	merchant string
	receiver string
}

// laneLimits bound what is in flight at one time. Zero means the default.
type laneLimits struct {
	perLane     int // 4
	perMerchant int // an eighth of total: hosts cost a merchant nothing, so lanes alone don't bound it
	total       int // 512
	remembered  int // lanes, 16,384
}

// pace is how long a lane's receiver keeps places taken. A quick answer makes it
// quick, also a bad one, because that is the breaker's affair; a slow answer or
// none takes it one step down, so that a quick one may be slow once.
type pace int

const (
	slow pace = iota
	unknown
	quick
)

// lanes keeps receivers from delaying one another in one process. Each lane has
// a limit, which begins with one and grows with good answers, and a circuit
// breaker. Slow lanes share a quarter of the total; they and the lanes of which
// nothing is known share three quarters. So however many receivers are dead or
// slow, there is room to find out about new ones, and room for the quick.
// Memory is bounded. Time comes from the caller, and any number of goroutines
// may call.
type lanes struct {
	limits laneLimits

	mu        sync.Mutex
	lanes     map[laneKey]*lane
	merchants map[string]int // in flight, only those that have any
	inFlight  [quick + 1]int // by the lanes' pace when they began
}

// lane is what is known of one. Its circuit is open when until is set, and takes
// one probe at a time from then on.
type lane struct {
	limit    int
	inFlight int
	pace     pace
	failures int // in a row
	openings int // in a row
	until    time.Time
	probing  bool
	used     time.Time
}

// newLanes makes lanes of which nothing is known.
func newLanes(l laneLimits) *lanes {
	l.perLane = orDefault(l.perLane, 4)
	l.total = orDefault(l.total, 512)
	l.perMerchant = orDefault(l.perMerchant, max(l.total/8, l.perLane))
	// Those in flight are never forgotten, and some must be left to forget.
	l.remembered = max(orDefault(l.remembered, 16384), 2*l.total)
	return &lanes{limits: l, lanes: map[laneKey]*lane{}, merchants: map[string]int{}}
}

func orDefault(n, otherwise int) int {
	if n <= 0 {
		return otherwise
	}
	return n
}

// admit asks whether a delivery may begin. Where it may, release must be called
// with its outcome when it has ended; further calls of it do nothing. Where it
// may not, retryAt is when to ask again: the end of the pause where the receiver
// is failing, a moment later where it is only busy.
func (l *lanes) admit(key laneKey, now time.Time) (release func(Outcome, time.Time), ok bool, retryAt time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.lane(key)
	s.used = now
	if wait := l.wait(s, key, now); wait > 0 {
		return nil, false, now.Add(wait)
	}
	p := &pass{lanes: l, lane: s, merchant: key.merchant, began: now, probe: !s.until.IsZero(), pace: s.pace}
	s.inFlight++
	s.probing = p.probe
	l.inFlight[p.pace]++
	l.merchants[key.merchant]++
	return p.release, true, time.Time{}
}

// wait is how long a delivery has to, zero when it may begin.
func (l *lanes) wait(s *lane, key laneKey, now time.Time) time.Duration {
	switch {
	case now.Before(s.until):
		return s.until.Sub(now)
	case !s.until.IsZero() && s.probing:
		return probeWait
	case s.inFlight >= s.limit, l.merchants[key.merchant] >= l.limits.perMerchant, l.full(s.pace):
		return busyWait
	}
	return 0
}

// full tells whether there is no room for one more of a pace.
func (l *lanes) full(s pace) bool {
	most, doubtful := l.limits.total, l.inFlight[unknown]+l.inFlight[slow]
	return doubtful+l.inFlight[quick] >= most ||
		s != quick && doubtful >= max(most*3/4, 1) ||
		s == slow && l.inFlight[slow] >= max(most/4, 1)
}

// room is how many deliveries may begin now. Where the places of doubtful receivers are
// taken it is all: most of what is due may be theirs, and has to be read to be left out.
func (l *lanes) room() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	free := l.limits.total
	for _, taken := range l.inFlight {
		free -= taken
	}
	if free > 0 && l.full(unknown) {
		return l.limits.total
	}
	return max(free, 0)
}

// pass is a delivery in flight.
type pass struct {
	lanes    *lanes
	lane     *lane
	merchant string
	began    time.Time
	probe    bool
	pace     pace
	over     bool
}

func (p *pass) release(outcome Outcome, now time.Time) {
	l, s := p.lanes, p.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.over {
		return
	}
	p.over = true
	s.inFlight--
	l.inFlight[p.pace]--
	if l.merchants[p.merchant]--; l.merchants[p.merchant] == 0 {
		delete(l.merchants, p.merchant)
	}
	if p.probe {
		s.probing = false
	}
	switch outcome {
	case Delivered, Gone:
		s.time(now.Sub(p.began))
		s.failures, s.openings, s.until = 0, 0, time.Time{}
		s.limit = min(s.limit+1, l.limits.perLane)
	case Failed, Refused:
		s.time(now.Sub(p.began))
		s.fail(now, p.probe)
	case Aborted:
	}
}

func (s *lane) time(took time.Duration) {
	if took < slowAnswer {
		s.pace = quick
	} else {
		s.pace = max(s.pace-1, slow)
	}
}

// fail counts a failure. What began before the circuit opened and fails after
// it says nothing new.
func (s *lane) fail(now time.Time, probe bool) {
	s.limit = max(1, s.limit/2)
	open := !s.until.IsZero()
	if open && !probe {
		return
	}
	if s.failures++; open || s.failures >= failuresToOpen {
		s.until = now.Add(pause(s.openings))
		s.openings++
	}
}

// pause doubles with each opening in a row.
func pause(openings int) time.Duration {
	wait := firstPause
	for range openings {
		if wait *= 2; wait >= longestPause {
			return longestPause
		}
	}
	return wait
}

// size is how many lanes are remembered.
func (l *lanes) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.lanes)
}

// lane is the key's, made where there is none.
func (l *lanes) lane(key laneKey) *lane {
	if s := l.lanes[key]; s != nil {
		return s
	}
	if len(l.lanes) >= l.limits.remembered {
		l.forget()
	}
	s := &lane{limit: 1, pace: unknown}
	l.lanes[key] = s
	return s
}

// forget drops one idle lane of a few that are picked at random: one whose
// circuit is closed if there is any, and of those the one unused for longest.
func (l *lanes) forget() {
	var worst laneKey
	var found *lane
	sampled := 0
	for key, s := range l.lanes {
		if s.inFlight > 0 {
			continue
		}
		if found == nil || s.forgettable(found) {
			worst, found = key, s
		}
		if sampled++; sampled == evictionSample {
			break
		}
	}
	if found != nil {
		delete(l.lanes, worst)
	}
}

// forgettable tells whether it would be missed less than another.
func (s *lane) forgettable(other *lane) bool {
	if closed := s.until.IsZero(); closed != other.until.IsZero() {
		return closed
	}
	return s.used.Before(other.used)
}
