package app_test

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
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// heardWithin is when a transfer that the provider ends after its delay has
// ended here, too: it is looked at 10 s after its claim.
const heardWithin = 20 * time.Second

// TestTransfers uses every operation of wallet1 as merchants do. Each part has
// an account of its own at the provider, which the demo has one of in each mode
// of each merchant.
func TestTransfers(t *testing.T) {
	t.Parallel()
	edit := &limits{file: filepath.Join(t.TempDir(), "data.json")}
	edit.lift(t)
	p := start(t, settings{flags: []string{"--policy-dir", filepath.Dir(edit.file)}})
	checkTransferIsolation(t, p)
	for name, check := range map[string]func(*testing.T, *program){
		"endpoints": checkTransferEndpoints, "errors": checkTransferErrors, "callbacks": checkTransferCallbacks,
		"scopes": checkTransferScopes, "books": checkWalletBooks, "public test cases": checkPublicCases,
		"trail": checkTransferTrail,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, p)
		})
	}
}

// checkTransferEndpoints holds every answer against the contract byte for byte.
func checkTransferEndpoints(t *testing.T, p *program) {
	s := p.shop(large, "live")
	wantBanks(t, s.ask(t, "/transfer/banks", nil))
	for _, phone := range []string{"081234567890", "+62 812-3456-7890", "6281234567890", "0812.3456.7890", "81234567890"} {
		a := s.ask(t, "/wallet1/inquiry", fields{"phone": phone, "amount": 50_000})
		wantBody(t, a, `{"success":true,"data":{"fullName":"Pelanggan Contoh 7890","phone":"6281234567890"}}`)
	}
	a := s.ask(t, "/transfer/inquiry", fields{"bank_code": "014", "account_no": "2460-888-509", "amount": 50_000})
	wantBody(t, a, `{"success":true,"data":{"accountName":"Nasabah Contoh 8509","accountNo":"2460888509","bankCode":"014","bankName":"Bank Central Asia (BCA)"}}`)
	for _, r := range routes {
		m, reference := r.newRemit(), newReference()
		first := s.sends(t, m, reference, "Success")
		m.wantMoved(t, p, 1)
		for _, asked := range []fields{{"external_id": reference}, {"refId": first.id()}, {"txId": first.id()}, {"ref_id": first.id()}, {"tx_id": first.id()}} {
			told := s.ask(t, "/wallet1/transfer/status", asked)
			wantBody(t, told, fmt.Sprintf(`{"success":true,"data":%s}`, m.standing(first, reference, "")))
		}
		again := s.ask(t, m.path, m.body(reference))
		if m.wantAnswer(t, again, reference, "Success"); !again.replayed() || again.remitted().id() != first.id() {
			t.Errorf("the same again: %s", again)
		}
		keyed := s.ask(t, m.path, r.newRemit().body(""), "Idempotency-Key", newReference())
		if got := keyed.remitted(); got.ExternalID == nil || got.Status != "Success" {
			t.Errorf("with an Idempotency-Key: %s", keyed)
		}
		s.sends(t, r.newRemit(), "", "Success") // its external_id is null
		m.wantMoved(t, p, 1)
	}
	checkHolders(t, s)
	checkOtherForms(t, s)
}

