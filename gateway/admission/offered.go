package admission

//go:generate go test -run ^TestThePolicyReadmeListsTheInputs$ . -args -update

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Offered are all operations of a catalog as a policy is held against them.
func Offered(s *catalog.Snapshot) []policy.Offered {
	var offered []policy.Offered
	for _, op := range s.Operations() {
		offered = append(offered, policy.Offered{
			Operation: OperationOf(op),
			// An order's amount comes with its quote, where the request has none.
			Amount: op.AmountField() != "" || op.Rules.Reserves == movement.ReserveBalance,
			Quote:  op.Quote, MustBeNamed: op.Unnamed,
			Fields: fieldsOf(op), Destination: op.DestinationFields(), Providers: op.Providers(),
		})
	}
	return offered
}

// fieldsOf are the schemas of the fields that rules see.
func fieldsOf(op *catalog.Operation) map[string]json.RawMessage {
	var request struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(op.Request, &request); err != nil {
		return nil // the catalog has refused such a manifest
	}
	fields := map[string]json.RawMessage{}
	for name, schema := range request.Properties {
		if slices.Contains(op.Fields, name) {
			fields[name] = schema
		}
	}
	return fields
}

// InputOf is what rules would see of a request that a merchant made at a time. Location is the gateway's, Jakarta's when
// nil. The body fits its schema.
func InputOf(
	now time.Time, location *time.Location, account *tenants.Account, mode tenants.Mode, op *catalog.Operation, body catalog.Document,
) (policy.AdmitInput, error) {
	a := Admission{location: cmp.Or(location, jakarta)}
	return a.input(now, tenants.Identity{Account: account, Mode: mode}, op, body)
}
