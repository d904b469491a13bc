package manifest

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	jsonx "github.com/go-json-experiment/json"
)

// always are the properties that the gateway itself answers of a movement, by kind: to
// its creation, and to its status, its cancel and in its callbacks.
var always = map[Kind]struct{ creation, status []string }{
	Payment: {
		creation: []string{"external_id", "checkout_url", "qr_string", "status", "amount", "remaining_quota"},
		status: []string{
			"external_id", "status", "amount", "created_at", "updated_at", "paid_amount", "paid_at", "channel", "provider_reference", "paid_late_at", "returned_amount", "returned_at", "remaining_quota",
		},
	},
	Collection: {
		creation: []string{"external_id", "qr_string", "amount", "base_amount", "random_code", "status", "remaining_quota"},
		status:   []string{"external_id", "status", "amount", "paid_at", "paid_late_at", "returned_amount", "returned_at", "remaining_quota"},
	},
	Order: {
		creation: []string{"ref_id", "status", "remaining_quota"},
		status:   []string{"ref_id", "status", "returned_amount", "returned_at", "remaining_quota"},
	},
	Refund: {
		creation: []string{"refund_id", "status", "amount", "created_at", "remaining_quota"},
		status:   []string{"refund_id", "status", "amount", "created_at", "updated_at", "provider_reference", "returned_amount", "returned_at", "remaining_quota"},
	},
	Transfer: {
		creation: []string{"refId", "txId", "amount", "fee", "status", "external_id", "name_match", "remaining_quota"},
		status:   []string{"refId", "txId", "external_id", "amount", "fee", "status", "returned_amount", "returned_at", "remaining_quota"},
	},
}

// inCallbacks are those that callbacks have besides.
var inCallbacks = []string{"timestamp", "message", "sn"}

// Answered are the properties that the gateway itself answers of movements of a kind: to
// their creation, or to their status, their cancel and in their callbacks.
func Answered(kind Kind, creation bool) []string {
	if creation {
		return always[kind].creation
	}
	return always[kind].status
}

// Results are the properties of a provider's result that merchants read as the provider
// gives them, sorted: all that result and response have in common, but those that the
// gateway answers itself. The response is of the operation or of its status or cancel.
func (o Operation) Results(response json.RawMessage, creation bool) []string {
	if creation && o.Kind == Order { // which is answered before there is a result
		return nil
	}
	_, theirs, err := schemaObject(o.Result)
	if err != nil {
		return nil
	}
	_, told, err := schemaObject(response)
	if err != nil {
		return nil
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(theirs)) {
		if _, tells := told[name]; tells && !slices.Contains(Answered(o.Kind, creation), name) && !o.echoes(name) {
			names = append(names, name)
		}
	}
	return names
}

// echoes tells whether answers repeat a property of the request. Transfers have none.
func (o Operation) echoes(name string) bool {
	return o.Kind != Transfer && slices.Contains(o.Echo, name)
}

// checkPromises refuses a response with properties that nobody supplies: neither the
// gateway, nor the request, nor the provider's result.
func (m *Manifest) checkPromises(faults *Faults, place string, op Operation) {
	if op.Kind == Query {
		checkShown(faults, place, op)
		return
	}
	keywords, told, err := schemaObject(op.Response)
	if err != nil {
		faults.add(place+"/response", "must be the schema of an object")
		return
	}
	var required []string
	_ = json.Unmarshal(keywords["required"], &required) // none, where it has none
	creation, makers := op.Kind != "", []Operation{op}
	if !creation {
		makers = nil
		for _, path := range append([]string{op.StatusOf + op.CancelOf}, op.AlsoOf...) {
			maker, _ := m.Operation(path)
			makers = append(makers, maker)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(told)) {
		supplied, result := false, false
		for _, maker := range makers {
			result = slices.Contains(maker.Results(op.Response, creation), name)
			supplied = supplied || result || slices.Contains(Answered(maker.Kind, creation), name) || maker.echoes(name)
		}
		at := place + "/response/properties" + pointer(name)
		switch {
		case op.CancelOf != "" && name == "remaining_quota":
			faults.add(at, "a cancel uses no quota: leave it out")
		case !supplied:
			faults.add(at, "nobody supplies it: declare it in the result of %s, echo it from the request, or leave it out; the gateway itself answers %s",
				makers[0].Path, strings.Join(Answered(makers[0].Kind, creation), ", "))
		case result && slices.Contains(required, name) && (!creation || op.Kind == Transfer):
			faults.add(place+"/response/required", "must not name %s: nobody has it before the provider has answered", name)
		case result && slices.Contains(required, name) && !slices.Contains(itemOf(op.Result).Required, name):
			faults.add(place+"/response/required", "names %s, which the result need not have: require it there, or not here", name)
		}
	}
}

// checkShown does the same for a query, whose answer is the provider's result.
func checkShown(faults *Faults, place string, op Operation) {
	result, promised := itemOf(op.Result), itemOf(op.Response)
	if result.Properties == nil {
		return // any may be there
	}
	for _, name := range slices.Sorted(maps.Keys(promised.Properties)) {
		if _, there := result.Properties[name]; !there {
			faults.add(place+"/response", "promises %s, which the result does not have: declare it there, or leave it out", name)
		}
	}
	for _, name := range promised.Required {
		if !slices.Contains(result.Required, name) {
			faults.add(place+"/response", "requires %s, which the result need not have: require it there, or not here", name)
		}
	}
}

type item struct {
	Properties map[string]json.RawMessage `json:"properties"`
	Required   []string                   `json:"required"`
	Items      *item                      `json:"items"`
}

// itemOf is what a schema says of an answer, or of the items of one that is a list.
func itemOf(schema json.RawMessage) item {
	var answer item
	if err := jsonx.Unmarshal(schema, &answer); err != nil {
		return item{}
	}
	if answer.Properties == nil && answer.Items != nil {
		return *answer.Items
	}
	return answer
}
