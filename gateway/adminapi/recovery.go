package adminapi

import (
	"time"
)

// Recovery is a restore of the database after which nobody has opened the gateway yet:
// no money is moved while it lasts.
type Recovery struct {
	Recovering bool       `json:"recovering"`
	BegunAt    *time.Time `json:"begun_at,omitempty"`
	// Since is the last trace of a gateway in what was restored. Nothing is asked of
	// providers where there is none and none was given.
	Since    *time.Time        `json:"since,omitempty"`
	Accounts []RecoveryAccount `json:"accounts"`
}

// RecoveryAccount is what a provider's own list says of an account since then: all
// money that has left it.
type RecoveryAccount struct {
	MerchantID string        `json:"merchant_id"`
	Mode       string        `json:"mode"`
	Provider   string        `json:"provider"`
	Unread     string        `json:"unread,omitempty"` // why it could not be read
	Rows       []RecoveryRow `json:"rows"`
}

// RecoveryRow is money that has left an account. It names a movement that the database
// has, a lost movement, or nothing of ours: then amount and time are what to compare.
type RecoveryRow struct {
	ID        string     `json:"id"`
	Reference string     `json:"reference,omitempty"`
	Amount    Rupiah     `json:"amount"`
	At        *time.Time `json:"at,omitempty"`
	Names     string     `json:"names"`
}

// RecoveryOpening says what an operator has found before opening.
type RecoveryOpening struct {
	Reason string `json:"reason" required:"" help:"What was found; kept in the audit of platform."`
}

// RecoveryQuery asks providers what they list since a time, since the last trace of a gateway unless it is given.
type RecoveryQuery struct {
	Since time.Time `query:"since" placeholder:"TIME" help:"Ask for what is later than this, such as 2026-01-02T15:04:05Z; the last trace of a gateway in the backup unless given."`
}

// The acts after a restore.
var (
	ShowRecovery = Endpoint[RecoveryQuery, Recovery]{Act{Route: "GET /admin/recovery", Takes: Read, Slow: true, Text: "Tell what providers' own lists say since the backup."}}
	OpenRecovery = Endpoint[RecoveryOpening, None]{Act{Route: "POST /admin/recovery/open", Takes: Administer, Text: "Let money move again, on all replicas within a second."}}
)