// wantBanks wants the list of the facts, in its order.
func wantBanks(t *testing.T, a answer) {
	t.Helper()
	file, err := os.Open(filepath.Join(root, "plugins", "wallet1", "banks.csv"))
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

// checkHolders gives names that are the holder's, or not, or say nothing.
func checkHolders(t *testing.T, s shop) {
	t.Helper()
	m := toBank.to("7000004321") // Nasabah Contoh 4321
	for given, want := range map[string]*bool{
		"": nil, "  ": nil, "Bpk. nasabah contoh 4321": new(true), "NASABAH CONTOH": new(true), "Orang Lain": new(false),
	} {
		a := s.ask(t, m.path, m.of(firstRemit+nextRemit.Add(1)).body("").with(fields{"account_name": given}))
		got := a.remitted()
		if same := (got.NameMatch == nil) == (want == nil) && (want == nil || *got.NameMatch == *want); !a.Success || !same {
			t.Errorf("account_name %q: %s", given, a)
		}
	}
}

// checkOtherForms writes receivers in other ways; the money goes to the same.
func checkOtherForms(t *testing.T, s shop) {
	t.Helper()
	for _, phone := range []string{"+6281234567890", "0812 3456 7890"} {
		m := toWallet.to("081234567890")
		if a := s.ask(t, m.path, m.body(newReference()).with(fields{"phone": phone, "message": "terima kasih"})); !a.Success {
			t.Errorf("to %s: %s", phone, a)
		}
		m.wantMoved(t, s.program, 1)
	}
	m := toBank.to("2460888509")
	if a := s.ask(t, m.path, m.body(newReference()).with(fields{"account_no": "2460.888.509", "account_name": "", "message": nil})); !a.Success {
		t.Errorf("to 2460.888.509: %s", a)
	}
	m.wantMoved(t, s.program, 1)
}

// checkTransferErrors sends what is wrong, or what can't be done.
func checkTransferErrors(t *testing.T, p *program) {
	s, other := p.shop(large, "live"), p.shop(small, "live")
	for _, c := range []struct {
		what  string
		on    route
		given fields // nil leaves one out
		want  refusal
		names []string
	}{
		{"too short a number", toWallet, fields{"phone": "08123"}, wrongInput, []string{"phone"}},
		{"a fixed line", toWallet, fields{"phone": "0215551234"}, wrongInput, []string{"phone"}},
		{"another country", toWallet, fields{"phone": "+6591234567"}, wrongInput, []string{"phone"}},
		{"no number", toWallet, fields{"phone": ""}, wrongInput, []string{"phone"}},
		{"no bank", toBank, fields{"bank_code": nil}, wrongInput, []string{"bank_code"}},
		{"an unknown bank", toBank, fields{"bank_code": "998"}, wrongInput, []string{"bank_code"}},
		{"an account in letters", toBank, fields{"account_no": "12AB34567"}, wrongInput, []string{"account_no"}},
		{"nothing", toWallet, fields{"amount": 0}, wrongInput, []string{"amount"}},
		{"less than nothing", toBank, fields{"amount": -1}, wrongInput, []string{"amount"}},
		{"half a rupiah", toBank, fields{"amount": 1000.5}, wrongInput, []string{"amount"}},
		{"an amount in words", toWallet, fields{"amount": "10000"}, wrongInput, []string{"amount"}},
		{"beyond the provider's bound", toWallet, fields{"amount": 20_000_001}, wrongInput, []string{"amount"}},
		{"beyond the provider's bound", toBank, fields{"amount": 500_000_001}, wrongInput, []string{"amount"}},
		{"beyond what anybody takes", toBank, fields{"amount": 1_000_000_000_001}, wrongInput, []string{"amount"}},
		{"a field that is not there", toWallet, fields{"recipient": "x"}, wrongInput, []string{"recipient"}},
		{"too long a message", toBank, fields{"message": strings.Repeat("é", 501)}, wrongInput, []string{"message"}},
		{"another merchant's name", toWallet, fields{"merchant_id": other.merchant}, refusal{fault.AuthFailed, fault.SentNo, fault.RetryAfterChange}, nil},
	} {
		m, reference := c.on.newRemit(), newReference()
		a := s.ask(t, m.path, m.body(reference).with(c.given))
		c.want.want(t, c.what, a, reference, c.names...)
		m.wantMoved(t, p, 0)
		if told := s.ask(t, "/wallet1/transfer/status", fields{"external_id": reference}); told.Code != fault.NotFound {
			t.Errorf("%s: its status: %s", c.what, told)
		}
		// Nothing was sent, so the reference is free.
		if c.what == "an unknown bank" {
			s.sends(t, m, reference, "Success")
		}
	}
	checkTransferReferences(t, s)
	checkShortWallet(t, p.shop(small, "live"))
}

// checkTransferReferences uses references twice, or wrongly.
func checkTransferReferences(t *testing.T, s shop) {
	t.Helper()
	m, reference := toBank.newRemit(), newReference()
	s.sends(t, m, reference, "Success")
	usedBefore.want(t, "another amount", s.ask(t, m.path, m.of(m.amount+1_000_000).body(reference)), reference, "amount")
	usedBefore.want(t, "another receiver", s.ask(t, m.path, m.body(reference).with(fields{"account_no": "71234567", "account_name": "A"})), reference, "account_name", "account_no")
	other := toWallet.newRemit().of(m.amount)
	usedBefore.want(t, "to a wallet", s.ask(t, other.path, other.body(reference)), reference, "account_no", "bank_code", "path", "phone")
	wrongInput.want(t, "two references", s.ask(t, m.path, m.body(reference), "Idempotency-Key", "another"), reference, "Idempotency-Key", "external_id")
	wrongInput.want(t, "a status of nothing", s.ask(t, "/wallet1/transfer/status", nil), "", "external_id")
	for _, asked := range []fields{{"external_id": "none"}, {"refId": "none"}, {"txId": strings.Repeat("0", 32)}} {
		reference, _ := asked["external_id"].(string)
		unknownHere.want(t, fmt.Sprint(asked), s.ask(t, "/wallet1/transfer/status", asked), reference)
	}
	m.wantMoved(t, s.program, 1)
}

// checkTransferIsolation uses one reference in every mode of every merchant: each is a
// transfer of its own, and nobody reads another's.
func checkTransferIsolation(t *testing.T, p *program) {
	t.Helper()
	m, reference := toWallet.newRemit(), newReference()
	var shops []shop
	ids := map[string]bool{}
	for merchant := range p.Merchants {
		shops = append(shops, p.shop(merchant, "live"), p.shop(merchant, "test"))
	}
	for _, s := range shops {
		if a := s.ask(t, "/wallet1/transfer/status", fields{"external_id": reference}); a.Code != fault.NotFound {
			t.Errorf("%s in mode %s before: %s", s.merchant, s.mode(), a)
		}
		mine := s.sends(t, m, reference, "Success")
		ids[mine.id()] = true
		for _, other := range shops {
			a := other.ask(t, "/wallet1/transfer/status", fields{"refId": mine.id()})
			if a.Success != (other.key == s.key) {
				t.Errorf("%s of %s asks for that of %s of %s: %s", other.mode(), other.merchant, s.mode(), s.merchant, a)
			}
		}
	}
	if m.wantMoved(t, p, len(shops)); len(ids) != len(shops) {
		t.Errorf("%d transfers of %d", len(ids), len(shops))
	}
}

// checkShortWallet sends more than there is, and less once there is more.
func checkShortWallet(t *testing.T, s shop) {
	t.Helper()
	const much = 20_000_000
	p := s.program
	bank, wallet := toBank.newRemit().of(450_000_000), toWallet.newRemit().of(much)
	s.sends(t, bank, "", "Success")
	s.sends(t, bank.of(bank.amount+1), "", "Success")
	// 100 million less 5,001 for fees and the rupiah are left, and less for what went before.
	for range 3 {
		s.sends(t, wallet.of(much-nextRemit.Add(1)), "", "Success")
	}
	s.sends(t, toWallet.newRemit().of(19_000_000), "", "Success")
	reference := newReference()
	a := s.ask(t, wallet.path, wallet.of(19_999_999).body(reference))
	for a.Success { // what is left of it
		reference = newReference()
		a = s.ask(t, wallet.path, wallet.of(19_999_999).body(reference).with(fields{"message": reference}))
	}
	refusedElse.want(t, "a short wallet", a, reference)
	if !strings.Contains(strings.ToLower(a.Message), "balance") {
		t.Errorf("a short wallet: %s", a)
	}
	again := s.ask(t, wallet.path, wallet.of(19_999_999).body(reference).with(fields{"message": a.RequestID}))
	if again.Code != fault.DuplicateReference && again.Code != fault.ProviderRejected {
		t.Errorf("again: %s", again)
	}
	free := newReference()
	asked.want(t, "a short wallet, inquired", s.ask(t, bank.path, toBank.newRemit().of(450_000_000).body(free)), free)
	fits := toBank.newRemit()
	s.sends(t, fits, free, "Success") // the reference is free again
	fits.wantMoved(t, p, 1)
}

// checkTransferScopes uses keys that may not do everything.
func checkTransferScopes(t *testing.T, p *program) {
	s := p.shop(large, "test")
	keyed := func(scope string) shop {
		var made adminapi.CreatedKey
		p.succeed(t, "", &made, "key", "create", s.merchant, "--mode", "test", "--scope", scope)
		p.known.Lock()
		defer p.known.Unlock()
		p.guests = append(p.guests, merchant{MerchantID: s.merchant + " with scope " + scope, TestKey: made.SecretKey})
		s := s
		s.key = made.SecretKey
		return s
	}
	reader, sender := keyed("read"), keyed("transfer")
	m := toWallet.newRemit()
	for path, body := range map[string]fields{
		"/wallet1/inquiry": m.body(""), "/transfer/inquiry": toBank.newRemit().body(""),
		toWallet.path: m.body(newReference()), toBank.path: toBank.newRemit().body(newReference()),
	} {
		reference, _ := body["external_id"].(string)
		var a answer
		await(t, actsWithin, "the new keys", func() bool {
			a = reader.ask(t, path, body)
			return a.Code != fault.AuthFailed
		})
		notAllowed.want(t, "reading alone, "+path, a, reference)
		await(t, actsWithin, "the new keys", func() bool {
			a = sender.ask(t, path, body)
			return a.Code != fault.AuthFailed
		})
		if !a.Success {
			t.Errorf("sending alone, %s: %s", path, a)
		}
		if reference != "" {
			notAllowed.want(t, "its status, sending alone", sender.ask(t, "/wallet1/transfer/status", fields{"external_id": reference}), reference)
			if a := reader.ask(t, "/wallet1/transfer/status", fields{"external_id": reference}); !a.Success {
				t.Errorf("its status, reading alone: %s", a)
			}
		}
	}
	for _, path := range []string{"/transfer/banks", "/wallet1/transactions"} {
		if a := reader.ask(t, path, nil); !a.Success {
			t.Errorf("reading alone, %s: %s", path, a)
		}
		notAllowed.want(t, "sending alone, "+path, sender.ask(t, path, nil), "")
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
func (s shop) mutations(t *testing.T, limit int) []mutation {
	t.Helper()
	var all []mutation
	for page := 1; ; page++ {
		a := s.ask(t, "/wallet1/transactions", fields{"page": page, "limit": limit})
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

// checkWalletBooks holds the mutations of a merchant that does nothing else
// against what it has sent.
func checkWalletBooks(t *testing.T, p *program) {
	s := p.shop(small, "test")
	before := s.mutations(t, 100)
	var sent, fees, rows int64
	for range 6 {
		for _, r := range routes {
			m := r.newRemit()
			s.sends(t, m, "", "Success")
			sent, fees, rows = sent+m.amount, fees+m.fee, rows+1+min(m.fee, 1)
		}
	}
	failed, pending := toBank.story("34"), toWallet.story("48")
	s.sends(t, pending, "", "Pending")
	s.sends(t, failed, "", "Pending")
	rows += 3
	var all []mutation
	await(t, heardWithin, "the failed one's row", func() bool {
		all = s.mutations(t, 100)[:]
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
	if !slices.Equal(s.mutations(t, 7), all) {
		t.Error("pages of 7 are other rows than pages of 100")
	}
	if !slices.IsSortedFunc(all, func(a, b mutation) int { return strings.Compare(b.Date+b.Time, a.Date+a.Time) }) {
		t.Error("the rows are not the newest first")
	}
	for _, f := range []fields{{"page": 0}, {"limit": 0}, {"limit": 101}, {"page": "1"}} {
		if a := s.ask(t, "/wallet1/transactions", f); a.Code != fault.InvalidRequest {
			t.Errorf("%v: %s", f, a)
		}
	}
}
