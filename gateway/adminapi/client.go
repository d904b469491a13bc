package adminapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

const (
	clientTimeout = 30 * time.Second
	maxAnswer     = 16 << 20
)

// MostListed is the most entries that one answer lists.
const MostListed = 1000

// Client speaks to the console of a running gateway. Every method returns a
// *Failure when the gateway answered with one.
type Client struct {
	url   string
	token string
	http  http.Client
}

// NewClient makes a client for the console at a URL, with an operator's token.
func NewClient(url, token string) *Client {
	return &Client{url: strings.TrimRight(url, "/"), token: token, http: http.Client{
		Timeout: clientTimeout,
		// The token must not travel to where an answer points.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// NewClientOver makes a client that sends its requests through a transport which knows
// who the operator is, such as that of a console in the same process.
func NewClientOver(transport http.RoundTripper) *Client {
	c := NewClient("http://console", "")
	c.http.Transport = transport
	return c
}

// Failure is a refused request: its HTTP status and the answer's body, which is
// empty where the answer was not the console's own.
type Failure struct {
	Status int
	fault.Envelope
}

// Error is the gateway's text with the fields at fault.
func (f *Failure) Error() string {
	text := f.Message
	if text == "" {
		text = fmt.Sprintf("the console answered with status %d", f.Status)
	}
	for _, field := range f.Errors {
		if note := field.Field + " " + field.Message; !strings.Contains(text, note) {
			text += "\n  " + note
		}
	}
	return text
}

func (c *Client) send(ctx context.Context, method, path string, body any) (int, []byte, error) {
	var content []byte
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			return 0, nil, err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(content))
	if err != nil {
		return 0, nil, err
	}
	c.identify(request)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return 0, nil, c.unreached(ctx, err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	return response.StatusCode, answer, c.unreached(ctx, err)
}

// unreached makes of a request's failure an Unreachable, unless its caller has ended it.
func (c *Client) unreached(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err // without the path, which may hold an id
	}
	if misplaced := c.unspoken(err); misplaced != nil {
		return misplaced
	}
	return &Unreachable{URL: c.url, cause: err}
}

// Unreachable says that the console did not answer. What it was asked may have been done
// all the same, unless nobody took the connection.
type Unreachable struct {
	URL   string
	cause error
}

// Error names the console and says why.
func (u *Unreachable) Error() string {
	if errors.Is(u.cause, syscall.ECONNREFUSED) {
		return fmt.Sprintf("nothing listens at %s: does the gateway run there, and is this the address that its configuration calls console?", u.URL)
	}
	return fmt.Sprintf("the console at %s does not answer: %v", u.URL, u.cause)
}

// Unwrap gives the cause.
func (u *Unreachable) Unwrap() error { return u.cause }

// identify adds the token, where the client has one.
func (c *Client) identify(request *http.Request) {
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
}

func (c *Client) refused(status int, answer []byte) *Failure {
	failure := &Failure{Status: status}
	if err := json.Unmarshal(answer, &failure.Envelope); err != nil {
		failure.Envelope = fault.Envelope{} // not the console's own words
	}
	return failure
}
