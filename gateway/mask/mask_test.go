package mask_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/mask"
)

func TestJSON(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		// what is harmless, in the order in which it came
		`{"external_id":"INV-20261128-7","amount":125000000,"paid":true,"note":null}`:                                         `{"external_id":"INV-20261128-7","amount":125000000,"paid":true,"note":null}`,
		`[{"status":"x","name":"Budi"},"Siti",7,true]`:                                                                        `[{"status":"x","name":"B***"},"S***","***",true]`,
		`{"success":false,"error_code":"INVALID_REQUEST","errors":[{"field":"amount","message":"must be at most 10000000"}]}`: `{"success":false,"error_code":"INVALID_REQUEST","errors":[{"field":"amount","message":"must be at most ***0000"}]}`,
		// secrets, however they are written, and with all that is in them
		`{"secret_key":"sk_live_x","PIN":123456,"Api-Key":["a","b"],"accessToken":{"of":"x"},"cvv":"123","callback_token":null}`: `{"secret_key":"[removed]","PIN":"[removed]","Api-Key":"[removed]","accessToken":"[removed]","cvv":"[removed]","callback_token":"[removed]"}`,
		// numbers of people
		`{"phone":"+62 812-3456-7890","account_no":1234567890,"target":"0812","card":{"number":"4111111111111111"}}`: `{"phone":"***7890","account_no":"***7890","target":"***","card":{"number":"***"}}`,
		`{"phone":["081234567890",{"phone":"081234567891"}]}`:                                                        `{"phone":["***7890",{"phone":"***7891"}]}`,
		// people
		`{"customer_name":"Budi Santoso","payer_email":"ani@example.com","address":"Jalan Merdeka 17"}`: `{"customer_name":"B*** S***","payer_email":"a***@e***.com","address":"J*** M*** ***"}`,
		`{"link081234567890":"x","secret081234567890":"x"}`:                                             `{"link***7890":"… (1 characters)","secret***7890":"[removed]"}`,
		`{"metadata":{"buyer":"Siti","0812345678901":"x"},"external_id":"ani@example.com"}`:             `{"metadata":{"buyer":"S***","***8901":"x***"},"external_id":"a***@e***.com"}`,
		// what is not known to be harmless
		`{"favourite":12345678,"other":7}`: `{"favourite":"***","other":"***"}`,
		// what pays or opens a page
		`{"qr_string":"00020101021226660014","payment_url":"https://pay.example/checkout/abc?t=1","deeplink":"wallet://pay?x=1"}`: `{"qr_string":"… (20 characters)","payment_url":"https://pay.example/…","deeplink":"wallet://pay/…"}`,
		`{"description":"call 0812 3456 7890 or ani@example.com, see https://shop.example/x?y"}`:                                  `{"description":"call ***7890 or a***@e***.com, see https://shop.example/…"}`,
	} {
		got, ok := mask.JSON([]byte(in))
		if !ok || got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
	// of what is broken only what was read, and nothing in clear
	for in, want := range map[string]string{
		``: ``, `"x"`: ``, `a=1&b=2`: ``, `[error] of Budi`: ``, `{`: ``,
		`{"a":1}{"b":2}`:       `{"a":"***"}`,
		`{"a":1`:               `{"a":"***"}`,
		`{"a":1,"a":2}`:        `{"a":"***"}`,
		`{"a":` + "\xff" + `}`: `{"a":"***"}`,
		`{"status":"x","customer":{"name":"Budi San`: `{"status":"x","customer":{"name":"***"}}`,
		`{"pin":"12345`: `{"pin":"[removed]"}`,
		`[{"phone":"081234567890"},{"phone":"0812345`: `[{"phone":"***7890"},{"phone":"***"}]`,
		`["Budi Santoso",`:                            `["B*** S***"]`,
	} {
		if got, whole := mask.JSON([]byte(in)); whole || got != want {
			t.Errorf("%q is masked as %s (%v), want %s", in, got, whole, want)
		}
	}
}

