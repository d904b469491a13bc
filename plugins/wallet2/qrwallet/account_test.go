package qrwallet

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/qris"
)

func TestCreateMakesTheCodeOfTheAmount(t *testing.T) {
	t.Parallel()
	// The vector of a published conversion.
	const want = "00020101021226670018ID.CO.EXAMPLE2.WWW01159360001404567890215MIDCONTOH1234560303UMI51370014ID.CO.QRIS.WWW" +
		"0215ID1019123456781520412345303360540510057" + "5802ID5914NamaMerchantC16009NamaKota16110123456789062070703K196304D24A"
	c := newBooks(t).connection()
	r := create(t.Context(), sdk.Call{Connection: c, Reference: "r", Amount: 10057})
	if r.Outcome != sdk.Pending || string(r.Data) != `{"qr_string":"`+want+`"}` || !r.ExpiresAt.IsZero() {
		t.Errorf("got %+v", r)
	}
	f := lookup(t.Context(), sdk.Lookup{Connection: c, Reference: "r", Amount: 10057})
	if f.Status != sdk.StatusPending || string(f.Data) != string(r.Data) || f.Reference != "r" || f.Amount != 10057 || f.Currency != "IDR" {
		t.Errorf("got %+v", f)
	}
}

func TestCreateAtTheEdges(t *testing.T) {
	t.Parallel()
	c := newBooks(t).connection()
	for amount, want := range map[int64]sdk.Outcome{1: sdk.Pending, 999_999_999_999: sdk.Pending, 1_000_000_000_000: sdk.Pending, 0: sdk.Refused, -5: sdk.Refused, 1_000_000_000_001: sdk.Refused} {
		r := create(t.Context(), sdk.Call{Connection: c, Amount: amountOf(amount)})
		if r.Outcome != want || want == sdk.Refused && r.Refusal.Message == "" {
			t.Errorf("%d: got %+v", amount, r)
		}
	}
	broken := connection(t, func(c *credentials) { c.StaticCode = "secret" })
	if r := create(t.Context(), sdk.Call{Connection: broken, Amount: 100}); r.Outcome != sdk.NotSent || r.Blame != sdk.BlameAccount {
		t.Errorf("with a broken account: %+v", r)
	}
	if f := lookup(t.Context(), sdk.Lookup{Connection: broken, Amount: 100}); f.Status != sdk.StatusUnknown || f.Blame != sdk.BlameAccount {
		t.Errorf("with a broken account: %+v", f)
	}
}

func TestVerifyNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	code := func(text string) change { return func(c *credentials) { c.StaticCode = text } }
	dynamic := strings.Replace(printed, "010211", "010212", 1)
	for want, c := range map[string]change{
		"static_code: tag 63 is not the checksum":             code(strings.Replace(printed, "B22E", "B22F", 1)),
		"static_code: tag 53 must be 360":                     code(sealed(strings.Replace(printed, "5303360", "5303156", 1))),
		"static_code: tag 63 must be the last":                code(strings.Replace(printed, "6304B22E", "", 1)[:len(printed)-19] + "6304B22E" + "62070703K19"),
		"static_code: tag 26":                                 code(printed[:50]),
		"static_code: tag 01 says dynamic":                    code(sealed(dynamic)),
		"static_code: tag 54 must not stand in a static code": code(sealed(strings.Replace(printed, "5802ID", "54031005802ID", 1))),
		"static_code: tag 00":                                 code(""),
		`the static code pays "` + shop + `"`:                 func(c *credentials) { c.MerchantCode = shop + "/K19" },
		"time_zone":                                           func(c *credentials) { c.TimeZone = "Mars/Olympus" },
		"one of directory and url":                            func(c *credentials) { c.Reports = reportsAt{} },
		"an absolute path":                                    func(c *credentials) { c.Reports.Directory = "reports" },
		"the directory can't be read":                         func(c *credentials) { c.Reports.Directory = filepath.Join(b.dir, "none") },
		"must be https":                                       func(c *credentials) { c.Reports = reportsAt{URL: "http://reports.example/x"} },
	} {
		r := verify(t.Context(), b.connection(c))
		if r.Outcome != sdk.Refused || !strings.Contains(r.Refusal.Message, want) {
			t.Errorf("%s: got %+v", want, r)
		}
	}
	if r := verify(t.Context(), b.connection()); r.Outcome != sdk.Done || r.ProviderReference != shop {
		t.Errorf("a right one: %+v", r)
	}
	b.write("a.csv", "id,amount\n")
	if r := verify(t.Context(), b.connection()); r.Outcome != sdk.Refused || !strings.Contains(r.Refusal.Message, "a.csv: line 1: ") {
		t.Errorf("foreign reports: %+v", r)
	}
}

// TestNamesOfAccounts: every print of a shop's code is the same account.
func TestNamesOfAccounts(t *testing.T) {
	t.Parallel()
	moved := sealed(strings.Replace(printed, "NamaKota1", "KotaBaru2", 1))
	noNational := sealed(strings.Replace(printed, "51370014ID.CO.QRIS.WWW0215ID1019123456781", "", 1))
	for text, want := range map[string]string{printed: shop, moved: shop, ofK20: shop, unlabelled: shop, noNational: "936000140456789"} {
		code, err := qris.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		merchant, err := merchantOf(code)
		if got := (account{merchant: merchant}).name(); err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	bare, err := qris.Parse(sealed(strings.NewReplacer("51370014ID.CO.QRIS.WWW0215ID1019123456781", "",
		"26670018ID.CO.EXAMPLE2.WWW0115936000140456789", "26480018ID.CO.EXAMPLE2.WWW").Replace(printed)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := merchantOf(bare); err == nil || !strings.Contains(err.Error(), "name no merchant") {
		t.Errorf("a code of nobody: %v", err)
	}
}

// TestTheManifestSaysHowLate: the gateway waits as long as this package says.
func TestTheManifestSaysHowLate(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	if want := `"reports_late": "` + strings.TrimSuffix(reportsLate.String(), "0m0s") + `"`; !strings.Contains(string(document), want) {
		t.Errorf("the manifest does not say %s", want)
	}
}
