package xendit

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// hangUp cuts the connection without an answer.
func hangUp(t *testing.T, w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Errorf("hijack: %v", err)
		return
	}
	_ = conn.Close()
}

// A kept connection that the server closes just as it is used again is where
// net/http replays requests. None that makes something may be among them.
func TestNoCreateIsSentTwice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ path, body, warm string }{
		{"/v2/invoices", linkBody, anInvoice("PENDING", "")},
		{"/qr_codes", qrisBody, aQR("ACTIVE", "")},
	} {
		t.Run(c.path, func(t *testing.T) {
			t.Parallel()
			var posts atomic.Int32
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost && r.URL.Path == c.path && posts.Add(1) == 1 {
					_, _ = fmt.Fprint(w, c.warm)
					return
				}
				hangUp(t, w)
			})
			a := newAdapter()
			if result := a.create(t.Context(), createCall(connect(t, url), c.body)); result.Outcome != sdk.Pending {
				t.Fatalf("the first call: %+v", result)
			}
			second := createCall(connect(t, url), c.body)
			second.Reference = "gb-0002"
			if result := a.create(t.Context(), second); result.Outcome != sdk.Unknown || result.Blame != sdk.BlameUpstream {
				t.Errorf("got %+v, want unknown", result)
			}
			if got := posts.Load(); got != 2 {
				t.Errorf("two calls sent %d requests", got)
			}
		})
	}
}

func TestNoCreateIsReplayedOnClosedIdleConnections(t *testing.T) {
	t.Parallel()
	var posts atomic.Int32
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		posts.Add(1)
		answer := anInvoice("PENDING", "")
		w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
		_, _ = fmt.Fprint(w, answer)
		// The whole answer is out, and the connection goes while the client keeps it.
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Errorf("flush: %v", err)
		}
		hangUp(t, w)
	})
	a := newAdapter()
	const calls = 50
	for i := range calls {
		call := createCall(connect(t, url), linkBody)
		call.Reference += strconv.Itoa(i)
		a.create(t.Context(), call)
	}
	if got := posts.Load(); got > calls {
		t.Errorf("%d calls sent %d requests", calls, got)
	}
}

func TestNothingIsSentAfterSendBy(t *testing.T) {
	t.Parallel()
	up := newStub(t, nil)
	for _, body := range []string{linkBody, qrisBody} {
		call := createCall(connect(t, up.url), body)
		call.SendBy = time.Now().Add(-time.Millisecond)
		if result := newAdapter().create(t.Context(), call); result.Outcome != sdk.NotSent {
			t.Errorf("create: %+v", result)
		}
		call.ProviderReference = invoiceID
		if result := newAdapter().cancel(t.Context(), call); result.Outcome != sdk.NotSent {
			t.Errorf("cancel: %+v", result)
		}
	}
	if asked := up.asked(); len(asked) != 0 {
		t.Errorf("the upstream was asked %v", asked)
	}
}

// nobodyListens is an address that stays dead: the port is below those that the system gives to listeners and connections,
// while one that was closed may be another test's at once.
const nobodyListens = "http://127.0.0.1:1"

func TestWhatNeverGotAConnectionWasNotSent(t *testing.T) {
	t.Parallel()
	tlsToPlain := strings.Replace(newStub(t, nil).url, "http://", "https://", 1)
	for name, url := range map[string]string{"nobody there": nobodyListens, "no handshake": tlsToPlain} {
		c := connect(t, url)
		if result := newAdapter().create(t.Context(), createCall(c, linkBody)); result.Outcome != sdk.NotSent || result.Blame != sdk.BlameUpstream {
			t.Errorf("%s: create: %+v", name, result)
		}
		if found := newAdapter().lookup(t.Context(), lookupOf(c, linkBody, "")); found.Status != sdk.StatusUnknown || found.Blame != sdk.BlameUpstream {
			t.Errorf("%s: lookup: %+v", name, found)
		}
	}
}

// A server that takes the request and never answers, until the test ends.
func silent(t *testing.T) (url string, arrived <-chan struct{}) {
	t.Helper()
	got, done := make(chan struct{}, 8), make(chan struct{})
	url = serve(t, func(http.ResponseWriter, *http.Request) {
		got <- struct{}{}
		<-done
	})
	t.Cleanup(func() { close(done) }) // before the server is closed, which waits
	return url, got
}

func TestTheDeadlineEndsACallAsUnknown(t *testing.T) {
	t.Parallel()
	url, _ := silent(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	result := newAdapter().create(ctx, createCall(connect(t, url), linkBody))
	if result.Outcome != sdk.Unknown || result.Blame != sdk.BlameUpstream {
		t.Errorf("got %+v", result)
	}
}

func TestOurOwnHangUpIsNobodysFault(t *testing.T) {
	t.Parallel()
	url, arrived := silent(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		<-arrived
		cancel()
	}()
	result := newAdapter().create(ctx, createCall(connect(t, url), linkBody))
	if result.Outcome != sdk.Unknown || result.Blame != sdk.BlameNone {
		t.Errorf("got %+v", result)
	}
}

func TestAnAnswerCutShortIsUnknown(t *testing.T) {
	t.Parallel()
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "5000")
		_, _ = fmt.Fprint(w, anInvoice("PENDING", ""))
	})
	if result := newAdapter().create(t.Context(), createCall(connect(t, url), linkBody)); result.Outcome != sdk.Unknown {
		t.Errorf("got %+v", result)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	elsewhere := newStub(t, map[string]reply{"POST /v2/invoices": {200, anInvoice("PENDING", "")}})
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.url+r.URL.Path, http.StatusTemporaryRedirect)
	})
	if result := newAdapter().create(t.Context(), createCall(connect(t, url), linkBody)); result.Outcome != sdk.Unknown {
		t.Errorf("got %+v", result)
	}
	if asked := elsewhere.asked(); len(asked) != 0 {
		t.Errorf("the key went elsewhere: %v", asked)
	}
}

// An upstream that quotes the key in everything it says.
func TestTheKeyIsInNoText(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 400, 401, 404, 500} {
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			key, _, _ := r.BasicAuth()
			w.Header().Set("Request-Id", key)
			w.WriteHeader(status)
			_, _ = fmt.Fprintf(w, `{"error_code":"E_%s","message":"bad key %s","errors":[{"field":["amount"],"messages":["%s"]}],"amount":"%s"}`, key, key, key, key)
		})
		c := connect(t, url)
		a := newAdapter()
		text := fmt.Sprintf("%+v", a.create(t.Context(), createCall(c, linkBody))) +
			fmt.Sprintf("%+v", a.create(t.Context(), createCall(c, qrisBody))) +
			fmt.Sprintf("%+v", a.lookup(t.Context(), lookupOf(c, linkBody, invoiceID))) +
			fmt.Sprintf("%+v", a.cancel(t.Context(), cancelCall(c, invoiceID)))
		if strings.Contains(text, testKey) {
			t.Errorf("status %d: the key is in %s", status, text)
		}
		if !strings.Contains(text, "[secret]") {
			t.Errorf("status %d: the upstream's words are lost: %s", status, text)
		}
	}
}
