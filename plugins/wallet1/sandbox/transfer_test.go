package sandbox_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/plugins/wallet1/sandbox"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

func TestTopup(t *testing.T) {
	t.Parallel()
	w := open(t)
	c := w.main
	got := c.want("2003700", c.post(inquiryAt, topupOf("I", good, 15_000)))
	if text(got, "customerName") == "" || text(got, "customerNumber") != good || value(got, "amount") != "15000.00" ||
		value(got, "minAmount") != "1.00" || value(got, "maxAmount") != "20000000.00" || value(got, "feeAmount") != "0.00" {
		t.Errorf("inquiry: %v", got)
	}
	session := text(got, "sessionId")
	c.want("4003801", c.topup("R", good, 15_001, object{"sessionId": session}))
	c.want("4003801", c.topup("R", "62811742235", 15_000, object{"sessionId": session}))
	got = c.want("2003800", c.topup("R", good, 15_000, object{"sessionId": session, "notes": "makan siang"}))
	if text(got, "referenceNo") == "" || text(got, "partnerReferenceNo") != "R" || text(got, "sessionId") != session ||
		text(got, "customerNumber") != good || value(got, "amount") != "15000.00" {
		t.Errorf("top-up: %v", got)
	}
	status := c.want("2003900", c.status("38", "R"))
	if text(status, "latestTransactionStatus") != "00" || value(status, "amount") != "15000.00" || text(status, "serviceCode") != "38" ||
		text(status, "originalReferenceNo") != text(got, "referenceNo") || text(status, "originalExternalId") == "" {
		t.Errorf("status: %v", status)
	}
	own := c.post("/v1.0/emoney/topup-status", object{"originalReferenceNo": text(got, "referenceNo"), "serviceCode": "38"})
	if text(c.want("2003900", own), "originalPartnerReferenceNo") != "R" {
		t.Errorf("by the issuer's reference: %v", own)
	}
	if c.spent() != 15_000 || w.states("R") != "Success" {
		t.Errorf("spent %s, witness %q", c.spent(), w.states("R"))
	}
}

func TestTransferToBank(t *testing.T) {
	t.Parallel()
	w := open(t)
	c := w.main
	ask := c.bankOf("I", "014", accountNo, 15_000, object{"additionalInfo": object{"beneficiaryBankCode": "014"}})
	got := c.want("2004200", c.post("/v1.0/emoney/bank-account-inquiry", ask))
	info, _ := got["additionalInfo"].(object)
	if text(got, "beneficiaryAccountName") == "" || text(got, "beneficiaryAccountNumber") != accountNo || value(info, "feeAmount") != "2500.00" ||
		text(got, "beneficiaryBankCode") != "014" || text(got, "beneficiaryBankShortName") != "BCA" || value(got, "amount") != "15000.00" {
		t.Errorf("inquiry: %v", got)
	}
	got = c.want("2004300", c.bank("R", accountNo, 15_000, object{"sessionId": text(got, "sessionId")}))
	if text(got, "referenceNo") == "" || text(got, "partnerReferenceNo") != "R" ||
		text(got, "transactionDate") != "2026-01-15T10:00:00+07:00" || text(got, "referenceNumber") == "" {
		t.Errorf("transfer: %v", got)
	}
	status := c.want("2000000", c.status("00", "R"))
	if text(status, "latestTransactionStatus") != "00" || value(status, "amount") != "15000.00" || text(status, "serviceCode") != "00" {
		t.Errorf("status: %v", status)
	}
	if c.spent() != 17_500 || w.states("R") != "Success" || w.env.Movements.All()[0].Destination != "014/"+accountNo {
		t.Errorf("spent %s, witness %v", c.spent(), w.env.Movements.All())
	}
	w.silent()
}

