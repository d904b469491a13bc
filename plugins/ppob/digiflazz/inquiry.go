package digiflazz

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// bill is what an inquiry answers.
type bill struct {
	total  money.Amount // what its payer pays, the fee in it
	admin  money.Amount
	cost   money.Amount // what leaves the deposit
	name   string
	period string
}

// inquiryResult is the result of an inquiry.
type inquiryResult struct {
	SKU          string       `json:"sku"`
	Target       string       `json:"target"`
	CustomerName string       `json:"customer_name"`
	Amount       money.Amount `json:"amount"`
	Admin        money.Amount `json:"admin"`
	Qty          money.Amount `json:"qty"`
	Period       string       `json:"period"`
}

// inquiry asks for a bill.
func (a *adapter) inquiry(ctx context.Context, call sdk.Call) sdk.Result {
	acc, err := a.account(call.Connection)
	if err != nil {
		return sdk.DidNotSend(sdk.BlameAccount, err.Error())
	}
	var body wanted
	if err := json.Unmarshal(call.Body, &body); err != nil {
		return sdk.DidNotSend(sdk.BlameNone, "read the request: "+err.Error())
	}
	var listed item
	if err := json.Unmarshal(call.Product, &listed); err != nil || listed.SKU != body.SKU {
		return sdk.DidNotSend(sdk.BlameNone, "the inquiry comes without its product")
	}
	if listed.Type != pasca {
		return notBill()
	}
	p, why := body.bill(listed)
	if why != nil {
		return *why
	}
	found, _, why := acc.inquire(ctx, p, inquiryReference(call.RequestID, a.now()))
	if why != nil {
		return *why
	}
	return sdk.Finished("", inquiryResult{
		SKU: body.SKU, Target: body.Target, CustomerName: found.name,
		Amount: found.total - found.admin, Admin: found.admin, Qty: found.total, Period: found.period,
	})
}

// inquiryReference makes a name that no order has, and no other inquiry: what
// was only asked must never be what is paid.
func inquiryReference(requestID string, now time.Time) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", requestID, now.UnixNano()))
	return "inq-" + hex.EncodeToString(sum[:16])
}

// amountStep is the smallest part of an open amount.
const amountStep = 1000

// bill is the purchase of a bill that is wanted, or why it can't be asked for.
func (w wanted) bill(listed item) (purchase, *sdk.Result) {
	who, ok := readCustomer(w.Target)
	if form := formOf(listed.Brand); !ok || form == taxForm && who.year == "" {
		why := wrongTarget(form)
		return purchase{}, &why
	}
	p := purchase{Type: pasca, SKU: w.SKU, Target: who.number, Year: who.year}
	if !openAmount(listed.Brand) {
		return p, nil
	}
	if w.Qty == 0 || w.Qty%amountStep != 0 {
		why := wrongAmount("must be given for this product, a multiple of 1000: it is the amount")
		return purchase{}, &why
	}
	p.Amount = w.Qty
	return p, nil
}

// notBill refuses an inquiry of what has no bill.
func notBill() sdk.Result {
	const lacks = "is a prepaid product, which has no bill: order it without an inquiry, its price stands in /ppob/products"
	return sdk.Refuse(sdk.RefuseRequest, "sku "+lacks+".", sdk.FieldFault{Field: "sku", Message: lacks})
}

// inquire asks for the bill of a purchase, or says why there is none. It moves
// no money, so whatever is not clear is only not known. Where the reference was used
// to pay before, by a gateway whose database was restored since, the bill is that one.
func (acc *account) inquire(ctx context.Context, p purchase, reference string) (found bill, before bool, why *sdk.Result) {
	r := acc.transact(ctx, p.bill(commandInquire), reference, time.Time{})
	if before = r.answer.RC == codeTaken; before {
		r = acc.transact(ctx, p.bill(commandStatus), reference, time.Time{})
	}
	if r.verdict == succeeded || before && r.verdict == pending {
		found, lacks := r.answer.bill()
		if lacks == "" {
			return found, before, nil
		}
		r.blame, r.detail = sdk.BlameUpstream, "inq-pasca: "+lacks
	}
	result := r.noBill()
	return bill{}, before, &result
}

func (a answer) bill() (b bill, lacks string) {
	b = bill{
		total: a.SellingPrice.Amount, admin: a.Admin.Amount, cost: a.Price.Amount,
		name: string(a.CustomerName), period: a.period(),
	}
	switch {
	case b.total <= 0 || b.cost <= 0:
		return bill{}, "the bill has no price"
	case b.admin > b.total:
		return bill{}, "the bill's fee is more than the bill"
	}
	return b, ""
}

// noBill is why an inquiry has no bill.
func (r reply) noBill() sdk.Result {
	switch {
	case r.answer.RC == codeMalformed && r.verdict == turnedAway:
		// All in the request but what the caller gave is always the same.
		result := sdk.Refuse(sdk.RefuseRequest, "The provider can't read this request: property tax (PBB) needs the year in target, and products of open amount need qty.",
			sdk.FieldFault{Field: "target", Message: anyForm}, sdk.FieldFault{Field: "qty", Message: "must be given for products of open amount, and for no other"})
		result.Detail = r.detail
		return result
	case r.verdict == refused:
		result := r.refusal(sdk.RefuseRequest)
		result.Blame = sdk.BlameUpstream // which has looked at the number
		return result
	case r.verdict == turnedAway, r.class == limited, r.class == again:
		return sdk.DidNotSend(r.blame, r.detail)
	}
	return sdk.DontKnow(r.blame, r.detail)
}
