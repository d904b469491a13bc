package tenants

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"time"
)

// Merchant is the record of a tenant.
type Merchant struct {
	ID     MerchantID
	Name   string
	Tier   Tier
	Status Status
	Labels map[string]string
	// Limits are the merchant's own, at most one of each name.
	Limits []Limit
	// Pauses are what operators have paused for the merchant, or of the platform for all.
	Pauses []Pause
	// Version counts the changes of everything an Account holds: whoever changes the merchant or one of its keys,
	// connections or callback secrets raises it in the same transaction.
	Version   int64
	CreatedAt time.Time
}

// check refuses a value outside its closed set, and limits that no policy could read.
func (m Merchant) check() error {
	if err := checkClosed(m.Status, statuses, "status"); err != nil {
		return err
	}
	for _, p := range m.Pauses {
		if err := p.check(); err != nil {
			return err
		}
	}
	return checkLimits(m.Limits)
}

// clone shares nothing that can be changed with the original. Times are UTC.
func (m Merchant) clone() Merchant {
	m.CreatedAt = m.CreatedAt.UTC()
	m.Pauses = append([]Pause(nil), m.Pauses...)
	m.Limits = append([]Limit(nil), m.Limits...)
	for i := range m.Limits {
		m.Limits[i] = m.Limits[i].clone()
	}
	if len(m.Labels) == 0 {
		m.Labels = nil
	}
	m.Labels = maps.Clone(m.Labels)
	return m
}

// Connection is an account at a provider in one mode. Credentials and settings are sealed JSON.
type Connection struct {
	MerchantID  MerchantID
	Mode        Mode
	Provider    Provider
	Owner       Owner
	Version     int64
	Sealed      []byte
	NotifyToken NotifyToken
}

func (c Connection) check() error {
	if _, ok := c.NotifyToken.raw(); !ok && c.NotifyToken != "" {
		return fmt.Errorf("%w: a notify token is %d bytes in base64url", ErrInvalid, notifyTokenBytes)
	}
	return errors.Join(checkClosed(c.Mode, modes, "mode"), checkClosed(c.Owner, owners, "owner"))
}

func (c Connection) clone() Connection {
	c.Sealed = bytes.Clone(c.Sealed)
	return c
}

// Account is a merchant with all its keys, connections and callback secrets, as they were at one version. It never
// changes, so one value may be read by everybody at once: records are copied on their way in and out.
type Account struct {
	merchant Merchant
	keys     []Key
	conns    []Connection
	secrets  []CallbackSecret
}

// NewAccount copies the records, which stay the caller's. It returns ErrInvalid for a record of another merchant, for two
// records where one may be, and for a value outside its closed set.
func NewAccount(m Merchant, keys []Key, conns []Connection, secrets []CallbackSecret) (*Account, error) {
	if m.ID == "" {
		return nil, fmt.Errorf("%w: a merchant needs an id", ErrInvalid)
	}
	if err := checkRecords(m.ID, keys, conns, secrets); err != nil {
		return nil, err
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	a := &Account{merchant: m.clone()}
	var err error
	if a.keys, err = copyAll(keys, Key.check, Key.clone); err != nil {
		return nil, err
	}
	if a.conns, err = copyAll(conns, Connection.check, Connection.clone); err != nil {
		return nil, err
	}
	a.secrets, err = copyAll(secrets, CallbackSecret.check, CallbackSecret.clone)
	return a, err
}

// copyAll checks and copies records.
func copyAll[T any](records []T, check func(T) error, clone func(T) T) ([]T, error) {
	copied := make([]T, 0, len(records))
	for _, r := range records {
		if err := check(r); err != nil {
			return nil, err
		}
		copied = append(copied, clone(r))
	}
	return copied, nil
}

// checkRecords refuses what would let one merchant act as another, and what would make an answer depend on an order.
func checkRecords(id MerchantID, keys []Key, conns []Connection, secrets []CallbackSecret) error {
	type slot struct {
		kind, name string
		mode       Mode
	}
	seen := make(map[slot]bool)
	add := func(owner MerchantID, s slot) error {
		if owner != id {
			return fmt.Errorf("%w: a %s of another merchant", ErrInvalid, s.kind)
		}
		if seen[s] {
			return fmt.Errorf("%w: the same %s twice", ErrInvalid, s.kind)
		}
		seen[s] = true
		return nil
	}
	for _, k := range keys {
		if err := add(k.MerchantID, slot{kind: "key", name: string(k.ID)}); err != nil {
			return err
		}
	}
	for _, c := range conns {
		if err := add(c.MerchantID, slot{kind: "connection", name: string(c.Provider), mode: c.Mode}); err != nil {
			return err
		}
	}
	for _, s := range secrets {
		if err := add(s.MerchantID, slot{kind: "callback secret", mode: s.Mode}); err != nil {
			return err
		}
	}
	return nil
}

// ID returns the merchant's id.
func (a *Account) ID() MerchantID { return a.merchant.ID }

// Version returns the merchant's version.
func (a *Account) Version() int64 { return a.merchant.Version }

// Merchant returns the merchant's record.
func (a *Account) Merchant() Merchant { return a.merchant.clone() }

// Keys returns all keys, revoked and expired ones included.
func (a *Account) Keys() []Key {
	var keys []Key
	for _, k := range a.keys {
		keys = append(keys, k.clone())
	}
	return keys
}

// Key returns the key with the id.
func (a *Account) Key(id KeyID) (Key, bool) {
	for _, k := range a.keys {
		if k.ID == id {
			return k.clone(), true
		}
	}
	return Key{}, false
}

// Connections returns all connections.
func (a *Account) Connections() []Connection {
	var conns []Connection
	for _, c := range a.conns {
		conns = append(conns, c.clone())
	}
	return conns
}

// Connection returns the connection to a provider in a mode.
func (a *Account) Connection(mode Mode, provider Provider) (Connection, bool) {
	return a.connection(func(c *Connection) bool { return c.Mode == mode && c.Provider == provider })
}

// connectionAt returns the connection that a provider notifies at the token.
func (a *Account) connectionAt(provider Provider, token NotifyToken) (Connection, bool) {
	return a.connection(func(c *Connection) bool { return c.Provider == provider && c.NotifyToken == token })
}

func (a *Account) connection(wanted func(*Connection) bool) (Connection, bool) {
	for i := range a.conns {
		if wanted(&a.conns[i]) {
			return a.conns[i].clone(), true
		}
	}
	return Connection{}, false
}

// CallbackSecret returns the sealed callback secret of a mode.
func (a *Account) CallbackSecret(mode Mode) (CallbackSecret, bool) {
	for _, s := range a.secrets {
		if s.Mode == mode {
			return s.clone(), true
		}
	}
	return CallbackSecret{}, false
}

// CallbackURL is where callbacks of a mode go when a request names no URL, or "".
func (a *Account) CallbackURL(mode Mode) string {
	for _, s := range a.secrets {
		if s.Mode == mode {
			return s.URL
		}
	}
	return ""
}

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
