package adminapi

import (
	"time"

	"github.com/seed-f006e74d/gerbang/policy"
)

// Decision is what the policy decided on a request, as its id tells it, and why. What was admitted has neither rule nor
// limit. What the id alone does not tell apart is listed: several merchants or operations.
type Decision struct {
	ID            string    `json:"id"`
	At            time.Time `json:"at"` // the second
	MerchantIDs   []string  `json:"merchant_ids"`
	Mode          string    `json:"mode"`
	Operations    []string  `json:"operations"`
	Verdict       string    `json:"verdict"` // admitted, denied, slowed, over_quota or unjudged
	Rule          string    `json:"rule,omitempty"`
	Places        []Place   `json:"places,omitempty"` // of the rule
	Limit         *LimitUse `json:"limit,omitempty"`
	PolicyVersion string    `json:"policy_version"` // its first digits where the version is not kept any more
	Replica       string    `json:"replica"`
	// RequestID and ErrorCode are what the merchant was answered, where that was kept: what was admitted may have failed
	// for another cause.
	RequestID string   `json:"request_id,omitempty"`
	ErrorCode string   `json:"error_code,omitempty"`
	Message   string   `json:"message,omitempty"`
	Notes     []string `json:"notes,omitempty"` // what is not as it was then, or not known

	// Input and Trace are for operators who may read them, where they ask and it was kept.
	Input *DecisionInput     `json:"input,omitempty"`
	Trace []policy.TraceLine `json:"trace,omitempty"`
}

// DecisionInput is what a refused request asked for, as policies see it.
type DecisionInput struct {
	Amount *int64         `json:"amount,omitempty"`
	Fields map[string]any `json:"fields,omitempty"`
	policy.Parties
	Lists []string       `json:"lists,omitempty"` // that held something of it
	Quote map[string]any `json:"quote,omitempty"`
}

// Place is where a rule stands.
type Place struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Rule string `json:"rule"` // the document that it answers
	// Reason is what it says to the merchant, where that is always the same or the input is known.
	Reason string `json:"reason,omitempty"`
}

// LimitUse is a limit that left no room: how much it allows, how much of it was used, and when there is room again. A rate
// has its pace, too.
type LimitUse struct {
	Name          string     `json:"name"`
	RatePerSecond float64    `json:"rate_per_second,omitempty"`
	Per           string     `json:"per,omitempty"` // of a rate: merchant, operation or key
	Limit         int64      `json:"limit"`
	Used          *int64     `json:"used,omitempty"` // left out where nobody knows
	ResetsAt      *time.Time `json:"resets_at,omitempty"`
}
