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
		`{"success":false,"error_code":"INVALID_REQUEST","errors":[{"field":"amount","message":"must be at most 10000000"}]}`: `{"success":false,"error_code":"INVALID_REQUEST","errors":[{"field":"amount","message":"must be at most ***0000"}]}`,
		// secrets, however they are written, and with all that is in them
		`{"secret_key":"sk_live_x","PIN":123456,"Api-Key":["a","b"],"accessToken":{"of":"x"},"cvv":"123","callback_token":null}`: `{"secret_key":"[removed]","PIN":"[removed]","Api-Key":"[removed]","accessToken":"[removed]","cvv":"[removed]","callback_token":"[removed]"}`,
		// numbers of people
		`{"phone":"+62 812-3456-7890","account_no":1234567890,"target":"0812","card":{"number":"4111111111111111"}}`: `{"phone":"***7890","account_no":"***7890","target":"***","card":{"number":"***"}}`,
		`{"phone":["081234567890",{"phone":"081234567891"}]}`:                                                        `{"phone":["***7890",{"phone":"***7891"}]}`,
		// people
		`{"customer_name":"Budi Santoso","payer_email":"ani@example.com","address":"Jalan Merdeka 17"}`: `{"customer_name":"B*** S***","payer_email":"a***@e***.com","address":"J*** M*** ***"}`,
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
	for _, in := range []string{``, `[1]`, `"x"`, `{"a":1}{"b":2}`, `{"a":1`, `{"a":1,"a":2}`, `a=1&b=2`, `{"a":` + "\xff" + `}`} {
		if got, ok := mask.JSON([]byte(in)); ok || got != "" {
			t.Errorf("%q is masked as JSON: %s", in, got)
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
		"<a href=\"https://shop.example/reset?u=1\">x</a>":                 "<a href=\"https://shop.example/…\">x</a>",
	} {
		if got := mask.Text(in); got != want {
			t.Errorf("%q\n got %q\nwant %q", in, got, want)
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
