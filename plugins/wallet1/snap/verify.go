package snap

import (
	"context"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/upstream"
)

// verify asks for the balance, whatever it is: that takes a token, a signature
// and the number of the wallet that pays. The provider's key can't be asked
// for; it shows with the first notification.
func verify(ctx context.Context, c sdk.Connection) sdk.Result {
	acc, err := openAccount(c, time.Now)
	if err != nil {
		return sdk.Refuse(sdk.RefuseOther, err.Error())
	}
	defer acc.client.http.CloseIdleConnections()
	type request struct {
		PartnerReferenceNo string   `json:"partnerReferenceNo"`
		AccountNo          string   `json:"accountNo"`
		BalanceTypes       []string `json:"balanceTypes"`
	}
	var answer struct {
		Name text `json:"name"`
	}
	p := acc.client.ask(ctx, question{
		service: balanceInquiry,
		body:    request{newExternalID(time.Now()), acc.customerNumber, []string{"BALANCE"}},
		into:    &answer,
	})
	switch {
	case p == nil:
		return sdk.Usable(upstream.Printable(string(answer.Name), acc.client.secret))
	case p.class == forbidden:
		return sdk.Usable("") // who we are was taken; an account need not see its balance
	case p.class == destination:
		r := sdk.Refuse(sdk.RefuseOther, "customer_number: the provider does not know this wallet, or it is not in use.")
		r.Detail = p.detail
		return r
	}
	return p.result()
}
