package adminapi

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// CallbackFilter says which callbacks to list. Everything but the mode may be left
// out.
type CallbackFilter struct {
	Mode, State  string
	Since, Until time.Time
	After        string // the last event of the page before, whose time is Until
	Limit        int
}

// CallbackSetup is where callbacks of a mode go and how they are signed. A rotation
// of the secret is none, prepared (both secrets sign) or switched (X-Svc-Signature
// is made with the next one).
type CallbackSetup struct {
	Mode     string `json:"mode"`
	URL      string `json:"url,omitempty"` // the default; the query's values are hidden
	Rotation string `json:"rotation"`
}

// CallbackURL sets a merchant's default URL; "" clears it.
type CallbackURL struct {
	Mode string  `json:"mode"`
	URL  *string `json:"url"`
}

// SecretChange is a step of a rotation of the callback secret.
type SecretChange struct {
	Mode   string `json:"mode"`
	Action string `json:"action"` // rotate, switch, finish or cancel
}

// ChangedSecret is the setup after a step of a rotation. The first step shows the
// next secret, this once.
type ChangedSecret struct {
	CallbackSetup

	CallbackSecret string `json:"callback_secret,omitempty"`
}

// Callback is one callback event and its delivery, without any secret.
type Callback struct {
	EventID    string            `json:"event_id"`
	Mode       string            `json:"mode"`
	Event      string            `json:"event"`
	MovementID string            `json:"movement_id,omitempty"`
	Sequence   int               `json:"sequence"`
	Reference  string            `json:"reference,omitempty"`
	URL        string            `json:"url,omitempty"` // the query's values are hidden
	State      string            `json:"state"`         // waiting, delivered, gone, dead or none
	Tries      int               `json:"tries"`
	CreatedAt  time.Time         `json:"created_at"`
	DueAt      *time.Time        `json:"due_at,omitempty"`
	Body       json.RawMessage   `json:"body,omitempty"`     // not in lists
	Attempts   []CallbackAttempt `json:"attempts,omitempty"` // not in lists
}

// CallbackAttempt is one attempt at a delivery.
type CallbackAttempt struct {
	At         time.Time `json:"at"`
	DurationMS int64     `json:"duration_ms"`
	Status     int       `json:"status,omitempty"` // HTTP; left out where nothing answered
	Outcome    string    `json:"outcome"`
	Fault      string    `json:"fault,omitempty"`
	Answer     string    `json:"answer,omitempty"` // its beginning
}

// ResendOrder names the callbacks to send again: one event, or those of a span of
// time whose delivery has ended.
type ResendOrder struct {
	Mode    string     `json:"mode"`
	EventID string     `json:"event_id,omitempty"`
	Since   *time.Time `json:"since,omitempty"`  // required for a span, unless failed
	Until   *time.Time `json:"until,omitempty"`  // now unless given
	Failed  bool       `json:"failed,omitempty"` // only those that failed
}

// Resent is how many callbacks are sent again. Until is there where one request was
// not enough: the same order with it goes on.
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

// SentTest is a test callback that was made and is due now.
type SentTest struct {
	EventID string `json:"event_id"`
	URL     string `json:"url"`
}

// Callbacks lists callbacks of a merchant, the newest first.
func (c *Client) Callbacks(ctx context.Context, merchantID string, f CallbackFilter) ([]Callback, error) {
	query := params("mode", f.Mode, "state", f.State, "since", timeText(f.Since), "until", timeText(f.Until), "after", f.After, "limit", number(f.Limit))
	return get[[]Callback](ctx, c, merchantPath(merchantID, "callbacks")+query)
}

// Callback shows a callback with its body and every attempt.
func (c *Client) Callback(ctx context.Context, merchantID, mode, eventID string) (Callback, error) {
	return get[Callback](ctx, c, merchantPath(merchantID, "callbacks", eventID)+params("mode", mode))
}

// ResendCallbacks sends callbacks again, under the ids they had.
func (c *Client) ResendCallbacks(ctx context.Context, merchantID string, order ResendOrder) (Resent, error) {
	return post[Resent](ctx, c, merchantPath(merchantID, "callbacks", "resend"), order)
}

// TestCallback sends a test callback.
func (c *Client) TestCallback(ctx context.Context, merchantID string, order TestOrder) (SentTest, error) {
	return post[SentTest](ctx, c, merchantPath(merchantID, "callbacks", "test"), order)
}

// SetCallbackURL sets the default URL of callbacks; "" clears it.
func (c *Client) SetCallbackURL(ctx context.Context, merchantID, mode, receiver string) (CallbackSetup, error) {
	return do[CallbackSetup](ctx, c, http.MethodPut, merchantPath(merchantID, "callbacks", "url"), CallbackURL{Mode: mode, URL: &receiver})
}

// ChangeCallbackSecret takes a step of a rotation of the callback secret.
func (c *Client) ChangeCallbackSecret(ctx context.Context, merchantID string, change SecretChange) (ChangedSecret, error) {
	return post[ChangedSecret](ctx, c, merchantPath(merchantID, "callbacks", "secret"), change)
}
