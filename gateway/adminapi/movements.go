package adminapi

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// Paying is the part of a movement that says on whose account and for how much.
type Paying struct {
	ConnectionOwner   string          `json:"connection_owner,omitempty"` // merchant or platform
	ConnectionVersion int64           `json:"connection_version,omitempty"`
	ConnectionAccount string          `json:"connection_account,omitempty"` // its name at the provider
	Charge            string          `json:"charge,omitempty"`             // charged or held: of the merchant's balance
	Cost              money.Amount    `json:"cost,omitempty"`               // at the provider
	Fee               money.Amount    `json:"fee,omitempty"`                // that the merchant is told
	NameMatch         *bool           `json:"name_match,omitempty"`         // nothing where nobody knows
	Quote             json.RawMessage `json:"quote,omitempty"`              // the provider's own
	Postings          []Posting       `json:"postings,omitempty"`
}

// Trail is the part of a movement that says what happened around its story.
type Trail struct {
	Answer      json.RawMessage `json:"answer,omitempty"`       // that its caller was first given
	CallbackURL string          `json:"callback_url,omitempty"` // the query's values are hidden
	Notes       []Note          `json:"said,omitempty"`
	Overrides   []Override      `json:"decisions,omitempty"`
	Exceptions  []Attended      `json:"attention,omitempty"`
	Callbacks   []Callback      `json:"callbacks,omitempty"` // with their tries, without their bodies
}

// Said is what a provider said to a call or a lookup that changed no state by
// itself, and how often.
type Note struct {
	Attempt int       `json:"attempt"`
	Event   string    `json:"event"` // called or looked
	Detail  string    `json:"detail"`
	At      time.Time `json:"at"`
	LastAt  time.Time `json:"last_at"`
	Times   int       `json:"times"`
}

// Posting is a transaction of the ledger.
type Posting struct {
	Attempt   int       `json:"attempt"`
	Kind      string    `json:"kind"`
	At        time.Time `json:"at"`
	Available Rupiah    `json:"available"`
	Held      Rupiah    `json:"held"`
	Margin    Rupiah    `json:"margin"`
	Cost      Rupiah    `json:"cost"`
	Deposit   Rupiah    `json:"deposit"`
}

// Verdict is operators' word on an attempt whose outcome nobody knew. One that is
// not alone waits until another operator has confirmed it.
type Override struct {
	Attempt         int        `json:"attempt"`
	As              string     `json:"as"` // success or failed
	Operator        string     `json:"operator"`
	Reason          string     `json:"reason"`
	At              time.Time  `json:"at"`
	Alone           bool       `json:"alone,omitempty"`
	ConfirmedBy     string     `json:"confirmed_by,omitempty"`
	ConfirmedReason string     `json:"confirmed_reason,omitempty"`
	ConfirmedAt     *time.Time `json:"confirmed_at,omitempty"`
}

// Settling says how an open transfer or order ended, of which the provider tells
// no end: as success or failed. Alone needs no second operator, and is reviewed.
type NewOverride struct {
	As     string `json:"as"`
	Reason string `json:"reason"`
	Alone  bool   `json:"alone,omitempty"`
}

// Settled is where a movement stands after an operator's word. Waiting: another
// operator has to say the same.
type Overridden struct {
	ID         string   `json:"id"`
	MerchantID string   `json:"merchant_id"`
	Mode       string   `json:"mode"`
	Kind       string   `json:"kind"`
	Reference  string   `json:"reference,omitempty"`
	State      string   `json:"state"`
	Waiting    bool     `json:"waiting"`
	Override   Override `json:"decision"`
}

// Findings are the movements that an id belongs to. Since is from when on those
// were looked at that are not found by a merchant's or our own name of them.
type FindResult struct {
	ID        string          `json:"id"`
	Since     time.Time       `json:"since"`
	Movements []FoundMovement `json:"movements"`
}

// Found is a movement in short, with what of it the id is, and what happened.
type FoundMovement struct {
	By                []string     `json:"by"`
	ID                string       `json:"id"`
	MerchantID        string       `json:"merchant_id"`
	Mode              string       `json:"mode"`
	Kind              string       `json:"kind"`
	Reference         string       `json:"reference,omitempty"` // none where its caller gave none
	Operation         string       `json:"operation"`
	Provider          string       `json:"provider"`
	State             string       `json:"state"`
	Amount            money.Amount `json:"amount"`
	RequestID         string       `json:"request_id,omitempty"`
	DecisionID        string       `json:"decision_id,omitempty"`
	PolicyVersion     string       `json:"policy_version,omitempty"`
	UpstreamReference string       `json:"upstream_reference"`
	ProviderReference string       `json:"provider_reference,omitempty"`
	History           []Link       `json:"chain"`
}

// Link is one thing that happened to a movement.
type Link struct {
	At     time.Time `json:"at"`
	Event  string    `json:"event"`
	Detail string    `json:"detail,omitempty"`
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
	PolledAt          *time.Time      `json:"asked_at,omitempty"`
	DueAt             *time.Time      `json:"due_at,omitempty"`
	PaidLateAt        *time.Time      `json:"paid_late_at,omitempty"`
	ReversedAt        *time.Time      `json:"reversed_at,omitempty"`
	History           []HistoryEntry  `json:"story"`

	Paying
	Trail
}

// Event is one entry of a movement's story.
type HistoryEntry struct {
	Sequence int       `json:"sequence"`
	Event    string    `json:"event"`
	At       time.Time `json:"at"`
	Detail   string    `json:"detail,omitempty"`
}

// Find tells which movements an id belongs to, whosever id it is. Ids that only a
// scan finds are looked for from a time on, the last 31 days at the zero time.
func (c *Client) Find(ctx context.Context, id string, since time.Time) (FindResult, error) {
	query := url.Values{"id": {id}}
	if !since.IsZero() {
		query.Set("since", since.Format(time.RFC3339))
	}
	return do[FindResult](ctx, c, http.MethodGet, "/admin/find?"+query.Encode(), nil)
}

// Movement shows a movement with its story.
func (c *Client) Movement(ctx context.Context, id string) (Movement, error) {
	return do[Movement](ctx, c, http.MethodGet, "/admin/movements/"+url.PathEscape(id), nil)
}

// SettleMovement says how an open transfer or order ended.
func (c *Client) Override(ctx context.Context, id string, s NewOverride) (Overridden, error) {
	return do[Overridden](ctx, c, http.MethodPost, "/admin/movements/"+url.PathEscape(id)+"/settle", s)
}