// TestHarmlessNames: their values stay, but for what is surely a secret or somebody's number.
func TestHarmlessNames(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"INV-20261128-7": "INV-20261128-7", "2026-11-28T10:00:00.123456Z": "2026-11-28T10:00:00.123456Z", "2026-02-03 10:30:00": "2026-02-03 10:30:00", "20261128103000123": "20261128103000123",
		"4dcaa06b-7539-7169-b44a-893ccf9a7ad5": "4dcaa06b-7539-7169-b44a-893ccf9a7ad5", "ORDER_00001234": "ORDER_00001234", "125000000": "125000000",
		"order of sk_live_0123456789abcdef_x": "order of [removed]", "pk_0123456789": "[removed]", "Bearer abcdefgh.ijk": "[removed]", "eyJhbGciOiJI.eyJzdWIi.x": "[removed]",
		"INV081234567890": "INV***7890", "INV-1-0812-3456-7890": "INV-1-***7890", "+62 (812) 3456.7890": "***7890", "6281234567890": "***7890", "021-555 1234": "***1234",
		"٠٨١٢ ٣٤٥٦ ٧٨٩٠": "***٧٨٩٠", "０８１２３４５６７８９０": "***７８９０", "4111 1111 1111 1111": "***1111", "4111111111111112": "4111111111111112", "ani@example.com": "a***@e***.com",
	} {
		text, err := json.Marshal(map[string]string{"External-ID": in})
		if err != nil {
			t.Fatal(err)
		}
		got, _ := mask.JSON(text)
		if masked, _ := json.Marshal(map[string]string{"External-ID": want}); got != string(masked) {
			t.Errorf("%s is masked as %s, want %s", text, got, masked)
		}
	}
	if got, _ := mask.JSON([]byte(`{"amount":4111111111111111,"total":6281234567890,"fee":81234567890}`)); got != `{"amount":"***1111","total":"***7890","fee":81234567890}` {
		t.Errorf("numbers are masked as %s", got)
	}
}

// TestSecretsHaveOneList: whatever is a secret as a name is one in a text, too, and in any spelling.
func TestSecretsHaveOneList(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"secret_key", "Server-Key", "SERVERKEY", "private_key", "privateKey", "api.key", "passphrase", "Password", "pin", "OTP", "cvv", "x-callback-token"} {
		if got, _ := mask.JSON([]byte(`{"` + name + `":"hunter2"}`)); got != `{"`+name+`":"[removed]"}` {
			t.Errorf("masked as %s", got)
		}
		if name == "api.key" { // of one word
			continue
		}
		if got := mask.Text(name + ": hunter2, x"); got != name+": [removed], x" {
			t.Errorf("masked as %q", got)
		}
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Too many requests: at most 5 a second, 10 at once.":               "Too many requests: at most 5 a second, 10 at once.",
		"request 0b0f6a52-6ef3-4b0c-9d2a-0f5b6a1f2c11 at 2026-11-28 10:00": "request 0b0f6a52-6ef3-4b0c-9d2a-0f5b6a1f2c11 at 2026-11-28 10:00",
		"the most is Rp 100.000.000":                                       "the most is Rp 100.000.000",
		"account 123.456.7890 is closed":                                   "account ***7890 is closed",
		"0812-3456-7890, (0812) 34567891":                                  "***7890, (***7891",
		"Authorization: Bearer abc.def":                                    "Authorization: [removed]",
		`{"token":"abc","x":1`:                                             `{"token":[removed]","x":1`,
		"password=hunter2&user=x":                                          "password=[removed]&user=x",
		"key sk_live_0123456789abcdef_x is unknown":                        "key [removed] is unknown",
		"call \u0660\u0668\u0661\u0662\u0663\u0664\u0665\u0666, 0812\u201334\u200b56\u00a07890": "call ***\u0663\u0664\u0665\u0666, ***7890",
		"a\x00b\x1b[31m081\x002345678":                     "ab[31m***5678",
		"<a href=\"https://shop.example/reset?u=1\">x</a>": "<a href=\"https://shop.example/…\">x</a>",
	} {
		if got := mask.Text(in); got != want {
			t.Errorf("%q\n got %q\nwant %q", in, got, want)
		}
	}
}

