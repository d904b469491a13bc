package upstream

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

const (
	connectTimeout = 5 * time.Second
	// callTimeout backs up the caller's deadline. Keep it under settles_within of the
	// manifest: nothing may reach the upstream later than that.
	callTimeout = 20 * time.Second
)

// NewClient makes a client with a transport of its own, so that no connection is
// shared between accounts. It takes no proxy from the environment, follows no
// redirect, and speaks HTTP/1.1 alone, where it is certain that the transport replays
// no POST that [Ask] sends.
func NewClient() *http.Client {
	dialer := &net.Dialer{Timeout: connectTimeout}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Client{
		Timeout:       callTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext:         dialer.DialContext,
			TLSHandshakeTimeout: connectTimeout,
			IdleConnTimeout:     30 * time.Second,
			MaxIdleConnsPerHost: 64,
			DisableCompression:  true,
			Protocols:           protocols,
		},
	}
}

// Answer is what an upstream answered, whatever its status.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Unanswered is why a request has no answer.
type Unanswered struct {
	Sent  bool // the upstream may have it; otherwise it is certain that it has not
	Blame sdk.Blame
	Err   error // it may quote the URL and what the upstream wrote
}

// Ask sends a request once and reads an answer of at most so many bytes.
//
// A request that was never given a connection (no name, nobody there, no handshake,
// no time) did not go out.
func Ask(client *http.Client, request *http.Request, most int64) (Answer, *Unanswered) {
	var connected atomic.Bool
	ctx := httptrace.WithClientTrace(request.Context(), &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	request = request.WithContext(ctx)
	begun, status := time.Now(), 0
	if parent := sdk.TraceParent(ctx); parent != "" {
		if request.Header = request.Header.Clone(); request.Header == nil { // it may be a map that others use
			request.Header = http.Header{}
		}
		request.Header.Set("traceparent", parent)
		defer func() {
			sdk.Exchanged(ctx, sdk.Exchange{Method: request.Method, Host: request.URL.Host, Status: status}, begun)
		}()
	}
	// Without it, and without an Idempotency-Key, net/http never sends a request with
	// a body again.
	request.GetBody = nil
	response, err := client.Do(request)
	if err != nil {
		return Answer{}, unanswered(ctx, err, connected.Load())
	}
	defer response.Body.Close()
	status = response.StatusCode
	body, err := io.ReadAll(io.LimitReader(response.Body, most+1))
	if err == nil && int64(len(body)) > most {
		err = errTooLong
	}
	if err != nil {
		return Answer{Status: response.StatusCode}, unanswered(ctx, err, true)
	}
	return Answer{response.StatusCode, response.Header, body}, nil
}

var errTooLong = errors.New("the answer is too long")

func unanswered(ctx context.Context, err error, sent bool) *Unanswered {
	if errors.Is(ctx.Err(), context.Canceled) { // our side hung up
		return &Unanswered{Sent: sent, Blame: sdk.BlameNone, Err: err}
	}
	return &Unanswered{Sent: sent, Blame: sdk.BlameUpstream, Err: err}
}
