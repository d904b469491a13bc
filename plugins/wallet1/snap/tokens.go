package snap

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

const (
	// tokenTimeout bounds one request for a token, whoever waits for it.
	tokenTimeout = 10 * time.Second
	// standardLife is how long a token lives where its answer does not say.
	standardLife = 15 * time.Minute
	maxLife      = 24 * time.Hour
	// maxMargin is how long before its end a token is no longer used; of one that
	// lives shortly it is a fifth.
	maxMargin = time.Minute
)

// tokens keeps an account's token.
type tokens struct {
	mu      sync.Mutex
	current string
	until   time.Time
	flight  *flight
}

// flight is one request for a token, and those who wait for it.
type flight struct {
	done  chan struct{}
	token string
	p     *problem
}

// token gives a token that still lives, or "" where none is needed. One request
// is made for all who need it at the same time, and ends with none of them.
func (c *client) token(ctx context.Context) (string, *problem) {
	if !c.symmetric {
		return "", nil
	}
	token, f := c.tokens.board(c.now(), func(f *flight) {
		background, cancel := context.WithTimeout(context.WithoutCancel(ctx), tokenTimeout)
		defer cancel()
		c.fly(background, f)
	})
	if f == nil {
		return token, nil
	}
	select {
	case <-f.done:
		return f.token, f.p
	case <-ctx.Done():
		p := &problem{class: unsent, blame: sdk.BlameUpstream, detail: "no token came in time"}
		if errors.Is(ctx.Err(), context.Canceled) {
			p.blame = sdk.BlameNone // our side hung up
		}
		return "", p
	}
}

// board gives the token, or the flight that brings one.
func (t *tokens) board(now time.Time, start func(*flight)) (string, *flight) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current != "" && now.Before(t.until) {
		return t.current, nil
	}
	if t.flight == nil {
		t.flight = &flight{done: make(chan struct{})}
		go start(t.flight)
	}
	return "", t.flight
}

// drop forgets a token that the upstream no longer takes.
func (t *tokens) drop(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current == token {
		t.current = ""
	}
}

func (c *client) fly(ctx context.Context, f *flight) {
	asked := c.now()
	var life time.Duration
	f.token, life, f.p = c.fetchToken(ctx)
	c.tokens.mu.Lock()
	defer c.tokens.mu.Unlock()
	c.tokens.flight = nil
	if f.p == nil {
		c.tokens.current, c.tokens.until = f.token, asked.Add(life-min(maxMargin, life/5))
	}
	close(f.done)
}

// fetchToken asks for a token. Whatever goes wrong, nothing else was sent.
func (c *client) fetchToken(ctx context.Context) (token string, life time.Duration, p *problem) {
	at := timestamp(c.now())
	signature, err := c.signToken(at)
	if err != nil {
		return "", 0, &problem{class: unsent, blame: sdk.BlameAccount, detail: "the private key can't sign"}
	}
	m := message{
		path: c.base + c.paths[tokenB2B.name], header: http.Header{},
		body: []byte(`{"grantType":"client_credentials"}`), secrets: []string{c.secret, signature},
	}
	m.header.Set("X-TIMESTAMP", at)
	m.header.Set("X-CLIENT-KEY", c.clientID)
	m.header.Set("X-SIGNATURE", signature)
	status, answer, p := c.post(ctx, m)
	if p != nil {
		return "", 0, p.ofToken()
	}
	var granted struct {
		AccessToken text `json:"accessToken"`
		ExpiresIn   text `json:"expiresIn"`
	}
	if json.Unmarshal(answer, &granted) == nil {
		m.secrets = append(m.secrets, string(granted.AccessToken))
	}
	if p := judge(tokenB2B, m, status, answer); p != nil {
		return "", 0, p.ofToken()
	}
	if granted.AccessToken == "" {
		return "", 0, m.garbled("the answer has no accessToken").ofToken()
	}
	return string(granted.AccessToken), lifeOf(string(granted.ExpiresIn)), nil
}

// ofToken is a problem with the token, before anything else was sent. An answer
// that is no answer is the upstream's fault, a no is about our account.
func (p *problem) ofToken() *problem {
	if !slices.Contains([]class{unsent, throttled, unlisted, errored, underway}, p.class) {
		p.blame = sdk.BlameAccount
	}
	p.class = unsent
	p.detail = "token: " + p.detail
	return p
}

func lifeOf(seconds string) time.Duration {
	n, err := strconv.ParseInt(seconds, 10, 32)
	if err != nil || n <= 0 {
		return standardLife
	}
	return min(time.Duration(n)*time.Second, maxLife)
}
