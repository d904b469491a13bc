package adminapi

import (
	"encoding/json"

	"github.com/seed-f006e74d/gerbang/policy"
)

// PolicyCase is a request that nobody made, to ask a policy about.
type PolicyCase struct {
	// Version is the beginning of a version's name; active, and what is not given, is the one in force. Files is a set that
	// is no version yet, as in NewPolicy.
	Version string            `json:"version,omitempty"`
	Files   map[string]string `json:"files,omitempty"`

	Merchant  string `json:"merchant"` // its id; the record is the present one
	Mode      string `json:"mode,omitempty"`
	Operation string `json:"operation"` // its path
	// Input is the request's body; a key in it is passed over.
	Input json.RawMessage `json:"input,omitempty"`
	// At is when: RFC 3339, or 2006-01-02 15:04 in the gateway's time zone. It is now unless given.
	At string `json:"at,omitempty"`
	// Quote is what the quote would say, for rules about it.
	Quote json.RawMessage `json:"quote,omitempty"`
}

// PolicyAnswer is what a policy says about a case.
type PolicyAnswer struct {
	Version string         `json:"version"`
	Allow   bool           `json:"allow"`
	Reasons []PolicyReason `json:"reasons"`
	At      string         `json:"at"` // in the gateway's time zone, as rules see the clock
	// What rules saw of the request.
	Amount *int64         `json:"amount,omitempty"`
	Fields map[string]any `json:"fields,omitempty"`
	policy.Parties
	Lists []string `json:"lists,omitempty"` // that hold something of it

	Limits PolicyLimits `json:"limits"`
	Steps  int          `json:"steps"` // evaluated, of both questions
}

// PolicyReason is a reason and the rule that gave it.
type PolicyReason struct {
	Reason string `json:"reason"`
	Rule   string `json:"rule,omitempty"`
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
}

// PolicyLimits are the limits that hold for a merchant and an operation.
type PolicyLimits struct {
	Rates          []PolicyRate  `json:"rates"`
	Quotas         []PolicyQuota `json:"quotas"`
	Markup         int64         `json:"markup"` // of products that have none of their own
	Products       int           `json:"products,omitempty"`
	Day            PolicyPayout  `json:"day,omitzero"`
	DestinationDay PolicyPayout  `json:"destination_day,omitzero"`
	RepeatWithin   string        `json:"repeat_within,omitempty"`
}

// PolicyRate is a rate.
type PolicyRate struct {
	Name          string  `json:"name"`
	RatePerSecond float64 `json:"rate_per_second"`
	Burst         int     `json:"burst"`
	Per           string  `json:"per"` // merchant, operation or key
}

// PolicyQuota is a quota's size.
type PolicyQuota struct {
	Name  string `json:"name"`
	Limit int64  `json:"limit"`
}

// PolicyPayout is what may go out in a day.
type PolicyPayout struct {
	Amount *int64 `json:"amount,omitempty"`
	Count  *int64 `json:"count,omitempty"`
}
