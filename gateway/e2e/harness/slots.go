package harness

import (
	"runtime"
	"strings"
	"sync"
	"testing"
)

// slots bound how many tests have programs of their own at once.
var slots = struct {
	free chan struct{}
	mu   sync.Mutex
	held map[string]*slot
}{free: make(chan struct{}, runtime.GOMAXPROCS(0)), held: map[string]*slot{}}

// slot is what a test and its subtests hold together.
type slot struct {
	once  sync.Once
	users int
}

// takeSlot waits until the test may have a program of its own, beside the one that stories share. A test takes one slot
// for all of its programs, and gives it back when it ends.
func takeSlot(t testing.TB) {
	if _, outlives := t.(*lifetime); outlives {
		return
	}
	test, _, _ := strings.Cut(t.Name(), "/")
	slots.mu.Lock()
	s := slots.held[test]
	if s == nil {
		s = &slot{}
		slots.held[test] = s
	}
	s.users++
	slots.mu.Unlock()
	t.Cleanup(func() {
		slots.mu.Lock()
		defer slots.mu.Unlock()
		if s.users--; s.users == 0 {
			delete(slots.held, test)
			<-slots.free
		}
	})
	s.once.Do(func() { slots.free <- struct{}{} })
}
