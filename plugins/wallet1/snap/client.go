package snap

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/upstream"
)

const maxAnswer = 1 << 20

// client speaks to the API as one account.
type client struct {
	signer
	headers headers
	http    *http.Client
	base    string
	paths   map[string]string // by the service's name
	tokens  tokens
	now     func() time.Time
}

// headers are what every request of an account has in common.
type headers struct{ partner, channel, origin string }

func newClient(base string, s signer, now func() time.Time) *client {
	return &client{signer: s, base: base, now: now, http: upstream.NewClient()}
}

// question is one use of a service.
type question struct {
	service service
	body    any
	sendBy  time.Time // zero for any time
	into    any       // for the answer of a success, or nil
}

// ask uses a service. It is nil when the service did what was asked for, and
// the answer is read. A token that the upstream no longer takes is renewed
// once: what was turned away with it was not looked at. A conflict is tried
// once more by questions alone: its id was used before, and who used it may
// have moved the money.
func (c *client) ask(ctx context.Context, q question) *problem {
	body, err := encode(q.body)
	if err != nil {
		return &problem{class: unsent, detail: "encode the request: " + err.Error()}
	}
	p := c.try(ctx, q, body)
	if p == nil {
		return nil
	}
	if p.class == expired && c.symmetric || p.class == conflict && q.service.question {
		return c.try(ctx, q, body)
	}
	return p
}

// encode writes a body without white space, and without escapes that JSON does
// not ask for: a provider that hashes what it has parsed and written again then
// comes to the same bytes.
func encode(body any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(body)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// try makes one attempt, with its own X-EXTERNAL-ID.
func (c *client) try(ctx context.Context, q question, body []byte) *problem {
	token, p := c.token(ctx)
	if p != nil {
		return p
	}
	at := c.now()
	m := message{
		path: c.base + c.paths[q.service.name], header: http.Header{}, body: body, sendBy: q.sendBy,
		secrets: []string{c.secret, token}, externalID: newExternalID(at),
	}
	request := signed{http.MethodPost, pathOf(m.path), token, body, timestamp(at)}
	signature, err := c.sign(request)
	if err != nil {
		return &problem{class: unsent, blame: sdk.BlameAccount, detail: "the private key can't sign"}
	}
	m.secrets = append(m.secrets, signature)
	m.header.Set("X-TIMESTAMP", request.timestamp)
	m.header.Set("X-SIGNATURE", signature)
	m.header.Set("X-PARTNER-ID", c.headers.partner)
	m.header.Set("X-EXTERNAL-ID", m.externalID)
	m.header.Set("CHANNEL-ID", c.headers.channel)
	if c.headers.origin != "" {
		m.header.Set("ORIGIN", c.headers.origin)
	}
	if c.symmetric {
		m.header.Set("Authorization", "Bearer "+token)
	}
	status, answer, p := c.post(ctx, m)
	if p != nil {
		return p
	}
	if p = judge(q.service, m, status, answer); p == nil || p.class == underway {
		return p.orUnread(m, answer, q.into)
	}
	if p.class == expired {
		c.tokens.drop(token)
	}
	return p
}

// message is one HTTP request. The secrets in it are what no text may repeat.
type message struct {
	path       string // with scheme and host
	header     http.Header
	body       []byte
	sendBy     time.Time
	secrets    []string
	externalID string
}

// post sends one request and gives the status and body of its answer.
func (c *client) post(ctx context.Context, m message) (status int, answer []byte, p *problem) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, m.path, bytes.NewReader(m.body))
	if err != nil {
		return 0, nil, &problem{class: unsent, blame: sdk.BlameAccount, detail: "POST: the URL can't be used"}
	}
	request.Header = m.header
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "gerbang-wallet1")
	if !m.sendBy.IsZero() && c.now().After(m.sendBy) {
		return 0, nil, &problem{class: unsent, detail: "send_by had passed before the request was sent"}
	}
	got, cut := upstream.Ask(c.http, request, maxAnswer)
	if cut != nil {
		p := &problem{class: unsent, blame: cut.Blame, detail: m.describe(cut.Err.Error())}
		if cut.Sent {
			p.class = unlisted
		}
		return 0, nil, p
	}
	return got.Status, got.Body, nil
}

// garbled is an answer that can't be believed.
func (m message) garbled(why string) *problem {
	return &problem{class: unlisted, blame: sdk.BlameUpstream, detail: m.describe(why)}
}

// describe says what came of a request, for operators.
func (m message) describe(what string) string {
	text := "POST " + pathOf(m.path) + ": " + what
	if m.externalID != "" {
		text += " (X-EXTERNAL-ID " + m.externalID + ")"
	}
	return upstream.Printable(text, m.secrets...)
}

// pathOf is what of a URL is signed: its path with its query.
func pathOf(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		return rest[i:]
	}
	return "/"
}
