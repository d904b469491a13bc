package manifest

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	jsonx "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// shipped are the contracts. Providers' approvals rest on their text, so one that has
// been shipped never changes: a changed contract is another version beside it.
//
//go:embed contracts/*.json
var shipped embed.FS

// contract is the operations that all providers of some paths have in common.
type contract struct {
	Name       string      `json:"contract"`
	Operations []Operation `json:"operations"`
}

func (c contract) operation(path string) (Operation, bool) {
	i := slices.IndexFunc(c.Operations, func(op Operation) bool { return op.Path == path })
	if i < 0 {
		return Operation{}, false
	}
	return c.Operations[i], true
}

var contracts = sync.OnceValues(func() (map[string]contract, error) {
	files, err := shipped.ReadDir("contracts")
	if err != nil {
		return nil, err
	}
	all := make(map[string]contract, len(files))
	for _, file := range files {
		text, err := shipped.ReadFile("contracts/" + file.Name())
		if err != nil {
			return nil, err
		}
		var c contract
		if err := jsonx.Unmarshal(text, &c, jsonx.RejectUnknownMembers(true)); err != nil {
			return nil, fmt.Errorf("contract %s: %w", file.Name(), err)
		}
		all[c.Name] = c
	}
	return all, nil
})

// Contracts are the names of the contracts that a manifest may implement, sorted.
func Contracts() []string {
	all, err := contracts()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(all))
}

// ContractOperations are those of a contract, as all its providers have them.
func ContractOperations(name string) []Operation {
	all, err := contracts()
	if err != nil {
		return nil
	}
	return slices.Clone(all[name].Operations)
}

// ContractOperation is a path of a contract as all its providers have it, before any of
// them tightens it; false where the contract has none.
func ContractOperation(name, path string) (Operation, bool) {
	all, err := contracts()
	if err != nil {
		return Operation{}, false
	}
	return all[name].operation(path)
}

// expand completes what implements a contract by what that says, and refuses what would
// contradict it. A manifest that is expanded already stays as it is. It is false where
// there is nothing whole to judge any further.
func (m *Manifest) expand(faults *Faults) bool {
	m.written = make(map[string]int, len(m.Operations))
	for i, op := range m.Operations {
		m.written[op.Path] = i
	}
	all, err := contracts()
	if err != nil {
		faults.add("", "%s", flat(err))
		return false
	}
	if m.Implements == "" {
		m.checkForeign(all, faults)
		return true
	}
	c, known := all[m.Implements]
	if !known {
		faults.add("/implements", "%q is no contract of this gateway, which knows %s: name one of them, or run a newer gateway", m.Implements, strings.Join(Contracts(), ", "))
		return false
	}
	given := m.Operations
	m.Operations = make([]Operation, 0, len(c.Operations))
	for _, op := range c.Operations {
		i := slices.IndexFunc(given, func(o Operation) bool { return o.Path == op.Path })
		if op.Optional && i < 0 && !slices.ContainsFunc(given, func(o Operation) bool { return o.Path == op.StatusOf }) {
			continue // named by nobody, nor is what it tells of
		}
		if i >= 0 {
			op = differing(op, given[i], pointer("operations", strconv.Itoa(i)), faults)
		}
		m.Operations = append(m.Operations, op)
	}
	for i, op := range given {
		_, ofContract := c.operation(op.Path)
		first := slices.IndexFunc(given, func(o Operation) bool { return o.Path == op.Path }) == i
		switch {
		case !ofContract:
			m.Operations = append(m.Operations, op)
		case !first:
			faults.add(pointer("operations", strconv.Itoa(i), "path"), "%s stands twice: join the two", op.Path)
		}
	}
	m.addResults(faults)
	for i := range given {
		m.checkGiven(given[i], pointer("operations", strconv.Itoa(i)), c, faults)
	}
	m.checkForeign(all, faults)
	return true
}

