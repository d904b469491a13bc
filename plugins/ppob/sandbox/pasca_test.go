package sandbox_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// pascaNumbers are the published test numbers: paid at once, inquiry fails,
// payment fails, paid later, fails later.
var pascaNumbers = map[string][5]string{
	"pln":          {"530000000001", "530000000003", "530000000006", "630000000001", "630000000006"},
	"pdam":         {"1013226", "1013227", "1013230", "2013226", "2013230"},
	"internet":     {"6391601001", "6391601002", "6391601005", "7391601001", "7391601005"},
	"bpjs":         {"8801234560001", "8801234560002", "8801234560005", "9801234560001", "9801234560005"},
	"multifinance": {"6391601201", "6391601202", "6391601205", "7391601201", "7391601205"},
	"cimahi":       {"329801092375999991", "329801092375999992", "329801092375999995", "429801092375999991", "429801092375999995"},
	"pdl":          {"3298010921", "3298010922", "3298010923", "4298010921", "4298010923"},
	"pgas":         {"0110014601", "0110014603", "0110014605", "1110014601", "1110014605"},
	"tv":           {"127246500101", "127246500102", "127246500105", "227246500101", "227246500105"},
	"bpjstk":       {"8102051011270001", "8102051011270002", "8102051011270003", "9102051011270001", "9102051011270003"},
	"bpjstkpu":     {"8102051011280001", "8102051011280002", "8102051011280003", "9102051011280001", "9102051011280003"},
	"plnnontaglis": {"8102051011290001", "8102051011290002", "8102051011290003", "9102051011290001", "9102051011290003"},
	"emoney":       {"8102051011300001", "8102051011300002", "8102051011300003", "9102051011300001", "9102051011300003"},
	"samsat":       {"8102051011310001", "8102051011310002", "8102051011310003", "9102051011310001", "9102051011310003"},
	"hp":           {"8102051011320001", "8102051011320002", "8102051011320003", "9102051011320001", "9102051011320003"},
}

// extra is what some products' inquiries need besides.
func extra(sku string) object {
	return map[string]object{"cimahi": {"year": "2025"}, "emoney": {"amount": 50_000}}[sku]
}

func TestPublicBills(t *testing.T) {
	t.Parallel()
	w := open(t)
	outcomes := [5]struct{ inquiry, pay, then string }{
		{"Sukses 00", "Sukses 00", ""},
		{"Gagal 60", "Gagal 50", ""},
		{"Sukses 00", "Gagal 02", ""},
		{"Sukses 00", "Pending 03", "Sukses 00"},
		{"Sukses 00", "Pending 03", "Gagal 02"},
	}
	for sku, numbers := range pascaNumbers {
		for i, want := range outcomes {
			ref, before := sku+string(rune('0'+i)), w.deposit()
			bill := w.want(want.inquiry, w.pasca("inq", ref, sku, numbers[i], extra(sku)))
			if w.deposit() != before || w.states(ref) != "" {
				t.Errorf("%s: asking moved money", ref)
			}
			last := w.want(want.pay, w.pasca("pay", ref, sku, numbers[i]))
			if want.then != "" {
				w.clock.Advance(2 * time.Second)
				e := w.next()
				if e.name != "update" || e.agent != "Digiflazz-Pasca-Hookshot" || !e.signed() {
					t.Errorf("%s: %+v", ref, e)
				}
				last = w.want(want.then, e.data)
			}
			spent, serial := 0.0, ""
			if last.text("status") == "Sukses" {
				spent, _ = bill["price"].(float64)
				serial = `^S\d{10}N$`
			}
			if before-w.deposit() != int(spent) || !regexp.MustCompile(serial).MatchString(last.text("sn")) {
				t.Errorf("%s: spent %d of %v: %v", ref, before-w.deposit(), spent, last)
			}
			if i != 1 && (w.states(ref) != last.text("status") || last["selling_price"] != bill["selling_price"]) {
				t.Errorf("%s: witness %s, %v", ref, w.states(ref), last)
			}
		}
	}
}

