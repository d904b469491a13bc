package adminapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// placeTimeout bounds each look at what is no console: the refusal is known already.
const placeTimeout = 3 * time.Second

// Misplaced says that a URL leads elsewhere than to a console, and where the console's is found.
type Misplaced struct{ URL, Is string }

// Error says what is there and what to do.
func (m *Misplaced) Error() string {
	return m.URL + " " + m.Is
}

// merchants is what stands at a URL of the merchants' side.
func (c *Client) merchants(what string) *Misplaced {
	return &Misplaced{c.url, "is the merchants' " + what + ": the admin API is at the address that the gateway's configuration calls console, of port 8081 unless it names another"}
}

// scheme is what a URL of the other scheme is told.
func (c *Client) scheme(speaks, scheme string) *Misplaced {
	_, rest, _ := strings.Cut(c.url, "://")
	return &Misplaced{c.url, speaks + ": write " + scheme + "://" + rest}
}

// CheckURL refuses what is no URL of a console, before anything is asked.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https"):
		return nil
	case !strings.Contains(text, "://") && text != "":
		return fmt.Errorf("%q has no scheme: write http://%s, or https:// where something ends TLS before the console", text, strings.TrimLeft(text, "/"))
	}
	return fmt.Errorf("%q is no URL of a console: write one such as http://127.0.0.1:8081", text)
}

// place finds out where a request went that was refused as no console refuses: by a listener of merchants, or by what wants TLS.
func (c *Client) place(ctx context.Context, failure *Failure, answer []byte) error {
	pathless := failure.Code == fault.NotFound && failure.Message == "There is no such path."
	if failure.Code != "" && !pathless || failure.Status >= http.StatusInternalServerError {
		return failure
	}
	if failure.Status == http.StatusBadRequest && strings.HasPrefix(c.url, "http:") && strings.Contains(string(answer), "HTTPS") {
		return c.scheme("speaks TLS", "https")
	}
	bare := &Client{url: c.url, http: http.Client{Timeout: placeTimeout, Transport: c.http.Transport, CheckRedirect: c.http.CheckRedirect}} // a token is for a console alone
	has := func(path, mark string) bool {
		status, body, err := bare.send(ctx, http.MethodGet, path, nil)
		return err == nil && status == http.StatusOK && strings.Contains(string(body), mark)
	}
	var ready Readiness
	if _, body, err := bare.send(ctx, http.MethodGet, "/readyz", nil); err == nil && json.Unmarshal(body, &ready) == nil && len(ready.Checks) > 0 {
		return failure
	}
	switch {
	case has("/openapi.json", `"openapi"`):
		return c.merchants("listener")
	case has("/signin", "<form"):
		return c.merchants("console")
	case pathless:
		return failure
	}
	return fmt.Errorf("what answers at %s is no console: %w", c.url, failure)
}

// unspoken finds in a request's failure that the two sides speak TLS and plain HTTP.
func (c *Client) unspoken(err error) error {
	switch text := err.Error(); {
	case strings.Contains(text, "server gave HTTP response to HTTPS client"):
		return c.scheme("speaks plain HTTP", "http")
	case strings.HasPrefix(c.url, "http:") && strings.Contains(text, "malformed HTTP response"):
		return c.scheme("does not speak plain HTTP", "https")
	}
	return nil
}
