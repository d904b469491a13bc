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
	maxScratch    = 256 << 20 // bytes
	maxFiles      = 10_000
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

// tooFull says what a scratch directory has too much of.
func tooFull(dir string) string {
	var files, size int64
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // the plugin removes its files when it likes
		}
		if files++; files > maxFiles {
			return fs.SkipAll
		}
		if info, err := entry.Info(); err == nil {
			size += info.Size()
		}
		return nil
	})
	switch {
	case files > maxFiles:
		return fmt.Sprintf("it had more than %d files in its scratch directory", maxFiles)
	case size > maxScratch:
		return fmt.Sprintf("it wrote %d MiB into its scratch directory, and may write %d", size>>20, maxScratch>>20)
	}
	return ""
}
