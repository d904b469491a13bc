package query

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/cache"
	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

func productsOf(t *testing.T) *catalog.Operation {
	t.Helper()
	text, err := os.ReadFile("../../plugins/ppob/manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	s, err := catalog.Build([]*manifest.Manifest{m})
	if err != nil {
		t.Fatal(err)
	}
	op, ok := s.ByPath("/ppob/products")
	if !ok {
		t.Fatal("there is no list of products")
	}
	return op
}

// list is a content of products, of which there are many. Each is so long.
func list(op *catalog.Operation, products, long, content int) answer {
	var body bytes.Buffer
	for i := range products {
		fmt.Fprintf(&body, `,{"buyer_sku_code": "S%d", "product_name": "%*d", "category": "Pulsa", "brand": "XL", "type": "Prepaid", "price": %d, "buyer_product_status": true, "desc": ""}`,
			i, long, i, content)
	}
	text := append([]byte{'['}, body.Bytes()[1:]...)
	text = append(text, ']')
	return answer{edition{op, cache.VersionOf(text)}, text}
}

// TestAContentIsReadOnce: whoever asks for it, and by whatever it is searched.
func TestAContentIsReadOnce(t *testing.T) {
	t.Parallel()
	op, q := productsOf(t), New(nil, nil, nil)
	first, err := q.read(t.Context(), list(op, 3, 1, 1))
	if err != nil {
		t.Fatal(err)
	}
	again, err := q.read(t.Context(), list(op, 3, 1, 1))
	other, failed := q.read(t.Context(), list(op, 3, 1, 2))
	if first != again || first == other || err != nil || failed != nil {
		t.Errorf("read %p, %p and %p, %v, %v", first, again, other, err, failed)
	}
	for property, text := range map[string]string{"buyer_sku_code": "S1", "product_name": "1"} {
		if _, found := first.Find(property, text); !found {
			t.Errorf("by %s %s is not found", property, text)
		}
	}
	wrong := answer{edition{op, "wrong"}, []byte(`[1]`)}
	for range 2 {
		if listing, err := q.read(t.Context(), wrong); err == nil {
			t.Errorf("%v was read of what does not fit", listing)
		}
	}
}

// TestWhatIsAnsweredAgainIsReadOnce: of answers that are not shared, the small ones of the same operation. What does not fit is
// never taken for read.
func TestWhatIsAnsweredAgainIsReadOnce(t *testing.T) {
	t.Parallel()
	op, other, q := productsOf(t), productsOf(t), New(nil, nil, nil)
	alone := func(op *catalog.Operation, products, content int) *catalog.Listing {
		t.Helper()
		listing, err := q.read(t.Context(), answer{edition{op: op}, list(op, products, 1, content).body})
		if err != nil {
			t.Fatal(err)
		}
		return listing
	}
	first := alone(op, 3, 1)
	if again := alone(op, 3, 1); again != first {
		t.Error("the same content is read twice")
	}
	if alone(op, 3, 2) == first || alone(other, 3, 1) == first {
		t.Error("another content, or another operation's, is taken for the same")
	}
	if large := alone(op, 300, 1); alone(op, 300, 1) == large {
		t.Error("what is large is kept")
	}
	for range 2 {
		if listing, err := q.read(t.Context(), answer{edition{op: op}, []byte(`[1]`)}); err == nil {
			t.Errorf("%v was read of what does not fit", listing)
		}
	}
}

// TestListsAreKeptByTheirSize: prices change all day.
func TestListsAreKeptByTheirSize(t *testing.T) {
	t.Parallel()
	op, q := productsOf(t), New(nil, nil, nil)
	one, err := q.read(t.Context(), list(op, 100, 10_000, 0))
	if err != nil {
		t.Fatal(err)
	}
	for content := range 2 * mostOfListings / one.Size() {
		if _, err := q.read(t.Context(), list(op, 100, 10_000, content)); err != nil {
			t.Fatal(err)
		}
	}
	q.listings.CleanUp()
	if kept := q.listings.WeightedSize(); kept > mostOfListings || kept < mostOfListings/2 {
		t.Errorf("%d bytes are kept of %d", kept, mostOfListings)
	}
}
