package jsonbody

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// none keeps nothing apart.
func none(string) func(jsontext.Value) error { return nil }

func TestReadReadsWhatIsRight(t *testing.T) {
	t.Parallel()
	var kept string
	document, err := Read([]byte(` {"secret_key":{"k" :1e999999999},"amount":1e4,"none":null,"empty":"","yes":true,`+
		`"list":[1,"a",null,false],"metadata":{"a":"b","n":null,"e":"","secret_key":"inner"}} `), func(name string) func(jsontext.Value) error {
		if name != "secret_key" {
			return nil
		}
		return func(value jsontext.Value) error { kept = value.String(); return nil }
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"amount":1e4,"list":[1,"a",null,false],"metadata":{"a":"b","e":"","n":null,"secret_key":"inner"},"yes":true}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if kept != `{"k" :1e999999999}` {
		t.Errorf("kept apart %s", kept)
	}
}

func TestReadNamesTheFault(t *testing.T) {
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
		{"too many members", "{" + manyMembers(maxValues+1) + "}", "", "more than 1000 values"},
		{"too many items", `{"a":[` + strings.TrimSuffix(strings.Repeat("1,", maxValues), ",") + `]}`, "", "more than 1000 values"},
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
			_, err := Read([]byte(test.text), none)
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

func TestReadTellsNothingOfAKey(t *testing.T) {
	t.Parallel()
	_, err := Read([]byte(`{"secret_key":"sk_live_\qabcdefgh"}`), none)
	if err == nil || strings.Contains(err.Error(), `\q`) || strings.Contains(err.Error(), "sk_live") {
		t.Errorf("got %v", err)
	}
}

func TestReadAllowsTheDeepest(t *testing.T) {
	t.Parallel()
	text := strings.Repeat(`{"a":`, maxDepth) + "1" + strings.Repeat("}", maxDepth)
	if _, err := Read([]byte(text), none); err != nil {
		t.Error(err)
	}
}

// FuzzRead: whatever is accepted is also JSON to the standard library, with
// the same members, and holds nothing that was to be refused.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":1}`, `{"a":1,"a":2}`, `{"secret_key":"k","a":{"b":[1,2,{"c":"d"}]}}`, `{"a":"\u0000"}`,
		`{"a":1e30}`, "{\"a\":\"\xff\"}", `{"a":null,"b":""}`, `[`, ``, `{"a":1}x`, `{"merchant_id":[]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		document, err := Read(text, none)
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
		maps.DeleteFunc(reference, func(_ string, value any) bool {
			return value == nil || value == ""
		})
		got, want := slices.Sorted(maps.Keys(document)), slices.Sorted(maps.Keys(reference))
		if !slices.Equal(got, want) {
			t.Fatalf("%q: has %q, want %q", text, got, want)
		}
		if strings.ContainsRune(fmt.Sprint(document), 0) {
			t.Fatalf("%q: a NUL character came through", text)
		}
	})
}

func TestDecode(t *testing.T) {
	t.Parallel()
	type order struct {
		Amount money.Amount    `json:"amount"`
		Inner  struct{ A int } `json:"inner"`
		Raw    json.RawMessage `json:"raw"`
	}
	var got order
	if err := Decode([]byte(`{"amount":5,"inner":{"A":7},"raw":{"b": [1]}}`), &got); err != nil || got.Amount != 5 || got.Inner.A != 7 || string(got.Raw) != `{"b": [1]}` {
		t.Errorf("got %+v, %v", got, err)
	}
	for text, want := range map[string]fault.Field{
		`{"amount":1,"amount":2}`:        {Field: "amount", Message: "is given twice"},
		`{"raw":{"a":1,"a":2}}`:          {Field: "raw.a", Message: "is given twice"},
		`{"unknown":1}`:                  {Field: "unknown", Message: "is not a known field"},
		`{"inner":{"b":1}}`:              {Field: "inner.b", Message: "is not a known field"},
		`{"inner":{"A":"sk_live_abc"}}`:  {Field: "inner.A", Message: "has the wrong type"},
		`{"inner":7}`:                    {Field: "inner", Message: "has the wrong type"},
		`{"raw":"a\u0000"}`:              {Field: "raw", Message: "holds a NUL character"},
		`{"amount":1} {}`:                {},
		`[]`:                             {},
		``:                               {},
		`{"amount":"sk_live_abc\qabcd"}`: {Field: "amount"},
	} {
		err := Decode([]byte(text), new(order))
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || f.Code != fault.InvalidRequest || strings.Contains(err.Error(), "sk_live") {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if want == (fault.Field{}) && len(f.Fields) == 0 {
			continue
		}
		if len(f.Fields) != 1 || f.Fields[0].Field != want.Field || want.Message != "" && f.Fields[0].Message != want.Message {
			t.Errorf("%s: names %+v, want %+v", text, f.Fields, want)
		}
	}
	if err := Decode([]byte(`{"amount":1.5}`), new(order)); err == nil || !strings.Contains(err.Error(), "amount") {
		t.Errorf("half a rupiah: %v", err)
	}
}

func manyMembers(n int) string {
	members := make([]string, n)
	for i := range members {
		members[i] = fmt.Sprintf(`"a%d":1`, i)
	}
	return strings.Join(members, ",")
}
