package console

import (
	"encoding/json"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// NewMerchant is what a merchant is made of.
type NewMerchant struct {
	Name   string            `json:"name"`
	Tier   string            `json:"tier"`
	Labels map[string]string `json:"labels,omitempty"`
}

// CreatedMerchant is a new merchant with its secrets, which are told this once.
type CreatedMerchant struct {
	MerchantID         string `json:"merchant_id"`
	Name               string `json:"name"`
	Tier               string `json:"tier"`
	Status             string `json:"status"`
	LiveKey            string `json:"live_key"`
	TestKey            string `json:"test_key"`
	CallbackSecret     string `json:"callback_secret"`
	TestCallbackSecret string `json:"test_callback_secret"`
}

// Merchant is a merchant without any secret.
type Merchant struct {
	MerchantID  string            `json:"merchant_id"`
	Name        string            `json:"name"`
	Tier        string            `json:"tier"`
	Status      string            `json:"status"`
	Labels      map[string]string `json:"labels,omitempty"`
	Version     int64             `json:"version"`
	CreatedAt   time.Time         `json:"created_at"`
	Keys        []Key             `json:"keys,omitempty"`        // not in lists
	Connections []Connection      `json:"connections,omitempty"` // not in lists
	Callbacks   []CallbackSetup   `json:"callbacks,omitempty"`   // not in lists
	Limits      []Limit           `json:"limits,omitempty"`      // its own; not in lists
}

// MerchantPage is a part of the list of merchants. Next is what to ask after
// for the following part, or "".
type MerchantPage struct {
	Merchants []Merchant `json:"merchants"`
	Next      string     `json:"next,omitempty"`
}

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

// Reason is why an operator does something; it stands in the audit.
type Reason struct {
	Reason string `json:"reason,omitempty"`
}

// TierChange moves a merchant to another tier.
type TierChange struct {
	Tier   string `json:"tier"`
	Reason string `json:"reason,omitempty"`
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

// AuditEntry is what an operator did to a merchant.
type AuditEntry struct {
	Operator string    `json:"operator"`
	Action   string    `json:"action"`
	Detail   string    `json:"detail,omitempty"`
	At       time.Time `json:"at"`
}

// Attention is an entry of the operators' list. Merchant, mode, subject, reason
// and fact are its name, and ID is short for it.
type Attention struct {
	ID         string    `json:"id"`
	MerchantID string    `json:"merchant_id"`
	Mode       string    `json:"mode"`
	Subject    string    `json:"subject"`
	Reason     string    `json:"reason"`
	FactID     string    `json:"fact_id"`
	Provider   string    `json:"provider"`
	Detail     string    `json:"detail"`
	At         time.Time `json:"at"`
}

// Resolution names an entry of the operators' list and says how it was settled.
type Resolution struct {
	MerchantID string `json:"merchant_id"`
	Mode       string `json:"mode"`
	Subject    string `json:"subject"`
	Reason     string `json:"reason"`
	FactID     string `json:"fact_id,omitempty"`
	Resolution string `json:"resolution"`
}

// Plugin is how one plugin does.
type Plugin struct {
	Provider       string     `json:"provider"`
	Version        string     `json:"version"`
	SHA256         string     `json:"sha256"`
	ManifestDigest string     `json:"manifest_digest"`
	Owner          string     `json:"owner"` // whose account is used: merchant or platform
	Running        bool       `json:"running"`
	PID            int        `json:"pid,omitempty"`
	Since          *time.Time `json:"since,omitempty"`
	Restarts       int        `json:"restarts"`
	LastFault      string     `json:"last_fault,omitempty"`
	InFlight       int        `json:"in_flight"`
	MaxInFlight    int        `json:"max_in_flight"`
	Breakers       []Breaker  `json:"breakers"`
}

// Breaker is the state of a mode's circuits: closed, half-open or open.
type Breaker struct {
	Mode    string `json:"mode"`
	Calls   string `json:"calls"`
	Lookups string `json:"lookups"`
}

// Movement is one use of a money operation with its whole trail, for operators.
type Movement struct {
	ID                string          `json:"id"`
	MerchantID        string          `json:"merchant_id"`
	Mode              string          `json:"mode"`
	Kind              string          `json:"kind"`
	Reference         string          `json:"reference,omitempty"` // none where its caller gave none
	Operation         string          `json:"operation"`
	Provider          string          `json:"provider"`
	State             string          `json:"state"`
	Attempt           int             `json:"attempt"`
	Amount            money.Amount    `json:"amount"`
	Request           json.RawMessage `json:"request,omitempty"`
	Result            json.RawMessage `json:"result,omitempty"`
	RefusalCode       string          `json:"refusal_code,omitempty"`
	RefusalMessage    string          `json:"refusal_message,omitempty"`
	UpstreamReference string          `json:"upstream_reference"`
	ProviderReference string          `json:"provider_reference,omitempty"`
	FactID            string          `json:"fact_id,omitempty"`
	RequestID         string          `json:"request_id,omitempty"`
	PolicyVersion     string          `json:"policy_version,omitempty"`
	DecisionID        string          `json:"decision_id,omitempty"`
	Misses            int             `json:"misses,omitempty"`
	CreatedAt         time.Time       `json:"created_at"`
	UpdatedAt         time.Time       `json:"updated_at"`
	SendBy            *time.Time      `json:"send_by,omitempty"`
	ExpiresAt         *time.Time      `json:"expires_at,omitempty"`
	AskedAt           *time.Time      `json:"asked_at,omitempty"`
	DueAt             *time.Time      `json:"due_at,omitempty"`
	PaidLateAt        *time.Time      `json:"paid_late_at,omitempty"`
	ReversedAt        *time.Time      `json:"reversed_at,omitempty"`
	Story             []Event         `json:"story"`

	Paying
	Trail
}

// Event is one entry of a movement's story.
type Event struct {
	Sequence int       `json:"sequence"`
	Event    string    `json:"event"`
	At       time.Time `json:"at"`
	Detail   string    `json:"detail,omitempty"`
}

// Readiness is whether the gateway can serve, and each check behind that.
type Readiness struct {
	Ready  bool    `json:"ready"`
	Checks []Check `json:"checks"`
}

// Check is one condition of readiness.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"`
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
