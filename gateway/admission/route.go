package admission

import (
	"context"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/policy"
)

// route asks the policy for the order of providers.
func (a *Admission) route(ctx context.Context, input policy.AdmitInput, ticket Ticket) ([]string, error) {
	if providers, kept := ticket.set.KeptRoute(input); kept {
		return providers, nil
	}
	evaluating, cancel := context.WithTimeout(ctx, a.bound)
	defer cancel()
	providers, err := ticket.set.RouteAndKeep(evaluating, input)
	if err != nil {
		return nil, internal(err)
	}
	return providers, nil
}

// OperationOf is an operation as policies see it.
func OperationOf(op *catalog.Operation) policy.Operation {
	return policy.Operation{Path: op.Path, Kind: string(KindOf(op)), Provider: op.Provider, Contract: op.Contract()}
}
