package collection_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/sdk/qris"
)

// checkStaticCodes connects wallets with codes that are not static QRIS codes.
// Each is refused with what is wrong, and the wallet from before stays.
func checkStaticCodes(t *testing.T, p *harness.Program) {
	w := newOutlet(t, p)
	summed := func(code string) string { return code + qris.Checksum(code) }
	open := strings.TrimSuffix(w.code, w.code[len(w.code)-4:]) // without its checksum
	altered := strings.Replace(w.code, "NamaKota1", "NamaKota2", 1)
	moved := strings.Replace(w.code[:len(w.code)-8], "5303360", "53033606304ABCD", 1)
	for _, c := range []struct {
		what, code string
		names      []string
	}{
		{"a bad checksum", altered, []string{"63"}},
		{"another currency", summed(strings.Replace(open, "5303360", "5303840", 1)), []string{"53", "360"}},
		{"another country", summed(strings.Replace(open, "5802ID", "5802MY", 1)), []string{"58"}},
		{"tag 63 in the middle", moved, []string{"63"}},
		{"cut off in a value", w.code[:50], []string{"26"}},
		{"cut off in the checksum", w.code[:len(w.code)-2], []string{"63"}},
		{"no checksum", w.code[:len(w.code)-8], []string{"63"}},
		{"a dynamic code", summed(strings.Replace(open, "010211", "010212", 1)), []string{"01", "dynamic"}},
		{"a code for one sale", w.saleCode(t), []string{"01", "dynamic"}},
		{"no merchant", summed("00020101021152041234530336058 02ID"), nil},
		{"words", "hello", nil},
	} {
		err := w.connect(t, w.credentials(c.code))
		if err == nil || !strings.Contains(err.Error(), "static_code") {
			t.Fatalf("%s: %v", c.what, err)
		}
		for _, name := range c.names {
			if !strings.Contains(err.Error(), name) {
				t.Errorf("%s: the error does not name %s: %v", c.what, name, err)
			}
		}
	}
	for _, c := range []struct {
		what, names string
		given       harness.Fields
	}{
		{"another merchant's number", "merchant_code", harness.Fields{"merchant_code": "ID1000000000000"}},
		{"a terminal's number", "merchant_code", harness.Fields{"merchant_code": w.national + "/K19"}},
		{"no directory", "reports", harness.Fields{"reports": harness.Fields{"directory": w.dir + "/none"}}},
		{"a directory beside the root", "reports", harness.Fields{"reports": harness.Fields{"directory": "reports"}}},
		{"reports without TLS", "reports", harness.Fields{"reports": harness.Fields{"url": "http://reports.example/all.csv"}}},
		{"no such zone", "time_zone", harness.Fields{"time_zone": "Asia/Nowhere"}},
		{"a field that is not there", "pin", harness.Fields{"pin": "1234"}},
	} {
		if err := w.connect(t, w.credentials(w.code).With(c.given)); err == nil || !strings.Contains(err.Error(), c.names) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	collect(t, w.Shop, nil)
	if err := w.connect(t, w.credentials(w.code)); err != nil {
		t.Errorf("the same again: %v", err)
	}
}

// saleCode is a whole dynamic code of the outlet's.
func (w *outlet) saleCode(t *testing.T) string {
	t.Helper()
	code, err := qris.Parse(w.code)
	if err != nil {
		t.Fatal(err)
	}
	made, err := code.Dynamic(10_057)
	if err != nil {
		t.Fatal(err)
	}
	return made.String()
}

// terminal is the outlet's code with another terminal label, or with none.
func (w *outlet) terminal(label string) string {
	code := strings.Replace(w.code[:len(w.code)-4], "62070703K19", label, 1)
	return code + qris.Checksum(code)
}

// checkCodeOwners connects one merchant's terminal for another merchant, who
// cannot sell with it: a line of a report need not name a terminal, so it could
// pay a sale of either.
func checkCodeOwners(t *testing.T, p *harness.Program) {
	owner, other := newOutlet(t, p), newOutlet(t, p)
	mine := collect(t, other.Shop, nil)
	other.national, other.dir = owner.national, owner.dir
	if err := other.connect(t, other.credentials(owner.terminal("62070703K20"))); err != nil { // nobody has sold with it
		t.Fatal(err)
	}
	sale := collect(t, owner.Shop, nil)
	for _, label := range []string{"62070703K19", "62070703K21", ""} {
		err := other.connect(t, other.credentials(owner.terminal(label)))
		if err == nil || !strings.Contains(err.Error(), "merchant_code") || !strings.Contains(err.Error(), "another merchant") {
			t.Errorf("terminal %q of another merchant: %v", label, err)
		}
	}
	reference := harness.NewReference()
	harness.Await(t, harness.ActsWithin, "another connection", func() bool {
		a := other.Ask(t, "/wallet2/create", collectionBody(other.Shop, harness.Fields{"external_id": reference}))
		return a.Code == fault.ProviderUnavailable
	})
	refuses(t, other.Shop, "another merchant's code", "/wallet2/create", collectionBody(other.Shop, harness.Fields{"external_id": reference, "amount": 20_000}), harness.ProviderUnavailable)
	owner.report(t, sale.paid(time.Now()), reportRow{id: "MINE", at: time.Now(), amount: mine.Amount})
	awaitCollection(t, owner.Shop, sale.ExternalID, "PAID")
	other.wantStanding(t, "another account's report", []collectionData{mine}, 0)

	// The owner may move to another terminal, with sales open by the code of this
	// one.
	open := collect(t, owner.Shop, harness.Fields{"amount": 20_000})
	if err := owner.connect(t, owner.credentials(owner.terminal("62070703K20"))); err != nil {
		t.Fatal(err)
	}
	harness.Await(t, harness.ActsWithin, "the new terminal", func() bool {
		sale = collect(t, owner.Shop, harness.Fields{"amount": 30_000})
		return strings.Contains(sale.QRString, "0703K20")
	})
	row := owner.lines(sale.paid(time.Now()))
	owner.drop(t, "k19.csv", reportHeader+owner.lines(open.paid(time.Now())))
	owner.drop(t, "k20.csv", reportHeader+strings.Replace(row, ",K19,", ",K20,", 1))
	awaitCollection(t, owner.Shop, sale.ExternalID, "PAID")
	awaitCollection(t, owner.Shop, open.ExternalID, "PAID")
}
