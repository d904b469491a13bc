package host

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/confine"
)

const (
	defaultMemory = 512 << 20 // bytes
	maxFiles      = 10_000
	maxKept       = 512 << 20 // bytes of all files, of a simulator's: a plugin's are empty
	lookEvery     = 100 * time.Millisecond
)

// bound measures a process until it is reaped, and kills one that takes more of the
// machine than it may have. The kernel bounds none of this for a single process.
func (p *program) bound(memory int64) {
	ticks := time.NewTicker(lookEvery)
	defer ticks.Stop()
	for n := 0; ; n++ {
		select {
		case <-p.done:
			return
		case <-ticks.C:
		}
		excess := p.excess(memory)
		if excess == "" && n%10 == 0 {
			excess = tooFull(p.scratch)
		}
		if excess != "" {
			p.killedFor.CompareAndSwap(nil, &excess)
			_ = p.Kill(context.Background()) // it looks again, unless the process is gone
		}
	}
}

// excess says what a process has too much of.
func (p *program) excess(memory int64) string {
	used, err := confine.UsageOf(int(p.pid.Load()))
	switch {
	case err != nil: // it has just ended, or this is no Linux
		return ""
	case used.Memory > memory:
		return fmt.Sprintf("it used %d MiB of memory, and may use %d", used.Memory>>20, memory>>20)
	case used.Threads > confine.MaxThreads:
		return fmt.Sprintf("it had %d threads, and may have %d", used.Threads, confine.MaxThreads)
	}
	return ""
}

// tooFull says whether a scratch directory has too much in it.
func tooFull(dir string) (excess string) {
	files, kept := -1, int64(0) // itself
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil { // the program can't bring this about; it may have just ended
			return nil //nolint:nilerr // what is gone takes no room
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			kept += info.Size()
		}
		files++
		switch {
		case files > maxFiles:
			excess = fmt.Sprintf("it had more than %d files in its scratch directory", maxFiles)
		case kept > maxKept:
			excess = fmt.Sprintf("it had more than %d MiB in its scratch directory", maxKept>>20)
		default:
			return nil
		}
		return fs.SkipAll
	})
	return excess
}

// memoryLimit tells Go's collector to work harder before the process is killed for what
// it uses. Other languages don't know it.
func memoryLimit(memory int64) string { return fmt.Sprintf("GOMEMLIMIT=%d", memory/5*4) }
