package approval

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/host"
)

// Files is the directory that approved binaries run from, each named by its SHA-256. Any
// goroutine may use it.
type Files struct {
	dir string

	mu    sync.Mutex
	known map[string]seen // by name
}

// seen is a file as it was when its digest was last reckoned.
type seen struct {
	size  int64
	at    time.Time
	whole bool // its name is its digest
}

// NewFiles makes the view of a directory, which need not be there. "" has no files.
func NewFiles(dir string) *Files { return &Files{dir: dir, known: map[string]seen{}} }

// Dir is the directory's path, "" for none.
func (f *Files) Dir() string { return f.dir }

// Path is where the binary of a digest lies.
func (f *Files) Path(sha256 string) string { return filepath.Join(f.dir, sha256) }

// Has tells whether the whole binary of a digest is there.
func (f *Files) Has(sha256 string) bool { return slices.Contains(f.List(), sha256) }

// List names the whole binaries that are there, sorted. One that is still being copied
// is none.
func (f *Files) List() []string {
	list := []string{}
	if f.dir == "" {
		return list
	}
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return list
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, entry := range entries {
		const digits = 64
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() || len(entry.Name()) != digits {
			continue
		}
		now := seen{size: info.Size(), at: info.ModTime()}
		if before, there := f.known[entry.Name()]; there && before.size == now.size && before.at.Equal(now.at) {
			now = before
		} else {
			sum, err := host.SHA256File(f.Path(entry.Name()))
			now.whole = err == nil && sum == entry.Name()
		}
		f.known[entry.Name()] = now
		if now.whole {
			list = append(list, entry.Name())
		}
	}
	return list
}
