package edge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

func TestDecodeReadsWhatIsRight(t *testing.T) {
	t.Parallel()
	b, err := decode([]byte(` {"secret_key":"k","merchant_id":"m","amount":1e4,"none":null,"empty":"","yes":true,` +
		`"list":[1,"a",null,false],"metadata":{"a":"b","n":null,"e":""}} `))
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(b.document)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"amount":1e4,"list":[1,"a",null,false],"metadata":{"a":"b","e":"","n":null},"yes":true}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if b.key != (credential{text: "k", given: true}) || b.merchant != (credential{text: "m", given: true}) {
		t.Errorf("credentials %+v %+v", b.key, b.merchant)
	}
}

func TestDecodeJudgesNoCredential(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]credential{
		`{}`:                             {},
		`{"secret_key":null}`:            {},
		`{"secret_key":""}`:              {},
		`{"secret_key":7}`:               {given: true, malformed: true},
		`{"secret_key":["k"]}`:           {given: true, malformed: true},
		`{"secret_key":1e999999999}`:     {given: true, malformed: true},
		`{"secret_key":"a\u0000b"}`:      {given: true, text: "a\x00b"},
		`{"secret_key":"\u006b","a":""}`: {given: true, text: "k"},
	} {
		b, err := decode([]byte(text))
		if err != nil || b.key != want {
			t.Errorf("%s: got %+v, %v, want %+v", text, b.key, err, want)
		}
	}
}

func TestDecodeNamesTheFault(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"a":`, maxDepth+1) + "1" + strings.Repeat("}", maxDepth+1)
	tests := []struct{ name, text, field, message string }{
		{"empty", ``, "", "empty or ends too early"},
		{"array", `[1]`, "", "it is an array"},
		{"string", `"x"`, "", "it is a string"},
		{"number", `7`, "", "it is a number"},
		{"null", `null`, "", "it is a literal"},
		{"no JSON", `amount=100`, "", "at byte 0"},
		{"cut off", `{"amount":10`, "", "ends too early"},
		{"more after it", `{"a":1} {"b":2}`, "", "goes on after the JSON object, at byte"},
		{"duplicate", `{"amount":1,"amount":2}`, "amount", "is given twice"},
		{"duplicate key", `{"secret_key":"a","secret_key":"b"}`, "secret_key", "is given twice"},
		{"inner duplicate", `{"metadata":{"a":"1","a":"2"}}`, "metadata.a", "is given twice"},
		{"not UTF-8", "{\"metadata\":{\"a\":\"\xff\"}}", "metadata.a", "invalid UTF-8"},
		{"half a surrogate", `{"a":"\ud800"}`, "a", "invalid surrogate pair"},
		{"NUL", `{"metadata":{"a":"x\u0000"}}`, "metadata.a", "NUL character"},
		{"NUL in a name", `{"a\u0000b":1}`, `a\u0000b`, "NUL character in its name"},
		{"too deep", deep, strings.Repeat("a.", maxDepth-1) + "a", "nests deeper than 16 levels"},
		{"too deep in arrays", `{"a":` + strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth) + `}`, "a", "nests deeper"},
		{"long number", `{"amount":1` + strings.Repeat("0", maxNumber) + `}`, "amount", "more than 40 characters"},
		{"large exponent", `{"amount":1e31}`, "amount", "exponent beyond 30"},
		{"small exponent", `{"metadata":{"a":1E-31}}`, "metadata.a", "exponent beyond 30"},
		{"absurd exponent", `{"amount":1e99999999999999999999}`, "amount", "exponent beyond 30"},
		{"leading zero", `{"amount":01}`, "", "not valid JSON"},
		{"trailing comma", `{"amount":1,}`, "", "not valid JSON"},
		{"NaN", `{"amount":NaN}`, "amount", "invalid character"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := decode([]byte(test.text))
			f, ok := errors.AsType[*fault.Error](err)
			if !ok || f.Code != fault.InvalidRequest || !strings.Contains(f.Message, test.message) {
				t.Fatalf("got %v, want INVALID_REQUEST that says %q", err, test.message)
			}
			if test.field == "" {
				if len(f.Fields) > 0 {
					t.Errorf("it names %+v", f.Fields)
				}
				return
			}
			if len(f.Fields) != 1 || !strings.HasPrefix(f.Fields[0].Field, test.field) {
				t.Errorf("it names %+v, want %s", f.Fields, test.field)
			}
			if !strings.Contains(f.Message, "at byte") {
				t.Errorf("%q does not say where", f.Message)
			}
		})
	}
}

func TestDecodeTellsNothingOfAKey(t *testing.T) {
	t.Parallel()
	_, err := decode([]byte(`{"secret_key":"sk_live_\qabcdefgh"}`))
	if err == nil || strings.Contains(err.Error(), `\q`) || strings.Contains(err.Error(), "sk_live") {
		t.Errorf("got %v", err)
	}
}

func TestDecodeAllowsTheDeepest(t *testing.T) {
	t.Parallel()
	text := strings.Repeat(`{"a":`, maxDepth) + "1" + strings.Repeat("}", maxDepth)
	if _, err := decode([]byte(text)); err != nil {
		t.Error(err)
	}
}

// FuzzDecode: whatever is accepted is also JSON to the standard library, with
// the same members, and holds nothing that was to be refused.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":1}`, `{"a":1,"a":2}`, `{"secret_key":"k","a":{"b":[1,2,{"c":"d"}]}}`, `{"a":"\u0000"}`,
		`{"a":1e30}`, "{\"a\":\"\xff\"}", `{"a":null,"b":""}`, `[`, ``, `{"a":1}x`, `{"merchant_id":[]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := decode(text)
		if err != nil {
			if fault.From(err).Code != fault.InvalidRequest {
				t.Fatalf("%q: %v is not INVALID_REQUEST", text, err)
			}
			return
		}
		var reference map[string]any
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		if err := decoder.Decode(&reference); err != nil {
			t.Fatalf("%q is accepted, the standard library says %v", text, err)
		}
		maps.DeleteFunc(reference, func(name string, value any) bool {
			return value == nil || value == "" || name == "secret_key" || name == "merchant_id"
		})
		got, want := slices.Sorted(maps.Keys(b.document)), slices.Sorted(maps.Keys(reference))
		if !slices.Equal(got, want) {
			t.Fatalf("%q: has %q, want %q", text, got, want)
		}
		if strings.ContainsRune(fmt.Sprint(b.document), 0) {
			t.Fatalf("%q: a NUL character came through", text)
		}
	})
}
