package manifest

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"

	jsonx "github.com/go-json-experiment/json"
)

var addForm = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)

// mostAddedText bounds a text of a provider's own: callbacks carry it.
const mostAddedText = 4096

// addResults adds the result fields of a provider's own to the result of each
// operation, and to what it, its status and its cancel answer.
func (m *Manifest) addResults(faults *Faults) {
	for i := range m.Operations {
		op := &m.Operations[i]
		if len(op.Adds) == 0 {
			continue
		}
		place := m.place(op.Path) + "/adds"
		if !op.Money() {
			faults.add(place, "is for operations that move money: leave it out of %s", op.Path)
			continue
		}
		if checkAdds(*op, place, faults) {
			m.addResultsOf(i, place, faults)
		}
	}
}

func checkAdds(op Operation, place string, faults *Faults) bool {
	before := len(*faults)
	_, result, err := schemaObject(op.Result)
	if err != nil {
		faults.add(place, "%s", flat(err))
		return false
	}
	for _, name := range slices.Sorted(maps.Keys(op.Adds)) {
		at := place + pointer(name)
		var shape struct {
			Type      string `json:"type"`
			MaxLength int    `json:"maxLength"`
		}
		_, taken := result[name]
		taken = taken || slices.Contains(inCallbacks, name)
		switch err := jsonx.Unmarshal(op.Adds[name], &shape); {
		case !addForm.MatchString(name):
			faults.add(at, "must be named in lower-case letters, digits and underscores, at most 40")
		case taken || slices.Contains(Answered(op.Kind, true), name) || slices.Contains(Answered(op.Kind, false), name) || slices.Contains(op.Echo, name):
			faults.add(at, "%s has a meaning already: take another name", name)
		case err != nil || shape.Type != "string" && shape.Type != "integer" && shape.Type != "boolean":
			faults.add(at, `must be a schema with "type" string, integer or boolean`)
		case shape.Type == "string" && (shape.MaxLength <= 0 || shape.MaxLength > mostAddedText):
			faults.add(at, "a text must have a maxLength, of at most %d: callbacks carry it", mostAddedText)
		}
		if _, err := CompileSchema(name, op.Adds[name]); err != nil {
			faults.addSchema(at, err)
		}
	}
	return len(*faults) == before
}

func (m *Manifest) addResultsOf(i int, place string, faults *Faults) {
	op := &m.Operations[i]
	add := func(schema *json.RawMessage) {
		joined, err := withProperties(*schema, op.Adds)
		if err != nil {
			faults.add(place, "%s", flat(err))
			return
		}
		*schema = joined
	}
	add(&op.Result)
	if op.Kind != Order { // whose creation is answered before there is a result
		add(&op.Response)
	}
	for j := range m.Operations {
		follower := &m.Operations[j]
		if follower.StatusOf == op.Path || follower.CancelOf == op.Path || slices.Contains(follower.AlsoOf, op.Path) {
			add(&follower.Response)
		}
	}
}

func withProperties(schema json.RawMessage, more map[string]json.RawMessage) (json.RawMessage, error) {
	keywords, properties, err := schemaObject(schema)
	if err != nil {
		return nil, err
	}
	maps.Copy(properties, more)
	return rejoin(keywords, properties)
}
