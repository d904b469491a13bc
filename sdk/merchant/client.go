package merchant

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Client calls the API with one key. [New] makes one; its fields may be changed before the
// first call.
type Client struct {
	BaseURL    string
	Key        string // sk_live_... or sk_test_...
	MerchantID string

	// Timeout bounds one attempt; New sets 60 seconds, longer than any call takes.
	Timeout time.Duration
	// Retries is how often a call is repeated where that is safe; New sets 2.
	Retries int
	// LongestWait bounds the wait before a repetition; New sets 30 seconds. An error that
	// asks for more is returned at once.
	LongestWait time.Duration
	// HTTP makes the requests; New's follows no redirects.
	HTTP *http.Client
}

// New makes a client.
func New(baseURL, key, merchantID string) *Client {
	return &Client{
		BaseURL: strings.TrimRight(baseURL, "/"), Key: key, MerchantID: merchantID,
		Timeout: time.Minute, Retries: 2, LongestWait: 30 * time.Second,
		HTTP: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
}

// Result is the answer to a call.
type Result[T any] struct {
	Data      T
	Message   string // where the call has one
	RequestID string // to quote when asking about a request
	Replayed  bool   // an earlier request under this reference was answered so
}

// Option changes one call.
type Option func(http.Header)

// WithCallbackURL has the end of what the call makes told to a URL.
func WithCallbackURL(url string) Option {
	return func(h http.Header) { h.Set("X-Callback-URL", url) }
}

// WithIdempotencyKey sets the reference of a call whose request has none. Unless set, a
// call that moves money gets a random one, so that its repetition is never a second one.
func WithIdempotencyKey(key string) Option {
	return func(h http.Header) { h.Set("Idempotency-Key", key) }
}

// NoAnswer is the error of a call whose answer did not come. Whether it was carried out is
// not known: call again with the same reference, which never makes a second.
type NoAnswer struct {
	Reference string // of a call that moves money
	Cause     error
}

func (e *NoAnswer) Error() string { return "gerbang: no answer: " + e.Cause.Error() }

// Unwrap is the cause.
func (e *NoAnswer) Unwrap() error { return e.Cause }

// Error tells what was refused and why.
func (e *Error) Error() string {
	return fmt.Sprintf("gerbang: %s: %s (sent: %s, retry: %s, request %s)", e.ErrorCode, e.Message, e.Sent, e.Retry, e.RequestID)
}

// reply is one HTTP answer.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// send makes a call and repeats it where that is safe: when no answer came, and when the
// error says that the same request may be sent again and waiting a moment can help.
func send[T any](ctx context.Context, c *Client, path string, money bool, request any, options []Option) (Result[T], error) {
	body, reference, err := c.body(request)
	if err != nil {
		return Result[T]{}, err
	}
	header := http.Header{"Authorization": {"Bearer " + c.Key}, "Content-Type": {"application/json"}}
	for _, option := range options {
		option(header)
	}
	if given := header.Get("Idempotency-Key"); reference == "" && given != "" {
		reference = given
	}
	if money && reference == "" {
		reference = rand.Text()
		header.Set("Idempotency-Key", reference)
	}
	for attempt := 0; ; attempt++ {
		var wait time.Duration
		r, err := c.post(ctx, path, header, body)
		if err != nil {
			err = &NoAnswer{Reference: reference, Cause: err}
			wait = pause(attempt)
		} else {
			var result Result[T]
			if result, err = read[T](r); err == nil {
				return result, nil
			}
			if none, is := errors.AsType[*NoAnswer](err); is {
				none.Reference = reference
			}
			wait = helps(r, err, attempt)
		}
		if wait == 0 || wait > c.LongestWait || attempt >= c.Retries || ctx.Err() != nil {
			return Result[T]{}, err
		}
		select {
		case <-ctx.Done():
			return Result[T]{}, err
		case <-time.After(wait):
		}
	}
}

// body is the request with the merchant's id, and the reference in it.
func (c *Client) body(request any) (body []byte, reference string, err error) {
	text, err := json.Marshal(request)
	if err != nil {
		return nil, "", err
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, "", err
	}
	for _, name := range []string{"external_id", "ref_id", "refund_id"} { // a refund names its payment, too
		if members[name] != nil {
			_ = json.Unmarshal(members[name], &reference) // a string of a struct of this package
		}
	}
	if c.MerchantID != "" {
		members["merchant_id"], _ = json.Marshal(c.MerchantID) // a string
	}
	body, err = json.Marshal(members)
	return body, reference, err
}

func (c *Client) post(ctx context.Context, path string, header http.Header, body []byte) (reply, error) {
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.Timeout)
		defer cancel()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.BaseURL+path, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	request.Header = header.Clone()
	response, err := c.HTTP.Do(request)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 64<<20))
	return reply{response.StatusCode, response.Header, text}, err
}

// read takes an answer apart. What is no answer of the gateway's counts as none.
func read[T any](r reply) (Result[T], error) {
	if r.status == http.StatusOK {
		var answer struct {
			Success bool
			Message string
			Data    T
		}
		if err := json.Unmarshal(r.body, &answer); err == nil && answer.Success {
			return Result[T]{
				Data: answer.Data, Message: answer.Message, RequestID: r.header.Get("X-Request-Id"),
				Replayed: r.header.Get("Idempotent-Replayed") == "true",
			}, nil
		}
	}
	var refused Error
	if json.Unmarshal(r.body, &refused) == nil && refused.ErrorCode != "" {
		return Result[T]{}, &refused
	}
	return Result[T]{}, &NoAnswer{Cause: fmt.Errorf("HTTP %d that is not Gerbang's", r.status)}
}

// helps is how long to wait before the same request is sent again, 0 for never.
func helps(r reply, err error, attempt int) time.Duration {
	refused, is := errors.AsType[*Error](err)
	if !is {
		return pause(attempt)
	}
	if refused.Retry != "later" && refused.Retry != "lookup_first" {
		return 0
	}
	if seconds, err := strconv.Atoi(r.header.Get("Retry-After")); err == nil && seconds >= 0 {
		if !refused.RetryAt.IsZero() { // tells the real time, where that is hours away
			return max(time.Until(refused.RetryAt), time.Duration(seconds)*time.Second, time.Millisecond)
		}
		return max(time.Duration(seconds)*time.Second, time.Millisecond)
	}
	if r.status == http.StatusInternalServerError {
		return pause(attempt)
	}
	return 0 // what stands in the way is not gone in a moment
}

// pause is 0.5, 1, 2 ... seconds.
func pause(attempt int) time.Duration { return 500 * time.Millisecond << min(attempt, 6) }
