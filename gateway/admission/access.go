package admission

import (
	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Access judges what needs no body: MERCHANT_SUSPENDED for a merchant that is
// stopped, whatever a policy says, and SCOPE_MISSING for an operation that is
// not in the key's scopes.
func Access(id tenants.Identity, op *catalog.Operation) error {
	if id.Account.Merchant().Status != tenants.Active {
		return fault.New(fault.MerchantSuspended, "This merchant is suspended.")
	}
	if scope := ScopeOf(op); !id.Key.Scopes.Has(scope) {
		return fault.Newf(fault.ScopeMissing, "This key may not do this; it lacks the scope %s.", scope)
	}
	return nil
}

// ScopeOf is the scope that an operation needs: reading is one scope, and each
// way of moving money belongs to one. To end a movement is to act on it, and a
// query may say that it tells as much as a transfer does.
func ScopeOf(op *catalog.Operation) tenants.Scope {
	if op.Scope != "" {
		return tenants.Scope(op.Scope)
	}
	switch KindOf(op) {
	case manifest.Payment, manifest.Collection:
		return tenants.ScopeCollect
	case manifest.Order:
		return tenants.ScopeOrder
	case manifest.Transfer:
		return tenants.ScopeTransfer
	default:
		return tenants.ScopeRead
	}
}

// KindOf is what an operation counts as, for scopes and policies: its own kind;
// to tell a state is a query, to end a movement is of the movement's kind.
func KindOf(op *catalog.Operation) manifest.Kind {
	switch {
	case op.StatusOf != "":
		return manifest.Query
	case op.CancelOf != "" && op.Target != nil:
		return op.Target.Kind
	}
	return op.Kind
}
