package sandbox

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// lockPatience is how long a journal waits for its predecessor, which may need
// a moment to notice that its parent was killed.
const lockPatience = 5 * time.Second

// ErrJournalClosed is the error of a commit that came after Close.
var ErrJournalClosed = errors.New("sandbox: the journal is closed")

// Journal is an append-only file of JSON lines, each one change of state. It
// is safe for concurrent use. Writers that come while a flush runs share the
// next one.
type Journal struct {
	file   *os.File
	topics map[string]func(json.RawMessage) error
	wake   chan struct{}
	ended  chan struct{}

	mu      sync.Mutex
	open    bool   // between Replay and Close
	broken  error  // the write that failed; nothing is accepted after it
	pending *batch // not yet taken by the flusher
	last    *batch // the newest batch, flushed or not
}

// batch is what one flush writes.
type batch struct {
	lines bytes.Buffer
	err   error
	done  chan struct{}
}

// Commit is an append under way.
type Commit struct {
	batch *batch
}

// Wait returns nil once the entries are on disk.
func (c Commit) Wait() error {
	<-c.batch.done
	return c.batch.err
}

// record is one entry as it stands in the file. A line is an array of them,
// so that a half-written change is lost as a whole.
type record struct {
	Topic string          `json:"t"`
	Data  json.RawMessage `json:"d"`
}

// Entry is a change of state that is ready to be appended.
type Entry struct {
	record record
	apply  func()
	err    error
}

// OpenJournal opens or creates the file and locks it against other processes.
// Nothing can be appended before Replay.
func OpenJournal(path string) (*Journal, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lock(file); err != nil {
		return nil, errors.Join(fmt.Errorf("sandbox: another process holds %s: %w", path, err), file.Close())
	}
	return &Journal{
		file:   file,
		topics: map[string]func(json.RawMessage) error{},
		wake:   make(chan struct{}, 1),
		ended:  make(chan struct{}),
	}, nil
}

func lock(file *os.File) error {
	deadline := time.Now().Add(lockPatience)
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Topic is one kind of entry in a journal.
type Topic[E any] struct {
	name  string
	apply func(E)
}

// NewTopic declares a kind of entry, before Replay. Apply changes the state in
// memory; it is called in Replay and in Append, never by two at once for the
// same append, and must not append itself. E must survive JSON.
func NewTopic[E any](j *Journal, name string, apply func(E)) *Topic[E] {
	j.topics[name] = func(data json.RawMessage) error {
		var e E
		if err := json.Unmarshal(data, &e); err != nil {
			return err
		}
		apply(e)
		return nil
	}
	return &Topic[E]{name, apply}
}

// Entry makes a change ready for Append.
func (t *Topic[E]) Entry(e E) Entry {
	data, err := json.Marshal(e)
	return Entry{record{t.name, data}, func() { t.apply(e) }, err}
}

// Replay applies everything in the file, cuts off a half-written last line,
// and opens the journal for appending. It is called once.
func (j *Journal) Replay() error {
	reader := bufio.NewReaderSize(j.file, 1<<16)
	var whole int64
	for number := 1; ; number++ {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := j.applyLine(line); err != nil {
			return fmt.Errorf("sandbox: journal line %d: %w", number, err)
		}
		whole += int64(len(line))
	}
	if err := j.file.Truncate(whole); err != nil {
		return err
	}
	j.mu.Lock()
	j.open = true
	j.mu.Unlock()
	go j.flush()
	return nil
}

func (j *Journal) applyLine(line []byte) error {
	var records []record
	if err := json.Unmarshal(line, &records); err != nil {
		return err
	}
	for _, r := range records {
		apply, ok := j.topics[r.Topic]
		if !ok {
			return fmt.Errorf("unknown topic %q", r.Topic)
		}
		if err := apply(r.Data); err != nil {
			return fmt.Errorf("topic %q: %w", r.Topic, err)
		}
	}
	return nil
}

// Append applies the entries at once and writes them as one: after a crash all
// of them are there or none. Whoever holds a lock that guards the state may
// call Append under it (that keeps file and memory in the same order) and
// Wait after releasing it. Nothing is applied when the journal is closed or a
// write has failed; Wait then says so.
func (j *Journal) Append(entries ...Entry) Commit {
	records := make([]record, len(entries))
	for i, e := range entries {
		if e.err != nil {
			return refused(e.err)
		}
		records[i] = e.record
	}
	line, err := json.Marshal(records)
	if err != nil {
		return refused(err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.broken != nil {
		return refused(j.broken)
	}
	if !j.open {
		return refused(ErrJournalClosed)
	}
	for _, e := range entries {
		e.apply()
	}
	if j.pending == nil {
		j.pending = &batch{done: make(chan struct{})}
		j.last = j.pending
	}
	j.pending.lines.Write(append(line, '\n'))
	select {
	case j.wake <- struct{}{}:
	default: // the flusher already knows
	}
	return Commit{j.pending}
}

func refused(err error) Commit {
	b := &batch{err: err, done: make(chan struct{})}
	close(b.done)
	return Commit{b}
}

// Sync waits until everything appended so far is on disk: what is read and
// shown to others after it cannot be lost any more.
func (j *Journal) Sync() error {
	j.mu.Lock()
	last := j.last
	j.mu.Unlock()
	if last == nil {
		return nil
	}
	return Commit{last}.Wait()
}

// flush writes one batch after the other; a batch is what arrived meanwhile.
func (j *Journal) flush() {
	defer close(j.ended)
	for range j.wake {
		j.mu.Lock()
		b := j.pending
		j.pending = nil
		j.mu.Unlock()
		if b == nil {
			continue
		}
		b.err = j.write(b.lines.Bytes())
		b.lines = bytes.Buffer{}
		close(b.done)
	}
}

// write puts a batch on disk. After a failure nothing more is written: the
// file may end in half a line, which only Replay can mend.
func (j *Journal) write(lines []byte) error {
	j.mu.Lock()
	err := j.broken
	j.mu.Unlock()
	if err != nil {
		return err
	}
	if _, err = j.file.Write(lines); err == nil {
		err = j.file.Sync()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.broken = err
	return err
}

// Close flushes what was appended and closes the file.
func (j *Journal) Close() error {
	j.mu.Lock()
	wasOpen := j.open
	j.open = false
	j.mu.Unlock()
	if wasOpen {
		// A woken flusher finds its batch before it finds the channel closed.
		close(j.wake)
		<-j.ended
	}
	return j.file.Close()
}
