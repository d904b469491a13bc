package digiflazz

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// wanted is the body of an order or of an inquiry, as far as the upstream gets
// to see it.
type wanted struct {
	SKU    string       `json:"sku"`
	Target string       `json:"target"`
	Qty    money.Amount `json:"qty"`
}

// quote says what an order costs. A prepaid price is in the list; a bill
// is asked for, under the reference that its payment must have.
func (a *adapter) quote(ctx context.Context, q sdk.Quote) sdk.Quoted {
	acc, err := a.account(q.Connection)
	if err != nil {
		return sdk.NoQuote(sdk.DidNotSend(sdk.BlameAccount, err.Error()))
	}
	var body wanted
	if err := json.Unmarshal(q.Body, &body); err != nil {
		return sdk.NoQuote(sdk.DidNotSend(sdk.BlameNone, "read the request: "+err.Error()))
	}
	var listed item
	if err := json.Unmarshal(q.Product, &listed); err != nil || listed.SKU != body.SKU {
		return sdk.NoQuote(sdk.DidNotSend(sdk.BlameNone, "the quote comes without its product"))
	}
	switch listed.Type {
	case prepaid:
		return acc.quotePrepaid(body, listed)
	case pasca:
		return a.quoteBill(ctx, acc, q.Reference, body, listed)
	}
	return sdk.NoQuote(sdk.DidNotSend(sdk.BlameNone, "the product is of no known type"))
}

func (acc *account) quotePrepaid(body wanted, listed item) sdk.Quoted {
	number, lacks := prepaidTarget(body.Target, listed.Category)
	if lacks != "" {
		return sdk.NoQuote(wrongTarget(lacks))
	}
	if listed.Price <= 0 {
		// Its max_price would be none at all.
		return sdk.NoQuote(sdk.Refuse(sdk.RefuseProduct, "The product has no price now."))
	}
	return acc.quoted(sdk.Quoted{Price: listed.Price, Cost: listed.Price},
		purchase{Type: prepaid, SKU: body.SKU, Target: number, Testing: acc.testing})
}

func (a *adapter) quoteBill(ctx context.Context, acc *account, reference string, body wanted, listed item) sdk.Quoted {
	p, why := body.bill(listed)
	if why != nil {
		return sdk.NoQuote(*why)
	}
	// Before it is asked for: at midnight the upstream's day is the later one, and
	// then nothing is paid.
	p.Day = a.today()
	found, before, why := acc.inquire(ctx, p, reference)
	if why != nil {
		return sdk.NoQuote(*why)
	}
	p.Before = before
	return acc.quoted(sdk.Quoted{Price: found.total, Fee: found.admin, Cost: found.cost, Held: true, Open: p.Amount != 0}, p)
}

// openAmount tells a bill whose amount the caller chooses by its brand: topping
// up a wallet is the only one.
func openAmount(brand string) bool {
	return strings.ReplaceAll(strings.ReplaceAll(strings.ToUpper(brand), " ", ""), "-", "") == "EMONEY"
}

func (acc *account) quoted(q sdk.Quoted, p purchase) sdk.Quoted {
	p.Place = acc.place
	data, err := json.Marshal(p)
	if err != nil {
		return sdk.NoQuote(sdk.DidNotSend(sdk.BlameNone, "encode the quote: "+err.Error()))
	}
	q.Outcome, q.Data = sdk.Done, data
	return q
}

func wrongTarget(lacks string) sdk.Result {
	return sdk.Refuse(sdk.RefuseDestination, "target "+lacks+".", sdk.FieldFault{Field: "target", Message: lacks})
}

func wrongAmount(lacks string) sdk.Result {
	return sdk.Refuse(sdk.RefuseRequest, "qty "+lacks+".", sdk.FieldFault{Field: "qty", Message: lacks})
}
