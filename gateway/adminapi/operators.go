package adminapi

import (
	"context"
	"net/url"
	"time"
)

// OperatorToken is a token of an operator, without the token itself.
type OperatorToken struct {
	Name      string     `json:"name"`
	Role      string     `json:"role"`             // read, support, finance, policy or admin
	Inputs    bool       `json:"inputs,omitempty"` // may read what refused requests asked for
	Usable    bool       `json:"usable"`           // neither revoked nor expired, and signed
	Unsigned  bool       `json:"unsigned,omitempty"`
	CreatedBy string     `json:"created_by"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
	RevokedAt *time.Time `json:"revoked_at,omitempty"`
}

// NewOperatorToken asks for the first token of an operator. It never expires unless that
// is given.
type NewOperatorToken struct {
	Name    string `json:"name"`
	Role    string `json:"role"`
	Inputs  bool   `json:"inputs,omitempty"`
	Expires string `json:"expires,omitempty"` // a Go duration from now
}

// CreatedOperatorToken is a new token, which is shown this once.
type CreatedOperatorToken struct {
	OperatorToken
	Token string `json:"token"`
}

// OperatorTokens lists the tokens of all operators but those of the configuration: by
// name, of each the newest first.
func (c *Client) OperatorTokens(ctx context.Context) ([]OperatorToken, error) {
	return get[[]OperatorToken](ctx, c, "/admin/operator-tokens")
}

// CreateOperatorToken makes somebody an operator.
func (c *Client) CreateOperatorToken(ctx context.Context, t NewOperatorToken) (CreatedOperatorToken, error) {
	return post[CreatedOperatorToken](ctx, c, "/admin/operator-tokens", t)
}

// RotateOperatorToken replaces an operator's token by a new one.
func (c *Client) RotateOperatorToken(ctx context.Context, name string, r Rotation) (CreatedOperatorToken, error) {
	return post[CreatedOperatorToken](ctx, c, "/admin/operator-tokens/"+url.PathEscape(name)+"/rotate", r)
}

// RevokeOperatorTokens ends all tokens of an operator now.
func (c *Client) RevokeOperatorTokens(ctx context.Context, name, reason string) ([]OperatorToken, error) {
	return post[[]OperatorToken](ctx, c, "/admin/operator-tokens/"+url.PathEscape(name)+"/revoke", Reason{Reason: reason})
}