// TestFields has bodies that are refused for their form, and move nothing.
func TestFields(t *testing.T) {
	t.Parallel()
	w := open(t)
	c := w.main
	bankInquiry := func(more ...object) object {
		return merged(c.bankOf("R", "014", accountNo, 10_000, object{"additionalInfo": object{"beneficiaryBankCode": "014"}}), more)
	}
	usd := object{"amount": object{"value": "10000.00", "currency": "USD"}}
	amount := func(v any) object { return object{"amount": object{"value": v, "currency": "IDR"}} }
	for i, check := range []struct {
		path string
		body object
		want string
	}{
		{"topup", topupOf("R", good, 1, usd), "4003801 Invalid Field Format amount.currency"},
		{"topup", topupOf("R", "", 1), "4003802 Invalid Mandatory Field customerNumber"},
		{"topup", topupOf("", good, 1), "4003802 Invalid Mandatory Field partnerReferenceNo"},
		{"topup", topupOf(strings.Repeat("R", 65), good, 1), "4003801 Invalid Field Format partnerReferenceNo"},
		{"topup", topupOf("R", good, 1, object{"amount": nil}), "4003802 Invalid Mandatory Field amount"},
		{"topup", topupOf("R", good, 1, amount("10000")), "4003801 Invalid Field Format amount.value"},
		{"topup", topupOf("R", good, 1, amount("10000.50")), "4003801 Invalid Field Format amount.value"},
		{"topup", topupOf("R", good, 1, amount("1e4.00")), "4003801 Invalid Field Format amount.value"},
		{"topup", topupOf("R", good, 1, amount("0.00")), "4003801 Invalid Field Format amount.value"},
		{"topup", topupOf("R", good, 1, amount("-1.00")), "4003801 Invalid Field Format amount.value"},
		{"topup", topupOf("R", good, 1, amount(10_000)), "4003801 Invalid Field Format amount.value"},
		{"topup", topupOf("R", good, 1, object{"notes": strings.Repeat("n", 256)}), "4003801 Invalid Field Format notes"},
		{"topup", topupOf("R", "08117422341", 1), "4003801 Invalid Field Format customerNumber"},
		{"topup", topupOf("R", "+62811742234", 1), "4003801 Invalid Field Format customerNumber"},
		{"topup", topupOf("R", "628117422", 1), "4003801 Invalid Field Format customerNumber"},
		{"account-inquiry", topupOf("R", good, 1, usd), "4003701 Invalid Field Format amount.currency"},
		{"account-inquiry", topupOf("R", "628117422341234", 1), "4003701 Invalid Field Format customerNumber"},
		{"topup-status", object{"originalPartnerReferenceNo": "R"}, "4003902 Invalid Mandatory Field serviceCode"},
		{"topup-status", object{"originalPartnerReferenceNo": "R", "serviceCode": "43"}, "4003901 Invalid Field Format serviceCode"},
		{"topup-status", object{"serviceCode": "38"}, "4003902 Invalid Mandatory Field originalPartnerReferenceNo"},
		{"bank-account-inquiry", bankInquiry(object{"additionalInfo": nil}), "4004202 Invalid Mandatory Field additionalInfo"},
		{"bank-account-inquiry", bankInquiry(object{"additionalInfo": object{}}), "4004202 Invalid Mandatory Field additionalInfo.beneficiaryBankCode"},
		{"bank-account-inquiry", bankInquiry(object{"additionalInfo": object{"beneficiaryBankCode": "014S"}}), "4004201 Invalid Field Format additionalInfo.beneficiaryBankCode"},
		{"bank-account-inquiry", bankInquiry(object{"additionalInfo": object{"beneficiaryBankCode": "999"}}), "4044203 Bank Not Supported By Switch"},
		{"transfer-bank", c.bankOf("R", "BCA", accountNo, 1), "4004301 Invalid Field Format beneficiaryBankCode"},
		{"transfer-bank", c.bankOf("R", "999", accountNo, 1), "4044303 Bank Not Supported By Switch"},
		{"transfer-bank", c.bankOf("R", "014", "12-34", 1), "4004301 Invalid Field Format beneficiaryAccountNumber"},
		{"transfer-bank", c.bankOf("R", "014", accountNo, 1, object{"customerNumber": good}), "4034315 Transaction Not Permitted"},
		{"transfer-bank", c.bankOf("R", "014", accountNo, 1, object{"additionalInfo": object{"needNotify": "maybe"}}), "4004301 Invalid Field Format additionalInfo.needNotify"},
		{"transfer-bank-status", object{"originalPartnerReferenceNo": "R", "serviceCode": "00"}, "4040001 Transaction Not Found"},
	} {
		answer := c.post("/v1.0/emoney/"+check.path, check.body)
		if got := text(answer, "responseCode") + " " + text(answer, "responseMessage"); got != check.want {
			t.Errorf("%d, %s %v: %s, want %s", i, check.path, check.body, got, check.want)
		}
	}
	if c.spent() != 0 || w.states("R") != "" {
		t.Errorf("spent %s, witness %q", c.spent(), w.states("R"))
	}
}

