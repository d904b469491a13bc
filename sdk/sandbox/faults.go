package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Fault is something that goes wrong on order.
type Fault string

// The closed set of faults.
const (
	// FaultLatency waits before doing it.
	FaultLatency Fault = "latency"
	// FaultError500 answers 500 without doing it.
	FaultError500 Fault = "error_500"
	// FaultError500After does it and answers 500.
	FaultError500After Fault = "error_500_after"
	// FaultDropBefore cuts the connection without doing it.
	FaultDropBefore Fault = "drop_before"
	// FaultDropAfter does it and cuts the connection.
	FaultDropAfter Fault = "drop_after"
	// FaultGarbage does it and answers nonsense.
	FaultGarbage Fault = "garbage"
)

var allFaults = []Fault{
	FaultLatency, FaultError500, FaultError500After, FaultDropBefore, FaultDropAfter, FaultGarbage,
}

// maxFaultBody is how much of a request is kept while a fault is played.
const maxFaultBody = 1 << 20

// Operation is a call of the upstream's API that faults can be ordered for.
type Operation struct {
	Name       string `json:"name"`
	MovesMoney bool   `json:"moves_money"`
}

// Faults is the queue of ordered faults. It is forgotten at a restart: faults
// are a tester's order and not the upstream's state.
type Faults struct {
	// ServerError answers for both errors 500 in the upstream's own words; nil
	// answers in ours. It is set before the first request.
	ServerError http.Handler

	clock   Clock
	latency time.Duration

	mu         sync.Mutex
	operations []Operation
	queue      []order
}

type order struct {
	fault     Fault
	operation string
	count     int
}

// NewFaults returns an empty queue; latency is how long FaultLatency takes.
func NewFaults(clock Clock, latency time.Duration) *Faults {
	return &Faults{clock: clock, latency: latency}
}

// Add orders a fault for the next calls of an operation, so many times.
// Without an operation it hits the next calls that move money.
func (f *Faults) Add(fault Fault, operation string, count int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Contains(allFaults, fault) {
		return fmt.Errorf("unknown fault %q, known are %q", fault, allFaults)
	}
	if count < 1 {
		return fmt.Errorf("count must be at least 1")
	}
	if operation != "" && !slices.ContainsFunc(f.operations, func(o Operation) bool { return o.Name == operation }) {
		return fmt.Errorf("unknown operation %q, known are %s", operation, f.names())
	}
	f.queue = append(f.queue, order{fault, operation, count})
	return nil
}

func (f *Faults) names() string {
	names := make([]string, len(f.operations))
	for i, o := range f.operations {
		names[i] = o.Name
	}
	return strings.Join(names, ", ")
}

// Operations returns what was wrapped, in that order.
func (f *Faults) Operations() []Operation {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.operations)
}

// Wrap declares an operation and lets ordered faults hit its handler. It
// belongs inside of authentication: a call that is refused uses no fault up.
func (f *Faults) Wrap(operation string, movesMoney bool, h http.Handler) http.Handler {
	op := Operation{operation, movesMoney}
	f.mu.Lock()
	if !slices.Contains(f.operations, op) {
		f.operations = append(f.operations, op)
	}
	f.mu.Unlock()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fault, hit := f.take(op)
		if !hit {
			h.ServeHTTP(w, r)
			return
		}
		detached, err := detach(r)
		if err != nil {
			cut(w)
			return
		}
		f.play(fault, h, w, detached)
	})
}

func (f *Faults) take(op Operation) (Fault, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.queue {
		o := &f.queue[i]
		if o.operation != op.Name && (o.operation != "" || !op.MovesMoney) {
			continue
		}
		fault := o.fault
		if o.count--; o.count == 0 {
			f.queue = slices.Delete(f.queue, i, i+1)
		}
		return fault, true
	}
	return "", false
}

// detach makes the request independent of its connection: an upstream that has
// received a call does it, also when the caller has hung up meanwhile.
func detach(r *http.Request) (*http.Request, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxFaultBody))
	if err != nil {
		return nil, err
	}
	r = r.WithContext(context.WithoutCancel(r.Context()))
	r.Body = io.NopCloser(bytes.NewReader(body))
	return r, nil
}

func (f *Faults) play(fault Fault, h http.Handler, w http.ResponseWriter, r *http.Request) {
	switch fault {
	case FaultLatency:
		<-f.clock.Reach(f.clock.Now().Add(f.latency))
		h.ServeHTTP(w, r)
	case FaultError500:
		f.error500(w, r)
	case FaultError500After:
		h.ServeHTTP(&unheard{header: http.Header{}}, r)
		f.error500(w, r)
	case FaultDropBefore:
		cut(w)
	case FaultDropAfter:
		h.ServeHTTP(&unheard{header: http.Header{}}, r)
		cut(w)
	case FaultGarbage:
		h.ServeHTTP(&unheard{header: http.Header{}}, r)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		_, _ = io.WriteString(w, "{\"\x00%%% garbage ]")
	}
}

func (f *Faults) error500(w http.ResponseWriter, r *http.Request) {
	if f.ServerError != nil {
		f.ServerError.ServeHTTP(w, r)
		return
	}
	writeError(w, http.StatusInternalServerError, "internal error")
}

// cut resets the TCP connection, so that the caller learns nothing.
func cut(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // the documented way to drop a connection that cannot be hijacked
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// unheard is an answer that nobody will read.
type unheard struct {
	header http.Header
}

// Header implements http.ResponseWriter.
func (u *unheard) Header() http.Header { return u.header }

// Write implements http.ResponseWriter.
func (u *unheard) Write(p []byte) (int, error) { return len(p), nil }

// WriteHeader implements http.ResponseWriter.
func (u *unheard) WriteHeader(int) {}
