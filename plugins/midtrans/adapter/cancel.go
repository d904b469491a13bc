package adapter

import (
	"context"
	"net/http"
	"net/url"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// cancel ends an unpaid payment. Done means that it is ended and unpaid. Whatever the
// upstream answers but that, its transaction is read again and tells how it stands.
//
// A link whose payer has not chosen how to pay can't be ended at the upstream. The
// gateway does, and what still comes for it is late money.
func (a *adapter) cancel(ctx context.Context, call sdk.Call) sdk.Result {
	acc, err := a.account(call.Connection)
	if err != nil {
		return sdk.DidNotSend(sdk.BlameAccount, err.Error())
	}
	if tooLate(call) {
		return sendByPassed()
	}
	t, p := acc.core(ctx, http.MethodPost, "/v2/"+url.PathEscape(call.Reference)+"/expire", nil)
	switch {
	case p == nil && t.OrderID == call.Reference && t.Status == "expire":
		return ended(call)
	case p == nil:
		p = garbled("POST /v2/expire", "the answer is not an expired transaction")
	case p.missing() && call.ProviderReference != "":
		return ended(call)
	case p.missing() || p.verdict == turnedAway:
		return p.result()
	}
	t, again := acc.status(ctx, call.Reference)
	if again != nil {
		return sdk.DontKnow(p.blame, p.detail)
	}
	switch t.statusUpdate().Status {
	case sdk.StatusExpired:
		return ended(call)
	case sdk.StatusDone:
		return sdk.Refuse(sdk.RefuseOther, "The payment has been paid.")
	case sdk.StatusPending, sdk.StatusFailed, sdk.StatusUnknown, sdk.StatusNotFound:
	}
	return sdk.DontKnow(p.blame, p.detail)
}

func ended(call sdk.Call) sdk.Result { return sdk.Finished(call.Reference, struct{}{}) }