// TestDANA has that dialect's paths, which want to know the kind of fund.
func TestDANA(t *testing.T) {
	t.Parallel()
	w := open(t, func(o *sandbox.Options) { o.Signature, o.Dialect = sandbox.Asymmetric, sandbox.DANA })
	c := w.main
	user := object{"additionalInfo": object{"fundType": "AGENT_TOPUP_FOR_USER_SETTLE"}}
	merchant := object{"additionalInfo": object{"fundType": "MERCHANT_WITHDRAW_FOR_CORPORATE", "beneficiaryBankCode": "014"}}
	for i, step := range []struct {
		path string
		body object
		want string
	}{
		{"/rest/v1.0/emoney/account-inquiry", topupOf("I", good, 10_000, user), "2003700"},
		{"/rest/v1.0/emoney/account-inquiry", topupOf("I", good, 10_000), "4003702"},
		{"/rest/v1.0/emoney/topup", topupOf("T", good, 10_000), "4003802"},
		{"/rest/v1.0/emoney/topup", topupOf("T", good, 10_000, merchant), "4003801"},
		{"/rest/v1.0/emoney/topup", topupOf("T", good, 10_000, user), "2003800"},
		{"/rest/v1.0/emoney/topup-status", object{"originalPartnerReferenceNo": "T", "serviceCode": "38"}, "2003900"},
		{"/v1.0/emoney/bank-account-inquiry.htm", c.bankOf("I", "014", accountNo, 10_000, merchant), "2004200"},
		{"/v1.0/emoney/transfer-bank.htm", c.bankOf("B", "014", accountNo, 10_000, user), "4004301"},
		{"/v1.0/emoney/transfer-bank.htm", c.bankOf("B", "014", accountNo, 10_000), "4004302"},
		{"/v1.0/emoney/transfer-bank.htm", c.bankOf("B", "014", accountNo, 10_000, merchant), "2004300"},
		{"/v1.0/emoney/transfer-bank-status.htm", object{"originalPartnerReferenceNo": "B", "serviceCode": "00"}, "2000000"},
		{"/v1.0/transaction-history-list.htm", object{}, "2001200"},
		{"/v1.0/balance-inquiry.htm", object{}, "2001100"},
		// These are not DANA's.
		{"/rest/v1.0/emoney/transfer-bank", c.bankOf("B", "014", accountNo, 10_000, merchant), "4050000"},
	} {
		if got := text(c.post(step.path, step.body), "responseCode"); got != step.want {
			t.Errorf("%d, %s: %s, want %s", i, step.path, got, step.want)
		}
	}
	if c.spent() != 22_500 {
		t.Errorf("spent %s", c.spent())
	}
}

// TestReferenceAgain: a reference names one transfer, however often and from
// wherever it is asked for.
func TestReferenceAgain(t *testing.T) {
	t.Parallel()
	w := open(t)
	c := w.main
	first := c.want("2003800", c.topup("R", good, 10_000))
	w.kill()
	c.want("4093801", c.topup("R", good, 10_000, object{"notes": "again"}))
	c.want("4043818", c.topup("R", good, 10_001))
	c.want("4043818", c.topup("R", "62811742235", 10_000))
	c.want("4044318", c.bank("R", accountNo, 10_000))
	c.want("2004300", c.bank("B", accountNo, 10_000))
	c.want("4044318", c.post("/v1.0/emoney/transfer-bank", c.bankOf("B", "008", accountNo, 10_000)))
	c.want("4094301", c.bank("B", accountNo, 10_000))

	pending := c.want("2023800", c.topup("P", "6287800001233", 10_000))
	again := c.want("2023800", c.topup("P", "6287800001233", 10_000))
	if text(pending, "referenceNo") == "" || text(pending, "referenceNo") != text(again, "referenceNo") {
		t.Errorf("%v, then %v", pending, again)
	}
	w.order(200, "outcome", object{"reference": "P", "status": "06"})
	c.want("4043800", c.topup("P", "6287800001233", 10_000))
	w.order(200, "refund", object{"reference": text(first, "referenceNo")})
	c.want("4093801", c.topup("R", good, 10_000))

	other := w.client(w.up.Connect("test", "other", "token", w.api.URL))
	other.want("2003800", other.topup("R", good, 20_000))
	other.want("4043901", other.status("38", "P"))
	foreign := object{"originalReferenceNo": text(first, "referenceNo"), "serviceCode": "38"}
	other.want("4043901", other.post("/v1.0/emoney/topup-status", foreign))
	if w.states("R") != "Refunded Success" || w.states("B") != "Success" || w.states("P") != "Failed" || c.spent() != 12_500 || other.spent() != 20_000 {
		t.Errorf("witness %v, spent %s and %s", w.env.Movements.All(), c.spent(), other.spent())
	}
	// Each service knows its own alone.
	c.want("4043901", c.status("38", "B"))
	c.want("4040001", c.status("00", "R"))
}

