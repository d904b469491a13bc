package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// Listing is a query's answer, read once and shown many times: filtered, without
// the properties that merchants may not see, and with the markup on prices.
type Listing struct {
	list  bool // an array of items, else one object
	items []item
	names []string // of the filters
	size  int

	mu      sync.Mutex
	indexes map[string]map[string]int // by property, made when something is first found by it
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

// Read validates a provider's answer to a query and prepares it.
func (op *Operation) Read(result json.RawMessage) (*Listing, error) {
	if err := op.CheckResult(result); err != nil {
		return nil, err
	}
	l := &Listing{names: op.Filter, indexes: map[string]map[string]int{}}
	if err := op.readItems(l, newReader(result)); err != nil {
		return nil, fmt.Errorf("result of %s: %w", op.Path, err)
	}
	const own = 256 // an item itself, and its place in an index
	l.size = 2*len(result) + own*len(l.items)
	return l, nil
}

// Size is about how many bytes the listing takes in memory.
func (l *Listing) Size() int { return l.size }

// Find returns the first item with this text in a property, as the provider gave it.
func (l *Listing) Find(property, text string) (json.RawMessage, bool) {
	at, ok := l.by(property)[text]
	if !ok {
		return nil, false
	}
	return l.items[at].whole, true
}

// Keys are the texts that the items have in a property, sorted.
func (l *Listing) Keys(property string) []string { return slices.Sorted(maps.Keys(l.by(property))) }

// by is where the items are, by their texts in a property.
func (l *Listing) by(property string) map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	index := l.indexes[property]
	if index == nil {
		index = make(map[string]int, len(l.items))
		for i := range l.items {
			named := l.items[i].text(property)
			if _, twice := index[named]; !twice {
				index[named] = i
			}
		}
		l.indexes[property] = index
	}
	return index
}

// Show returns the answer for a merchant with this body and these prices.
func (l *Listing) Show(body Document, added Added) (json.RawMessage, error) {
	wanted := wantedOf(l.names, body)
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

// wantedOf are the values that a body filters by, "" for any.
func wantedOf(names []string, body Document) []string {
	wanted := make([]string, len(names))
	for i, name := range names {
		text, _ := body[name].(string)
		wanted[i] = strings.ToLower(text)
	}
	return wanted
}

// Filtered names the part of an answer that a body asks for: two bodies that are shown
// the same items have the same name.
func (op *Operation) Filtered(body Document) string {
	return strings.Join(wantedOf(op.Filter, body), "\x00")
}

// text is what the item has in a property.
func (it *item) text(property string) string {
	from := newReader(it.whole)
	if from.next() != jsontext.KindBeginObject {
		return ""
	}
	_, members, err := from.object()
	if err != nil {
		return "" // as it was when it was read
	}
	return members.text(property)
}

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

func (op *Operation) readItems(l *Listing, from *reader) error {
	if l.list = from.next() == jsontext.KindBeginArray; !l.list {
		read, err := op.readItem(from)
		l.items = []item{read}
		return err
	}
	if _, err := from.decoder.ReadToken(); err != nil {
		return err
	}
	for from.next() != jsontext.KindEndArray {
		read, err := op.readItem(from)
		if err != nil {
			return err
		}
		l.items = append(l.items, read)
	}
	return nil
}

func (op *Operation) readItem(from *reader) (read item, err error) {
	if from.next() != jsontext.KindBeginObject { // a plain value has nothing to hide
		whole, err := from.value()
		return item{whole: json.RawMessage(whole), shown: [][]byte{whole}, filters: make([]string, len(op.Filter))}, err
	}
	whole, members, err := from.object()
	if err != nil {
		return item{}, err
	}
	read.whole = json.RawMessage(whole)
	for _, name := range op.Filter {
		read.filters = append(read.filters, strings.ToLower(members.text(name)))
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
		marked := slices.IndexFunc(op.Markup, func(k manifest.Markup) bool { return k.PriceField() == m.name && holds(k, members.text) })
		if marked < 0 {
			piece, err = appendCompact(piece, m.value)
			if err != nil {
				return item{}, err
			}
			continue
		}
		amount, err := money.Parse(string(m.value))
		if err != nil {
			return item{}, fmt.Errorf("%s: %w", m.name, err)
		}
		read.prices = append(read.prices, price{amount, members.text(op.Markup[marked].ProductField())})
		read.shown, piece = append(read.shown, piece), nil
	}
	read.shown = append(read.shown, append(piece, '}'))
	return read, nil
}

func holds(k manifest.Markup, text func(string) string) bool {
	for name, value := range k.When {
		if text(name) != value {
			return false
		}
	}
	return true
}

// appendCompact appends a value without the space between its parts.
func appendCompact(to []byte, value jsontext.Value) ([]byte, error) {
	if kind := value.Kind(); kind != jsontext.KindBeginObject && kind != jsontext.KindBeginArray {
		return append(to, value...), nil
	}
	compact := value.Clone()
	err := compact.Compact()
	return append(to, compact...), err
}

// reader walks through JSON once. What it gives is part of the text.
type reader struct {
	text    []byte
	decoder *jsontext.Decoder
}

func newReader(text []byte) *reader {
	return &reader{text: text, decoder: jsontext.NewDecoder(bytes.NewBuffer(text))}
}

func (r *reader) next() jsontext.Kind { return r.decoder.PeekKind() }

func (r *reader) value() (jsontext.Value, error) {
	value, err := r.decoder.ReadValue()
	if err != nil {
		return nil, err
	}
	end := r.decoder.InputOffset()
	return r.text[end-int64(len(value)) : end], nil
}

// object reads an object, and its members in their order.
func (r *reader) object() (whole jsontext.Value, members members, err error) {
	if _, err := r.decoder.ReadToken(); err != nil {
		return nil, nil, err
	}
	begin := r.decoder.InputOffset() - 1
	for r.next() != jsontext.KindEndObject {
		name, err := r.decoder.ReadToken()
		if err != nil {
			return nil, nil, err
		}
		key := name.String()
		value, err := r.value()
		if err != nil {
			return nil, nil, err
		}
		members = append(members, member{key, value})
	}
	_, err = r.decoder.ReadToken()
	return r.text[begin:r.decoder.InputOffset()], members, err
}

type member struct {
	name  string
	value jsontext.Value
}

type members []member

// text is the text of a member, "" where it has none.
func (all members) text(name string) string {
	for _, m := range all {
		if m.name == name {
			return textOf(m.value)
		}
	}
	return ""
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
