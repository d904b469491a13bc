package adminapi

import "github.com/seed-f006e74d/gerbang/gateway/store"

// OperatorToken is a token of an operator, without the token itself.
type OperatorToken struct {
	store.OperatorToken
	Usable   bool `json:"usable"` // neither revoked nor expired, and signed
	Unsigned bool `json:"unsigned,omitempty"`
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

// OperatorRotation replaces an operator's token.
type OperatorRotation struct {
	Name    string `path:"operator" json:"-"`
	Overlap string `json:"overlap,omitempty"` // a Go duration, as with keys
}

// OperatorRevocation ends all tokens of an operator.
type OperatorRevocation struct {
	Name   string `path:"operator" json:"-" arg:"" help:"The operator's name."`
	Reason string `json:"reason,omitempty" help:"Why; kept in the audit of platform."`
}

// The acts on operators' tokens. The configuration's tokens are not among them.
var (
	ListOperatorTokens   = Endpoint[None, []OperatorToken]{Act{Route: "GET /admin/operator-tokens", Takes: Read, Text: "List operators' tokens by name, of each operator the newest first."}}
	CreateOperatorToken  = Endpoint[NewOperatorToken, CreatedOperatorToken]{Act{Route: "POST /admin/operator-tokens", Takes: Administer, Text: "Make somebody an operator."}}
	RotateOperatorToken  = Endpoint[OperatorRotation, CreatedOperatorToken]{Act{Route: "POST /admin/operator-tokens/{operator}/rotate", Takes: Administer, Text: "Replace an operator's token by a new one."}}
	RevokeOperatorTokens = Endpoint[OperatorRevocation, []OperatorToken]{Act{Route: "POST /admin/operator-tokens/{operator}/revoke", Takes: Administer, Text: "End all tokens of an operator now."}}
)
