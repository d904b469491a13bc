package sdktest_test

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// refund gives money of a payment back, unless that was done before.
func (a *adapter) refund(ctx context.Context, c sdk.Call) sdk.Result {
	payment, err := a.byReference(ctx, c.Connection, c.Payment.Reference)
	if err != nil {
		return a.unsent(err)
	}
	a.mu.Lock()
	remembered := a.made[c.Reference]
	a.made[c.Reference] = true
	a.mu.Unlock()
	made, known := backOf(payment, c.Reference)
	switch {
	case known && a.bug != "refunds again" && (a.bug != "remembers refunds" || remembered):
		return sdk.Finished(made.ID, struct{}{})
	case a.bug == "believes in refunds":
		return sdk.Finished(payment.ID+"-back-1", struct{}{})
	}
	asked := back{Ref: c.Reference, Amount: c.Amount}
	switch a.bug {
	case "asks for another refund":
		asked.Amount++
	case "refunds what it can":
		asked.Amount = min(asked.Amount, payment.Paid)
	}
	err = a.fetch(ctx, c.Connection, http.MethodPost, "/charges/"+payment.ID+"/backs", asked, &made)
	if err == nil && made.ID == "" {
		err = errUnclear
	}
	switch {
	case err == nil:
		return sdk.Finished(made.ID, struct{}{})
	case a.bug == "takes a lost refund for a refusal":
		return sdk.Refuse(sdk.RefuseOther, "no refund")
	case a.bug == "takes a lost refund for not sent" && errors.Is(err, errUnclear):
		return sdk.DidNotSend(sdk.BlameUpstream, err.Error())
	}
	return a.failed(err)
}

func backOf(payment charge, reference string) (back, bool) {
	i := slices.IndexFunc(payment.Backs, func(b back) bool { return b.Ref == reference })
	if i < 0 {
		return back{}, false
	}
	return payment.Backs[i], true
}

func (a *adapter) lookUpRefund(ctx context.Context, l sdk.Lookup) sdk.StatusUpdate {
	payment, err := a.byReference(ctx, l.Connection, l.Payment.Reference)
	switch {
	case err != nil && a.bug == "takes a failed lookup for no refund":
		return sdk.StatusUpdate{Reference: l.Reference, Status: sdk.StatusNotFound}
	case errors.Is(err, errKey):
		return sdk.NoStatus(sdk.BlameAccount, err.Error())
	case errors.Is(err, errLimit):
		return sdk.NoStatus(sdk.BlameLimit, err.Error())
	case err != nil:
		return sdk.NoStatus(sdk.BlameUpstream, err.Error())
	}
	made, known := backOf(payment, l.Reference)
	if !known || a.bug == "finds no refund" {
		return sdk.StatusUpdate{Reference: l.Reference, Status: sdk.StatusNotFound}
	}
	amount := made.Amount
	if a.bug == "tells the payment's amount of a refund" {
		amount = payment.Paid
	}
	return sdk.StatusUpdate{
		Reference: l.Reference, ProviderReference: made.ID, Status: sdk.StatusDone, Amount: amount, Currency: "IDR", EventID: made.ID,
	}
}

// returns are what went back of a charge.
func (a *adapter) returns(c charge) (told []sdk.Return) {
	for _, b := range c.Backs {
		r := sdk.Return{ID: b.ID, Sort: sdk.ReturnRefund, Amount: b.Amount, Undone: b.Undone, Reference: b.Ref}
		if b.Sort == sdk.ReturnChargeback.String() && a.bug != "takes chargebacks for refunds" {
			r.Sort = sdk.ReturnChargeback
		}
		switch a.bug {
		case "tells money that came again as gone":
			r.Undone = false
		case "tells no refund":
			continue
		case "does not say which refund":
			r.Reference = ""
		case "tells half of a refund":
			r.Amount = money.Amount(int64(r.Amount) / 2)
		}
		told = append(told, r)
	}
	return told
}
