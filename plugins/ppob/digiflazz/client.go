package digiflazz

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/upstream"
)

const maxAnswer = 8 << 20 // a price list has some thousands of products

// client speaks to the API as one account.
type client struct {
	credentials
	http *http.Client
	base string
}

func newClient(base string, c credentials) *client {
	return &client{credentials: c, http: upstream.NewClient(), base: base}
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
	sent    bool // it may have been received
	errored bool // the upstream's own error has ended it
	blame   sdk.Blame
	detail  string // for operators
}

// result is what a query or a call says of the problem.
func (p *problem) result() sdk.Result {
	if p.errored {
		return sdk.UpstreamError(p.detail)
	}
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
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+m.path, bytes.NewReader(encoded))
	if err != nil {
		return nil, &problem{blame: sdk.BlameAccount, detail: "POST: the URL can't be used"}
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "gerbang-ppob")
	if !m.sendBy.IsZero() && time.Now().After(m.sendBy) {
		return nil, &problem{detail: "send_by had passed before the request was sent"}
	}
	answer, cut := upstream.Ask(c.http, request, maxAnswer)
	if cut != nil {
		return nil, &problem{sent: cut.Sent, blame: cut.Blame, detail: c.clean(m, "POST "+m.path+": "+cut.Err.Error())}
	}
	return c.read(m, answer)
}

func (c *client) read(m message, answer upstream.Answer) (json.RawMessage, *problem) {
	var envelope struct {
		Data    json.RawMessage `json:"data"`
		Message upstream.Text   `json:"message"` // of an upstream that is broken, and has no data
	}
	if err := json.Unmarshal(answer.Body, &envelope); err != nil {
		p := c.garbled(m, fmt.Sprintf("%d: %v", answer.Status, err))
		if answer.Status == http.StatusTooManyRequests {
			p.blame = sdk.BlameLimit
		}
		return nil, p
	}
	if len(envelope.Data) == 0 || string(envelope.Data) == "null" {
		p := c.garbled(m, fmt.Sprintf("%d: the answer has no data", answer.Status))
		p.errored = answer.Status == http.StatusInternalServerError && envelope.Message == serverError
		return nil, p
	}
	return envelope.Data, nil
}

// serverError is the message of the upstream where it is broken: its framework's own.
const serverError = "Server Error"

// garbled is an answer that can't be believed.
func (c *client) garbled(m message, why string) *problem {
	return &problem{sent: true, blame: sdk.BlameUpstream, detail: c.clean(m, "POST "+m.path+": "+why)}
}

// minSecret is the length under which a secret is found in any text, and cutting
// it out would only spoil serial numbers.
const minSecret = 8

// secrets are what no text may repeat.
func (c *client) secrets(m message) []string {
	all := []string{c.key, c.secret, m.sign}
	return slices.DeleteFunc(all, func(secret string) bool { return len(secret) < minSecret })
}

// clean makes foreign text fit to be shown.
func (c *client) clean(m message, text string) string {
	return upstream.Printable(text, c.secrets(m)...)
}
