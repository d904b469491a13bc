package adminapi

import (
	"encoding/json"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
)

// Key is an API key without its secret.
type Key struct {
	KeyID     string     `json:"key_id"`
	Name      string     `json:"name"`          // its mode and date unless it was given one
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
	Merchant string   `path:"merchant" json:"-" arg:"" help:"The merchant's id."`
	Mode     string   `json:"mode" required:"" enum:"live,test" help:"live or test."`
	Name     string   `json:"name,omitempty" help:"What it is called; its mode and date unless given."`
	Scopes   []string `json:"scopes,omitempty" name:"scope" help:"read, collect, order or transfer; all unless given."`
	IPs      []string `json:"ips,omitempty" name:"ip" help:"Address or prefix that may use the key; all unless given."`
}

// CreatedKey is a new key with its secret, which is shown this once.
type CreatedKey struct {
	KeyID     string `json:"key_id"`
	Name      string `json:"name"`
	Mode      string `json:"mode"`
	SecretKey string `json:"secret_key"`
}

// KeyName gives a merchant's key another name, "" for its mode and date.
type KeyName struct {
	Merchant string `path:"merchant" json:"-" arg:"" help:"The merchant's id."`
	Key      string `path:"key" json:"-" arg:"" help:"The key's id."`
	Name     string `json:"name" arg:"" optional:"" help:"At most 100 characters; its mode and date unless given."`
}

// KeyRotation replaces a merchant's key. The old one is valid for the overlap, "24h" unless
// given; "0s" ends it now and "720h" is the most.
type KeyRotation struct {
	Merchant string `path:"merchant" json:"-"`
	Key      string `path:"key" json:"-"`
	Overlap  string `json:"overlap,omitempty"` // a Go duration
}

// KeyRevocation ends a merchant's key.
type KeyRevocation struct {
	Merchant string `path:"merchant" json:"-" arg:"" help:"The merchant's id."`
	Key      string `path:"key" json:"-" arg:"" help:"The key's id."`
	Reason   string `json:"reason,omitempty" help:"Why; kept in the audit."`
}

// ProviderName names a provider.
type ProviderName struct {
	Provider string `path:"provider" json:"-" arg:"" help:"The provider's name."`
}

// ConnectionSpec asks to store an account at a provider: a merchant's own, or the
// platform's where it is set for platform. Unverified stores the credentials also
// when the provider can't be asked about them. Those that it refuses are never
// stored.
type ConnectionSpec struct {
	Merchant    string          `path:"merchant" json:"-"`
	Provider    string          `path:"provider" json:"-"`
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

// ConnectionRemoval says which connection is removed, and why.
type ConnectionRemoval struct {
	Merchant string `path:"merchant" json:"-"`
	Provider string `path:"provider" json:"-"`
	Mode     string `json:"mode"`
	Reason   string `json:"reason,omitempty"`
	// LeaveOpen removes it also where movements are open on it. Else that is refused, with
	// their number.
	LeaveOpen bool `json:"leave_open,omitempty"`
}

// The acts on keys and connections.
var (
	CreateKey            = Endpoint[NewKey, CreatedKey]{Act{Route: "POST /admin/merchants/{merchant}/keys", Takes: Administer, Text: "Make another key of a merchant."}}
	RotateKey            = Endpoint[KeyRotation, CreatedKey]{Act{Route: "POST /admin/merchants/{merchant}/keys/{key}/rotate", Takes: Administer, Text: "Replace a key by a new one."}}
	RenameKey            = Endpoint[KeyName, Key]{Act{Route: "POST /admin/merchants/{merchant}/keys/{key}/name", Takes: Administer, Text: "Give a key another name."}}
	RevokeKey            = Endpoint[KeyRevocation, Key]{Act{Route: "POST /admin/merchants/{merchant}/keys/{key}/revoke", Takes: RevokeKeys, Text: "End a key now."}}
	ListConnectionFields = Endpoint[ProviderName, []catalog.Ask]{Act{
		Route: "GET /admin/plugins/{provider}/connection-fields", Takes: Read, Text: "Tell what a provider asks for in credentials, the required fields first.",
	}}
	SetConnection    = Endpoint[ConnectionSpec, Connection]{Act{Route: "PUT /admin/merchants/{merchant}/connections/{provider}", Takes: Administer, Platform: true, Text: "Store an account at a provider."}}
	RemoveConnection = Endpoint[ConnectionRemoval, Merchant]{Act{
		Route: "POST /admin/merchants/{merchant}/connections/{provider}/remove", Takes: Administer, Platform: true, Text: "Forget a paused connection.",
	}}
)
