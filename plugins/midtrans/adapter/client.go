package adapter

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/upstream"
)

const maxAnswer = 1 << 20

// client speaks to both APIs with one account's key.
type client struct {
	http      *http.Client
	api, snap string
	key       string
}

func newClient(api, snap, key string) *client {
	return &client{http: upstream.NewClient(), api: api, snap: snap, key: key}
}

// ask sends one request.
func (c *client) ask(ctx context.Context, method, address string, body any) (what string, answer upstream.Answer, p *problem) {
	var encoded []byte
	if body != nil {
		var err error
		if encoded, err = json.Marshal(body); err != nil {
			return "", answer, &problem{verdict: turnedAway, detail: "encode the request: " + err.Error()}
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(encoded))
	if err != nil {
		return "", answer, &problem{verdict: turnedAway, blame: sdk.BlameAccount, detail: method + ": the URL can't be used"}
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "gerbang-midtrans")
	request.SetBasicAuth(c.key, "")
	answer, cut := upstream.Ask(c.http, request, maxAnswer)
	what = method + " " + request.URL.Path
	if cut != nil {
		p = &problem{verdict: unclear, blame: cut.Blame, detail: c.clean(what + ": " + cut.Err.Error())}
		if !cut.Sent {
			p.verdict = turnedAway
		}
		return what, answer, p
	}
	return fmt.Sprintf("%s: %d", what, answer.Status), answer, nil
}

// core asks the Core API. It returns a transaction, or why there is none. Its own
// status_code counts: it comes with an HTTP status of 2xx, or the same one. What has
// none is the word of some proxy, and proves nothing.
func (c *client) core(ctx context.Context, method, path string, body any) (transaction, *problem) {
	what, answer, p := c.ask(ctx, method, c.api+path, body)
	if p != nil {
		return transaction{}, p
	}
	var t transaction
	if err := json.Unmarshal(answer.Body, &t); err != nil {
		return transaction{}, c.foreign(what, answer.Status)
	}
	code, err := strconv.Atoi(string(t.Code))
	switch {
	case err != nil, answer.Status/100 != 2 && answer.Status != code:
		return transaction{}, c.foreign(what, answer.Status)
	case code/100 == 2 || code == codeExpired:
		return t, nil
	}
	return transaction{}, c.judge(what, code, strings.Join(append([]string{t.Message}, t.Faults...), "; "))
}

// status asks for the transaction of an order.
func (c *client) status(ctx context.Context, reference string) (transaction, *problem) {
	t, p := c.core(ctx, http.MethodGet, "/v2/"+url.PathEscape(reference)+"/status", nil)
	if p == nil && t.OrderID != reference {
		return transaction{}, garbled("GET /v2/status", "the upstream answered with another order")
	}
	return t, p
}

// clean makes foreign text fit to be shown. The key goes out in base64.
func (c *client) clean(text string) string {
	return upstream.Printable(text, c.key, base64.StdEncoding.EncodeToString([]byte(c.key+":")))
}
