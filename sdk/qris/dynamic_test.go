package qris_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/sdk/qris"
)

func mustParse(t testing.TB, text string) qris.Code {
	t.Helper()
	code, err := qris.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return code
}

func TestDynamicVectors(t *testing.T) {
	t.Parallel()
	const spin = "00020101021126630014ID.SPINPAY.WWW011893600816343100062402121314310006240303UMI51440014ID.CO.QRIS.WWW0215ID10200384314890303UMI5204839853033605802ID5904SPIN6013Jakarta Pusat61051034062140103***0703A0163045CDD"
	for _, c := range []struct {
		base   string
		amount money.Amount
		crc    string
	}{
		{demo, 100, "5B9B"}, {demo, 10057, "D24A"}, {demo, 10007, "0361"}, {spin, 1500123, "7231"},
	} {
		code, err := mustParse(t, c.base).Dynamic(c.amount)
		if err != nil || !strings.HasSuffix(code.String(), "6304"+c.crc) {
			t.Errorf("%d: %s, %v; want checksum %s", c.amount, code, err, c.crc)
		}
		if amount, ok := code.Amount(); !ok || amount != c.amount {
			t.Errorf("amount %d, want %d", amount, c.amount)
		}
	}
	// The whole text of the derived samples, byte for byte.
	eachSample(t, func(kind, text string) {
		if !strings.HasPrefix(kind, "derived_") {
			return
		}
		amount, _ := mustParse(t, text).Amount()
		if code, err := mustParse(t, demo).Dynamic(amount); err != nil || code.String() != text {
			t.Errorf("%s: %s, %v", kind, code, err)
		}
	})
}

// TestDynamicIsNoTextReplacement holds what public converters get wrong.
func TestDynamicIsNoTextReplacement(t *testing.T) {
	t.Parallel()
	tricky := edit(t, "5914NamaMerchantC1", "5918A0102115802ID5303X")
	code, err := mustParse(t, tricky).Dynamic(5000)
	if err != nil || value(code, "59") != "A0102115802ID5303X" || code.Point() != qris.Dynamic {
		t.Errorf("%s, %v", code, err)
	}
	withTip := edit(t, "5802ID", "5502025603500"+"5802ID")
	code, err = mustParse(t, withTip).Dynamic(5000)
	if err != nil || code.Tip() != (qris.Tip{}) {
		t.Errorf("the tip stayed: %+v, %v", code.Tip(), err)
	}
}

func TestDynamicRefuses(t *testing.T) {
	t.Parallel()
	code := mustParse(t, demo)
	for _, amount := range []money.Amount{0, -1, money.Max + 1, money.Max * 100} {
		var wrong *qris.Error
		if _, err := code.Dynamic(amount); !errors.As(err, &wrong) || wrong.Tag != "54" {
			t.Errorf("%d: %v", amount, err)
		}
	}
	dynamic, err := code.Dynamic(money.Max)
	if err != nil {
		t.Fatal(err)
	}
	var wrong *qris.Error
	if _, err := dynamic.Dynamic(100); !errors.As(err, &wrong) || wrong.Tag != "01" {
		t.Errorf("twice: %v", err)
	}
	if _, err := (qris.Code{}).Dynamic(100); err == nil {
		t.Error("the zero code became dynamic")
	}
}

func TestWithReference(t *testing.T) {
	t.Parallel()
	code := mustParse(t, demo)
	labelled, err := code.WithReference("INV-1")
	if err != nil || labelled.Reference() != "INV-1" {
		t.Fatalf("%s, %v", labelled, err)
	}
	if got, _ := labelled.Value("62"); got != "0703K190505INV-1" {
		t.Errorf("62 is %s", got)
	}
	again, err := labelled.WithReference("é")
	if got, _ := again.Value("62"); err != nil || got != "0703K190501é" {
		t.Errorf("62 is %s, %v", got, err)
	}
	if code.Reference() != "" || code.String() != demo {
		t.Error("the code itself changed")
	}
	bare, err := mustParse(t, edit(t, "62070703K19", "")).WithReference("X")
	if got, _ := bare.Value("62"); err != nil || got != "0501X" {
		t.Errorf("62 is %s, %v", got, err)
	}
	for name, bad := range map[string]func() (qris.Code, error){
		"empty":    func() (qris.Code, error) { return code.WithReference("") },
		"long":     func() (qris.Code, error) { return code.WithReference(strings.Repeat("x", 26)) },
		"crowded":  func() (qris.Code, error) { return crowded(t).WithReference(strings.Repeat("x", 25)) },
		"not UTF8": func() (qris.Code, error) { return code.WithReference("\xff") },
	} {
		if got, err := bad(); err == nil {
			t.Errorf("%s was accepted: %s", name, got)
		}
	}
}

// crowded is a code whose additional data has no room left.
func crowded(t *testing.T) qris.Code {
	t.Helper()
	return mustParse(t, edit(t, "62070703K19", "62990895"+strings.Repeat("p", 95)))
}

// TestDynamicKeepsEverythingElse reads any amount and name back.
func TestDynamicKeepsEverythingElse(t *testing.T) {
	t.Parallel()
	base := mustParse(t, demo)
	rapid.Check(t, func(rt *rapid.T) {
		amount := money.Amount(rapid.Int64Range(1, int64(money.Max)).Draw(rt, "amount"))
		label := rapid.StringOfN(rapid.RuneFrom([]rune("aZ09 -é运")), 1, 25, -1).Draw(rt, "label")
		code, err := base.Dynamic(amount)
		if err != nil {
			rt.Fatal(err)
		}
		if code, err = code.WithReference(label); err != nil {
			rt.Fatal(err)
		}
		read, err := qris.Parse(code.String())
		if err != nil {
			rt.Fatal(err)
		}
		got, _ := read.Amount()
		if got != amount || read.Reference() != label || value(read, "59") != value(base, "59") {
			rt.Fatalf("%s", read)
		}
		for _, tag := range []string{"26", "51", "52", "53", "58", "59", "60", "61", "62-07"} {
			before, _ := base.Value(tag)
			if after, _ := read.Value(tag); after != before {
				rt.Fatalf("tag %s: %q became %q", tag, before, after)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	eachSample(f, func(_, text string) { f.Add(text) })
	f.Fuzz(func(t *testing.T, text string) {
		code, err := qris.Parse(text)
		var wrong *qris.Error
		if err != nil {
			if !errors.As(err, &wrong) || wrong.Reason == "" {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		if code.String() != text {
			t.Fatalf("%q came back as %q", text, code)
		}
		if code.Point() == qris.Static {
			dynamic, err := code.Dynamic(12345)
			if amount, _ := dynamic.Amount(); err == nil && amount != 12345 {
				t.Fatalf("%q became %q", text, dynamic)
			}
		}
	})
}