// TestEqualTransfersAtOnce: however they race, money moves once.
func TestEqualTransfersAtOnce(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.main.login()
	results := make(chan string, 40)
	var group sync.WaitGroup
	for i := range cap(results) {
		group.Go(func() {
			if i%2 == 0 {
				results <- text(w.main.topup("R", good, 10_000), "responseCode")
			} else {
				results <- text(w.main.bank("B", accountNo, 10_000), "responseCode")
			}
		})
	}
	group.Wait()
	close(results)
	count := map[string]int{}
	for r := range results {
		count[r]++
	}
	if count["2003800"] != 1 || count["4093801"] != 19 || count["2004300"] != 1 || count["4094301"] != 19 ||
		w.states("R") != "Success" || w.states("B") != "Success" || w.main.spent() != 22_500 {
		t.Errorf("%v, witness %v", count, w.env.Movements.All())
	}
}

// TestCareless is an issuer that does not help: a second send is a second
// movement, which the witness shows.
func TestCareless(t *testing.T) {
	t.Parallel()
	w := open(t, func(o *sandbox.Options) { o.Careless = true })
	c := w.main
	c.want("2003800", c.topup("R", good, 10_000))
	c.want("2003800", c.topup("R", good, 10_000))
	if w.states("R") != "Success Success" || c.spent() != 20_000 {
		t.Errorf("witness %q, spent %s", w.states("R"), c.spent())
	}
}

// TestFunds is exact at the last rupiah, and a refusal leaves the reference
// free.
func TestFunds(t *testing.T) {
	t.Parallel()
	w := open(t)
	c := w.main
	w.order(200, "balance", object{"amount": 12_499, "client_id": c.clientID})
	c.want("4034314", c.bank("B", accountNo, 10_000))
	ask := c.bankOf("I", "014", accountNo, 10_000, object{"additionalInfo": object{"beneficiaryBankCode": "014"}})
	c.want("4034214", c.post("/v1.0/emoney/bank-account-inquiry", ask))
	c.want("4033814", c.topup("T", good, 12_500))
	w.order(200, "incoming", object{"amount": 1})
	c.want("2004200", c.post("/v1.0/emoney/bank-account-inquiry", ask))
	c.want("2004300", c.bank("B", accountNo, 10_000))
	if c.balance() != 0 || w.states("T") != "" {
		t.Errorf("balance %s, witness %v", c.balance(), w.env.Movements.All())
	}
	c.want("4033814", c.topup("T", good, 1))
	w.order(404, "balance", object{"amount": 1, "client_id": "nobody"})
}

func TestBoundsAndFees(t *testing.T) {
	t.Parallel()
	w := open(t, func(o *sandbox.Options) { o.MinAmount, o.WalletFee = 10_000, 500 })
	c := w.main
	c.want("4043813", c.topup("T", good, 9_999))
	c.want("4043713", c.post(inquiryAt, topupOf("", good, 9_999)))
	c.want("4033802", c.topup("T", good, 20_000_001))
	c.want("2003800", c.topup("T", good, 20_000_000))
	c.want("4034302", c.bank("B", accountNo, 500_000_001))
	if c.spent() != 20_000_500 {
		t.Errorf("spent %s", c.spent())
	}
	w.order(200, "fees", object{"bank": 3_000, "wallet": 0})
	w.kill()
	c.want("2004300", c.bank("B", accountNo, 10_000))
	c.want("2003800", c.topup("T2", good, 10_000))
	if c.spent() != 20_000_500+13_000+10_000 {
		t.Errorf("spent %s", c.spent())
	}
}

