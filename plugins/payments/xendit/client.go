package xendit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/upstream"
)

// apiVersion is the generation of an endpoint, where it has several.
type apiVersion string

const (
	v1 apiVersion = ""
	v2 apiVersion = "2022-07-31"
)

func (v apiVersion) header() http.Header {
	if v == v1 {
		return nil
	}
	return http.Header{"Api-Version": {string(v)}}
}

const maxAnswer = 1 << 20

// client speaks to the API with one account's key.
type client struct {
	http *http.Client
	base string
	key  string
	// token is not sent, and the upstream knows it: it could quote it.
	token string
}

func newClient(base, key, token string) *client {
	return &client{http: upstream.NewClient(), base: base, key: key, token: token}
}

func (c *client) get(ctx context.Context, path string, v apiVersion, into any) *problem {
	return c.send(ctx, http.MethodGet, path, v.header(), nil, into)
}

func (c *client) post(ctx context.Context, path string, header http.Header, body, into any) *problem {
	encoded, err := json.Marshal(body)
	if err != nil {
		return &problem{verdict: turnedAway, detail: "encode the request: " + err.Error()}
	}
	return c.send(ctx, http.MethodPost, path, header, encoded, into)
}

// send sends one request and decodes a 2xx answer. It returns nil only when
// into holds that answer.
func (c *client) send(ctx context.Context, method, path string, header http.Header, body []byte, into any) *problem {
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return &problem{verdict: turnedAway, blame: sdk.BlameAccount, detail: method + ": the URL can't be used"}
	}
	maps.Copy(request.Header, header)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	request.Header.Set("User-Agent", "gerbang-payments")
	request.SetBasicAuth(c.key, "")

	answer, cut := upstream.Ask(c.http, request, maxAnswer)
	what := method + " " + request.URL.Path
	if cut != nil {
		p := &problem{verdict: unclear, blame: cut.Blame, detail: c.clean(what + ": " + cut.Err.Error())}
		if !cut.Sent {
			p.verdict = turnedAway
		}
		return p
	}
	return c.read(what, answer, into)
}

func (c *client) read(what string, answer upstream.Answer, into any) *problem {
	what = fmt.Sprintf("%s: %d (Request-Id %q)", what, answer.Status, answer.Header.Get("Request-Id"))
	if answer.Status/100 != 2 {
		return c.judge(what, answer.Status, answer.Body)
	}
	if err := json.Unmarshal(answer.Body, into); err != nil {
		return garbled(c.clean(what), c.clean(err.Error()))
	}
	return nil
}

// garbled is a success whose content can't be believed.
func garbled(what, why string) *problem {
	return &problem{verdict: unclear, blame: sdk.BlameUpstream, detail: what + ": " + why}
}
