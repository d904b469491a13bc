package qris_test

import (
	_ "embed"
	"errors"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/sdk/qris"
)

//go:embed testdata/samples.txt
var samples string

// demo is the one sample that names no real merchant.
const demo = "00020101021126670018ID.CO.EXAMPLE2.WWW01159360001404567890215MIDCONTOH1234560303UMI51370014ID.CO.QRIS.WWW0215ID10191234567815204123453033605802ID5914NamaMerchantC16009NamaKota16110123456789062070703K196304B22E"

func eachSample(t testing.TB, visit func(kind, text string)) {
	t.Helper()
	seen := 0
	for line := range strings.Lines(samples) {
		kind, text, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !ok {
			t.Fatalf("no tab in %q", line)
		}
		visit(kind, text)
		seen++
	}
	if seen != 21 {
		t.Fatalf("%d samples", seen)
	}
}

// seal gives a text a correct checksum.
func seal(text string) string { return text + "6304" + qris.Checksum(text+"6304") }

// edit replaces a part of the demo code and seals it again.
func edit(t *testing.T, old, replacement string) string {
	t.Helper()
	body := strings.TrimSuffix(demo, "6304B22E")
	if strings.Count(body, old) != 1 {
		t.Fatalf("%q is not once in the demo code", old)
	}
	return seal(strings.Replace(body, old, replacement, 1))
}

func TestSamples(t *testing.T) {
	t.Parallel()
	// What must be refused, and the tag that the error must name.
	refused := map[string]string{
		"invalid_crc": "63", "invalid_truncated_value": "26", "invalid_crc_not_last": "63",
		"invalid_first_tag": "00", "invalid_poi_13": "01", "invalid_amount_zero": "54", "emvco_non_id": "53",
	}
	eachSample(t, func(kind, text string) {
		code, err := qris.Parse(text)
		tag, bad := refused[kind]
		var wrong *qris.Error
		switch {
		case bad && !errors.As(err, &wrong):
			t.Errorf("%s was accepted", kind)
		case bad && wrong.Tag != tag:
			t.Errorf("%s: %v, want tag %s", kind, err, tag)
		case !bad && err != nil:
			t.Errorf("%s: %v", kind, err)
		case !bad && code.String() != text:
			t.Errorf("%s: came back as %s", kind, code)
		}
		if wantStatic := strings.HasPrefix(kind, "static"); !bad && (code.Point() == qris.Static) != wantStatic {
			t.Errorf("%s: point %s", kind, code.Point())
		}
	})
}

func TestAmountsAndTips(t *testing.T) {
	t.Parallel()
	type amounts struct {
		amount money.Amount
		tip    qris.Tip
	}
	want := []amounts{
		{1135, qris.Tip{}},
		{500000, qris.Tip{}},
		{1000, qris.Tip{Kind: qris.TipFixed, Fixed: 500}},
		{500000, qris.Tip{Kind: qris.TipPercent, BasisPoints: 70}},
		{39000, qris.Tip{}},
		{10057, qris.Tip{}},
		{100, qris.Tip{}},
		{10007, qris.Tip{}},
	}
	var got []amounts
	eachSample(t, func(kind, text string) {
		if code, err := qris.Parse(text); err == nil && strings.Contains(kind, "dynamic") {
			amount, _ := code.Amount()
			got = append(got, amounts{amount, code.Tip()})
		}
	})
	if len(got) != len(want) {
		t.Fatalf("%d dynamic samples, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("sample %d: %+v, want %+v", i, got[i], want[i])
		}
	}
}

func value(c qris.Code, tag string) string {
	text, _ := c.Value(tag)
	return text
}

