package snap

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

const (
	walletHolder = `"customerNumber":"6281388370001","customerName":"Bu** S***","sessionId":"s-1","amount":{"value":"10000.00","currency":"IDR"}`
	bankHolder   = `"beneficiaryAccountNumber":"2460888509","beneficiaryAccountName":"BUDI","beneficiaryBankCode":"014","amount":{"value":"10000.00","currency":"IDR"}`
)

func TestQuotes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		bank      bool
		extra     string
		settings  []any
		fee, cost money.Amount
		data      string
	}{
		"wallet": {false, "", nil, 0, 0, `{"phone":"6281388370001","name":"Bu** S***","session":"s-1"}`},
		"wallet, with a fee": {false, `,"feeAmount":{"value":"500.00","currency":"IDR"}`, []any{"wallet_fee", 400}, 400, 10500,
			`{"phone":"6281388370001","name":"Bu** S***","session":"s-1","fee":500}`},
		"wallet, with a fee of nothing": {false, `,"feeAmount":{"value":"0.00","currency":"IDR"}`, nil, 0, 10000,
			`{"phone":"6281388370001","name":"Bu** S***","session":"s-1"}`},
		"wallet, fee not told": {false, `,"feeAmount":null`, nil, 0, 0, `{"phone":"6281388370001","name":"Bu** S***","session":"s-1"}`},
		"bank":                 {true, "", nil, 2500, 0, `{"bank":"014","account":"2460888509","name":"BUDI"}`},
		"bank, with a fee": {true, `,"additionalInfo":{"feeAmount":{"value":"3000.00","currency":"IDR"}}`, nil, 2500, 13000,
			`{"bank":"014","account":"2460888509","name":"BUDI","fee":3000}`},
		"bank, free for merchants": {true, `,"sessionId":7,"additionalInfo":""`, []any{"bank_fee", 0}, 0, 0,
			`{"bank":"014","account":"2460888509","name":"BUDI","session":"7"}`},
	} {
		up := newStub(t, map[string][]reply{
			walletInquiryPath: {coded(200, "2003700", walletHolder+c.extra)}, bankInquiryPath: {coded(200, "2004200", bankHolder+c.extra)},
		})
		a := newAdapter(t)
		conn := connect(t, up.url, c.settings...)
		q := a.quoteWallet(t.Context(), quoteOf(conn, walletTransfer, walletOrder))
		if c.bank {
			q = a.quoteBank(t.Context(), quoteOf(conn, bankTransfer, bankOrder))
		}
		if q.Outcome != sdk.Done || q.Price != 10000 || q.Fee != c.fee || q.Cost != c.cost || q.Name == "" || string(q.Data) != c.data || q.Held || q.Open {
			t.Errorf("%s: %+v %s", name, q, q.Data)
		}
	}
}

func TestInquiriesThatCantBeUsed(t *testing.T) {
	t.Parallel()
	for name, answers := range map[string][2]string{
		"no name":          {`"customerName":""`, `"beneficiaryAccountName":null`},
		"another receiver": {`"customerName":"B","customerNumber":"6281388370002"`, `"beneficiaryAccountName":"B","beneficiaryAccountNumber":"2460888500"`},
		"another amount":   {`"customerName":"B","amount":{"value":"1.00","currency":"IDR"}`, `"beneficiaryAccountName":"B","amount":{"value":"1.00","currency":"IDR"}`},
		"another currency": {`"customerName":"B","amount":{"value":"10000.00","currency":"USD"}`, `"beneficiaryAccountName":"B","amount":{"value":"10000.00","currency":"USD"}`},
		"a fraction":       {`"customerName":"B","feeAmount":{"value":"0.50"}`, `"beneficiaryAccountName":"B","additionalInfo":{"feeAmount":{"value":"0.50"}}`},
	} {
		up := newStub(t, map[string][]reply{
			walletInquiryPath: {coded(200, "2003700", answers[0])}, bankInquiryPath: {coded(200, "2004200", answers[1])},
		})
		a := newAdapter(t)
		c := connect(t, up.url)
		checkQuoted(t, "wallet: "+name, a.quoteWallet(t.Context(), quoteOf(c, walletTransfer, walletOrder)), theirFault, "")
		checkQuoted(t, "bank: "+name, a.quoteBank(t.Context(), quoteOf(c, bankTransfer, bankOrder)), theirFault, "")
	}
}