// TestPublicInputs are DANA's.
func TestPublicInputs(t *testing.T) {
	t.Parallel()
	w := open(t)
	c := w.main
	for i, check := range []struct {
		at, to string
		amount money.Amount
		want   string // code, then the state that a status tells
	}{
		{"37", "62811742234", 10_000, "2003700"},
		{"37", "628123456667", 10_000, "4033705"},
		{"37", "628152768647", 10_000, "4033705 PAYEE_USER_NOT_EXIST"},
		{"37", "62811742234", 20_000_000, "2003700"},
		{"37", "62811742234", 20_000_001, "4033702"},
		{"38", "62811742234", 10_000, "2003800 00"},
		{"38", "628996647679", 10_000, "4033805"},
		{"38", "628551008794", 10_000, "5003801 00"},
		{"38", "628121111111", 10_000, "5003800"},
		{"38", "62811742234", 1_000_000_000_000, "4033814"},
		{"42", "2460888509", 10_000, "2004200"},
		{"42", "81298055132", 10_000, "4034218"},
		{"42", "815919191", 10_000, "4044211"},
		{"42", "855100800", 10_000, "4044208"},
		{"42", "2460888509", 50_000_000_000, "4034214"},
		{"43", "2460888509", 10_000, "2004300 00"},
		{"43", "82298055100", 10_000, "4034303"},
		{"43", "8121111111", 10_000, "5004300"},
		{"43", "8551008794", 10_000, "5004301 00"},
		{"43", "81398055100", 10_000, "4034318"},
		{"43", "2460888509", 50_000_000_000, "4034314"},
	} {
		ref := fmt.Sprint("M", i)
		var got string
		switch check.at {
		case "37":
			answer := c.post(inquiryAt, topupOf(ref, check.to, check.amount))
			info, _ := answer["additionalInfo"].(object)
			got = text(answer, "responseCode") + " " + text(info, "resultMsg")
		case "38":
			got = text(c.topup(ref, check.to, check.amount), "responseCode") + " " + strings.TrimPrefix(c.state("38", ref), "2003900 ")
		case "42":
			body := c.bankOf(ref, "014", check.to, check.amount, object{"additionalInfo": object{"beneficiaryBankCode": "014"}})
			got = text(c.post("/v1.0/emoney/bank-account-inquiry", body), "responseCode")
		case "43":
			got = text(c.bank(ref, check.to, check.amount), "responseCode") + " " + strings.TrimPrefix(c.state("00", ref), "2000000 ")
		}
		want := check.want
		if !strings.Contains(want, " ") { // nothing moved, so nothing is known
			got = strings.NewReplacer(" 4043901", "", " 4040001", "").Replace(got)
		}
		if moved := strings.HasSuffix(want, " 00"); strings.TrimSpace(got) != want || (w.states(ref) == "Success") != moved {
			t.Errorf("%s to %s of %s: %q, want %q; witness %q", check.at, check.to, check.amount, got, want, w.states(ref))
		}
	}
}

// TestTimeouts are answered later than callers wait.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	w := open(t)
	c := w.main
	c.login()
	for name, check := range map[string]struct {
		path string
		body object
		want string
	}{
		"inquiry":  {inquiryAt, topupOf("I", "628551005454", 10_000), "5043700"},
		"top-up":   {"/v1.0/emoney/topup", topupOf("T", "628551005454", 10_000), "5043800"},
		"transfer": {"/v1.0/emoney/transfer-bank", c.bankOf("B", "014", "9900001251", 10_000), "5044300"},
	} {
		request, answered := c.request(check.path, check.body), make(chan string)
		drain(w.waiting)
		go func() {
			_, answer, err := w.do(request)
			answered <- fmt.Sprint(text(answer, "responseCode"), err)
		}()
		<-w.waiting
		w.clock.Advance(9*time.Second - 1)
		select {
		case got := <-answered:
			t.Errorf("%s: answered too early: %s", name, got)
			continue
		default:
		}
		w.clock.Advance(1)
		if got := <-answered; got != check.want+"<nil>" {
			t.Errorf("%s: %s, want %s", name, got, check.want)
		}
	}
	if c.state("38", "T") != "2003900 00" || c.state("00", "B") != "2000000 00" || c.spent() != 22_500 {
		t.Errorf("spent %s, witness %v", c.spent(), w.env.Movements.All())
	}
}

func drain(told chan struct{}) {
	select {
	case <-told:
	default:
	}
}

// TestNotFoundAs07 is the other way to know nothing.
func TestNotFoundAs07(t *testing.T) {
	t.Parallel()
	w := open(t, func(o *sandbox.Options) { o.NotFoundAs07 = true })
	if got := w.main.state("38", "R"); got != "2003900 07" {
		t.Error(got)
	}
	if got := w.main.state("00", "R"); got != "2000000 07" {
		t.Error(got)
	}
}
