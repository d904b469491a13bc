package adapter

import (
	"context"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// nobodysOrder is an order that is never made: references have another form.
const nobodysOrder = "gerbang-verifies-the-server-key"

// verify asks for an order that does not exist: that needs the key which payments are
// made and looked up with, at either API.
func verify(ctx context.Context, c sdk.Connection) sdk.Result {
	acc, err := openAccount(c)
	if err != nil {
		return sdk.Refuse(sdk.RefuseOther, err.Error())
	}
	defer acc.http.CloseIdleConnections()
	if _, p := acc.status(ctx, nobodysOrder); p != nil && !p.missing() {
		return p.result()
	}
	return sdk.Usable("") // no answer tells the account's name
}
