package sandbox

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"
)

// activityKeeps is how many events are kept, of all payments together.
const activityKeeps = 1000

// Kinds of an event.
const (
	// EventCall is a call of the upstream's API that came in.
	EventCall = "call"
	// EventNotification is one try of a webhook.
	EventNotification = "notification"
)

// Event is a call or a notification that has ended, without URLs, headers and
// bodies: these may hold secrets.
type Event struct {
	Number int       `json:"number"` // from 1, in the order in which they ended
	At     time.Time `json:"at"`     // when it began
	Kind   string    `json:"kind"`
	// Name is the operation that was called, or what the notification says.
	Name string `json:"name"`
	// Status is the HTTP status that was answered; 0 where none was.
	Status int `json:"status,omitempty"`
	// Reason says why there was no status.
	Reason string `json:"reason,omitempty"`
	// Milliseconds is how long it took.
	Milliseconds int64 `json:"ms"`
	// Try is which one this was, for a notification.
	Try int `json:"try,omitempty"`

	subjects []string
}

// Activity keeps what went between a simulator and the gateway, for people to
// watch. It is in memory and forgotten at a restart.
type Activity struct {
	clock Clock

	mu     sync.Mutex
	count  int
	events []Event // the oldest first
}

// newActivity returns an empty record.
func newActivity(clock Clock) *Activity { return &Activity{clock: clock} }

// About returns the kept events of a subject, the newest first; never nil.
func (a *Activity) About(subject string) []Event {
	a.mu.Lock()
	defer a.mu.Unlock()
	found := []Event{}
	for _, e := range slices.Backward(a.events[max(0, len(a.events)-activityKeeps):]) {
		if slices.Contains(e.subjects, subject) {
			found = append(found, e)
		}
	}
	return found
}

// keep adds an event that concerns something.
func (a *Activity) keep(e Event) {
	if len(e.subjects) == 0 {
		return
	}
	e.Milliseconds = a.clock.Now().Sub(e.At).Milliseconds()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.count++
	e.Number = a.count
	if len(a.events) == 2*activityKeeps { // now and then, and not at each event
		a.events = slices.Delete(a.events, 0, activityKeeps)
	}
	a.events = append(a.events, e)
}

type subjectsKey struct{}

// Concern says what the call is about that a context belongs to. It may be said
// more than once, and does nothing outside of [Activity.Watch].
func Concern(ctx context.Context, subjects ...string) {
	if known, ok := ctx.Value(subjectsKey{}).(*[]string); ok {
		*known = append(*known, subjects...)
	}
}

// Watch keeps how each call of an operation was answered. It belongs around
// [Faults.Wrap], so that it sees what the caller saw.
func (a *Activity) Watch(operation string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var subjects []string
		e := Event{At: a.clock.Now(), Kind: EventCall, Name: operation}
		seen := &witness{ResponseWriter: w}
		seen.answered = func(status int) {
			if seen.told {
				return
			}
			if seen.told, e.Status, e.subjects = true, status, subjects; status == 0 {
				e.Reason = "the connection was cut"
			}
			a.keep(e)
		}
		h.ServeHTTP(seen, r.WithContext(context.WithValue(r.Context(), subjectsKey{}, &subjects)))
		seen.answered(http.StatusOK) // what a handler that says nothing answers
	})
}

// notified keeps one try of a webhook.
func (a *Activity) notified(hook Webhook, began time.Time, try, status int, err error) {
	if hook.Subject == "" {
		return
	}
	e := Event{At: began, Kind: EventNotification, Name: hook.Says, Status: status, Try: try, subjects: []string{hook.Subject}}
	if status == 0 && err != nil {
		// The error of a client names the URL, in which a secret may be.
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err
		}
		e.Reason = err.Error()
	}
	a.keep(e)
}

// witness notes an answer before the caller can have heard it, so that who was
// answered finds it kept.
type witness struct {
	http.ResponseWriter

	answered func(status int) // 0 where the connection is cut
	told     bool
}

// WriteHeader implements http.ResponseWriter.
func (w *witness) WriteHeader(status int) {
	w.answered(status)
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *witness) Write(p []byte) (int, error) {
	w.answered(http.StatusOK)
	return w.ResponseWriter.Write(p)
}

// Hijack lets a fault cut the connection.
func (w *witness) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.answered(0)
	return http.NewResponseController(w.ResponseWriter).Hijack()
}

// Unwrap lets a controller reach the rest.
func (w *witness) Unwrap() http.ResponseWriter { return w.ResponseWriter }
