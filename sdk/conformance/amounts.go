package conformance

import (
	"encoding/json"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// largeAmounts lie around the places at which numbers of fewer bits end.
var largeAmounts = []money.Amount{1<<31 - 1, 1 << 31, 1<<32 + 1, money.Max - 1, money.Max}

// checkAmounts: an amount is what was ordered, however large.
func checkAmounts(tr *trial, e Example) {
	op, _ := tr.manifest.Operation(e.Operation)
	if op.AmountField() == "" || op.Kind == manifest.Order {
		tr.Skip("the caller does not choose the amount")
	}
	var schema struct {
		Properties map[string]struct{ Maximum json.Number }
	}
	amounts := largeAmounts
	if json.Unmarshal(op.Request, &schema) == nil {
		if most, err := money.Parse(schema.Properties[op.AmountField()].Maximum.String()); err == nil {
			amounts = append([]money.Amount{most - 1, most}, amounts...)
		}
	}
	taken := 0
	for _, amount := range amounts {
		large := e
		var err error
		if large.Body, err = merged(e.Body, map[string]json.RawMessage{op.AmountField(): json.RawMessage(amount.String())}); err != nil {
			tr.Fatal(err)
		}
		if validate("request", op.Request, large.Body) != nil {
			continue // the gateway refuses it
		}
		o := tr.order(large)
		switch r := tr.send(o); {
		case accepted(r.Outcome) && op.Kind == manifest.Collection:
			taken++
			if f := tr.find(o, ""); f.Amount != amount || string(f.Data) != string(r.Data) {
				tr.Errorf("%d was ordered and answered with %s, and a lookup finds %d, %s", amount, r.Data, f.Amount, f.Data)
			}
		case accepted(r.Outcome):
			taken++
			tr.mustExist(o)
			tr.mustBeFound(o, tr.find(o, ""))
		case r.Outcome == sdk.Unknown:
			tr.Errorf("nobody knows what became of %d: %s", amount, shown(r))
		default:
			tr.mustNotExist(o)
		}
	}
	if taken == 0 {
		tr.Skip("schema or upstream take no amount as large as 2^31")
	}
}
