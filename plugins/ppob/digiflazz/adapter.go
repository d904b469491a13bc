package digiflazz

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// adapter is the plugin: the accounts in use, and the time.
type adapter struct {
	accounts sdk.Instances[*account]
	now      func() time.Time
}

// Handlers returns the handlers of the ppob manifest.
func Handlers() sdk.Handlers {
	return (&adapter{now: time.Now}).handlers()
}

func (a *adapter) handlers() sdk.Handlers {
	return sdk.Handlers{
		Calls: map[string]func(context.Context, sdk.Call) sdk.Result{
			"/ppob/products": a.products,
			"/ppob/inquiry":  a.inquiry,
			"/ppob/order":    a.order,
		},
		Quotes: map[string]func(context.Context, sdk.Quote) sdk.Quoted{
			"/ppob/order": a.quote,
		},
		Lookup: a.lookup,
		Notify: a.notify,
		Verify: verify,
	}
}

// jakarta is the upstream's calendar. It has no summer time, so that no table
// of time zones is needed.
var jakarta = time.FixedZone("WIB", 7*60*60)

// today is the upstream's date. A bill is paid on the day of its inquiry.
func (a *adapter) today() string { return a.now().In(jakarta).Format(time.DateOnly) }

// productType says which of the upstream's two price lists has a product.
type productType string

const (
	prepaid productType = "Prepaid"
	pasca   productType = "Pasca"
)

// purchase is what a quote leaves for its call and its lookups: all that makes
// the request the same one whenever it is sent.
type purchase struct {
	Type   productType  `json:"type"`
	SKU    string       `json:"sku"`
	Target string       `json:"target"`          // as the upstream wants it
	Year   string       `json:"year,omitempty"`  // of a property tax
	Amount money.Amount `json:"amount,omitzero"` // of a product of open amount
	Day    string       `json:"day,omitempty"`   // of the inquiry, in Jakarta
	// Testing is as it was when the order was quoted: without it the same request
	// would buy what was only tried.
	Testing bool `json:"testing,omitempty"`
	// Before says that a bill was found paid, or under way, under the order's own name
	// already: it is asked for and never paid again.
	Before bool `json:"before,omitempty"`
	// Place is where it was quoted: elsewhere the same request would buy again, or
	// be answered about something else. Quotes of before it was kept have none.
	Place place `json:"place,omitempty"`
}

func readPurchase(quote json.RawMessage) (purchase, error) {
	var p purchase
	if err := json.Unmarshal(quote, &p); err != nil {
		return purchase{}, fmt.Errorf("read the quote: %w", err)
	}
	if p.Type != prepaid && p.Type != pasca || p.SKU == "" || p.Target == "" {
		return purchase{}, errors.New("the quote is none of ours")
	}
	return p, nil
}

// outcome is the data of an order, in results and status updates.
type outcome struct {
	SN      string `json:"sn,omitempty"`
	Message string `json:"message,omitempty"`
}
