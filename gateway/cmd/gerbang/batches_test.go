package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// counting counts calls.
type counting struct {
	bytes.Buffer
	calls int
	err   error
}

func (c *counting) Write(text []byte) (int, error) {
	c.calls++
	if c.err != nil {
		return 0, c.err
	}
	return c.Buffer.Write(text)
}

func TestLinesAreWrittenTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		to := &counting{}
		b := &batches{to: to}
		for i := range 10 {
			fmt.Fprintf(b, "line %d\n", i)
		}
		time.Sleep(batchTime - 1)
		if to.calls != 0 {
			t.Errorf("%d calls before it is time", to.calls)
		}
		time.Sleep(1 * time.Nanosecond)
		synctest.Wait()
		if lines := strings.Count(to.String(), "\n"); to.calls != 1 || lines != 10 || !strings.HasPrefix(to.String(), "line 0\nline 1\n") {
			t.Errorf("%d calls wrote %q", to.calls, to)
		}
		fmt.Fprintln(b, "the last")
		b.flush() // as at the end
		if !strings.HasSuffix(to.String(), "the last\n") {
			t.Errorf("the end wrote %q", to)
		}
		time.Sleep(batchTime)
		synctest.Wait()
		if to.calls != 2 {
			t.Errorf("%d calls, with nothing to write", to.calls)
		}
	})
}

func TestAFullBatchIsWrittenAtOnce(t *testing.T) {
	t.Parallel()
	to := &counting{}
	b := &batches{to: to}
	line := strings.Repeat("x", 99) + "\n"
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 1_000 {
				fmt.Fprint(b, line)
			}
		})
	}
	group.Wait()
	b.flush()
	if got := strings.Count(to.String(), line); got != 4_000 || to.calls < 10 || to.calls > 40 {
		t.Errorf("%d lines by %d calls", got, to.calls)
	}
}

func TestWhoWritesNextIsToldOfAFailure(t *testing.T) {
	t.Parallel()
	to := &counting{err: errors.New("no space")}
	b := &batches{to: to}
	fmt.Fprint(b, "one\n")
	b.flush()
	if _, err := b.Write([]byte("two\n")); !errors.Is(err, to.err) {
		t.Errorf("told %v", err)
	}
	to.err = nil
	if _, err := b.Write([]byte("three\n")); err != nil {
		t.Errorf("told %v again", err)
	}
	if b.flush(); to.String() != "two\nthree\n" {
		t.Errorf("wrote %q", to)
	}
}
