package adminapi

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// Key is an API key as everybody may know it.
type Key struct {
	KeyID     string     `json:"key_id"`
	Mode      string     `json:"mode"`
	Scopes    []string   `json:"scopes"`
	IPs       []string   `json:"ips,omitempty"`
	Usable    bool       `json:"usable"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
	RevokedAt *time.Time `json:"revoked_at,omitempty"`
}

// NewKey is what a key may do; no scopes are all scopes, no addresses are all.
type NewKey struct {
	Mode   string   `json:"mode"`
	Scopes []string `json:"scopes,omitempty"`
	IPs    []string `json:"ips,omitempty"`
}

// CreatedKey is a new key, told this once.
type CreatedKey struct {
	KeyID     string `json:"key_id"`
	Mode      string `json:"mode"`
	SecretKey string `json:"secret_key"`
}

// Rotation says how long the old key goes on beside the new one, as in "24h",
// which it is unless given; "0s" ends it now.
type Rotation struct {
	Overlap string `json:"overlap,omitempty"`
}

// ConnectionSpec is an account at a provider: a merchant's own, or the
// platform's where it is set for platform. The owner may be left out. Unverified
// stores credentials also when the provider can't be asked about them; those
// that it refuses are never stored.
type ConnectionSpec struct {
	Mode        string          `json:"mode"`
	Owner       string          `json:"owner,omitempty"`
	Unverified  bool            `json:"unverified,omitempty"`
	Credentials json.RawMessage `json:"credentials,omitempty"`
}

// Connection is a merchant's account at a provider without its credentials.
// The notification route is what the provider is told to call. Verified is told
// where credentials were stored just now: yes, or unverified where the provider
// could not be asked and that was allowed; nothing where it never can be. Account
// is then what the provider calls the account, where it tells.
type Connection struct {
	Provider   string `json:"provider"`
	Mode       string `json:"mode"`
	Owner      string `json:"owner"`
	Version    int64  `json:"version"`
	NotifyPath string `json:"notify_path"`
	NotifyURL  string `json:"notify_url"`
	Verified   string `json:"verified,omitempty"`
	Account    string `json:"account,omitempty"`
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