func TestFields(t *testing.T) {
	t.Parallel()
	code, err := qris.Parse(demo)
	if err != nil {
		t.Fatal(err)
	}
	for name, pair := range map[string][2]string{
		"name":        {value(code, "59"), "NamaMerchantC1"},
		"city":        {value(code, "60"), "NamaKota1"},
		"postal code": {value(code, "61"), "1234567890"},
		"category":    {value(code, "52"), "1234"},
		"national id": {code.NationalID(), "ID1019123456781"},
		"reference":   {code.Reference(), ""},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %q, want %q", name, pair[0], pair[1])
		}
	}
	if _, has := code.Amount(); has {
		t.Error("a static code has an amount")
	}
	if value, ok := code.Value("26-03"); !ok || value != "UMI" {
		t.Errorf("26-03: %q, %t", value, ok)
	}
	if _, ok := code.Value("88"); ok {
		t.Error("there is no tag 88")
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, tag, text string }{
		{"empty", "00", ""},
		{"no digits", "", "hello"},
		{"not UTF-8", "", "0002\xff\xfe"},
		{"too long", "", strings.Repeat("0", 513)},
		{"checksum only", "00", seal("")},
		{"length overrun", "59", strings.Replace(demo, "5914Nama", "5999Nama", 1)},
		{"duplicate", "59", edit(t, "5802ID", "5802ID5901X")},
		{"version", "00", edit(t, "000201", "000202")},
		{"no point", "01", edit(t, "010211", "")},
		{"currency", "53", edit(t, "5303360", "5303840")},
		{"no currency", "53", edit(t, "5303360", "")},
		{"country", "58", edit(t, "5802ID", "5802MY")},
		{"category", "52", edit(t, "52041234", "5204123A")},
		{"long name", "59", edit(t, "5914NamaMerchantC1", "5926ABCDEFGHIJKLMNOPQRSTUVWXYZ")},
		{"long city", "60", edit(t, "6009NamaKota1", "6016ABCDEFGHIJKLMNOP")},
		{"no postal code", "61", edit(t, "61101234567890", "")},
		{"empty name", "59", edit(t, "5914NamaMerchantC1", "5900")},
		{"broken template", "62-07", edit(t, "62070703K19", "62070709K19")},
		{"half a template", "62", edit(t, "62070703K19", "62030703"[:7])},
		{"account without domain", "26-00", edit(t, "26670018ID.CO.EXAMPLE2.WWW0115936000140456789", "26450115936000140456789")},
		{"duplicate inside", "62-07", edit(t, "62070703K19", "62140703K190703K20")},
		{"static with amount", "54", edit(t, "5802ID", "5405100005802ID")},
		{"unknown tip", "55", edit(t, "5802ID", "5502045802ID")},
		{"tip without value", "56", edit(t, "5802ID", "5502025802ID")},
		{"percent without kind", "57", edit(t, "5802ID", "57030.55802ID")},
		{"both tips", "57", edit(t, "5802ID", "55020256035005703"+"1.05802ID")},
		{"percent of nothing", "57", edit(t, "5802ID", "55020357040.005802ID")},
		{"percent of all", "57", edit(t, "5802ID", "55020357031005802ID")},
		{"checksum of three", "63", demo[:len(demo)-8] + "6303B22"},
		{"checksum missing", "63", demo[:len(demo)-8]},
	} {
		_, err := qris.Parse(c.text)
		var wrong *qris.Error
		if !errors.As(err, &wrong) || wrong.Tag != c.tag {
			t.Errorf("%s: %v, want tag %q", c.name, err, c.tag)
		}
	}
}

func TestAmountForms(t *testing.T) {
	t.Parallel()
	base := strings.Replace(strings.TrimSuffix(demo, "6304B22E"), "010211", "010212", 1)
	for text, want := range map[string]money.Amount{
		"1": 1, "10000": 10000, "10000.0": 10000, "10000.00": 10000, "007": 7, "1000000000000": money.Max,
		"0": 0, "0.00": 0, "10.50": 0, "1.": 0, ".5": 0, "1,5": 0, "-1": 0, "1e3": 0, "1.000": 0,
		"9999999999999": 0, "12345678901234": 0, "1.0.0": 0,
	} {
		field := string(rune('0'+len(text)/10)) + string(rune('0'+len(text)%10)) + text
		code, err := qris.Parse(seal(base + "54" + field))
		var wrong *qris.Error
		if amount, _ := code.Amount(); want > 0 && (err != nil || amount != want) {
			t.Errorf("%s: %d, %v; want %d", text, amount, err, want)
		} else if want == 0 && (!errors.As(err, &wrong) || wrong.Tag != "54") {
			t.Errorf("%s: %v; want an error of tag 54", text, err)
		}
	}
}

func TestChecksum(t *testing.T) {
	t.Parallel()
	if got := qris.Checksum("123456789"); got != "29B1" {
		t.Errorf("got %s", got)
	}
	lower := demo[:len(demo)-4] + "b22e"
	if code, err := qris.Parse(lower); err != nil || code.String() != lower {
		t.Errorf("lower case: %s, %v", code, err)
	}
}

func TestCharactersAreNotBytes(t *testing.T) {
	t.Parallel()
	text := edit(t, "5914NamaMerchantC1", "5909Kopi 最佳运输")
	code, err := qris.Parse(text)
	if err != nil || value(code, "59") != "Kopi 最佳运输" {
		t.Fatalf("%q, %v", value(code, "59"), err)
	}
	dynamic, err := code.Dynamic(25000)
	if err != nil || value(dynamic, "59") != "Kopi 最佳运输" {
		t.Errorf("%q, %v", value(dynamic, "59"), err)
	}
}

// TestFieldsTellTheCode: put together again, the fields are the code.
func TestFieldsTellTheCode(t *testing.T) {
	t.Parallel()
	eachSample(t, func(kind, text string) {
		code, err := qris.Parse(text)
		if err != nil {
			return
		}
		fields := code.Fields()
		for _, f := range fields[:len(fields)-1] {
			if value, ok := code.Value(f.Tag); !ok || value != f.Value {
				t.Errorf("%s: field %s is %q, its value %q", kind, f.Tag, f.Value, value)
			}
		}
		if last := fields[len(fields)-1]; last.Tag != "63" || !strings.HasSuffix(text, last.Value) {
			t.Errorf("%s: ends in %+v", kind, last)
		}
	})
}
