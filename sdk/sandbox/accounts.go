package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"
)

// AccountID names an account of the upstream without its API key: 24
// hexadecimal digits.
type AccountID string

// AccountOf derives the id of an account from its API key.
func AccountOf(key string) AccountID {
	sum := sha256.Sum256([]byte("account:" + key))
	return AccountID(hex.EncodeToString(sum[:12]))
}

// Account is what its owner has set on the upstream's dashboard.
type Account struct {
	ID            AccountID `json:"id"`
	Name          string    `json:"name"`
	CallbackURL   string    `json:"callback_url"`
	CallbackToken string    `json:"callback_token"`
	// Revoked says that the upstream refuses its credentials.
	Revoked bool `json:"revoked,omitempty"`
}

// Accounts is the durable register of accounts.
type Accounts struct {
	journal *Journal
	topic   *Topic[Account]

	mu   sync.RWMutex
	byID map[AccountID]Account
}

func newAccounts(j *Journal) *Accounts {
	a := &Accounts{journal: j, byID: map[AccountID]Account{}}
	a.topic = NewTopic(j, "account", func(account Account) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.byID[account.ID] = account
	})
	return a
}

// Register adds an account or replaces what was set for it.
func (a *Accounts) Register(account Account) error {
	return a.journal.Append(a.topic.Entry(account)).Wait()
}

// Revoke has an account's credentials refused from now on.
func (a *Accounts) Revoke(name string) error {
	account, _ := a.Get(AccountOf(name))
	account.ID, account.Revoked = AccountOf(name), true
	return a.Register(account)
}

// Revoked reports whether the account's credentials are refused by order.
func (a *Accounts) Revoked(id AccountID) bool {
	account, _ := a.Get(id)
	return account.Revoked
}

// Get returns an account, false for one that was never registered.
func (a *Accounts) Get(id AccountID) (Account, bool) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	account, ok := a.byID[id]
	return account, ok
}
