package admission

import (
	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Access checks what needs no body. The error is MERCHANT_SUSPENDED for a suspended
// merchant, whatever the policy says, or SCOPE_MISSING for an operation outside the
// key's scopes.
func Access(id tenants.Identity, op *catalog.Operation) error {
	if id.Account.Merchant().Status != tenants.Active {
		return fault.New(fault.MerchantSuspended, "This merchant is suspended.")
	}
	if scope := ScopeOf(op); !id.Key.Scopes.Has(scope) {
		return fault.Newf(fault.ScopeMissing, "This key may not do this; it lacks the scope %s.", scope)
	}
	return nil
}

// ScopeOf is the scope that an operation needs: one for reading, and one for each
// way of moving money. Ending a movement needs the scope of its kind. A manifest may
// ask for another scope for a query.
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

// KindOf is the kind of an operation for scopes and policies: a status operation
// counts as a query, and one that ends a movement as the movement's kind.
func KindOf(op *catalog.Operation) manifest.Kind {
	switch {
	case op.StatusOf != "":
		return manifest.Query
	case op.CancelOf != "" && op.Target != nil:
		return op.Target.Kind
	}
	return op.Kind
}
