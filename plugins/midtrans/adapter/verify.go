package adapter

import (
	"context"
	"strings"

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
	said := sdk.Usable("") // no answer tells the account's name
	if _, p := acc.status(ctx, nobodysOrder); p != nil && !p.missing() {
		said = p.result()
	}
	said.Mode = modeOf(acc.key)
	return said
}

// modeOf is the mode that a key is for, "" where it does not tell.
func modeOf(key string) string {
	switch {
	case strings.HasPrefix(key, "SB-Mid-server-"):
		return "test"
	case strings.HasPrefix(key, "Mid-server-"):
		return "live"
	}
	return ""
}
