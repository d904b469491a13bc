package xendit

import (
	"context"
	"strings"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// modeOf is the mode that a key is for, "" where it does not tell.
func modeOf(key string) string {
	switch {
	case strings.HasPrefix(key, "xnd_development_"):
		return "test"
	case strings.HasPrefix(key, "xnd_production_"):
		return "live"
	}
	return ""
}

// verify asks for one invoice, whichever: a read that every key needs that
// payments are made and looked up with. The callback token can't be asked for;
// it shows with the first webhook.
func verify(ctx context.Context, c sdk.Connection) sdk.Result {
	acc, err := openAccount(c)
	if err != nil {
		return sdk.Refuse(sdk.RefuseOther, err.Error())
	}
	defer acc.client.http.CloseIdleConnections()
	said := acc.usable(ctx)
	said.Mode = acc.mode
	return said
}

func (acc *account) usable(ctx context.Context) sdk.Result {
	var newest []struct {
		Merchant string `json:"merchant_name"`
	}
	if p := acc.client.get(ctx, "/v2/invoices?limit=1", v1, &newest); p != nil {
		return p.result()
	}
	if newest == nil {
		return garbled("GET /v2/invoices", "the answer is no list").result()
	}
	if len(newest) == 0 {
		return sdk.Usable("") // only an invoice tells the account's name
	}
	return sdk.Usable(acc.client.clean(newest[0].Merchant))
}
