package catalog

import (
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/policy"
)

// parties are the properties of the contracts' requests that name somebody, beside the destinations and products that manifests
// declare.
var parties = map[string]struct{ destination, payer string }{
	"/ppob/order":      {destination: "target"},
	"/payments/create": {payer: "payer_email"},
}

// Parties are who and what a request is about. Where a transfer is quoted, its provider tells the destination.
func (op *Operation) Parties(body Document) policy.Parties {
	named := parties[op.Path]
	text := func(name string) string {
		value, _ := body[name].(string)
		return value
	}
	found := policy.Parties{Destination: movement.Destination(text(named.destination)), Payer: movement.Payer(text(named.payer))}
	if op.Rules.Reserves == movement.ReserveLimits && !op.Quote {
		found.Destination = movement.Destination(op.DestinationOf(body))
	}
	if op.Product != nil {
		found.Product = text(op.Product.RequestField())
	}
	return found
}
