package xendit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// apiVersion is the generation of an endpoint, where it has several.
type apiVersion string

const (
	v1 apiVersion = ""
	v2 apiVersion = "2022-07-31"
)

const (
	maxAnswer      = 1 << 20
	connectTimeout = 5 * time.Second
	// callTimeout backs up the caller's deadline. It stays under settles_within
	// of the manifest: nothing may reach the upstream later than that.
	callTimeout = 20 * time.Second
)

// client speaks to the API with one account's key.
type client struct {
	http *http.Client
	base string
	key  string
}

// newClient makes a client with a transport of its own, so that no connection
// is shared between accounts. It takes no proxy from the environment, follows
// no redirect, and speaks HTTP/1.1 alone, where it is certain that the
// transport replays no POST (see send).
func newClient(base, key string) *client {
	dialer := &net.Dialer{Timeout: connectTimeout}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &client{
		base: base,
		key:  key,
		http: &http.Client{
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
		},
	}
}

func (c *client) get(ctx context.Context, path string, v apiVersion, into any) *problem {
	return c.send(ctx, http.MethodGet, path, v, nil, into)
}

func (c *client) post(ctx context.Context, path string, v apiVersion, body, into any) *problem {
	encoded, err := json.Marshal(body)
	if err != nil {
		return &problem{verdict: turnedAway, detail: "encode the request: " + err.Error()}
	}
	return c.send(ctx, http.MethodPost, path, v, encoded, into)
}

// send sends one request and decodes a 2xx answer. It returns nil only when
// into holds that answer.
func (c *client) send(ctx context.Context, method, path string, v apiVersion, body []byte, into any) *problem {
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return &problem{verdict: turnedAway, blame: sdk.BlameAccount, detail: method + ": the URL can't be used"}
	}
	// Without it, and without an Idempotency-Key, net/http never sends a request
	// with a body again.
	request.GetBody = nil
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if v != v1 {
		request.Header.Set("Api-Version", string(v))
	}
	request.Header.Set("User-Agent", "gerbang-payments")
	request.SetBasicAuth(c.key, "")

	response, err := c.http.Do(request)
	if err != nil {
		return c.cut(ctx, method+" "+request.URL.Path, err, connected.Load())
	}
	defer response.Body.Close()
	return c.read(ctx, response, into)
}

// cut judges a request that got no answer. One that was never given a
// connection (no name, nobody there, no handshake, no time) did not go out.
func (c *client) cut(ctx context.Context, what string, err error, connected bool) *problem {
	p := &problem{verdict: unclear, blame: sdk.BlameUpstream, detail: c.clean(what + ": " + err.Error())}
	if !connected {
		p.verdict = turnedAway
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		p.blame = sdk.BlameNone // our side hung up
	}
	return p
}

func (c *client) read(ctx context.Context, response *http.Response, into any) *problem {
	what := response.Request.Method + " " + response.Request.URL.Path
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return c.cut(ctx, what, err, true)
	}
	what = fmt.Sprintf("%s: %d (Request-Id %q)", what, response.StatusCode, response.Header.Get("Request-Id"))
	if response.StatusCode/100 != 2 {
		return c.judge(what, response.StatusCode, body)
	}
	if len(body) > maxAnswer {
		return garbled(c.clean(what), "the answer is too long")
	}
	if err := json.Unmarshal(body, into); err != nil {
		return garbled(c.clean(what), c.clean(err.Error()))
	}
	return nil
}

// garbled is a success whose content can't be believed.
func garbled(what, why string) *problem {
	return &problem{verdict: unclear, blame: sdk.BlameUpstream, detail: what + ": " + why}
}
