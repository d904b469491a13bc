package snap

import (
	"context"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// The operations that move money.
const (
	walletTransfer = "/wallet1/transfer/wallet"
	bankTransfer   = "/wallet1/transfer/bank"
)

// adapter is the plugin: the accounts in use, the banks, and the time.
type adapter struct {
	accounts sdk.Instances[*account]
	banks    Banks
	now      func() time.Time
}

// Handlers returns the handlers of the wallet1 manifest.
func Handlers(banks Banks) sdk.Handlers {
	return (&adapter{banks: banks, now: time.Now}).handlers()
}

func (a *adapter) handlers() sdk.Handlers {
	return sdk.Handlers{
		Calls: map[string]func(context.Context, sdk.Call) sdk.Result{
			"/wallet1/transactions": a.transactions,
			"/wallet1/inquiry":      a.walletInquiry,
			"/transfer/banks":       a.listBanks,
			"/transfer/inquiry":     a.bankInquiry,
			walletTransfer:          a.sendToWallet,
			bankTransfer:            a.sendToBank,
		},
		Quotes: map[string]func(context.Context, sdk.Quote) sdk.Quoted{
			walletTransfer: a.quoteWallet,
			bankTransfer:   a.quoteBank,
		},
		Lookup:    a.lookup,
		Notify:    a.notify,
		Verify:    verify,
		Statement: a.statement,
	}
}

// jakarta is the upstream's time. It has no summer time, so that no table of
// time zones is needed.
var jakarta = time.FixedZone("WIB", 7*60*60)

// timestamp is how the upstream writes a time.
func timestamp(t time.Time) string { return t.In(jakarta).Format("2006-01-02T15:04:05-07:00") }
