package tenants

import (
	"fmt"
	"time"
)

// Pausable is what operators can pause.
type Pausable string

// What can be paused. A connection's pause stands with whose account it is, a
// provider's with the platform, and that of transfers with one merchant, or with the
// platform for all merchants.
const (
	PauseConnection Pausable = "connection"
	PauseProvider   Pausable = "provider"
	PauseTransfers  Pausable = "transfers"
)

var pausables = []Pausable{PauseConnection, PauseProvider, PauseTransfers}

// Pause has nothing new begin. What has begun goes on. The admin API shows it as it is.
type Pause struct {
	MerchantID MerchantID `json:"merchant_id" column:"MERCHANT"` // platform for its own connections, for providers, and for the transfers of all
	What       Pausable   `json:"what" column:"PAUSED"`
	Provider   Provider   `json:"provider,omitempty" column:"PROVIDER" otherwise:"-"`  // empty for transfers
	Mode       Mode       `json:"mode,omitempty" column:"MODE" otherwise:"live, test"` // empty for both
	SetAt      time.Time  `json:"set_at,omitzero" column:"SINCE"`
	SetBy      string     `json:"set_by,omitempty" column:"BY"` // the operator
	Reason     string     `json:"reason,omitempty" column:"REASON"`
}

func (p Pause) check() error {
	if p.Mode != "" {
		if err := checkClosed(p.Mode, modes, "mode"); err != nil {
			return err
		}
	}
	if (p.What == PauseTransfers) != (p.Provider == "") {
		return fmt.Errorf("%w: a pause of %s names a provider, or none", ErrInvalid, p.What)
	}
	return checkClosed(p.What, pausables, "what")
}

// Paused returns the account's pause of something in a mode; the provider is "" for
// transfers.
func (a *Account) Paused(what Pausable, provider Provider, mode Mode) (Pause, bool) {
	for _, p := range a.merchant.Pauses {
		if p.What == what && p.Provider == provider && (p.Mode == "" || p.Mode == mode) {
			return p, true
		}
	}
	return Pause{}, false
}
