package adminapi

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// CallbackFilter says which callbacks to list. The zero value is those of no
// mode, which is refused; everything else may be left out.
type CallbackFilter struct {
	Mode, State  string
	Since, Until time.Time
	Limit        int
}

// CallbackSetup is how callbacks of a mode are made: the default URL, with its
// query's values hidden, and how far a rotation of the secret is: none,
// prepared (both sign) or switched (the service's own signature is the next's).
type CallbackSetup struct {
	Mode     string `json:"mode"`
	URL      string `json:"url,omitempty"`
	Rotation string `json:"rotation"`
}

// CallbackURL sets a merchant's default URL; "" clears it.
type CallbackURL struct {
	Mode string  `json:"mode"`
	URL  *string `json:"url"`
}

// SecretChange is a step of a rotation: rotate, switch, finish or cancel.
type SecretChange struct {
	Mode   string `json:"mode"`
	Action string `json:"action"`
}

// ChangedSecret is how a rotation stands after a step. The secret is the next
// one, told this once by the rotation's first step alone.
type ChangedSecret struct {
	CallbackSetup

	CallbackSecret string `json:"callback_secret,omitempty"`
}

// Callback is one event on its way to a merchant, without any secret.
type Callback struct {
	EventID    string            `json:"event_id"`
	Mode       string            `json:"mode"`
	Event      string            `json:"event"`
	MovementID string            `json:"movement_id,omitempty"`
	Sequence   int               `json:"sequence"`
	Reference  string            `json:"reference,omitempty"`
	URL        string            `json:"url,omitempty"` // the query's values are hidden
	State      string            `json:"state"`
	Tries      int               `json:"tries"`
	CreatedAt  time.Time         `json:"created_at"`
	DueAt      *time.Time        `json:"due_at,omitempty"`
	Body       json.RawMessage   `json:"body,omitempty"`     // not in lists
	Attempts   []CallbackAttempt `json:"attempts,omitempty"` // not in lists
}

// CallbackAttempt is one try of a delivery. Without an answer there is no status.
type CallbackAttempt struct {
	At         time.Time `json:"at"`
	DurationMS int64     `json:"duration_ms"`
	Status     int       `json:"status,omitempty"`
	Outcome    string    `json:"outcome"`
	Fault      string    `json:"fault,omitempty"`
	Answer     string    `json:"answer,omitempty"` // its beginning
}

// ResendOrder names what to send again: one event, or what has ended in a span
// of time, or of that only what failed.
type ResendOrder struct {
	Mode    string     `json:"mode"`
	EventID string     `json:"event_id,omitempty"`
	Since   *time.Time `json:"since,omitempty"`
	Until   *time.Time `json:"until,omitempty"`
	Failed  bool       `json:"failed,omitempty"`
}

// Resent is how many callbacks are sent again. Until is where the same order
// goes on, if it was too much for one request.
type Resent struct {
	Resent int        `json:"resent"`
	Until  *time.Time `json:"until,omitempty"`
}

// TestOrder asks for a test callback, to the merchant's default URL unless
// another is given.
type TestOrder struct {
	Mode string `json:"mode"`
	URL  string `json:"url,omitempty"`
}

// SentTest is a test callback that is on its way.
type SentTest struct {
	EventID string `json:"event_id"`
	URL     string `json:"url"`
}

// Callbacks lists callbacks of a merchant, the newest first.
func (c *Client) Callbacks(ctx context.Context, merchantID string, f CallbackFilter) ([]Callback, error) {
	query := url.Values{"mode": {f.Mode}}
	if f.State != "" {
		query.Set("state", f.State)
	}
	for name, at := range map[string]time.Time{"since": f.Since, "until": f.Until} {
		if !at.IsZero() {
			query.Set(name, at.Format(time.RFC3339Nano))
		}
	}
	if f.Limit != 0 {
		query.Set("limit", strconv.Itoa(f.Limit))
	}
	return do[[]Callback](ctx, c, http.MethodGet, merchantPath(merchantID, "callbacks")+"?"+query.Encode(), nil)
}

// Callback shows a callback with its body and every try.
func (c *Client) Callback(ctx context.Context, merchantID, mode, eventID string) (Callback, error) {
	query := url.Values{"mode": {mode}}
	return do[Callback](ctx, c, http.MethodGet, merchantPath(merchantID, "callbacks", eventID)+"?"+query.Encode(), nil)
}

// ResendCallbacks sends callbacks again, under the ids they had.
func (c *Client) ResendCallbacks(ctx context.Context, merchantID string, order ResendOrder) (Resent, error) {
	return do[Resent](ctx, c, http.MethodPost, merchantPath(merchantID, "callbacks", "resend"), order)
}

// TestCallback sends a test callback.
func (c *Client) TestCallback(ctx context.Context, merchantID string, order TestOrder) (SentTest, error) {
	return do[SentTest](ctx, c, http.MethodPost, merchantPath(merchantID, "callbacks", "test"), order)
}

// SetCallbackURL sets or clears where callbacks go whose request names no URL.
func (c *Client) SetCallbackURL(ctx context.Context, merchantID, mode, receiver string) (CallbackSetup, error) {
	return do[CallbackSetup](ctx, c, http.MethodPut, merchantPath(merchantID, "callbacks", "url"), CallbackURL{Mode: mode, URL: &receiver})
}

// ChangeCallbackSecret takes a step of a rotation.
func (c *Client) ChangeCallbackSecret(ctx context.Context, merchantID string, change SecretChange) (ChangedSecret, error) {
	return do[ChangedSecret](ctx, c, http.MethodPost, merchantPath(merchantID, "callbacks", "secret"), change)
}
