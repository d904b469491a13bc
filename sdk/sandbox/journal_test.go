package sandbox_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// tally is a journal that adds numbers up, by name.
type tally struct {
	journal *sandbox.Journal
	topic   *sandbox.Topic[tallyEvent]
	mu      sync.Mutex
	sums    map[string]int
}

type tallyEvent struct {
	Name string `json:"name"`
	Add  int    `json:"add"`
}

func openTally(t testing.TB, path string) (*tally, error) {
	t.Helper()
	journal, err := sandbox.OpenJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	c := &tally{journal: journal, sums: map[string]int{}}
	c.topic = sandbox.NewTopic(journal, "tally", func(e tallyEvent) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.sums[e.Name] += e.Add
	})
	return c, journal.Replay()
}

func mustTally(t testing.TB, path string) *tally {
	t.Helper()
	c, err := openTally(t, path)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *tally) add(name string, n int) error {
	return c.journal.Append(c.topic.Entry(tallyEvent{name, n})).Wait()
}

func (c *tally) close(t testing.TB) {
	t.Helper()
	if err := c.journal.Close(); err != nil {
		t.Error(err)
	}
}

func TestJournalSurvives(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "j")
	first := mustTally(t, path)
	for range 3 {
		if err := first.add("a", 2); err != nil {
			t.Fatal(err)
		}
	}
	commit := first.journal.Append(first.topic.Entry(tallyEvent{"a", 1}), first.topic.Entry(tallyEvent{"b", 5}))
	if first.sums["b"] != 5 {
		t.Error("an entry is not applied at once")
	}
	if err := errors.Join(commit.Wait(), first.journal.Sync()); err != nil {
		t.Fatal(err)
	}
	first.close(t)
	second := mustTally(t, path)
	defer second.close(t)
	if second.sums["a"] != 7 || second.sums["b"] != 5 {
		t.Errorf("replayed as %v", second.sums)
	}
}

// TestJournalDurableWhenAcknowledged reads the file beside the open journal,
// which is what a killed process would leave.
func TestJournalDurableWhenAcknowledged(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "j")
	c := mustTally(t, path)
	defer c.close(t)
	if err := c.add("a", 1); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil || !strings.HasSuffix(string(data), "\n") || !strings.Contains(string(data), `"add":1`) {
		t.Errorf("the file has %q, %v", data, err)
	}
}

func TestJournalCutsHalfALine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "j")
	first := mustTally(t, path)
	if err := first.add("a", 1); err != nil {
		t.Fatal(err)
	}
	commit := first.journal.Append(first.topic.Entry(tallyEvent{"a", 10}), first.topic.Entry(tallyEvent{"b", 10}))
	if err := commit.Wait(); err != nil {
		t.Fatal(err)
	}
	first.close(t)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// However much of the last line is missing, the change is gone as a whole.
	lastLine := strings.LastIndex(strings.TrimSuffix(string(data), "\n"), "\n") + 1
	for _, end := range []int{lastLine + 1, lastLine + 20, len(data) - 1} {
		if err := os.WriteFile(path, data[:end], 0o600); err != nil {
			t.Fatal(err)
		}
		c := mustTally(t, path)
		if c.sums["a"] != 1 || c.sums["b"] != 0 {
			t.Errorf("cut at %d: %v", end, c.sums)
		}
		if err := c.add("c", 3); err != nil {
			t.Fatal(err)
		}
		c.close(t)
		again := mustTally(t, path)
		if again.sums["a"] != 1 || again.sums["c"] != 3 {
			t.Errorf("cut at %d, then written: %v", end, again.sums)
		}
		again.close(t)
	}
}

func TestJournalRefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"corrupt middle": "[{\"t\":\"tally\",\n[]\n",
		"unknown topic":  `[{"t":"other","d":{}}]` + "\n",
		"wrong data":     `[{"t":"tally","d":{"add":"x"}}]` + "\n",
	} {
		path := filepath.Join(t.TempDir(), "j")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := openTally(t, path)
		if err == nil || !strings.Contains(err.Error(), "line 1") {
			t.Errorf("%s: %v", name, err)
		}
		c.close(t)
	}
}

func TestJournalBeforeReplayAndAfterClose(t *testing.T) {
	t.Parallel()
	journal, err := sandbox.OpenJournal(filepath.Join(t.TempDir(), "j"))
	if err != nil {
		t.Fatal(err)
	}
	applied := 0
	topic := sandbox.NewTopic(journal, "n", func(int) { applied++ })
	if err := journal.Append(topic.Entry(1)).Wait(); !errors.Is(err, sandbox.ErrJournalClosed) {
		t.Errorf("before Replay: %v", err)
	}
	if err := errors.Join(journal.Replay(), journal.Close()); err != nil {
		t.Fatal(err)
	}
	if err := journal.Append(topic.Entry(1)).Wait(); !errors.Is(err, sandbox.ErrJournalClosed) {
		t.Errorf("after Close: %v", err)
	}
	if applied != 0 {
		t.Errorf("%d refused entries were applied", applied)
	}
}

func TestJournalRefusesWhatIsNoJSON(t *testing.T) {
	t.Parallel()
	journal, err := sandbox.OpenJournal(filepath.Join(t.TempDir(), "j"))
	if err != nil {
		t.Fatal(err)
	}
	topic := sandbox.NewTopic(journal, "x", func(json.RawMessage) { t.Error("applied") })
	if err := journal.Replay(); err != nil {
		t.Fatal(err)
	}
	if err := journal.Append(topic.Entry(json.RawMessage("{"))).Wait(); err == nil {
		t.Error("accepted")
	}
	if err := journal.Close(); err != nil {
		t.Error(err)
	}
}

func TestJournalManyWriters(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "j")
	c := mustTally(t, path)
	var writers sync.WaitGroup
	for range 16 {
		writers.Go(func() {
			for range 50 {
				if err := c.add("a", 1); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	c.close(t)
	again := mustTally(t, path)
	defer again.close(t)
	if again.sums["a"] != 800 {
		t.Errorf("%d of 800 survived", again.sums["a"])
	}
}

// BenchmarkJournalAppend is many writers that share flushes.
func BenchmarkJournalAppend(b *testing.B) {
	c := mustTally(b, filepath.Join(b.TempDir(), "j"))
	defer c.close(b)
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := c.add("a", 1); err != nil {
				b.Error(err)
			}
		}
	})
}
