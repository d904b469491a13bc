package transfer_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// heardWithin is how long a test waits at most until the gateway learns of a transfer that
// the provider ends late: it is looked up 10 s after its reservation.
const heardWithin = 2 * time.Minute

// newSender is a merchant of its own with an account at wallet1 in both modes.
func newSender(t testing.TB, p *harness.Program, mode string) harness.Shop {
	t.Helper()
	return harness.NewShop(t, p, mode, "wallet1")
}

// TestTransfers uses every operation of wallet1 as merchants do. Each part has a
// merchant of its own.
func TestTransfers(t *testing.T) {
	t.Parallel()
	p := harness.Shared(t)
	for name, check := range map[string]func(*testing.T, *harness.Program){
		"endpoints": checkTransferEndpoints, "errors": checkTransferErrors, "callbacks": checkTransferCallbacks,
		"scopes": checkTransferScopes, "mutations": checkMutations, "public test cases": checkPublicCases,
		"history": checkTransferHistory, "isolation": checkTransferIsolation,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, p)
		})
	}
}

// checkTransferEndpoints compares every answer with the contract byte for byte.
func checkTransferEndpoints(t *testing.T, p *harness.Program) {
	s := newSender(t, p, "live")
	wantBanks(t, s.Ask(t, "/transfer/banks", nil))
	for _, phone := range []string{"081234567890", "+62 812-3456-7890", "6281234567890", "0812.3456.7890", "81234567890"} {
		a := s.Ask(t, "/wallet1/inquiry", harness.Fields{"phone": phone, "amount": 50_000})
		harness.WantBody(t, a, `{"success":true,"data":{"fullName":"Pelanggan Contoh 7890","phone":"6281234567890"}}`)
	}
	a := s.Ask(t, "/transfer/inquiry", harness.Fields{"bank_code": "014", "account_no": "2460-888-509", "amount": 50_000})
	harness.WantBody(t, a, `{"success":true,"data":{"accountName":"Nasabah Contoh 8509","accountNo":"2460888509","bankCode":"014","bankName":"Bank Central Asia (BCA)"}}`)
	for _, r := range routes {
		m, reference := r.newTransfer(), harness.NewReference()
		first := sends(t, s, m, reference, "Success")
		m.wantMoved(t, p, 1)
		for _, asked := range []harness.Fields{{"external_id": reference}, {"refId": first.id()}, {"txId": first.id()}, {"ref_id": first.id()}, {"tx_id": first.id()}} {
			told := s.Ask(t, "/wallet1/transfer/status", asked)
			harness.WantBody(t, told, fmt.Sprintf(`{"success":true,"data":%s}`, m.standing(first, reference, "")))
		}
		again := s.Ask(t, m.path, m.body(reference))
		if m.wantAnswer(t, again, reference, "Success"); !again.Replayed() || transferOf(again).id() != first.id() {
			t.Errorf("the same again: %s", again)
		}
		keyed := s.Ask(t, m.path, r.newTransfer().body(""), "Idempotency-Key", harness.NewReference())
		if got := transferOf(keyed); got.ExternalID == nil || got.Status != "Success" {
			t.Errorf("with an Idempotency-Key: %s", keyed)
		}
		sends(t, s, r.newTransfer(), "", "Success") // its external_id is null
		m.wantMoved(t, p, 1)
	}
	checkHolders(t, s)
	checkOtherForms(t, s)
}

