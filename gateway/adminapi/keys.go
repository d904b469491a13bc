package adminapi

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// Key is an API key without its secret.
type Key struct {
	KeyID     string     `json:"key_id"`
	Mode      string     `json:"mode"`          // live or test
	Scopes    []string   `json:"scopes"`        // read, collect, order, transfer
	IPs       []string   `json:"ips,omitempty"` // prefixes; all addresses where there are none
	Usable    bool       `json:"usable"`        // neither revoked nor expired
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
	RevokedAt *time.Time `json:"revoked_at,omitempty"`
}

// NewKey asks for a key. Without scopes it has all, and without addresses it may
// come from everywhere.
type NewKey struct {
	Mode   string   `json:"mode"`
	Scopes []string `json:"scopes,omitempty"`
	IPs    []string `json:"ips,omitempty"`
}

// CreatedKey is a new key with its secret, which is shown this once.
type CreatedKey struct {
	KeyID     string `json:"key_id"`
	Mode      string `json:"mode"`
	SecretKey string `json:"secret_key"`
}

// Rotation replaces a key. The old one is valid for the overlap, "24h" unless
// given; "0s" ends it now and "720h" is the most.
type Rotation struct {
	Overlap string `json:"overlap,omitempty"` // a Go duration
}

// ConnectionSpec asks to store an account at a provider: a merchant's own, or the
// platform's where it is set for platform. Unverified stores the credentials also
// when the provider can't be asked about them. Those that it refuses are never
// stored.
type ConnectionSpec struct {
	Mode        string          `json:"mode"`
	Owner       string          `json:"owner,omitempty"` // merchant or platform; checked where given
	Unverified  bool            `json:"unverified,omitempty"`
	Credentials json.RawMessage `json:"credentials,omitempty"` // an object by the provider's own schema
}

// Connection is an account at a provider without its credentials. The provider
// must send its notifications to NotifyURL. Verified and Account are there where
// credentials have just been stored and the provider can be asked about them.
type Connection struct {
	Provider   string `json:"provider"`
	Mode       string `json:"mode"`
	Owner      string `json:"owner"`
	Version    int64  `json:"version"`
	NotifyPath string `json:"notify_path"`
	NotifyURL  string `json:"notify_url"`
	Verified   string `json:"verified,omitempty"` // yes, or unverified where it could not be asked
	Account    string `json:"account,omitempty"`  // its name at the provider
	Paused     bool   `json:"paused,omitempty"`
	// Fields are the names of the credentials that are set, where one merchant is shown.
	Fields []string `json:"fields,omitempty"`
}

// CreateKey makes another key of a merchant.
func (c *Client) CreateKey(ctx context.Context, merchantID string, k NewKey) (CreatedKey, error) {
	return post[CreatedKey](ctx, c, merchantPath(merchantID, "keys"), k)
}

// RotateKey replaces a key by a new one.
func (c *Client) RotateKey(ctx context.Context, merchantID, keyID string, r Rotation) (CreatedKey, error) {
	return post[CreatedKey](ctx, c, merchantPath(merchantID, "keys", keyID, "rotate"), r)
}

// RevokeKey ends a key now.
func (c *Client) RevokeKey(ctx context.Context, merchantID, keyID, reason string) (Key, error) {
	return post[Key](ctx, c, merchantPath(merchantID, "keys", keyID, "revoke"), Reason{Reason: reason})
}

// ConnectionRemoval says which connection is removed, and why.
type ConnectionRemoval struct {
	Mode   string `json:"mode"`
	Reason string `json:"reason,omitempty"`
	// LeaveOpen removes it also where movements are open on it. Else that is refused, with
	// their number.
	LeaveOpen bool `json:"leave_open,omitempty"`
}

// RemoveConnection forgets a paused connection.
func (c *Client) RemoveConnection(ctx context.Context, merchantID, provider string, r ConnectionRemoval) (Merchant, error) {
	return post[Merchant](ctx, c, merchantPath(merchantID, "connections", provider, "remove"), r)
}

// ConnectionField is what a provider asks for in the credentials of an account.
type ConnectionField struct {
	Name        string   `json:"name"`
	Required    bool     `json:"required"`
	Secret      bool     `json:"secret"` // its manifest says that nobody must read it
	Title       string   `json:"title,omitempty"`
	Description string   `json:"description,omitempty"`
	Choices     []string `json:"choices,omitempty"` // where the value is one of a few
	Pattern     string   `json:"pattern,omitempty"` // a regular expression that the value fits
	Example     string   `json:"example,omitempty"` // as JSON
}

// ConnectionFields tells what a provider asks for, the required fields first.
func (c *Client) ConnectionFields(ctx context.Context, provider string) ([]ConnectionField, error) {
	return get[[]ConnectionField](ctx, c, "/admin/plugins/"+url.PathEscape(provider)+"/connection-fields")
}

// SetConnection stores an account at a provider.
func (c *Client) SetConnection(ctx context.Context, merchantID, provider string, spec ConnectionSpec) (Connection, error) {
	return do[Connection](ctx, c, http.MethodPut, merchantPath(merchantID, "connections", provider), spec)
}
