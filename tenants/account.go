package tenants

import (
	"fmt"
	"strings"
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
	// Version counts the changes of everything an Account holds: whoever changes the merchant or one of its keys,
	// connections or callback secrets raises it in the same transaction.
	Version   int64
	CreatedAt time.Time
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

// Account is a merchant with all its keys, connections and callback secrets, as they were at one version. It never
// changes, so one value may be read by everybody at once. It keeps its records packed in one string, because a
// directory holds one for every merchant; the accessors unpack what is asked for.
type Account struct {
	id     MerchantID
	packed packed
}

// NewAccount packs the records, which stay the caller's. It returns ErrInvalid for a record of another merchant, for two
// records where one may be, and for a value outside its closed set. Times are kept to the microsecond.
func NewAccount(m Merchant, keys []Key, conns []Connection, secrets []CallbackSecret) (*Account, error) {
	if m.ID == "" {
		return nil, fmt.Errorf("%w: a merchant needs an id", ErrInvalid)
	}
	if err := checkRecords(m.ID, keys, conns, secrets); err != nil {
		return nil, err
	}
	var p packer
	if err := p.merchant(m); err != nil {
		return nil, err
	}
	if err := packAll(&p, keys, (*packer).key); err != nil {
		return nil, err
	}
	if err := packAll(&p, conns, (*packer).connection); err != nil {
		return nil, err
	}
	if err := packAll(&p, secrets, (*packer).callbackSecret); err != nil {
		return nil, err
	}
	return &Account{id: MerchantID(strings.Clone(string(m.ID))), packed: packed(p.buf)}, nil
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
func (a *Account) ID() MerchantID { return a.id }

// Version returns the merchant's version.
func (a *Account) Version() int64 { return a.packed.version() }

// Merchant returns the merchant's record.
func (a *Account) Merchant() Merchant {
	u := a.packed.section(sectionMerchant)
	return u.merchant(a.id)
}

// Keys returns all keys, revoked and expired ones included.
func (a *Account) Keys() []Key {
	var keys []Key
	for u := range a.packed.records(sectionKeys) {
		keys = append(keys, u.key(a.id))
	}
	return keys
}

// Key returns the key with the id.
func (a *Account) Key(id KeyID) (Key, bool) {
	for u := range a.packed.records(sectionKeys) {
		if rest := u; rest.text() == string(id) {
			return u.key(a.id), true
		}
	}
	return Key{}, false
}

// Connections returns all connections.
func (a *Account) Connections() []Connection {
	var conns []Connection
	for u := range a.packed.records(sectionConnections) {
		conns = append(conns, u.connection(a.id))
	}
	return conns
}

// Connection returns the connection to a provider in a mode.
func (a *Account) Connection(mode Mode, provider Provider) (Connection, bool) {
	for u := range a.packed.records(sectionConnections) {
		if rest := u; rest.mode() == mode && rest.ownerAndProvider() == provider {
			return u.connection(a.id), true
		}
	}
	return Connection{}, false
}

// connectionAt returns the connection that a provider notifies at the token.
func (a *Account) connectionAt(provider Provider, token NotifyToken) (Connection, bool) {
	for u := range a.packed.records(sectionConnections) {
		if c := u.connection(a.id); c.Provider == provider && c.NotifyToken == token {
			return c, true
		}
	}
	return Connection{}, false
}

// CallbackSecret returns the sealed callback secret of a mode.
func (a *Account) CallbackSecret(mode Mode) (CallbackSecret, bool) {
	for u := range a.packed.records(sectionSecrets) {
		if s := u.callbackSecret(a.id); s.Mode == mode {
			return s, true
		}
	}
	return CallbackSecret{}, false
}

// CallbackURL is where callbacks of a mode go when a request names no URL, or "".
func (a *Account) CallbackURL(mode Mode) string {
	s, _ := a.CallbackSecret(mode)
	return s.URL
}
