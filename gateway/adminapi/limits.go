package adminapi

import (
	"fmt"
	"strings"
	"time"
)

// Limit is a limit of a merchant's own: of a rate or of a quota, its markup, or a payout
// limit. It goes before the tier's; a field that is not set is the tier's.
type Limit struct {
	Name          string     `json:"name"` // of a rate or a quota, or one of the constants
	RatePerSecond float64    `json:"rate_per_second,omitempty"`
	Burst         int64      `json:"burst,omitempty"`
	Limit         *int64     `json:"limit,omitempty"`         // of a quota: calls in a month
	Markup        *int64     `json:"markup,omitempty"`        // in rupiah
	Amount        *int64     `json:"amount,omitempty"`        // of a payout limit, in rupiah
	Transfers     *int64     `json:"transfers,omitempty"`     // of a payout limit
	RepeatWithin  string     `json:"repeat_within,omitempty"` // a Go duration
	Reason        string     `json:"reason"`
	SetBy         string     `json:"set_by"`
	SetAt         time.Time  `json:"set_at"`
	ExpiresAt     *time.Time `json:"expires_at,omitempty"`
	InForce       bool       `json:"in_force"`
}

// Names of limits that are neither a rate's nor a quota's: the markup, what may go out
// in a day, and in a day to one destination, and for how long equal transfers without a
// reference are one.
const (
	LimitMarkup         = "price:markup"
	LimitDay            = "payout:day"
	LimitDestinationDay = "payout:destination_day"
	LimitRepeatWithin   = "payout:repeat_within"
)

// LimitChange gives a merchant limits of its own. Each replaces the one of the
// same name.
type LimitChange struct {
	Merchant string     `path:"merchant" json:"-"`
	Limits   []NewLimit `json:"limits"`        // 1 to 20
	For      string     `json:"for,omitempty"` // a Go duration such as "2h"; for ever unless given
	Reason   string     `json:"reason"`        // 1 to 500 characters
}

// LimitRemoval removes a limit of a merchant's own.
type LimitRemoval struct {
	Merchant string `path:"merchant" json:"-"`
	Name     string `path:"limit" json:"-"`
	Reason   string `json:"reason"` // 1 to 500 characters
}

// NewLimit is one limit: a rate, a burst or both, the size of a quota, a markup, an
// amount, a number of transfers or both, or a duration.
type NewLimit struct {
	Name          string  `json:"name"`
	RatePerSecond float64 `json:"rate_per_second,omitempty"`
	Burst         int64   `json:"burst,omitempty"`
	Limit         *int64  `json:"limit,omitempty"`
	Markup        *int64  `json:"markup,omitempty"`
	Amount        *int64  `json:"amount,omitempty"`
	Transfers     *int64  `json:"transfers,omitempty"`
	RepeatWithin  string  `json:"repeat_within,omitempty"`
}

// String is the limit for the audit.
func (l NewLimit) String() string {
	words := []string{l.Name}
	if l.RatePerSecond != 0 {
		words = append(words, fmt.Sprintf("%g/s", l.RatePerSecond))
	}
	if l.Burst != 0 {
		words = append(words, fmt.Sprintf("burst %d", l.Burst))
	}
	for _, n := range []struct {
		word  string
		value *int64
	}{{"quota", l.Limit}, {"Rp", l.Markup}, {"Rp", l.Amount}, {"transfers", l.Transfers}} {
		if n.value != nil {
			words = append(words, fmt.Sprintf("%s %d", n.word, *n.value))
		}
	}
	if l.RepeatWithin != "" {
		words = append(words, l.RepeatWithin)
	}
	return strings.Join(words, " ")
}

// Quotas is how much of its quotas a merchant has used in the present month.
type Quotas struct {
	MerchantID string    `json:"merchant_id"`
	Mode       string    `json:"mode"`
	Period     string    `json:"period"`    // such as 2026-11
	ResetsAt   time.Time `json:"resets_at"` // in the merchant's zone
	Quotas     []Quota   `json:"quotas"`
}

// Quota is one quota of the policy in force. One that the policy has no longer is
// shown without a limit.
type Quota struct {
	Quota      string   `json:"quota" column:"QUOTA"`
	Limit      *int64   `json:"limit,omitempty" column:"LIMIT"`
	Used       int64    `json:"used" column:"USED"`
	Remaining  *int64   `json:"remaining,omitempty" column:"REMAINING"`
	Operations []string `json:"operations,omitempty" column:"COUNTS"` // paths that it counts
}

// The acts on limits.
var (
	ListLimits  = Endpoint[MerchantID, []Limit]{Act{Route: "GET /admin/merchants/{merchant}/limits", Takes: Read, Text: "List a merchant's own limits, the expired ones too."}}
	SetLimits   = Endpoint[LimitChange, []Limit]{Act{Route: "POST /admin/merchants/{merchant}/limits", Takes: ChangePolicy, Text: "Give a merchant limits of its own."}}
	RemoveLimit = Endpoint[LimitRemoval, []Limit]{Act{Route: "POST /admin/merchants/{merchant}/limits/{limit}/remove", Takes: ChangePolicy, Text: "Remove one of a merchant's own limits."}}
	ShowQuotas  = Endpoint[InMode, Quotas]{Act{Route: "GET /admin/merchants/{merchant}/quotas", Takes: Read, Text: "Show how much of its quotas a merchant has used."}}
)
