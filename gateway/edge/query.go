package edge

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// parameters says how to read the query of a URL for one operation. The query is
// checked as strictly as a body, and no text ever repeats it.
type parameters struct {
	integers map[string]bool
}

// wholeForm is a whole number as people write one.
var wholeForm = regexp.MustCompile(`^(0|-?[1-9][0-9]{0,38})$`)

// newParameters reads which parameters are numbers. It returns nil for an operation
// whose query is ignored.
func newParameters(op *catalog.Operation) (*parameters, error) {
	if !op.Get {
		return nil, nil // only the body counts
	}
	if op.Kind != manifest.Query {
		return nil, fmt.Errorf("operation %s of provider %s: only a query may be asked by GET", op.Path, op.Provider)
	}
	var schema struct {
		Properties map[string]struct{ Type any }
	}
	if err := json.Unmarshal(op.Request, &schema); err != nil {
		return nil, fmt.Errorf("operation %s of provider %s: request: %w", op.Path, op.Provider, err)
	}
	p := &parameters{integers: map[string]bool{}}
	for name, property := range schema.Properties {
		p.integers[name] = property.Type == "integer"
	}
	return p, nil
}

// join puts the parameters of a query beside what the body says. An error is
// INVALID_REQUEST; it names a parameter and never repeats a value.
func (p *parameters) join(b *body, query string) error {
	given, err := url.ParseQuery(query)
	if err != nil { // whose text repeats a piece of the query
		return fault.New(fault.InvalidRequest, "The query of the URL can't be read: it must be name=value pairs, percent-encoded and joined by &.")
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !isText(name) {
			return fault.New(fault.InvalidRequest, "The query of the URL has a name that is not valid UTF-8 or holds a NUL character.")
		}
		values := given[name]
		if len(values) > 1 {
			return fault.Invalid(name, "is given twice in the query")
		}
		if !isText(values[0]) {
			return fault.Invalid(name, "is not valid UTF-8 or holds a NUL character")
		}
		if values[0] == "" {
			continue // as absent as in a body
		}
		if err := p.put(b, name, values[0]); err != nil {
			return err
		}
	}
	return nil
}

func (p *parameters) put(b *body, name, value string) error {
	differs := func() error { return fault.Invalid(name, "differs between the query and the body") }
	switch name {
	case "secret_key":
		if !b.key.join(value) {
			b.key.malformed = true // two keys count as none; authenticate reports it
		}
		return nil
	case "merchant_id":
		if !b.merchant.join(value) {
			return differs()
		}
		return nil
	}
	var typed any = value
	if p.integers[name] && wholeForm.MatchString(value) {
		typed = json.Number(value)
	}
	if there, twice := b.document[name]; twice && there != typed {
		return differs()
	}
	b.document[name] = typed
	return nil
}

func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }
