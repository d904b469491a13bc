package app_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/sdk/qris"
)

// checkStaticCodes connects wallets by codes that are no static QRIS codes. Each is
// refused naming what is wrong with it, and the wallet of before stays.
func checkStaticCodes(t *testing.T, p *program) {
	w := p.newStall(t)
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
		out, err := w.connect(t, w.credentials(c.code))
		if err == nil || !strings.Contains(out, "static_code") {
			t.Errorf("%s: %v\n%s", c.what, err, out)
		}
		for _, name := range c.names {
			if !strings.Contains(out, name) {
				t.Errorf("%s: it does not name %s:\n%s", c.what, name, out)
			}
		}
	}
	for _, c := range []struct {
		what, names string
		given       fields
	}{
		{"another merchant's number", "merchant_code", fields{"merchant_code": "ID1000000000000"}},
		{"a terminal's number", "merchant_code", fields{"merchant_code": w.national + "/K19"}},
		{"no directory", "reports", fields{"reports": fields{"directory": w.dir + "/none"}}},
		{"a directory beside the root", "reports", fields{"reports": fields{"directory": "reports"}}},
		{"reports without TLS", "reports", fields{"reports": fields{"url": "http://reports.example/all.csv"}}},
		{"no such zone", "time_zone", fields{"time_zone": "Asia/Nowhere"}},
		{"a field that is not there", "pin", fields{"pin": "1234"}},
	} {
		if out, err := w.connect(t, w.credentials(w.code).with(c.given)); err == nil || !strings.Contains(out, c.names) {
			t.Errorf("%s: %v\n%s", c.what, err, out)
		}
	}
	w.collect(t, nil)
	if out, err := w.connect(t, w.credentials(w.code)); err != nil {
		t.Errorf("the same again: %v\n%s", err, out)
	}
}

// saleCode is a whole dynamic code of the stall's.
func (w *stall) saleCode(t *testing.T) string {
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

// terminal is the stall's code with another terminal label, or with none.
func (w *stall) terminal(label string) string {
	code := strings.Replace(w.code[:len(w.code)-4], "62070703K19", label, 1)
	return code + qris.Checksum(code)
}

// checkCodeOwners connects another terminal of one merchant for another one, who
// can't sell with it: a row of the reports need not name a terminal, and would pay a
// sale of each.
func checkCodeOwners(t *testing.T, p *program) {
	owner, other := p.newStall(t), p.newStall(t)
	mine := other.collect(t, nil)
	other.national, other.dir = owner.national, owner.dir
	if out, err := other.connect(t, other.credentials(owner.terminal("62070703K20"))); err != nil { // nobody has sold with it
		t.Fatalf("%v\n%s", err, out)
	}
	sale := owner.collect(t, nil)
	for _, label := range []string{"62070703K19", "62070703K21", ""} {
		out, err := other.connect(t, other.credentials(owner.terminal(label)))
		if err == nil || !strings.Contains(out, "merchant_code") || !strings.Contains(out, "another merchant") {
			t.Errorf("terminal %q of another merchant: %v\n%s", label, err, out)
		}
	}
	reference := newReference()
	await(t, actsWithin, "another connection", func() bool {
		a := other.ask(t, "/wallet2/create", other.collection(fields{"external_id": reference}))
		return a.Code == fault.ProviderUnavailable
	})
	other.refuses(t, "another merchant's code", "/wallet2/create", other.collection(fields{"external_id": reference, "amount": 20_000}), notNow)
	owner.report(t, sale.paid(time.Now()), settled{id: "MINE", at: time.Now(), amount: mine.Amount})
	owner.collects(t, sale.ExternalID, "PAID")
	other.wantStanding(t, "another account's report", []collected{mine}, 0)

	// The owner may move to another terminal, with sales open by the code of this one.
	open := owner.collect(t, fields{"amount": 20_000})
	if out, err := owner.connect(t, owner.credentials(owner.terminal("62070703K20"))); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	await(t, actsWithin, "the new terminal", func() bool {
		sale = owner.collect(t, fields{"amount": 30_000})
		return strings.Contains(sale.QRString, "0703K20")
	})
	row := owner.lines(sale.paid(time.Now()))
	owner.drop(t, "k19.csv", reportHeader+owner.lines(open.paid(time.Now())))
	owner.drop(t, "k20.csv", reportHeader+strings.Replace(row, ",K19,", ",K20,", 1))
	owner.collects(t, sale.ExternalID, "PAID")
	owner.collects(t, open.ExternalID, "PAID")
}
