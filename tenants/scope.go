package tenants

import (
	"fmt"
	"slices"
	"strings"
)

// Scope is one thing that a key may do.
type Scope string

// The scopes of a key, as the contract names them.
const (
	ScopeRead     Scope = "read"
	ScopeCollect  Scope = "collect"
	ScopeOrder    Scope = "order"
	ScopeTransfer Scope = "transfer"
)

// scopeOrder gives each scope its bit. Stored keys depend on it: only ever append.
var scopeOrder = [...]Scope{ScopeRead, ScopeCollect, ScopeOrder, ScopeTransfer}

// Scopes is a set of scopes, small enough to be compared and stored as one number.
type Scopes uint8

// AllScopes is what a key may do unless fewer scopes were chosen.
func AllScopes() Scopes { return 1<<len(scopeOrder) - 1 }

// NewScopes returns the set of the given scopes and refuses an unknown one.
func NewScopes(scopes ...Scope) (Scopes, error) {
	var set Scopes
	for _, s := range scopes {
		i := slices.Index(scopeOrder[:], s)
		if i < 0 {
			return 0, fmt.Errorf("%w: scope must be one of %q", ErrInvalid, scopeOrder)
		}
		set |= 1 << i
	}
	return set, nil
}

// Has reports whether the set contains the scope. An unknown scope is in no set.
func (s Scopes) Has(scope Scope) bool {
	i := slices.Index(scopeOrder[:], scope)
	return i >= 0 && s&(1<<i) != 0
}

// Valid reports whether the set is not empty and holds only known scopes.
func (s Scopes) Valid() bool { return s != 0 && s&^AllScopes() == 0 }

// List returns the scopes of the set in their fixed order.
func (s Scopes) List() []Scope {
	list := make([]Scope, 0, len(scopeOrder))
	for i, scope := range scopeOrder {
		if s&(1<<i) != 0 {
			list = append(list, scope)
		}
	}
	return list
}

// String lists the scopes with commas between them.
func (s Scopes) String() string {
	var b strings.Builder
	for i, scope := range s.List() {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(string(scope))
	}
	return b.String()
}