func TestTheProvidersBounds(t *testing.T) {
	t.Parallel()
	tooLittle := verdict{outcome: sdk.Refused, blame: sdk.BlameUpstream, code: sdk.RefuseRequest, field: "amount"}
	for limits, want := range map[string]verdict{
		`"minAmount":{"value":"10001.00","currency":"IDR"}`:          tooLittle,
		`"maxAmount":{"value":"9999.00","currency":"IDR"}`:           tooLittle,
		`"minAmount":{"value":"10000.00","currency":"IDR"}`:          done,
		`"maxAmount":{"value":"10000.00","currency":"IDR"}`:          done,
		`"minAmount":"10001.00"`:                                     done, // no form that we know
		`"maxAmount":{"value":"99999999999999.00"}`:                  done,
		`"minAmount":null,"maxAmount":{"value":"","currency":"IDR"}`: done,
	} {
		up := newStub(t, map[string][]reply{walletInquiryPath: {coded(200, "2003700", walletHolder+","+limits)}})
		q := newAdapter(t).quoteWallet(t.Context(), quoteOf(connect(t, up.url), walletTransfer, walletOrder))
		checkQuoted(t, limits, q, want, "")
		r := newAdapter(t).walletInquiry(t.Context(), queryCall(connect(t, up.url), "/wallet1/inquiry", walletOrder))
		checkResult(t, limits, r, want, "")
	}
}

func TestWhatReachesNoUpstream(t *testing.T) {
	t.Parallel()
	up := newStub(t, nil)
	a := newAdapter(t)
	c := connect(t, up.url)
	refused := func(field string) verdict {
		return verdict{outcome: sdk.Refused, code: sdk.RefuseRequest, field: field}
	}
	for body, want := range map[string]verdict{
		`{"phone":"12345","amount":1}`:         refused("phone"),
		`{"phone":"6208123456789","amount":1}`: refused("phone"),
		`{"phone":7}`:                          {outcome: sdk.NotSent},
	} {
		checkQuoted(t, body, a.quoteWallet(t.Context(), quoteOf(c, walletTransfer, body)), want, "")
		checkResult(t, body, a.walletInquiry(t.Context(), queryCall(c, "/wallet1/inquiry", body)), want, "")
	}
	for body, want := range map[string]verdict{
		`{"bank_code":"999","account_no":"12345","amount":1}`: refused("bank_code"),
		`{"bank_code":"014","account_no":"12-x","amount":1}`:  refused("account_no"),
		`[]`: {outcome: sdk.NotSent},
	} {
		checkQuoted(t, body, a.quoteBank(t.Context(), quoteOf(c, bankTransfer, body)), want, "")
		checkResult(t, body, a.bankInquiry(t.Context(), queryCall(c, "/transfer/inquiry", body)), want, "")
	}
	if n := up.count(); n != 0 {
		t.Errorf("%d requests", n)
	}
}

func TestInquiryAnswers(t *testing.T) {
	t.Parallel()
	up := newStub(t, map[string][]reply{
		walletInquiryPath: {coded(200, "2003700", walletHolder)}, bankInquiryPath: {coded(200, "2004200", bankHolder)},
	})
	a := newAdapter(t)
	c := connect(t, up.url)
	r := a.walletInquiry(t.Context(), queryCall(c, "/wallet1/inquiry", walletOrder))
	if string(r.Data) != `{"fullName":"Bu** S***","phone":"6281388370001"}` {
		t.Errorf("%s %+v", r.Data, r)
	}
	r = a.bankInquiry(t.Context(), queryCall(c, "/transfer/inquiry", bankOrder))
	if string(r.Data) != `{"accountName":"BUDI","accountNo":"2460888509","bankCode":"014","bankName":"Bank Central Asia (BCA)"}` {
		t.Errorf("%s %+v", r.Data, r)
	}
	if name := up.only(t, bankInquiryPath).member(t, "partnerReferenceNo"); !digits(name, 1, 64) {
		t.Errorf("the inquiry is named %q", name)
	}
}

