package lifecycle

import (
	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// Use is what the request uses its provider for.
func (r Request) Use() host.Use {
	return host.Use{
		Provider: r.Operation.Provider, MerchantID: string(r.Identity.Account.ID()), Money: r.Operation.Money(), Declared: r.Operation.Declared(),
	}
}

// UseOf is what a movement uses its provider for.
func UseOf(m movement.Movement) host.Use {
	return host.Use{Provider: m.Provider, MerchantID: m.Owner.MerchantID, Money: true}
}

// UseBy is what a movement uses its provider for, by an operation of that provider.
func UseBy(m movement.Movement, op *catalog.Operation) host.Use {
	use := UseOf(m)
	if op.Provider == m.Provider {
		use.Declared = op.Declared()
	}
	return use
}
