package policy

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// Markup is what the gateway adds to a provider's prices, in whole rupiah and never below 0. The zero value adds nothing.
type Markup struct {
	// Default is added to what Products does not name.
	Default money.Amount
	// Products are by the name that the provider gives a product. Many markups share one map: do not change it.
	Products map[string]money.Amount
	name     string // of Products, where it was read
}

// Of is what is added to the price of a product.
func (m Markup) Of(product string) money.Amount {
	if amount, named := m.Products[product]; named {
		return amount
	}
	return m.Default
}

// Name is the same only where the same is added to each product.
func (m Markup) Name() string {
	if len(m.Products) == 0 {
		return m.Default.String()
	}
	return m.Default.String() + " " + cmp.Or(m.name, nameOf(m.Products))
}

// nameOf is a digest of what is added to each product.
func nameOf(products map[string]money.Amount) string {
	h := sha256.New()
	for _, product := range slices.Sorted(maps.Keys(products)) {
		fmt.Fprintf(h, "%d:%s=%d;", len(product), product, products[product])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// keptMarkups is for how many different maps of products one is shared: as a rule a set has one, or one for each tier.
const keptMarkups = 1 << 8

// keptProducts is a map of products and the term that it was read from.
type keptProducts struct {
	term     ast.Object
	products map[string]money.Amount
	name     string
}

// readMarkup reads {"default": n, "products": {"<product>": n}}; either may be missing, and so may all of it. Any other
// name is refused, because a misspelt one would sell below the price that was meant.
func (s *Set) readMarkup(value ast.Value) (Markup, error) {
	if value == nil {
		return Markup{}, nil
	}
	object, ok := value.(ast.Object)
	if !ok {
		return Markup{}, errors.New("an object must be here")
	}
	var markup Markup
	err := object.Iter(func(name, term *ast.Term) (err error) {
		switch name.Value {
		case ast.String("default"):
			markup.Default, err = readAmount(term.Value)
		case ast.String("products"):
			markup.Products, markup.name, err = s.readProducts(term.Value)
		default:
			return fmt.Errorf("%v is not known here; known are default and products", name)
		}
		if err != nil {
			return fmt.Errorf("%v: %w", name, err)
		}
		return nil
	})
	return markup, err
}

// readProducts reads the markups of products. Equal ones are one map: answers are kept for each merchant and operation, and
// a catalog of products for each of them would fill the memory.
func (s *Set) readProducts(value ast.Value) (products map[string]money.Amount, name string, err error) {
	object, ok := value.(ast.Object)
	if !ok {
		return nil, "", errors.New("an object must be here")
	}
	if object.Len() == 0 {
		return nil, "", nil // the default counts for each
	}
	if kept, ok := s.products.get(object.Hash()); ok && kept.term.Compare(object) == 0 {
		return kept.products, kept.name, nil
	}
	products = make(map[string]money.Amount, object.Len())
	err = object.Iter(func(name, amount *ast.Term) (err error) {
		product, ok := name.Value.(ast.String)
		if !ok {
			return errors.New("a product's name must be a string")
		}
		if products[string(product)], err = readAmount(amount.Value); err != nil {
			return fmt.Errorf("%v: %w", name, err)
		}
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	name = nameOf(products)
	s.products.put(object.Hash(), keptProducts{object, products, name})
	return products, name, nil
}

// readAmount reads one markup.
func readAmount(value ast.Value) (money.Amount, error) {
	number, _ := value.(ast.Number)
	amount, ok := number.Int64()
	if !ok || amount < 0 || amount > MaxMarkup {
		return 0, fmt.Errorf("must be a whole number from 0 to %d", MaxMarkup)
	}
	return money.Amount(amount), nil
}
