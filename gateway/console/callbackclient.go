package console

import (
	"context"
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