// TestBill has the upstream's sample, and two bills instead of one.
func TestBill(t *testing.T) {
	t.Parallel()
	w := open(t)
	one := w.pasca("inq", "R1", "pln", "530000000001")
	if one.text("customer_name") != "Nama Pelanggan Pertama" || one["admin"] != 2500.0 || one["price"] != 10_000.0 ||
		one["selling_price"] != 11_000.0 || one.text("periode") != "202601" || one.text("sn") != "" {
		t.Errorf("%v", one)
	}
	for sku, customer := range map[string]string{"pln": "530000000002", "pgas": "0110014602"} {
		two := w.pasca("inq", "R2"+sku, sku, customer)
		desc, _ := two["desc"].(map[string]any)
		details, _ := desc["detail"].([]any)
		if two.text("periode") != "202512,202601" || len(details) != 2 || desc["lembar_tagihan"] != 2.0 {
			t.Errorf("%s: %v", sku, two)
		}
	}
	for sku, want := range map[string]string{
		"pln": "daya detail lembar_tagihan tarif", "pdam": "alamat detail jatuh_tempo lembar_tagihan tarif",
		"multifinance": "detail item_name lembar_tagihan no_pol no_rangka tenor", "bpjs": "alamat detail jumlah_peserta lembar_tagihan",
		"internet": "detail lembar_tagihan", "bpjstk": "detail jht jkk jkm lembar_tagihan",
	} {
		desc, _ := w.pasca("inq", "D"+sku, sku, pascaNumbers[sku][0])["desc"].(map[string]any)
		if got := strings.Join(keys(desc), " "); got != want {
			t.Errorf("%s: desc has %s, want %s", sku, got, want)
		}
	}
}

func TestInquiryRefused(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.want("Sukses 00", w.pasca("inq", "asked", "pln", "530000000001"))
	w.buy("bought", "xld10", xl)
	for i, c := range []struct {
		ref, sku, customer string
		more               object
		want               string
	}{
		{"R", "pln", "530000000009", nil, "Gagal 54"},
		{"R", "xld10", xl, nil, "Gagal 43"},
		{"R", "cimahi", "329801092375999991", nil, "Gagal 40"},
		{"R", "cimahi", "329801092375999991", object{"year": "25"}, "Gagal 40"},
		{"R", "emoney", "8102051011300001", nil, "Gagal 87"},
		{"R", "emoney", "8102051011300001", object{"amount": 50_500}, "Gagal 87"},
		{"R", "emoney", "8102051011300001", object{"amount": 0}, "Gagal 87"},
		{"asked", "pln", "530000000002", nil, "Gagal 49"},
		{"asked", "pdam", "1013226", nil, "Gagal 49"},
		{"bought", "pln", "530000000001", nil, "Gagal 49"},
		{"asked", "pln", "530000000001", nil, "Sukses 00"},
		{"year", "cimahi", "329801092375999991", object{"year": 2025}, "Sukses 00"},
	} {
		if got := w.pasca("inq", c.ref, c.sku, c.customer, c.more); got.result() != c.want {
			t.Errorf("%d: %v, want %s", i, got, c.want)
		}
	}
	if got := w.pasca("inq", "E", "emoney", "8102051011300001", extra("emoney")); got["selling_price"] != 51_000.0 || got["price"] != 50_800.0 {
		t.Errorf("money on a card: %v", got)
	}
	w.order(200, "product", object{"sku": "hp", "seller_product_status": false})
	w.want("Gagal 53", w.pasca("inq", "H", "hp", "8102051011320001"))
	w.order(200, "product", object{"sku": "hp", "buyer_product_status": false})
	w.want("Gagal 43", w.pasca("inq", "H", "hp", "8102051011320001"))
}

