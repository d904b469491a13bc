package qrwallet

import (
	"context"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// Handlers are the plugin's functions, as its manifest declares them.
func Handlers() sdk.Handlers {
	return sdk.Handlers{
		Calls:     map[string]func(context.Context, sdk.Call) sdk.Result{"/wallet2/create": create},
		Lookup:    lookup,
		Verify:    verify,
		Statement: statement,
	}
}

// payable is the result of a create.
type payable struct {
	QRString string `json:"qr_string"`
}

// create makes the code for one sale. Nothing is sent anywhere: the wallet
// learns of the sale when it is paid.
func create(_ context.Context, c sdk.Call) sdk.Result {
	a, err := open(c.Connection)
	if err != nil {
		return sdk.DidNotSend(sdk.BlameAccount, err.Error())
	}
	code, err := a.codeFor(c.Amount)
	if err != nil {
		return sdk.Refuse(sdk.RefuseOther, "No QR code can ask for this amount.")
	}
	return sdk.Accepted("", time.Time{}, code)
}

// lookup answers the same code again. Whether it was paid is in the statement
// alone, so it is always pending.
func lookup(_ context.Context, l sdk.Lookup) sdk.StatusUpdate {
	a, err := open(l.Connection)
	if err != nil {
		return sdk.NoStatus(sdk.BlameAccount, err.Error())
	}
	code, err := a.codeFor(l.Amount)
	if err != nil {
		return sdk.StatusUpdate{Reference: l.Reference, Status: sdk.StatusFailed, Detail: err.Error()}
	}
	made := sdk.Accepted("", time.Time{}, code)
	return sdk.StatusUpdate{
		Reference: l.Reference, Status: sdk.StatusPending, Amount: l.Amount, Currency: currency, Data: made.Data,
	}
}

func (a account) codeFor(amount money.Amount) (payable, error) {
	code, err := a.code.Dynamic(amount)
	return payable{code.String()}, err
}

// verify judges a code and reads the reports once.
func verify(ctx context.Context, c sdk.Connection) sdk.Result {
	a, err := open(c)
	if err != nil {
		return sdk.Refuse(sdk.RefuseOther, err.Error())
	}
	switch report := a.read(ctx, "", 1); {
	case report.Known && report.Blame == sdk.BlameNone:
		return sdk.Usable(a.name())
	case report.Blame == sdk.BlameAccount:
		return sdk.Refuse(sdk.RefuseOther, "reports: "+report.Detail)
	default:
		return sdk.DontKnow(report.Blame, report.Detail)
	}
}

func statement(ctx context.Context, s sdk.Statement) sdk.StatementPage {
	a, err := open(s.Connection)
	if err != nil {
		return sdk.NoStatement(sdk.BlameAccount, err.Error())
	}
	if at, ok := a.reports.(remote); ok && s.RequestID != "" {
		a.reports = once{at, s.RequestID}
	}
	return a.read(ctx, s.Cursor, s.Limit)
}
