package harness

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/database"
	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
)

// CallbacksWithin is what deliveries may take when something went wrong: leases
// of a dead replica run out after 10 s, and so does a send.
const CallbacksWithin = 30 * time.Second

// ActsWithin is how soon a replica acts on what an operator did.
const ActsWithin = 2 * time.Second

// ResolvesWithin is what the longest story takes: a call of which nothing came
// back is proven never sent by two lookups, the first after send_by and
// settles_within, which are 35 s after the claim.
const ResolvesWithin = 100 * time.Second

// PaidWithin is the bound for outcomes that the sandbox brings.
const PaidWithin = 10 * time.Second

// PolicyLiveWithin is how soon an edit of a policy is in force.
const PolicyLiveWithin = 2 * time.Second

const (
	ReadyWithin = 60 * time.Second
	StopsWithin = 15 * time.Second
	GoneWithin  = 3 * time.Second
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

var ErrTimeout = errors.New("waited in vain")

// Until asks a condition again and again, for those that nothing tells of.
func Until(within time.Duration, holds func() bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			return ErrTimeout
		case <-tick.C:
		}
	}
	return nil
}

// Await is until, for the test's own goroutine.
func Await(t testing.TB, within time.Duration, what string, holds func() bool) {
	t.Helper()
	if err := Until(within, holds); err != nil {
		t.Fatalf("%v for %s, %v", err, what, within)
	}
}

// RequirePostgreSQL skips a test whose subject is PostgreSQL's.
func RequirePostgreSQL(t testing.TB) {
	t.Helper()
	if engine := dbtest.Engine(t); engine != database.PostgreSQL {
		t.Skipf("is about PostgreSQL; this run is on %s", engine)
	}
}

// EndsWithin is when the last order has surely ended: that a bill was never sent
// is proven by two looks after two minutes, and a look that met a kill comes
// again after five.
const EndsWithin = 8 * time.Minute