// wantBanks wants the list of the facts, in its order.
func wantBanks(t *testing.T, a harness.Answer) {
	t.Helper()
	file, err := os.Open(filepath.Join(harness.Root, "plugins", "wallet1", "banks.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, row := range rows[1:] {
		label, _ := json.Marshal(row[1])
		list = append(list, fmt.Sprintf(`{"value":%q,"label":%s}`, row[0], label))
	}
	want := `{"success":true,"data":[` + strings.Join(list, ",") + "]}"
	got := regexp.MustCompile(`\\u0026`).ReplaceAllString(strings.TrimSpace(string(a.Body)), "&")
	if want = strings.ReplaceAll(want, `\u0026`, "&"); got != want {
		t.Errorf("banks:\n%s, want\n%s", got, want)
	}
}

// checkHolders sends names that match the holder, differ, or say nothing.
func checkHolders(t *testing.T, s harness.Shop) {
	t.Helper()
	m := toBank.to("7000004321") // Nasabah Contoh 4321
	for given, want := range map[string]*bool{
		"": nil, "  ": nil, "Bpk. nasabah contoh 4321": new(true), "NASABAH CONTOH": new(true), "Orang Lain": new(false),
	} {
		a := s.Ask(t, m.path, m.of(firstTransfer+nextTransfer.Add(1)).body("").With(harness.Fields{"account_name": given}))
		got := transferOf(a)
		if same := (got.NameMatch == nil) == (want == nil) && (want == nil || *got.NameMatch == *want); !a.Success || !same {
			t.Errorf("account_name %q: %s", given, a)
		}
	}
}

// checkOtherForms writes receivers in other forms; the money goes to the same
// place.
func checkOtherForms(t *testing.T, s harness.Shop) {
	t.Helper()
	for _, phone := range []string{"+6281234567890", "0812 3456 7890"} {
		m := toWallet.to("081234567890")
		if a := s.Ask(t, m.path, m.body(harness.NewReference()).With(harness.Fields{"phone": phone, "message": "terima kasih"})); !a.Success {
			t.Errorf("to %s: %s", phone, a)
		}
		m.wantMoved(t, s.Program, 1)
	}
	m := toBank.to("2460888509")
	if a := s.Ask(t, m.path, m.body(harness.NewReference()).With(harness.Fields{"account_no": "2460.888.509", "account_name": "", "message": nil})); !a.Success {
		t.Errorf("to 2460.888.509: %s", a)
	}
	m.wantMoved(t, s.Program, 1)
}

// checkTransferErrors sends requests that are invalid or cannot be done.
func checkTransferErrors(t *testing.T, p *harness.Program) {
	s, other := newSender(t, p, "live"), newSender(t, p, "live")
	for _, c := range []struct {
		what  string
		on    route
		given harness.Fields // nil leaves one out
		want  harness.Refusal
		names []string
	}{
		{"too short a number", toWallet, harness.Fields{"phone": "08123"}, harness.InvalidInput, []string{"phone"}},
		{"a fixed line", toWallet, harness.Fields{"phone": "0215551234"}, harness.InvalidInput, []string{"phone"}},
		{"another country", toWallet, harness.Fields{"phone": "+6591234567"}, harness.InvalidInput, []string{"phone"}},
		{"no number", toWallet, harness.Fields{"phone": ""}, harness.InvalidInput, []string{"phone"}},
		{"no bank", toBank, harness.Fields{"bank_code": nil}, harness.InvalidInput, []string{"bank_code"}},
		{"an unknown bank", toBank, harness.Fields{"bank_code": "998"}, harness.InvalidInput, []string{"bank_code"}},
		{"an account in letters", toBank, harness.Fields{"account_no": "12AB34567"}, harness.InvalidInput, []string{"account_no"}},
		{"nothing", toWallet, harness.Fields{"amount": 0}, harness.InvalidInput, []string{"amount"}},
		{"less than nothing", toBank, harness.Fields{"amount": -1}, harness.InvalidInput, []string{"amount"}},
		{"half a rupiah", toBank, harness.Fields{"amount": 1000.5}, harness.InvalidInput, []string{"amount"}},
		{"an amount in words", toWallet, harness.Fields{"amount": "10000"}, harness.InvalidInput, []string{"amount"}},
		{"beyond the provider's bound", toWallet, harness.Fields{"amount": 20_000_001}, harness.InvalidInput, []string{"amount"}},
		{"beyond the provider's bound", toBank, harness.Fields{"amount": 500_000_001}, harness.InvalidInput, []string{"amount"}},
		{"beyond what anybody takes", toBank, harness.Fields{"amount": 1_000_000_000_001}, harness.InvalidInput, []string{"amount"}},
		{"a field that is not there", toWallet, harness.Fields{"recipient": "x"}, harness.InvalidInput, []string{"recipient"}},
		{"too long a message", toBank, harness.Fields{"message": strings.Repeat("é", 501)}, harness.InvalidInput, []string{"message"}},
		{"another merchant's name", toWallet, harness.Fields{"merchant_id": other.MerchantID}, harness.Refusal{Code: fault.AuthFailed, Sent: fault.SentNo, Retry: fault.RetryAfterChange}, nil},
	} {
		m, reference := c.on.newTransfer(), harness.NewReference()
		a := s.Ask(t, m.path, m.body(reference).With(c.given))
		c.want.Want(t, c.what, a, reference, c.names...)
		m.wantMoved(t, p, 0)
		if told := s.Ask(t, "/wallet1/transfer/status", harness.Fields{"external_id": reference}); told.Code != fault.NotFound {
			t.Errorf("%s: its status: %s", c.what, told)
		}
		// Nothing was sent, so the reference is free.
		if c.what == "an unknown bank" {
			sends(t, s, m, reference, "Success")
		}
	}
	checkTransferReferences(t, s)
	checkShortWallet(t, other)
}

// checkTransferReferences uses references twice, or wrongly.
func checkTransferReferences(t *testing.T, s harness.Shop) {
	t.Helper()
	m, reference := toBank.newTransfer(), harness.NewReference()
	sends(t, s, m, reference, "Success")
	harness.DuplicateReference.Want(t, "another amount", s.Ask(t, m.path, m.of(m.amount+1_000_000).body(reference)), reference, "amount")
	harness.DuplicateReference.Want(t, "another receiver", s.Ask(t, m.path, m.body(reference).With(harness.Fields{"account_no": "71234567", "account_name": "A"})), reference, "account_name", "account_no")
	other := toWallet.newTransfer().of(m.amount)
	harness.DuplicateReference.Want(t, "to a wallet", s.Ask(t, other.path, other.body(reference)), reference, "account_no", "bank_code", "path", "phone")
	harness.InvalidInput.Want(t, "two references", s.Ask(t, m.path, m.body(reference), "Idempotency-Key", "another"), reference, "Idempotency-Key", "external_id")
	harness.InvalidInput.Want(t, "a status of nothing", s.Ask(t, "/wallet1/transfer/status", nil), "", "external_id")
	for _, asked := range []harness.Fields{{"external_id": "none"}, {"refId": "none"}, {"txId": strings.Repeat("0", 32)}} {
		reference, _ := asked["external_id"].(string)
		harness.NotFound.Want(t, fmt.Sprint(asked), s.Ask(t, "/wallet1/transfer/status", asked), reference)
	}
	m.wantMoved(t, s.Program, 1)
}

// checkTransferIsolation uses one reference in every mode of every merchant: each
// is a transfer of its own, and nobody reads another's.
func checkTransferIsolation(t *testing.T, p *harness.Program) {
	t.Helper()
	m, reference := toWallet.newTransfer(), harness.NewReference()
	var shops []harness.Shop
	ids := map[string]bool{}
	for range 2 {
		made := harness.NewMerchant(t, p, "wallet1")
		shops = append(shops, p.Of(made, "live"), p.Of(made, "test"))
	}
	for _, s := range shops {
		if a := s.Ask(t, "/wallet1/transfer/status", harness.Fields{"external_id": reference}); a.Code != fault.NotFound {
			t.Errorf("%s in mode %s before: %s", s.MerchantID, s.Mode(), a)
		}
		mine := sends(t, s, m, reference, "Success")
		ids[mine.id()] = true
		for _, other := range shops {
			a := other.Ask(t, "/wallet1/transfer/status", harness.Fields{"refId": mine.id()})
			if a.Success != (other.Key == s.Key) {
				t.Errorf("%s of %s asks for that of %s of %s: %s", other.Mode(), other.MerchantID, s.Mode(), s.MerchantID, a)
			}
		}
	}
	if m.wantMoved(t, p, len(shops)); len(ids) != len(shops) {
		t.Errorf("%d transfers of %d", len(ids), len(shops))
	}
}

// checkShortWallet sends more than the balance, and less after it was raised.
func checkShortWallet(t *testing.T, s harness.Shop) {
	t.Helper()
	const much = 20_000_000
	p := s.Program
	bank, wallet := toBank.newTransfer().of(450_000_000), toWallet.newTransfer().of(much)
	sends(t, s, bank, "", "Success")
	sends(t, s, bank.of(bank.amount+1), "", "Success")
	// 100 million less 5,001 for fees and the rupiah are left, and less for what
	// went before.
	for range 3 {
		sends(t, s, wallet.of(much-nextTransfer.Add(1)), "", "Success")
	}
	sends(t, s, toWallet.newTransfer().of(19_000_000), "", "Success")
	reference := harness.NewReference()
	a := s.Ask(t, wallet.path, wallet.of(19_999_999).body(reference))
	for a.Success { // what is left of it
		reference = harness.NewReference()
		a = s.Ask(t, wallet.path, wallet.of(19_999_999).body(reference).With(harness.Fields{"message": reference}))
	}
	harness.ProviderRejected.Want(t, "a short wallet", a, reference)
	if !strings.Contains(strings.ToLower(a.Message), "balance") {
		t.Errorf("a short wallet: %s", a)
	}
	again := s.Ask(t, wallet.path, wallet.of(19_999_999).body(reference).With(harness.Fields{"message": a.RequestID}))
	if again.Code != fault.DuplicateReference && again.Code != fault.ProviderRejected {
		t.Errorf("again: %s", again)
	}
	free := harness.NewReference()
	harness.InquiryRejected.Want(t, "a short wallet, inquired", s.Ask(t, bank.path, toBank.newTransfer().of(450_000_000).body(free)), free)
	fits := toBank.newTransfer()
	sends(t, s, fits, free, "Success") // the reference is free again
	fits.wantMoved(t, p, 1)
}

// checkTransferScopes uses keys with too few scopes.
func checkTransferScopes(t *testing.T, p *harness.Program) {
	s := newSender(t, p, "test")
	keyed := func(scope string) harness.Shop {
		made, err := adminapi.CreateKey.Call(t.Context(), p.Admin(), adminapi.NewKey{Merchant: s.MerchantID, Mode: "test", Scopes: []string{scope}})
		if err != nil {
			t.Fatal(err)
		}
		p.KeepSecret(harness.Merchant{MerchantID: s.MerchantID + " with scope " + scope, TestKey: made.SecretKey})
		s := s
		s.Key = made.SecretKey
		return s
	}
	reader, sender := keyed("read"), keyed("transfer")
	m := toWallet.newTransfer()
	for path, body := range map[string]harness.Fields{
		"/wallet1/inquiry": m.body(""), "/transfer/inquiry": toBank.newTransfer().body(""),
		toWallet.path: m.body(harness.NewReference()), toBank.path: toBank.newTransfer().body(harness.NewReference()),
	} {
		reference, _ := body["external_id"].(string)
		var a harness.Answer
		harness.Await(t, harness.ActsWithin, "the new keys", func() bool {
			a = reader.Ask(t, path, body)
			return a.Code != fault.AuthFailed
		})
		harness.ScopeMissing.Want(t, "reading alone, "+path, a, reference)
		harness.Await(t, harness.ActsWithin, "the new keys", func() bool {
			a = sender.Ask(t, path, body)
			return a.Code != fault.AuthFailed
		})
		if !a.Success {
			t.Errorf("sending alone, %s: %s", path, a)
		}
		if reference != "" {
			harness.ScopeMissing.Want(t, "its status, sending alone", sender.Ask(t, "/wallet1/transfer/status", harness.Fields{"external_id": reference}), reference)
			if a := reader.Ask(t, "/wallet1/transfer/status", harness.Fields{"external_id": reference}); !a.Success {
				t.Errorf("its status, reading alone: %s", a)
			}
		}
	}
	for _, path := range []string{"/transfer/banks", "/wallet1/transactions"} {
		if a := reader.Ask(t, path, nil); !a.Success {
			t.Errorf("reading alone, %s: %s", path, a)
		}
		harness.ScopeMissing.Want(t, "sending alone, "+path, sender.Ask(t, path, nil), "")
	}
}

// mutation is a row of /wallet1/transactions.
type mutation struct {
	Name   string `json:"merchant_name"`
	Amount string `json:"transaction_amount"`
	Type   string `json:"transaction_type"`
	Date   string `json:"transaction_date"`
	Time   string `json:"transaction_time"`
	Status string `json:"status"`
}

var mutationForm = regexp.MustCompile(`^\{"merchant_name":"[^"]+","transaction_amount":"\d+\.\d\d","transaction_type":"[A-Z_]+",` +
	`"transaction_date":"\d{4}-\d\d-\d\d","transaction_time":"\d\d:\d\d:\d\d","status":"[A-Z]+"\}$`)

// mutations reads all pages of a merchant's mutations, the newest first.
func mutations(t *testing.T, s harness.Shop, limit int) []mutation {
	t.Helper()
	var all []mutation
	for page := 1; ; page++ {
		a := s.Ask(t, "/wallet1/transactions", harness.Fields{"page": page, "limit": limit})
		var raw []json.RawMessage
		if err := json.Unmarshal(a.Data, &raw); err != nil || !a.Success || len(raw) > limit {
			t.Fatalf("page %d: %v %s", page, err, a)
		}
		for _, one := range raw {
			var m mutation
			if err := json.Unmarshal(one, &m); err != nil || !mutationForm.Match(one) {
				t.Fatalf("%v: %s", err, one)
			}
			all = append(all, m)
		}
		if len(raw) < limit {
			return all
		}
	}
}

// checkMutations compares the mutations of a merchant that does nothing else with
// what it has sent.
func checkMutations(t *testing.T, p *harness.Program) {
	s := newSender(t, p, "test")
	before := mutations(t, s, 100)
	var sent, fees, rows int64
	for range 6 {
		for _, r := range routes {
			m := r.newTransfer()
			sends(t, s, m, "", "Success")
			sent, fees, rows = sent+m.amount, fees+m.fee, rows+1+min(m.fee, 1)
		}
	}
	failed, pending := toBank.withPlan("34"), toWallet.withPlan("48")
	sends(t, s, pending, "", "Pending")
	sends(t, s, failed, "", "Pending")
	rows += 3
	var all []mutation
	harness.Await(t, heardWithin, "the failed one's row", func() bool {
		all = mutations(t, s, 100)[:]
		return slices.ContainsFunc(all, func(m mutation) bool { return m.Status == "CANCELLED" && m.Type == "DISBURSMENT" })
	})
	news := all[:len(all)-len(before)]
	sums := map[string]int64{}
	for _, m := range news {
		amount, err := strconv.ParseInt(strings.TrimSuffix(m.Amount, ".00"), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sums[m.Type+" "+m.Status] += amount
	}
	delete(sums, "SEND_MONEY INIT")
	got := sums["SEND_MONEY SUCCESS"] + sums["DISBURSMENT SUCCESS"]
	if got != sent || sums["PAYMENT SUCCESS"] != fees || sums["DISBURSMENT CANCELLED"] != failed.amount || int64(len(news)) != rows {
		t.Errorf("sent %d with fees of %d, and the mutations say %v in %d rows, want %d", sent, fees, sums, len(news), rows)
	}
	if !slices.Equal(mutations(t, s, 7), all) {
		t.Error("pages of 7 are other rows than pages of 100")
	}
	if !slices.IsSortedFunc(all, func(a, b mutation) int { return strings.Compare(b.Date+b.Time, a.Date+a.Time) }) {
		t.Error("the rows are not the newest first")
	}
	for _, f := range []harness.Fields{{"page": 0}, {"limit": 0}, {"limit": 101}, {"page": "1"}} {
		if a := s.Ask(t, "/wallet1/transactions", f); a.Code != fault.InvalidRequest {
			t.Errorf("%v: %s", f, a)
		}
	}
}