// TestPayRefused: what does not fit its inquiry is not paid.
func TestPayRefused(t *testing.T) {
	t.Parallel()
	w := open(t)
	const customer = "530000000001"
	w.want("Gagal 50", w.pasca("pay", "R", "pln", customer))
	w.want("Gagal 50", w.pasca("status", "R", "pln", customer))
	w.pasca("inq", "R", "pln", customer)
	w.want("Gagal 50", w.pasca("status", "R", "pln", customer))
	w.want("Gagal 49", w.pasca("pay", "R", "pln", "530000000002"))
	w.want("Gagal 49", w.buy("R", "xld10", xl))
	w.want("Gagal 69", w.pasca("pay", "R", "pln", customer, object{"max_price": 9_999}))
	w.order(200, "deposit", object{"amount": 9_999})
	w.want("Gagal 44", w.pasca("pay", "R", "pln", customer))
	w.order(200, "deposit", object{"amount": 1_000_000_000})
	w.order(200, "product", object{"sku": "pln", "buyer_product_status": false})
	w.want("Gagal 43", w.pasca("pay", "R", "pln", customer))
	w.order(200, "product", object{"sku": "pln", "buyer_product_status": true})
	if w.spent() != 0 || w.states("R") != "" {
		t.Errorf("spent %d, witness %s", w.spent(), w.states("R"))
	}
	w.want("Sukses 00", w.pasca("pay", "R", "pln", customer, object{"max_price": 10_000}))
}

// TestPayOnTheSameDay: the day ends at midnight in Jakarta, 17:00 UTC.
func TestPayOnTheSameDay(t *testing.T) {
	t.Parallel()
	w := open(t)
	const customer = "530000000001"
	w.clock.Advance(14*time.Hour - time.Second) // a second before midnight
	w.pasca("inq", "late", "pln", customer)
	w.pasca("inq", "R", "pln", customer)
	w.want("Sukses 00", w.pasca("pay", "late", "pln", customer))
	w.clock.Advance(time.Second)
	w.want("Gagal 88", w.pasca("pay", "R", "pln", customer))
	w.want("Sukses 00", w.pasca("inq", "R", "pln", customer))
	w.want("Sukses 00", w.pasca("pay", "R", "pln", customer))
}

// TestBillAgain looks a payment up both ways, and pays again once it may.
func TestBillAgain(t *testing.T) {
	t.Parallel()
	w := open(t)
	const customer = "530000000001"
	w.pasca("inq", "R", "pln", customer)
	paid := w.want("Sukses 00", w.pasca("pay", "R", "pln", customer))
	for i, step := range []struct {
		after         time.Duration
		command, want string
	}{
		{0, "status", "Gagal 85"},
		{0, "inq", "Gagal 49"},
		{time.Minute, "status", "Sukses 00"},
		{time.Second, "pay", "Gagal 85"},
		{time.Minute, "pay", "Sukses 00"},
		{90*24*time.Hour - 2*time.Minute - time.Second - 1, "status", "Sukses 00"},
		{1, "status", "Gagal 50"},
		{0, "pay", "Gagal 50"},
		{0, "inq", "Sukses 00"},
	} {
		w.clock.Advance(step.after)
		got := w.want(step.want, w.pasca(step.command, "R", "pln", customer))
		if step.want == "Sukses 00" && step.command != "inq" && got.text("sn") != paid.text("sn") {
			t.Errorf("step %d: %v, paid %v", i, got, paid)
		}
	}
	if w.states("R") != "Sukses" {
		t.Errorf("witness %s", w.states("R"))
	}
	w.want("Sukses 00", w.pasca("pay", "R", "pln", customer))
	w.want("Gagal 49", w.pasca("status", "R", "pln", "530000000002"))
	w.want("Gagal 49", w.buy("R", "pln", customer))
	if w.states("R") != "Sukses Sukses" || w.spent() != 20_000 {
		t.Errorf("witness %s, spent %d", w.states("R"), w.spent())
	}
}

// TestInquiryAnswersAreWhole compares the fields of an inquiry and a payment
// with those of the documents.
func TestInquiryAnswersAreWhole(t *testing.T) {
	t.Parallel()
	w := open(t)
	common := []string{
		"admin", "buyer_last_saldo", "buyer_sku_code", "customer_name", "customer_no", "desc", "message", "periode",
		"price", "rc", "ref_id", "selling_price", "sn", "status", "tele", "wa",
	}
	if got := keys(w.pasca("inq", "R", "pln", "530000000001")); !slices.Equal(got, common) {
		t.Errorf("inquiry %v", got)
	}
	if got := keys(w.pasca("pay", "R", "pln", "530000000001")); !slices.Equal(got, common) {
		t.Errorf("payment %v", got)
	}
	raw, _ := json.Marshal(w.buy("P", "xld10", xl))
	if strings.Contains(string(raw), "selling_price") {
		t.Errorf("prepaid: %s", raw)
	}
}