// The bodies as they go out, of both dialects.
func TestBodies(t *testing.T) {
	t.Parallel()
	const amount, at = `"amount":{"value":"10000.00","currency":"IDR"}`, `"transactionDate":"2026-11-21T00:30:00+07:00"`
	for _, c := range []struct {
		name     string
		settings []any
		bodies   map[string]string // by path
	}{
		{"snap", nil, map[string]string{
			walletInquiryPath: `{"partnerReferenceNo":"gb-0001","customerNumber":"6281388370001",` + amount + `,` + at + `}`,
			topUpPath: `{"partnerReferenceNo":"gb-0001","customerNumber":"6281388370001","customerName":"Budi",` + amount + `,` + at +
				`,"sessionId":"s-1","notes":"Kopi & roti"}`,
			bankInquiryPath: `{"partnerReferenceNo":"gb-0001","customerNumber":"6281100000001","beneficiaryAccountNumber":"2460888509",` +
				amount + `,"additionalInfo":{"beneficiaryBankCode":"014"}}`,
			bankTransferPath: `{"partnerReferenceNo":"gb-0001","customerNumber":"6281100000001","beneficiaryAccountNumber":"2460888509",` +
				`"beneficiaryBankCode":"014",` + amount + `,"sessionId":"s-1","additionalInfo":{"needNotify":true}}`,
		}},
		{"dana", []any{"dialect", "dana"}, map[string]string{
			"/rest" + walletInquiryPath: `{"partnerReferenceNo":"gb-0001","customerNumber":"6281388370001",` + amount + `,` + at +
				`,"additionalInfo":{"fundType":"AGENT_TOPUP_FOR_USER_SETTLE"}}`,
			"/rest" + topUpPath: `{"partnerReferenceNo":"gb-0001","customerNumber":"6281388370001","customerName":"Budi",` + amount +
				`,"feeAmount":{"value":"0.00","currency":"IDR"},` + at +
				`,"sessionId":"s-1","notes":"Kopi & roti","additionalInfo":{"fundType":"AGENT_TOPUP_FOR_USER_SETTLE"}}`,
			bankInquiryPath + ".htm": `{"partnerReferenceNo":"gb-0001","customerNumber":"6281100000001","beneficiaryAccountNumber":"2460888509",` +
				amount + `,"additionalInfo":{"fundType":"MERCHANT_WITHDRAW_FOR_CORPORATE","beneficiaryBankCode":"014"}}`,
			bankTransferPath + ".htm": `{"partnerReferenceNo":"gb-0001","customerNumber":"6281100000001","beneficiaryAccountNumber":"2460888509",` +
				`"beneficiaryBankCode":"014",` + amount + `,"sessionId":"s-1","additionalInfo":{"fundType":"MERCHANT_WITHDRAW_FOR_CORPORATE","needNotify":true}}`,
		}},
	} {
		up := newStub(t, nil)
		a := newAdapter(t)
		conn := connect(t, up.url, c.settings...)
		a.quoteWallet(t.Context(), quoteOf(conn, walletTransfer, walletOrder))
		a.quoteBank(t.Context(), quoteOf(conn, bankTransfer, bankOrder))
		a.sendToWallet(t.Context(), walletCall(conn))
		a.sendToBank(t.Context(), bankCall(conn))
		for path, want := range c.bodies {
			if got := up.only(t, path).body; got != want {
				t.Errorf("%s %s:\n got %s\nwant %s", c.name, path, got, want)
			}
		}
	}
}

func TestASendWithAFeeNamesIt(t *testing.T) {
	t.Parallel()
	up := newStub(t, nil)
	call := walletCall(connect(t, up.url))
	call.Quote = json.RawMessage(`{"phone":"6281388370001","name":"Budi","fee":500}`)
	newAdapter(t).sendToWallet(t.Context(), call)
	if got := up.only(t, topUpPath).body; !strings.Contains(got, `"feeAmount":{"value":"500.00","currency":"IDR"}`) {
		t.Errorf("sent %s", got)
	}
}