func TestClean(t *testing.T) {
	t.Parallel()
	const most = 3 << 10
	for body, want := range map[string]string{
		"":                              "",
		"line\r\n\tline\x00\x1b[31m":    "line\n\tline[31m",
		"a\xffb\u0085c":                 "a\ufffdbc",
		strings.Repeat("x", 5000):       strings.Repeat("x", most),
		"x" + strings.Repeat("é", 5000): "x" + strings.Repeat("é", most/2-1),
		strings.Repeat("\xff", 5000):    "\ufffd",
	} {
		if got := mask.Clean(body, most); got != want {
			t.Errorf("%.20q becomes %.40q (%d bytes)", body, got, len(got))
		}
	}
}

var eight = regexp.MustCompile(`[0-9]{8,}`)

// No run of eight digits of a personal value is left, whatever stands around it and however deep it is.
func FuzzPersonal(f *testing.F) {
	f.Add("phone", "081234567890", 0)
	f.Add("customer_name", "Budi 12345678", 3)
	f.Add("description", "0812-3456-7890", 1)
	f.Add("12345678", "x", 2)
	f.Add("link", "a://b%8000000000", 2)
	f.Add("deeplink", "a://12345678", 2)
	f.Fuzz(func(t *testing.T, name, value string, deep int) {
		for _, field := range []string{name, "phone", "account_no", "customer_name", "payer_email", "description", "metadata", "qr_string", "payment_url"} {
			var document any = value
			for range deep & 7 {
				document = []any{map[string]any{field: document}}
			}
			text, err := json.Marshal(map[string]any{field: document})
			if err != nil {
				t.Fatal(err)
			}
			got, ok := mask.JSON(text)
			if !ok {
				t.Fatalf("%s is no JSON", text)
			}
			if field == name && mask.Harmless(name) {
				continue
			}
			for _, run := range eight.FindAllString(value, -1) {
				if strings.Contains(got, run) && !uuidLike.MatchString(value) {
					t.Errorf("%s\nleaves %s in\n%s", text, run, got)
				}
			}
		}
	})
}

// uuidLike is what Text leaves as an id.
var uuidLike = regexp.MustCompile(`(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

func BenchmarkText(b *testing.B) {
	for name, text := range map[string]string{"word": strings.Repeat("x", 1000), "prose": strings.Repeat("Kopi susu: dua gelas, ", 50), "numbers": strings.Repeat("0812-3456-7890 ", 66)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				mask.Text(text)
			}
		})
	}
}

// TestNothingShownBecauseOfWhereItStands: what is hidden alone is hidden inside of something, too, and what is beside it stays.
func TestNothingShownBecauseOfWhereItStands(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"account":{"id":"1234567890"},"phone":{"note":"081"}}`:               `{"account":{"id":"***7890"},"phone":{"note":"***"}}`,
		`{"cards":[],"card":[{"reference":"5555444433332222"}]}`:               `{"cards":[],"card":[{"reference":"***2222"}]}`,
		`{"external_id":"order_sk_live_0123456789abcdef"}`:                     `{"external_id":"order[removed]"}`,
		`{"external_id":"9sk_live_0123456789abcdef"}`:                          `{"external_id":"9[removed]"}`,
		`{"metadata":{"081234567890":"x","089934567890":"y"},"status":"PAID"}`: `{"metadata":{"***7890":"x***","***7890":"y***"},"status":"PAID"}`,
	} {
		if got, whole := mask.JSON([]byte(text)); got != want || !whole {
			t.Errorf("%s is kept as %s (whole: %t), want %s", text, got, whole, want)
		}
	}
	if got := mask.Text("key order_sk_live_0123456789abcdef"); got != "key order[removed]" {
		t.Errorf("a key behind an underscore is kept as %q", got)
	}
	if got := mask.Text("\xffa\xffa\xffa call 081234567890"); got != "�a�a�a call ***7890" {
		t.Errorf("behind what is no UTF-8 is kept %q", got)
	}
}
