package scenarios

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

const (
	createPath, statusPath, cancelPath = "/payments/create", "/payments/status", "/payments/cancel"
	orderPath, orderStatusPath         = "/ppob/order", "/ppob/status"
	productsPath, inquiryPath          = "/ppob/products", "/ppob/inquiry"
	walletPath, bankPath               = "/wallet1/transfer/wallet", "/wallet1/transfer/bank"
	transferStatusPath                 = "/wallet1/transfer/status"
	collectPath, collectedPath         = "/wallet2/create", "/wallet2/status"

	provider, ppob, wallet1, wallet2 = "payments", "ppob", "wallet1", "wallet2"

	prepaidSKU, billSKU, openSKU       = "xld10", "pln", "ovo"
	prepaidPrice, billTotal, billAdmin = money.Amount(10_000), money.Amount(21_000), money.Amount(2_500)
	billMargin                         = money.Amount(1_000) // of the platform, without a markup
	opening                            = money.Amount(1_000_000)
	markup                             = money.Amount(500)

	sending = money.Amount(10_000)
	bankFee = money.Amount(2_500)
	holder  = "BUDI SANTOSO"

	life = time.Hour
	// forgets is after how long the provider of orders knows a reference no more.
	forgets = 90 * 24 * time.Hour
)

// kindCase is all that a world has of its own for one kind: how a creation asks, what
// the upstream makes and says of it, and how its merchants read it.
type kindCase struct {
	kind      manifest.Kind
	provider  string
	catalog   func() *catalog.Catalog
	path      string // a creation's, unless a test says otherwise
	status    string
	reference string        // the property that names it
	life      time.Duration // of what waits for its payer

	body   func(w *world) catalog.Document
	quote  func(u *upstream, q sdk.Quote) sdk.Quoted
	called func(u *upstream, call sdk.Call) // checks a creation
	asked  func(u *upstream, l sdk.Lookup)  // checks a lookup
	agreed func(call sdk.Call) money.Amount
	offer  func(reference string, amount money.Amount, body json.RawMessage) json.RawMessage
	says   func(t *thing, f *sdk.StatusUpdate)

	events map[string]bool // its callback events, and whether it is that of a return
}

var (
	// payments are of a provider that signs its notifications, as nearly all tests of facts
	// want it; hinted are of the shipped one, whose notifications are reasons to look.
	payments = &kindCase{
		kind: manifest.Payment, provider: provider, catalog: signedCatalog(provider), path: createPath, status: statusPath, reference: "external_id", life: life,
		body: func(*world) catalog.Document {
			return catalog.Document{"amount": json.Number("10000"), "payer_email": "payer@shop.example"}
		},
		quote: unquoted, called: unchecked, asked: unasked, agreed: theAmount,
		offer: func(reference string, _ money.Amount, body json.RawMessage) json.RawMessage {
			var asked struct{ Type string }
			if _ = json.Unmarshal(body, &asked); asked.Type == "qris" {
				return json.RawMessage(`{"qr_string":"QR-` + reference + `"}`)
			}
			return json.RawMessage(`{"payment_url":"https://pay.example/` + reference + `"}`)
		},
		says: func(t *thing, f *sdk.StatusUpdate) {
			f.ProviderReference, f.EventID = "up-"+t.reference, t.paid
			if f.Status == sdk.StatusPending {
				f.Data = t.offer
			}
		},
	}

	hinted = as(payments, ownCatalog(provider))

	collections = &kindCase{
		kind: manifest.Collection, provider: wallet2, catalog: ownCatalog(wallet2), path: collectPath, status: collectedPath, reference: "external_id",
		life:  time.Minute, // not its provider's to say
		body:  payments.body,
		quote: unquoted, called: unchecked, asked: unasked, agreed: theAmount,
		offer: func(_ string, amount money.Amount, _ json.RawMessage) json.RawMessage {
			return json.RawMessage(`{"qr_string":"QR-` + amount.String() + `"}`)
		},
		says: func(t *thing, f *sdk.StatusUpdate) { f.Data = t.offer },
	}

	orders = &kindCase{
		kind: manifest.Order, provider: ppob, catalog: ownCatalog(ppob), path: orderPath, status: orderStatusPath, reference: "ref_id",
		body: func(w *world) catalog.Document {
			body := catalog.Document{"sku": w.sku, "target": "081200001111"}
			if w.sku == billSKU {
				body["qty"] = json.Number((billTotal + markup).String())
			}
			return body
		},
		quote: priceOfProduct, agreed: func(call sdk.Call) money.Amount { return call.Cost },
		called: func(u *upstream, call sdk.Call) {
			if u.things[nameAt(call.Connection, call.Reference)] != nil {
				u.wrong = append(u.wrong, "called again, and it exists: "+call.Reference)
			}
			if len(call.Quote) == 0 || call.Cost <= 0 {
				u.wrong = append(u.wrong, "called without its quote: "+call.Reference)
			}
		},
		asked: func(u *upstream, l sdk.Lookup) {
			now := u.now()
			if now.Before(l.SentAt.Add(time.Minute)) || len(u.lookups) > 0 && now.Before(u.lookups[len(u.lookups)-1].Add(time.Minute)) {
				u.wrong = append(u.wrong, "asked within a minute: "+l.Reference)
			}
			if l.SendBy.Before(now) || l.SendBy.After(now.Add(sendWindow)) || len(l.Quote) == 0 || l.Cost <= 0 {
				u.wrong = append(u.wrong, "asked without its quote, or a time to be sent by: "+l.Reference)
			}
		},
		offer: nothingToPay,
		says: func(t *thing, f *sdk.StatusUpdate) {
			f.EventID = eventOf(f)
			switch f.Status {
			case sdk.StatusDone:
				f.Data = json.RawMessage(fmt.Sprintf(`{"sn":"SN-%s","message":"Sukses"}`, t.reference))
			case sdk.StatusFailed:
				f.Data = json.RawMessage(`{"sn":"","message":"Gagal"}`)
			default:
				f.Data = json.RawMessage(`{"message":"Menunggu"}`)
			}
		},
		events: map[string]bool{orderEnds: false, orderTaken: true},
	}

	transfers = &kindCase{
		kind: manifest.Transfer, provider: wallet1, catalog: ownCatalog(wallet1), path: bankPath, status: transferStatusPath, reference: "external_id",
		body: func(w *world) catalog.Document {
			if w.path == walletPath {
				return catalog.Document{"phone": "081234567890", "amount": number(sending)}
			}
			return catalog.Document{"bank_code": "014", "account_no": "2460888509", "account_name": "Budi Santoso", "amount": number(sending)}
		},
		quote: recipient, agreed: theAmount,
		called: func(u *upstream, call sdk.Call) {
			if u.things[nameAt(call.Connection, call.Reference)] != nil {
				u.wrong = append(u.wrong, "called again, and it exists: "+call.Reference)
			}
			if !isSession(call.Quote, call.Reference) {
				u.wrong = append(u.wrong, "called without the quote of this name: "+call.Reference)
			}
		},
		asked: func(u *upstream, l sdk.Lookup) {
			if asked := u.asks[l.Reference]; len(asked) > 0 && u.now().Before(asked[len(asked)-1].Add(5*time.Second)) {
				u.wrong = append(u.wrong, "asked within 5 s: "+l.Reference)
			}
			if !isSession(l.Quote, l.Reference) || !l.SendBy.IsZero() {
				u.wrong = append(u.wrong, "asked without the quote of this name, or to send it: "+l.Reference)
			}
		},
		offer: nothingToPay,
		says: func(t *thing, f *sdk.StatusUpdate) {
			f.ProviderReference, f.EventID = "R-"+t.reference, eventOf(f)
			f.Data = json.RawMessage(fmt.Sprintf(`{"referenceNo":"R-%s"}`, t.reference))
		},
		events: map[string]bool{transferEnds: false, transferTaken: true},
	}
)