// differing is a contract's operation with what its provider may say about it.
func differing(op, given Operation, place string, faults *Faults) Operation {
	if given.Timeout != 0 {
		op.Timeout = given.Timeout
	}
	op.Narrow, op.Adds = given.Narrow, given.Adds
	if len(op.Narrow) > 0 && op.Kind == "" {
		faults.add(place+"/narrow", "a status or cancel takes a reference and nothing else: leave it out")
		return op
	}
	if narrowed, ok := narrow(op, place+"/narrow", faults); ok {
		op.Request = narrowed
	}
	return op
}

// checkGiven refuses members of a contract's operation that say something else than the
// contract does.
func (m *Manifest) checkGiven(given Operation, place string, c contract, faults *Faults) {
	if _, ofContract := c.operation(given.Path); !ofContract {
		return
	}
	whole, _ := m.Operation(given.Path)
	ours, theirs := members(whole), members(given)
	for _, name := range slices.Sorted(maps.Keys(theirs)) {
		if !bytes.Equal(ours[name], theirs[name]) {
			faults.add(place+pointer(name), "the contract %s says this of %s: leave it out; timeout, narrow and adds are a provider's own", c.Name, given.Path)
		}
	}
}

// checkForeign refuses the path of a contract that the manifest does not implement,
// unless the operation is the contract's own but for its texts.
func (m *Manifest) checkForeign(all map[string]contract, faults *Faults) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if name == m.Implements {
			continue
		}
		for _, given := range m.Operations {
			theirs, taken := all[name].operation(given.Path)
			if !taken {
				continue
			}
			theirs.Timeout = given.Timeout
			if !maps.EqualFunc(members(theirs), members(given), sameButTexts) {
				faults.add(m.place(given.Path)+"/path", `%s belongs to the contract %s: say "implements": %q, or take a path of your own`, given.Path, name, name)
			}
		}
	}
}

// members are what is given of an operation, each in its canonical form.
func members(op Operation) map[string]jsontext.Value {
	text, err := json.Marshal(op)
	if err != nil {
		return nil // what was read from JSON can be written
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return nil
	}
	canonical := make(map[string]jsontext.Value, len(all))
	for name, value := range all {
		v := jsontext.Value(value)
		if err := v.Canonicalize(); err != nil || string(v) == "null" || string(v) == `""` {
			continue // not given
		}
		canonical[name] = v
	}
	return canonical
}

// sameButTexts compares two JSON values without the descriptions in them.
func sameButTexts(a, b jsontext.Value) bool {
	var ours, theirs any
	if json.Unmarshal(a, &ours) != nil || json.Unmarshal(b, &theirs) != nil {
		return false
	}
	if text, ok := ours.(string); ok && strings.Contains(text, " ") { // a summary or a description of its own
		_, ok = theirs.(string)
		return ok
	}
	return reflect.DeepEqual(withoutTexts(ours), withoutTexts(theirs))
}

func withoutTexts(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name := range v {
			if _, text := v[name].(string); text && name == "description" { // a property of that name is an object
				delete(v, name)
				continue
			}
			v[name] = withoutTexts(v[name])
		}
	case []any:
		for i := range v {
			v[i] = withoutTexts(v[i])
		}
	}
	return value
}

var errNoObject = errors.New("must be a JSON object")

// schemaObject is a schema's keywords, and its properties.
func schemaObject(schema json.RawMessage) (keywords, properties map[string]json.RawMessage, err error) {
	if err := json.Unmarshal(schema, &keywords); err != nil || keywords == nil {
		return nil, nil, errNoObject
	}
	if given := keywords["properties"]; given != nil {
		if err := json.Unmarshal(given, &properties); err != nil {
			return nil, nil, errNoObject
		}
	}
	if properties == nil {
		properties = map[string]json.RawMessage{}
	}
	return keywords, properties, nil
}

// rejoin is the schema of these keywords and properties.
func rejoin(keywords, properties map[string]json.RawMessage) (json.RawMessage, error) {
	joined, err := json.Marshal(properties)
	if err != nil {
		return nil, err
	}
	keywords["properties"] = joined
	return json.Marshal(keywords)
}
