package decision

import (
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-f006e74d/gerbang/policy"
)

const (
	// shards is how many parts the counts are spread over, so that cores seldom wait for one another.
	shards = 16
	// mostSeries bounds the series of all minutes that are not written yet, some 200 bytes each.
	mostSeries = 1 << 17
	// inputsASecond is how many inputs of refused requests a replica keeps of a second, and mostInputs of all that are
	// not written yet.
	inputsASecond = 100
	mostInputs    = 60 * inputsASecond
)

// Input is what was known of a refused request, so that another policy can be asked about it.
type Input struct {
	ID ID
	At time.Time
	Series
	Amount *int64         // whole rupiah; nil where the operation has none
	Fields map[string]any // what the manifest offers to policies
	Quote  map[string]any // nil where none was known
	policy.Parties
	Lists []string // that held something of it
	// Limit is the digest by which payout limits count where a transfer goes, "" where that is not known.
	Limit string
	// Unused says that the request was answered all the same, because it was a replay.
	Unused bool
}

// Log counts decisions and keeps the inputs of some refused ones until they are taken to be written. What does not fit is
// dropped and counted: a flood costs neither memory nor rows. Any number of goroutines may use it; a nil log keeps nothing.
type Log struct {
	seed   maphash.Seed
	shards [shards]shard
	series atomic.Int64

	mu     sync.Mutex // of the inputs
	inputs []Input
	second int64
	kept   int // of this second

	droppedCounts, droppedInputs atomic.Int64
}

// shard is a part of the counts.
type shard struct {
	mu      sync.Mutex
	minutes map[minuteSeries]*[]Count
	_       [40]byte // on a cache line of its own
}

// minuteSeries is a series in a minute.
type minuteSeries struct {
	minute int64
	Series
}

// NewLog makes an empty log.
func NewLog() *Log {
	l := &Log{seed: maphash.MakeSeed()}
	for i := range l.shards {
		l.shards[i].minutes = map[minuteSeries]*[]Count{}
	}
	return l
}

// Count counts a decision that was made at a time.
func (l *Log) Count(at time.Time, s Series) {
	if l == nil {
		return
	}
	unix := at.Unix()
	key := minuteSeries{minute: unix / 60, Series: s}
	second := uint8(unix % 60) //nolint:gosec // below 60
	part := &l.shards[maphash.String(l.seed, s.Merchant)%shards]
	part.mu.Lock()
	defer part.mu.Unlock()
	counts := part.minutes[key]
	if counts == nil {
		if l.series.Add(1) > mostSeries {
			l.series.Add(-1)
			l.droppedCounts.Add(1)
			return
		}
		counts = &[]Count{}
		part.minutes[key] = counts
	}
	add(counts, second)
}

// add counts one in a second. Most come in the order of time.
func add(counts *[]Count, second uint8) {
	all := *counts
	at := len(all)
	for at > 0 && all[at-1].Second > second {
		at--
	}
	if at > 0 && all[at-1].Second == second {
		all[at-1].N++
		return
	}
	*counts = slices.Insert(all, at, Count{second, 1})
}

// Keep keeps the input of a refused request, as far as there is room.
func (l *Log) Keep(in Input) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if second := in.At.Unix(); second > l.second {
		l.second, l.kept = second, 0
	}
	if l.kept >= inputsASecond || len(l.inputs) >= mostInputs {
		l.droppedInputs.Add(1)
		return
	}
	l.kept++
	l.inputs = append(l.inputs, in)
}

// lookedBack is how many inputs may have been kept between a refusal and its answer.
const lookedBack = 1024

// Answered notes that a refused request, whose input was kept just now, was a replay and was answered.
func (l *Log) Answered(id ID) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.inputs) - 1; i >= max(0, len(l.inputs)-lookedBack); i-- {
		if l.inputs[i].ID == id {
			l.inputs[i].Unused = true
			return
		}
	}
}

// Minute is what was decided in a minute since the last Take.
type Minute struct {
	Start   time.Time
	Counted []Counted
	Inputs  []Input
}

// Take takes all that was counted and kept, by minutes.
func (l *Log) Take() []Minute { return l.TakeSettled(time.Time{}) }

// TakeSettled takes what Take does, but leaves the inputs of requests that came after a time: whether they are replays may not be known.
func (l *Log) TakeSettled(after time.Time) []Minute {
	if l == nil {
		return nil
	}
	minutes := map[int64]*Minute{}
	of := func(minute int64) *Minute {
		m := minutes[minute]
		if m == nil {
			m = &Minute{Start: time.Unix(minute*60, 0).UTC()}
			minutes[minute] = m
		}
		return m
	}
	for i := range l.shards {
		part := &l.shards[i]
		part.mu.Lock()
		taken := part.minutes
		part.minutes = make(map[minuteSeries]*[]Count, len(taken))
		part.mu.Unlock()
		l.series.Add(-int64(len(taken)))
		for key, counts := range taken {
			m := of(key.minute)
			m.Counted = append(m.Counted, Counted{key.Series, *counts})
		}
	}
	l.mu.Lock()
	inputs := l.inputs
	l.inputs = nil
	for i := range inputs {
		if in := inputs[i]; after.IsZero() || !in.At.After(after) {
			m := of(in.At.Unix() / 60)
			m.Inputs = append(m.Inputs, in)
		} else {
			l.inputs = append(l.inputs, in)
		}
	}
	l.mu.Unlock()
	out := make([]Minute, 0, len(minutes))
	for _, m := range minutes {
		out = append(out, *m)
	}
	slices.SortFunc(out, func(a, b Minute) int { return a.Start.Compare(b.Start) })
	return out
}

// Dropped is how many counts and inputs had no room since the start.
func (l *Log) Dropped() (counts, inputs int64) {
	if l == nil {
		return 0, 0
	}
	return l.droppedCounts.Load(), l.droppedInputs.Load()
}

// Lost counts what was taken and could not be written.
func (l *Log) Lost(m Minute) {
	for _, c := range m.Counted {
		for _, of := range c.Counts {
			l.droppedCounts.Add(int64(of.N))
		}
	}
	l.droppedInputs.Add(int64(len(m.Inputs)))
}
