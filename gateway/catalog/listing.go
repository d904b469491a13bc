package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// Listing is a query's answer, read once and shown many times: filtered, without
// the properties that merchants may not see, and with the markup on prices.
type Listing struct {
	list  bool // an array of items, else one object
	items []item
	byKey map[string]int
	names []string // of the filters
}

// item is an object of an answer. Shown holds the pieces of its text around its
// prices.
type item struct {
	whole   json.RawMessage
	shown   [][]byte
	prices  []price
	filters []string // lower case, in the order of the filters
}

type price struct {
	amount  money.Amount
	product string
}

// Added is what the gateway adds to the prices of products.
type Added interface {
	Of(product string) money.Amount
	// Name is the same only where the same is added to each product.
	Name() string
}

// Read validates a provider's answer to a query and prepares it. Key is the
// property by which items are found, "" for none.
func (op *Operation) Read(result json.RawMessage, key string) (*Listing, error) {
	if err := op.CheckResult(result); err != nil {
		return nil, err
	}
	var objects []json.RawMessage
	l := &Listing{list: jsontext.Value(result).Kind() == jsontext.KindBeginArray, byKey: map[string]int{}, names: op.Filter}
	if !l.list {
		objects = append(objects, result)
	} else if err := json.Unmarshal(result, &objects); err != nil {
		return nil, fmt.Errorf("result of %s: %w", op.Path, err)
	}
	for _, object := range objects {
		read, named, err := op.readItem(object, key)
		if err != nil {
			return nil, fmt.Errorf("result of %s: %w", op.Path, err)
		}
		if _, twice := l.byKey[named]; key != "" && !twice {
			l.byKey[named] = len(l.items)
		}
		l.items = append(l.items, read)
	}
	return l, nil
}

// Find returns the item with this key, as the provider gave it.
func (l *Listing) Find(key string) (json.RawMessage, bool) {
	at, ok := l.byKey[key]
	if !ok {
		return nil, false
	}
	return l.items[at].whole, true
}

// Keys are the keys of its items, sorted.
func (l *Listing) Keys() []string { return slices.Sorted(maps.Keys(l.byKey)) }

// Show returns the answer for a merchant with this body and these prices.
func (l *Listing) Show(body Document, added Added) (json.RawMessage, error) {
	wanted := l.wanted(body)
	var out []byte
	if l.list {
		out = append(out, '[')
	}
	for i := range l.items {
		if !l.items[i].matches(wanted) {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		var err error
		if out, err = l.items[i].show(out, added); err != nil {
			return nil, err
		}
	}
	if l.list {
		out = append(out, ']')
	}
	return out, nil
}

// wanted are the values that a body filters by, "" for any.
func (l *Listing) wanted(body Document) []string {
	wanted := make([]string, len(l.names))
	for i, name := range l.names {
		text, _ := body[name].(string)
		wanted[i] = strings.ToLower(text)
	}
	return wanted
}

// Filtered names the part of a listing that a body asks for: two bodies that are shown
// the same items have the same name.
func (l *Listing) Filtered(body Document) string { return strings.Join(l.wanted(body), "\x00") }

func (it *item) matches(wanted []string) bool {
	for i, value := range wanted {
		if value != "" && value != it.filters[i] {
			return false
		}
	}
	return true
}

func (it *item) show(out []byte, added Added) ([]byte, error) {
	for i, p := range it.prices {
		sum, err := p.amount.Add(added.Of(p.product))
		if err != nil {
			return nil, err
		}
		out = append(out, it.shown[i]...)
		out = strconv.AppendInt(out, int64(sum), 10)
	}
	return append(out, it.shown[len(it.prices)]...), nil
}

type member struct {
	name  string
	value jsontext.Value
}

func (op *Operation) readItem(object json.RawMessage, key string) (read item, named string, err error) {
	if jsontext.Value(object).Kind() != jsontext.KindBeginObject { // a plain value has nothing to hide
		return item{whole: object, shown: [][]byte{object}, filters: make([]string, len(op.Filter))}, "", nil
	}
	members, err := membersOf(object)
	if err != nil {
		return item{}, "", err
	}
	text := func(name string) string {
		for _, m := range members {
			if m.name == name {
				return textOf(m.value)
			}
		}
		return ""
	}
	read.whole = object
	for _, name := range op.Filter {
		read.filters = append(read.filters, strings.ToLower(text(name)))
	}
	piece := []byte{'{'}
	for _, m := range members {
		if op.shown != nil && !op.shown[m.name] {
			continue
		}
		if len(piece) > 1 || len(read.shown) > 0 {
			piece = append(piece, ',')
		}
		piece, _ = jsontext.AppendQuote(piece, m.name)
		piece = append(piece, ':')
		marked := slices.IndexFunc(op.Markup, func(k manifest.Markup) bool { return k.PriceField() == m.name && holds(k, text) })
		if marked < 0 {
			piece = append(piece, m.value...)
			continue
		}
		amount, err := money.Parse(string(m.value))
		if err != nil {
			return item{}, "", fmt.Errorf("%s: %w", m.name, err)
		}
		read.prices = append(read.prices, price{amount, text(op.Markup[marked].ProductField())})
		read.shown, piece = append(read.shown, piece), nil
	}
	read.shown = append(read.shown, append(piece, '}'))
	return read, text(key), nil
}

func holds(k manifest.Markup, text func(string) string) bool {
	for name, value := range k.When {
		if text(name) != value {
			return false
		}
	}
	return true
}

// membersOf reads an object's members in their order.
func membersOf(object json.RawMessage) ([]member, error) {
	decoder := jsontext.NewDecoder(bytes.NewReader(object))
	if token, err := decoder.ReadToken(); err != nil || token.Kind() != jsontext.KindBeginObject {
		return nil, errors.Join(errors.New("an object must be here"), err)
	}
	var members []member
	for decoder.PeekKind() != jsontext.KindEndObject {
		name, err := decoder.ReadToken()
		if err != nil {
			return nil, err
		}
		key := name.String()
		value, err := decoder.ReadValue()
		if err != nil {
			return nil, err
		}
		value = value.Clone()
		if err := value.Compact(); err != nil {
			return nil, err
		}
		members = append(members, member{key, value})
	}
	return members, nil
}

func textOf(value jsontext.Value) string {
	text, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return "" // no string
	}
	return string(text)
}

// shownOf returns the properties that a response schema declares, of the answer or
// of its items; nil if it declares none.
func shownOf(schema json.RawMessage) (map[string]bool, error) {
	var answer struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Items      struct {
			Properties map[string]json.RawMessage `json:"properties"`
		} `json:"items"`
	}
	if err := json.Unmarshal(schema, &answer); err != nil {
		return nil, fmt.Errorf("response: %w", err)
	}
	declared := answer.Properties
	if declared == nil {
		declared = answer.Items.Properties
	}
	if declared == nil {
		return nil, nil //nolint:nilnil // nil shows everything
	}
	shown := map[string]bool{}
	for name := range declared {
		shown[name] = true
	}
	return shown, nil
}
