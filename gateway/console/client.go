package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

const (
	clientTimeout = 30 * time.Second
	maxAnswer     = 16 << 20
)

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

// Ready is nil when the gateway can serve, and else an error that names the
// checks that fail.
func (c *Client) Ready(ctx context.Context) error {
	status, body, err := c.send(ctx, http.MethodGet, "/readyz", nil)
	if err != nil {
		return err
	}
	var r Readiness
	if err := json.Unmarshal(body, &r); err != nil || len(r.Checks) == 0 {
		return c.refused(status, body)
	}
	if status == http.StatusOK && r.Ready {
		return nil
	}
	var failing []string
	for _, check := range r.Checks {
		if !check.OK {
			failing = append(failing, check.Name+" "+check.Detail)
		}
	}
	return fmt.Errorf("the gateway is not ready: %s", strings.Join(failing, ", "))
}

// CreateMerchant makes a merchant with a live and a test key.
func (c *Client) CreateMerchant(ctx context.Context, m NewMerchant) (CreatedMerchant, error) {
	return do[CreatedMerchant](ctx, c, http.MethodPost, "/admin/merchants", m)
}

// Merchants lists merchants after one of them, most of them at once.
func (c *Client) Merchants(ctx context.Context, after string, most int) (MerchantPage, error) {
	query := url.Values{"after": {after}, "limit": {strconv.Itoa(most)}}
	return do[MerchantPage](ctx, c, http.MethodGet, "/admin/merchants?"+query.Encode(), nil)
}

// Merchant shows one merchant.
func (c *Client) Merchant(ctx context.Context, id string) (Merchant, error) {
	return do[Merchant](ctx, c, http.MethodGet, merchantPath(id), nil)
}

// Suspend stops a merchant.
func (c *Client) Suspend(ctx context.Context, id, reason string) (Merchant, error) {
	return do[Merchant](ctx, c, http.MethodPost, merchantPath(id, "suspend"), Reason{Reason: reason})
}

// Resume lets a stopped merchant go on.
func (c *Client) Resume(ctx context.Context, id, reason string) (Merchant, error) {
	return do[Merchant](ctx, c, http.MethodPost, merchantPath(id, "resume"), Reason{Reason: reason})
}

// SetTier moves a merchant to another tier.
func (c *Client) SetTier(ctx context.Context, id string, change TierChange) (Merchant, error) {
	return do[Merchant](ctx, c, http.MethodPost, merchantPath(id, "tier"), change)
}

// CreateKey makes another key of a merchant.
func (c *Client) CreateKey(ctx context.Context, merchantID string, k NewKey) (CreatedKey, error) {
	return do[CreatedKey](ctx, c, http.MethodPost, merchantPath(merchantID, "keys"), k)
}

// RotateKey replaces a key by a new one.
func (c *Client) RotateKey(ctx context.Context, merchantID, keyID string, r Rotation) (CreatedKey, error) {
	return do[CreatedKey](ctx, c, http.MethodPost, merchantPath(merchantID, "keys", keyID, "rotate"), r)
}

// RevokeKey ends a key now.
func (c *Client) RevokeKey(ctx context.Context, merchantID, keyID, reason string) (Key, error) {
	return do[Key](ctx, c, http.MethodPost, merchantPath(merchantID, "keys", keyID, "revoke"), Reason{Reason: reason})
}

// SetConnection gives a merchant's account at a provider to the gateway.
func (c *Client) SetConnection(ctx context.Context, merchantID, provider string, spec ConnectionSpec) (Connection, error) {
	return do[Connection](ctx, c, http.MethodPut, merchantPath(merchantID, "connections", provider), spec)
}

// Audit lists what operators did to a merchant, the newest first.
func (c *Client) Audit(ctx context.Context, merchantID string) ([]AuditEntry, error) {
	return do[[]AuditEntry](ctx, c, http.MethodGet, merchantPath(merchantID, "audit"), nil)
}

// Attention lists what waits for an operator, the newest first, at most a thousand.
func (c *Client) Attention(ctx context.Context) ([]Attention, error) {
	return do[[]Attention](ctx, c, http.MethodGet, "/admin/attention?limit="+strconv.Itoa(maxPage), nil)
}

// ResolveException takes an entry off the operators' list.
func (c *Client) ResolveException(ctx context.Context, r Resolution) error {
	_, err := do[struct{}](ctx, c, http.MethodPost, "/admin/attention/resolve", r)
	return err
}

// Plugins tells how the plugins do.
func (c *Client) Plugins(ctx context.Context) ([]Plugin, error) {
	return do[[]Plugin](ctx, c, http.MethodGet, "/admin/plugins", nil)
}

// Movement shows a movement with its story.
func (c *Client) Movement(ctx context.Context, id string) (Movement, error) {
	return do[Movement](ctx, c, http.MethodGet, "/admin/movements/"+url.PathEscape(id), nil)
}

func merchantPath(id string, rest ...string) string {
	path := "/admin/merchants/" + url.PathEscape(id)
	for _, part := range rest {
		path += "/" + url.PathEscape(part)
	}
	return path
}

// do sends a request and reads the data of its answer.
func do[T any](ctx context.Context, c *Client, method, path string, body any) (T, error) {
	var data T
	status, answer, err := c.send(ctx, method, path, body)
	if err != nil {
		return data, err
	}
	if status != http.StatusOK {
		return data, c.refused(status, answer)
	}
	if err := json.Unmarshal(answer, &struct {
		Data *T `json:"data"`
	}{&data}); err != nil {
		return data, fmt.Errorf("read the console's answer: %w", err)
	}
	return data, nil
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
	request.Header.Set("Authorization", "Bearer "+c.token)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	return response.StatusCode, answer, err
}

func (c *Client) refused(status int, answer []byte) error {
	failure := &Failure{Status: status}
	if err := json.Unmarshal(answer, &failure.Envelope); err != nil {
		failure.Envelope = fault.Envelope{} // not the console's own words
	}
	return failure
}
