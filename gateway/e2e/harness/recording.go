package harness

import (
	"bytes"
	"slices"
	"strings"
	"sync"
)

// recording keeps what a process writes.
type recording struct {
	mu      sync.Mutex
	content bytes.Buffer
}

func (r *recording) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.content.Write(p)
}

func (r *recording) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.content.String()
}

// Tail is the end of what was written, without the log of ordinary requests.
func (r *recording) Tail(most int) string {
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(r.String()), "\n"), func(line string) bool {
		return strings.Contains(line, `"msg":"request"`) && !strings.Contains(line, `"status":5`)
	})
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}
