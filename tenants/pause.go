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

// Pause has nothing new begin. What has begun goes on.
type Pause struct {
	MerchantID MerchantID
	What       Pausable
	Provider   Provider // empty for transfers
	Mode       Mode     // empty for both
	Reason     string
	SetBy      string // the operator
	SetAt      time.Time
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