func TestTransfers(t *testing.T) {
	t.Parallel()
	up := newStub(t, map[string][]reply{
		topUpPath:        {coded(200, "2003800", toppedUp), coded(202, "2023800", `"partnerReferenceNo":"gb-0001"`)},
		bankTransferPath: {coded(200, "2004300", bankIsDone), coded(202, "2024300", `"referenceNo":"up-2"`)},
	})
	a := newAdapter(t)
	c := connect(t, up.url)
	r := a.sendToWallet(t.Context(), walletCall(c))
	if r.Outcome != sdk.Done || r.ProviderReference != "up-1" || string(r.Data) != `{"referenceNo":"up-1"}` || r.Amount != 10000 {
		t.Errorf("wallet: %+v %s", r, r.Data)
	}
	r = a.sendToWallet(t.Context(), walletCall(c))
	if r.Outcome != sdk.Pending || r.ProviderReference != "" || string(r.Data) != `{}` {
		t.Errorf("wallet, later: %+v %s", r, r.Data)
	}
	r = a.sendToBank(t.Context(), bankCall(c))
	if r.Outcome != sdk.Done || r.ProviderReference != "up-1" || r.Amount != 0 {
		t.Errorf("bank: %+v %s", r, r.Data)
	}
	r = a.sendToBank(t.Context(), bankCall(c))
	if r.Outcome != sdk.Pending || r.ProviderReference != "up-2" || string(r.Data) != `{"referenceNo":"up-2"}` {
		t.Errorf("bank, later: %+v %s", r, r.Data)
	}
}

// A success that is about something else is no success of ours.
func TestAnswersThatAreNotOurs(t *testing.T) {
	t.Parallel()
	for name, members := range map[string]string{
		"another reference":  `"referenceNo":"up-1","partnerReferenceNo":"gb-0002"`,
		"another amount":     `"referenceNo":"up-1","amount":{"value":"100000.00","currency":"IDR"}`,
		"another currency":   `"referenceNo":"up-1","amount":{"value":"10000.00","currency":"USD"}`,
		"another receiver":   `"referenceNo":"up-1","customerNumber":"6281388370002","beneficiaryAccountNumber":"1"`,
		"no referenceNo":     `"partnerReferenceNo":"gb-0001"`,
		"an unreadable sum":  `"referenceNo":"up-1","amount":{"value":"ten"}`,
		"a sum of no object": `"referenceNo":"up-1","amount":[]`,
	} {
		up := newStub(t, map[string][]reply{
			topUpPath: {coded(200, "2003800", members)}, bankTransferPath: {coded(200, "2004300", members)},
		})
		a := newAdapter(t)
		c := connect(t, up.url)
		checkResult(t, "wallet: "+name, a.sendToWallet(t.Context(), walletCall(c)), theirFault, "")
		checkResult(t, "bank: "+name, a.sendToBank(t.Context(), bankCall(c)), theirFault, "")
	}
}

// A masked number is no other number, and the payer's is not the receiver's.
func TestMaskedAnswersAreOurs(t *testing.T) {
	t.Parallel()
	up := newStub(t, map[string][]reply{
		topUpPath:        {coded(200, "2003800", `"referenceNo":"up-1","customerNumber":"62813****0001"`)},
		bankTransferPath: {coded(200, "2004300", `"referenceNo":"up-1","customerNumber":"`+payer+`"`)},
	})
	a := newAdapter(t)
	c := connect(t, up.url)
	checkResult(t, "wallet", a.sendToWallet(t.Context(), walletCall(c)), done, "")
	checkResult(t, "bank", a.sendToBank(t.Context(), bankCall(c)), done, "")
}

// A call whose quote is missing, or for somebody else, is not sent.
func TestAQuoteMustFitItsCall(t *testing.T) {
	t.Parallel()
	up := newStub(t, nil)
	a := newAdapter(t)
	c := connect(t, up.url)
	for _, quote := range []string{"", "{}", "null", "[]", `{"phone":"6281388370002","bank":"014","account":"1"}`, `{"bank":"008","account":"2460888509"}`} {
		call := walletCall(c)
		call.Quote = json.RawMessage(quote)
		checkResult(t, "wallet: "+quote, a.sendToWallet(t.Context(), call), verdict{outcome: sdk.NotSent}, "")
		call = bankCall(c)
		call.Quote = json.RawMessage(quote)
		checkResult(t, "bank: "+quote, a.sendToBank(t.Context(), call), verdict{outcome: sdk.NotSent}, "")
	}
	if n := up.count(); n != 0 {
		t.Errorf("%d requests", n)
	}
}

func TestNotes(t *testing.T) {
	t.Parallel()
	if got := notes(" a\tb\r\nc\x00 "); got != "a b  c" {
		t.Errorf("got %q", got)
	}
	if got := notes(strings.Repeat("é", 300)); got != strings.Repeat("é", 255) {
		t.Errorf("%d characters", len([]rune(got)))
	}
}
