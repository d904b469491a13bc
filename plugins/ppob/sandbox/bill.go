package sandbox

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// bill is what an inquiry finds, as answers have it.
type bill struct {
	Name    string          `json:"customer_name"`
	Admin   money.Amount    `json:"admin"`
	Period  string          `json:"periode"`
	Selling money.Amount    `json:"selling_price"`
	About   json.RawMessage `json:"desc"`
}

// testNumber is a public test number: how many bills it has, and what becomes
// of paying them; without a plan the inquiry fails.
type testNumber struct {
	bills int
	plan  plan
}

// testNumbers are the upstream's own, by product and customer number.
var testNumbers = tabulate()

func tabulate() map[string]map[string]testNumber {
	table := map[string]map[string]testNumber{}
	// Each row: paid at once, inquiry fails, payment fails, paid later, fails
	// later. Two numbers in a place have one bill and two.
	row := func(sku string, columns ...string) {
		table[sku] = map[string]testNumber{}
		for i, p := range []plan{planSuccess, "", planFail, planLaterSuccess, planLaterFail} {
			for n, customer := range strings.Fields(columns[i]) {
				table[sku][customer] = testNumber{n + 1, p}
			}
		}
	}
	row(skuPLN, "530000000001 530000000002", "530000000003", "530000000006", "630000000001 630000000002", "630000000006")
	row("pdam", "1013226", "1013227", "1013230", "2013226", "2013230")
	row("internet", "6391601001", "6391601002", "6391601005", "7391601001", "7391601005")
	row("bpjs", "8801234560001", "8801234560002", "8801234560005", "9801234560001", "9801234560005")
	row("multifinance", "6391601201", "6391601202", "6391601205", "7391601201", "7391601205")
	row(skuPBB, "329801092375999991", "329801092375999992", "329801092375999995", "429801092375999991", "429801092375999995")
	row("pdl", "3298010921", "3298010922", "3298010923", "4298010921", "4298010923")
	row("pgas", "0110014601 0110014602", "0110014603", "0110014605", "1110014601 1110014602", "1110014605")
	row("tv", "127246500101", "127246500102", "127246500105", "227246500101", "227246500105")
	for sku, kind := range map[string]string{
		"bpjstk": "127", "bpjstkpu": "128", "plnnontaglis": "129", skuEMoney: "130", "samsat": "131", "hp": "132",
	} {
		at, later := "810205101"+kind+"000", "910205101"+kind+"000"
		row(sku, at+"1", at+"2", at+"3", later+"1", later+"3")
	}
	return table
}

// bill makes bills for the last months, and says what leaves the deposit.
func (p *product) bill(count int, now time.Time) (bill, money.Amount) {
	var periods []string
	var details []map[string]string
	first := now.In(jakarta)
	first = time.Date(first.Year(), first.Month(), 1, 0, 0, 0, 0, jakarta)
	for n := count - 1; n >= 0; n-- {
		period := first.AddDate(0, -n, 0).Format("200601")
		periods = append(periods, period)
		details = append(details, map[string]string{
			"periode": period, "nilai_tagihan": p.Bill.String(), "admin": p.Admin.String(), "denda": "0",
		})
	}
	about := map[string]any{"lembar_tagihan": count, "detail": details}
	for key, value := range extras[p.SKU] {
		about[key] = value
	}
	text, _ := json.Marshal(about) // texts and numbers always can be
	times := money.Amount(count)
	return bill{
		Name: customerName, Admin: p.Admin * times, Period: strings.Join(periods, ","),
		Selling: (p.Bill + p.Admin) * times, About: text,
	}, (p.Bill + p.Admin - p.Commission) * times
}

// extras are what the descriptions of products have of their own.
var extras = map[string]map[string]any{
	skuPLN:         {"tarif": "R1", "daya": 1300},
	"pdam":         {"tarif": "3A", "alamat": "JALAN CONTOH 1", "jatuh_tempo": "20"},
	"bpjs":         {"jumlah_peserta": "1", "alamat": "JALAN CONTOH 1"},
	"multifinance": {"item_name": "MOTOR CONTOH", "no_rangka": "RANGKA0001", "no_pol": "B 0000 XXX", "tenor": "12"},
	skuPBB:         {"alamat": "JALAN CONTOH 1", "kelurahan": "CONTOH", "kecamatan": "CONTOH"},
	"pgas":         {"alamat": "JALAN CONTOH 1"},
	"tv":           {"no_ref": "REF0001"},
	"bpjstk":       {"jkk": "10000", "jkm": "6800", "jht": "0"},
	"bpjstkpu":     {"jkk": "54000", "jkm": "62000", "jht": "100000"},
}
