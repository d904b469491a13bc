package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/seed-f006e74d/gerbang/plugins/wallet1/sandbox"
	"github.com/seed-f006e74d/gerbang/plugins/wallet1/snap"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/sdktest"
)

func TestMain(m *testing.M) { sdktest.Main(m, main) }

// query is an example of a query. The code is of a refusal.
func query(name, operation, body string, want sdk.Outcome, code sdk.RefusalCode) sdktest.Example {
	return sdktest.Example{Name: name, Operation: operation, Body: json.RawMessage(body), Want: want, Code: code}
}

// toWallet is an example of a transfer to a wallet, of which the upstream never
// notifies.
func toWallet(name, phone string, amount int64, want sdk.Outcome, code sdk.RefusalCode) sdktest.Example {
	return sdktest.Example{
		Name: name, Operation: "/wallet1/transfer/wallet", Want: want, Code: code, Unannounced: true,
		Body: fmt.Appendf(nil, `{"phone":%q,"amount":%d,"message":"Kopi & roti"}`, phone, amount),
	}
}

// toBank is an example of a transfer to a bank. The upstream notifies of those
// whose end comes later.
func toBank(name, bank, account string, amount int64, want sdk.Outcome, code sdk.RefusalCode) sdktest.Example {
	return sdktest.Example{
		Name: name, Operation: "/wallet1/transfer/bank", Want: want, Code: code, Unannounced: want == sdk.Done,
		Body: fmt.Appendf(nil, `{"bank_code":%q,"account_no":%q,"amount":%d}`, bank, account, amount),
	}
}

var questions = []sdktest.Example{
	query("mutations", "/wallet1/transactions", `{}`, sdk.Done, ""),
	query("who has a wallet", "/wallet1/inquiry", `{"phone":"0811-742-234","amount":10000}`, sdk.Done, ""),
	query("who has an account", "/transfer/inquiry", `{"bank_code":"014","account_no":"246 088 8509","amount":10000}`, sdk.Done, ""),
	query("banks", "/transfer/banks", `{}`, sdk.Done, ""),
}

var atOnce = []sdktest.Example{
	toWallet("wallet", "+62 811 742 234", 10000, sdk.Done, ""),
	toBank("bank", "014", "2460888509", 10000, sdk.Done, ""),
}

var later = []sdktest.Example{
	toWallet("wallet later", "087800001233", 10000, sdk.Pending, ""),
	toBank("bank later", "014", "9900001233", 10000, sdk.Pending, ""),
}

var declined = []sdktest.Example{
	query("a second page", "/wallet1/transactions", `{"page":2,"limit":100}`, sdk.Done, ""),
	query("nobody has a wallet", "/wallet1/inquiry", `{"phone":"628152768647","amount":10000}`, sdk.Refused, sdk.RefuseDestination),
	query("no phone", "/wallet1/inquiry", `{"phone":"021555","amount":10000}`, sdk.Refused, sdk.RefuseRequest),
	query("nobody has an account", "/transfer/inquiry", `{"bank_code":"014","account_no":"815919191","amount":10000}`, sdk.Refused, sdk.RefuseDestination),

	toWallet("a frozen wallet", "628123456667", 10000, sdk.Refused, sdk.RefuseDestination),
	toWallet("a wallet frozen meanwhile", "628996647679", 10000, sdk.Refused, sdk.RefuseDestination),
	toWallet("more than a wallet takes", "0811742234", 20_000_001, sdk.Refused, sdk.RefuseRequest),
	toWallet("no phone to send to", "123", 10000, sdk.Refused, sdk.RefuseRequest),
	toBank("an inactive account", "014", "81298055132", 10000, sdk.Refused, sdk.RefuseDestination),
	toBank("an account that looks like fraud", "014", "82298055100", 10000, sdk.Refused, sdk.RefuseOther),
	toBank("an account inactive meanwhile", "014", "81398055100", 10000, sdk.Refused, sdk.RefuseDestination),
	toBank("more than there is", "014", "2460888509", 50_000_000_000, sdk.Refused, sdk.RefuseOther),
	toBank("no bank", "999", "2460888509", 10000, sdk.Refused, sdk.RefuseRequest),
	toBank("no merchant of theirs", "014", "855100800", 10000, sdk.NotSent, ""),
}

func TestConformance(t *testing.T) {
	t.Parallel()
	sdktest.Run(t, sdktest.Suite{
		Manifest: manifestJSON, Open: openUpstream(sandbox.DefaultOptions()), OwnErrors: true,
		Examples: slices.Concat(questions, atOnce, later, declined),
	})
}

// Without tokens, at the paths of another dialect, and with a fee for wallets.
func TestConformanceInDANAsDialect(t *testing.T) {
	t.Parallel()
	options := sandbox.DefaultOptions()
	options.Signature, options.Dialect, options.NotFoundAs07, options.WalletFee = sandbox.Asymmetric, sandbox.DANA, true, 500
	sdktest.Run(t, sdktest.Suite{
		Manifest: manifestJSON, Open: openUpstream(options), OwnErrors: true, Examples: slices.Concat(questions, later),
	})
}

// Signatures in hex are the same but for how they are written.
func TestSignaturesInHex(t *testing.T) {
	t.Parallel()
	options := sandbox.DefaultOptions()
	options.Encoding = sandbox.Hex
	banks, err := snap.ReadBanks(banksCSV)
	if err != nil {
		t.Fatal(err)
	}
	account := openUpstream(options)(t).Connect("A", "test")
	if r := snap.Handlers(banks).Verify(t.Context(), account); r.Outcome != sdk.Done || r.ProviderReference != "A-test" {
		t.Errorf("got %+v", r)
	}
}