// as is a kind as another manifest has it.
func as(of *kindCase, catalog func() *catalog.Catalog) *kindCase {
	other := *of
	other.catalog = catalog
	return &other
}

func unquoted(*upstream, sdk.Quote) sdk.Quoted {
	return sdk.NoQuote(sdk.DontKnow(sdk.BlameNone, "it has no quote"))
}

func unchecked(*upstream, sdk.Call) {}

func unasked(*upstream, sdk.Lookup) {}

func theAmount(call sdk.Call) money.Amount { return call.Amount }

func nothingToPay(string, money.Amount, json.RawMessage) json.RawMessage { return nil }

// product is an item of the list, with what only the quote knows.
type product struct {
	SKU       string       `json:"buyer_sku_code"`
	Name      string       `json:"product_name"`
	Category  string       `json:"category"`
	Brand     string       `json:"brand"`
	Type      string       `json:"type"`
	Price     money.Amount `json:"price"`
	Available bool         `json:"buyer_product_status"`
	Desc      string       `json:"desc"`
}

var products = []product{
	{prepaidSKU, "XL 10.000", "Pulsa", "XL", "Prepaid", prepaidPrice, true, "-"},
	{billSKU, "PLN", "Pascabayar", "PLN", "Pasca", billAdmin, true, "-"},
	{openSKU, "OVO", "Pascabayar", "E-MONEY", "Pasca", billAdmin, true, "-"},
	{"off", "Off", "Pulsa", "XL", "Prepaid", prepaidPrice, false, "-"},
}

// priceOfProduct is what an order costs at its provider.
func priceOfProduct(u *upstream, q sdk.Quote) sdk.Quoted {
	var p product
	if err := json.Unmarshal(q.Product, &p); err != nil {
		u.wrong = append(u.wrong, "a quote without its product")
	}
	data := json.RawMessage(`{"sku":"` + p.SKU + `"}`)
	if p.Type == "Prepaid" {
		return sdk.Quoted{Outcome: sdk.Done, Price: p.Price, Cost: p.Price, Data: data}
	}
	total, open := billTotal, p.SKU == openSKU
	if open {
		var body struct{ Qty money.Amount }
		if err := json.Unmarshal(q.Body, &body); err != nil || body.Qty == 0 {
			return sdk.NoQuote(sdk.Refuse(sdk.RefuseRequest, "qty must be given.", sdk.FieldFault{Field: "qty", Message: "must be given"}))
		}
		total = body.Qty + billAdmin
	}
	return sdk.Quoted{Outcome: sdk.Done, Price: total, Fee: billAdmin, Cost: total - billMargin, Held: true, Open: open, Data: data}
}

// recipient is who gets a transfer, and what it costs.
func recipient(u *upstream, q sdk.Quote) sdk.Quoted {
	var body struct{ Amount money.Amount }
	if err := json.Unmarshal(q.Body, &body); err != nil || body.Amount <= 0 {
		u.wrong = append(u.wrong, "a quote without its amount")
	}
	to, bank := askedFor(q.Body)
	quoted := sdk.Quoted{Outcome: sdk.Done, Price: body.Amount, Cost: body.Amount, Name: holder, Destination: to, Data: sessionOf(q.Reference)}
	if bank {
		quoted.Fee, quoted.Cost = bankFee, body.Amount+bankFee
	}
	return quoted
}
