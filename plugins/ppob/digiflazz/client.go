package digiflazz

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
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/seed-f006e74d/gerbang/sdk"
)

const (
	maxAnswer      = 8 << 20 // a price list has some thousands of products
	connectTimeout = 5 * time.Second
	// callTimeout backs up the caller's deadline. It stays under settles_within
	// of the manifest: nothing may reach the upstream later than that.
	callTimeout = 20 * time.Second
)

// client speaks to the API as one account.
type client struct {
	credentials
	http *http.Client
	base string
}

// newClient makes a client with a transport of its own, so that no connection
// is shared between accounts. It takes no proxy from the environment, follows
// no redirect, and speaks HTTP/1.1 alone, where it is certain that the
// transport replays no POST (see post).
func newClient(base string, c credentials) *client {
	dialer := &net.Dialer{Timeout: connectTimeout}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &client{
		credentials: c,
		base:        base,
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

// message is one request: what is sent where, and the signature in it, which no
// text may repeat.
type message struct {
	path   string
	sign   string
	body   any
	sendBy time.Time // zero for any time
}

// problem is why a request has no answer that could be read.
type problem struct {
	sent   bool // it may have been received
	blame  sdk.Blame
	detail string // for operators
}

// result is what a query or a call says of the problem.
func (p *problem) result() sdk.Result {
	if p.sent {
		return sdk.DontKnow(p.blame, p.detail)
	}
	return sdk.DidNotSend(p.blame, p.detail)
}

// post sends one request and gives the answer's data, whatever its HTTP status:
// the upstream reports faults in the same form as successes.
func (c *client) post(ctx context.Context, m message) (json.RawMessage, *problem) {
	encoded, err := json.Marshal(m.body)
	if err != nil {
		return nil, &problem{detail: "encode the request: " + err.Error()}
	}
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+m.path, bytes.NewReader(encoded))
	if err != nil {
		return nil, &problem{blame: sdk.BlameAccount, detail: "POST: the URL can't be used"}
	}
	// Without it, and without an Idempotency-Key, net/http never sends a request
	// with a body again.
	request.GetBody = nil
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "gerbang-ppob")
	if !m.sendBy.IsZero() && time.Now().After(m.sendBy) {
		return nil, &problem{detail: "send_by had passed before the request was sent"}
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, c.cut(ctx, m, err, connected.Load())
	}
	defer response.Body.Close()
	return c.read(ctx, m, response)
}

// cut judges a request that got no answer. One that was never given a
// connection (no name, nobody there, no handshake, no time) did not go out.
func (c *client) cut(ctx context.Context, m message, err error, connected bool) *problem {
	p := &problem{sent: connected, blame: sdk.BlameUpstream, detail: c.clean(m, "POST "+m.path+": "+err.Error())}
	if errors.Is(ctx.Err(), context.Canceled) {
		p.blame = sdk.BlameNone // our side hung up
	}
	return p
}

func (c *client) read(ctx context.Context, m message, response *http.Response) (json.RawMessage, *problem) {
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return nil, c.cut(ctx, m, err, true)
	}
	if len(body) > maxAnswer {
		return nil, c.garbled(m, fmt.Sprintf("%d: the answer is too long", response.StatusCode))
	}
	var envelope struct {
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(body, &envelope); err != nil {
		return nil, c.garbled(m, fmt.Sprintf("%d: %v", response.StatusCode, err))
	}
	if len(envelope.Data) == 0 || string(envelope.Data) == "null" {
		return nil, c.garbled(m, fmt.Sprintf("%d: the answer has no data", response.StatusCode))
	}
	return envelope.Data, nil
}

// garbled is an answer that can't be believed.
func (c *client) garbled(m message, why string) *problem {
	return &problem{sent: true, blame: sdk.BlameUpstream, detail: c.clean(m, "POST "+m.path+": "+why)}
}

const maxText = 300

// minSecret is the length under which a secret is found in any text, and cutting
// it out would only spoil serial numbers.
const minSecret = 8

// hide cuts what is secret out of foreign text, which might quote it.
func (c *client) hide(m message, text string) string {
	for _, secret := range []struct{ value, name string }{{c.key, "[key]"}, {c.secret, "[secret]"}, {m.sign, "[sign]"}} {
		if len(secret.value) >= minSecret {
			text = strings.ReplaceAll(text, secret.value, secret.name)
		}
	}
	return text
}

// clean makes foreign text fit to be shown: short, printable, and without what
// is secret.
func (c *client) clean(m message, text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, c.hide(m, text))
	if runes := []rune(text); len(runes) > maxText {
		text = string(runes[:maxText]) + "…"
	}
	return text
}
