package requestlog

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// Span is how long the time is in which calls end that are written together.
	Span = 10 * time.Second
	// mostOfOwner bounds what is kept of a merchant in a mode between two writes, in bytes as they came, and mostWaiting what is kept of
	// all and not written yet, of which one merchant may take an eighth. Successes leave the last quarter of a merchant's to what fails.
	mostOfOwner        = 512 << 10
	mostWaiting        = 32 << 20
	mostWaitingOfOwner = mostWaiting / 8
	// mostText is the longest User-Agent and message that are kept.
	mostText = 4 << 10
	// overhead is what an entry takes beside its bodies.
	overhead = 512
)

// Log keeps calls until they are taken to be written. What does not fit is dropped and counted. Any number of goroutines may use it.
type Log struct {
	mu      sync.Mutex
	of      map[Owner]*kept
	waits   map[string]int // bytes of each merchant that are not written, also of what is taken
	bytes   int            // of all
	dropped atomic.Int64
}

// kept is what is kept of an owner since the last write.
type kept struct {
	calls   []Call
	bytes   int
	dropped int
}

// NewLog makes an empty log.
func NewLog() *Log { return &Log{of: map[Owner]*kept{}, waits: map[string]int{}} }

func (c *Call) size() int {
	return overhead + len(c.Asked) + len(c.Answered) + len(c.Query) + len(c.Agent) + len(c.Message)
}

// leaveOut leaves out the texts that are too long: what is cut before it is masked may show half of a secret.
func (c *Call) leaveOut() {
	if len(c.Query) > MostBody {
		c.Query = ""
	}
	if len(c.Agent) > mostText {
		c.Agent = ""
	}
	if len(c.Message) > mostText {
		c.Message = ""
	}
}

// Keep keeps a call, as far as there is room. The bodies are the log's from then on.
func (l *Log) Keep(c Call) {
	c.AskedBytes, c.AnsweredBytes = max(c.AskedBytes, len(c.Asked)), max(c.AnsweredBytes, len(c.Answered))
	c.leaveOut()
	size, most, waits := c.size(), mostOfOwner, mostWaitingOfOwner
	if !c.Failed() {
		most, waits = most-most/4, waits-waits/4
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.of[c.Owner]
	if k == nil {
		k = &kept{}
		l.of[c.Owner] = k
	}
	if k.bytes+size > most || l.waits[c.Owner.Merchant]+size > waits || l.bytes+size > mostWaiting {
		k.dropped++
		l.dropped.Add(1)
		return
	}
	k.bytes += size
	l.waits[c.Owner.Merchant] += size
	l.bytes += size
	k.calls = append(k.calls, c)
}

// take takes all that is kept.
func (l *Log) take() map[Owner]*kept {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := l.of
	l.of = make(map[Owner]*kept, len(taken))
	return taken
}

// free gives the memory of what was taken of an owner back.
func (l *Log) free(of Owner, bytes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bytes -= bytes
	if l.waits[of.Merchant] -= bytes; l.waits[of.Merchant] == 0 {
		delete(l.waits, of.Merchant)
	}
}

// lose counts calls that were taken and can't be written as dropped at their owner, beside those that are counted already.
func (l *Log) lose(of Owner, calls, counted int) {
	l.dropped.Add(int64(calls))
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of[of] == nil {
		l.of[of] = &kept{}
	}
	l.of[of].dropped += calls + counted
}

// Dropped is how many calls had no room since the start.
func (l *Log) Dropped() int64 { return l.dropped.Load() }
