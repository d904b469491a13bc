package console

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Identity is the operator of a request: the name that the audit records, what the
// operator may do, and whether that includes what refused requests asked for.
type Identity struct {
	Name   string
	Role   Role
	Inputs bool
	// Of is the merchant whose person this is, "" for an operator. Nothing of another
	// merchant's is reached.
	Of tenants.MerchantID
}

// reaches tells whether the identity may name what the path is about. A movement's page
// has judged whose it is.
func (i Identity) reaches(path string) bool {
	if i.Of == "" {
		return true
	}
	for _, own := range []string{"/admin/merchants/" + string(i.Of), "/admin/movements", "/admin/plugins"} {
		if path == own || strings.HasPrefix(path, own+"/") {
			return true
		}
	}
	return false
}

// identityKey is the context's place for the operator of a request.
type identityKey struct{}

func identityOf(r *http.Request) Identity {
	identity, _ := r.Context().Value(identityKey{}).(Identity)
	return identity
}

// As serves the admin API in this process to a caller that knows who the operator is.
// Neither address nor token is asked for; roles, checks and audit are those of the
// listener. An adminapi.Client over it is how a page acts for a person.
func (c *Console) As(operator Identity) http.RoundTripper {
	return inProcess{console: c, operator: operator}
}

type inProcess struct {
	console  *Console
	operator Identity
}

// RoundTrip answers once the handler begins to: what it writes later is read while it is
// written, as from a network.
func (t inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := context.WithValue(r.Context(), identityKey{}, t.operator)
	served := r.Clone(ctx)
	if served.Body == nil {
		served.Body = http.NoBody
	}
	body, to := io.Pipe()
	answer := &pipedAnswer{header: http.Header{}, to: to, begun: make(chan struct{})}
	go func() {
		defer func() { _ = served.Body.Close() }()
		defer answer.end()
		defer func() { // as net/http does on the listener, lest a handler's bug end the process
			if cause := recover(); cause != nil {
				t.console.panicked(answer, served, cause)
			}
		}()
		t.console.answer(answer, served, t.console.begin(answer))
	}()
	select {
	case <-answer.begun:
	case <-ctx.Done():
		_ = body.Close() // whatever is still written goes nowhere
		return nil, ctx.Err()
	}
	return &http.Response{
		Status: strconv.Itoa(answer.status) + " " + http.StatusText(answer.status), StatusCode: answer.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: answer.sent, Body: body, ContentLength: -1, Request: r,
	}, nil
}

func (c *Console) panicked(w http.ResponseWriter, r *http.Request, cause any) {
	c.log.ErrorContext(r.Context(), "a request within the process panicked", "path", r.URL.Path, "cause", cause)
	c.fail(w, r, w.Header().Get(requestID), fault.New(fault.Internal, "Something went wrong on our side."))
}

// pipedAnswer hands an answer to a reader in the same process.
type pipedAnswer struct {
	header http.Header
	sent   http.Header // as they were when the answer began
	status int
	once   sync.Once
	begun  chan struct{}
	to     *io.PipeWriter
}

// Header is what the answer begins with.
func (a *pipedAnswer) Header() http.Header { return a.header }

// WriteHeader begins the answer; only the first one counts.
func (a *pipedAnswer) WriteHeader(status int) {
	a.once.Do(func() {
		a.status, a.sent = status, a.header.Clone()
		close(a.begun)
	})
}

// Write waits until the reader has read.
func (a *pipedAnswer) Write(content []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.to.Write(content)
}

func (a *pipedAnswer) end() {
	a.WriteHeader(http.StatusOK)
	_ = a.to.Close() // never fails
}
