package catalog

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// canonicalized is the canonical JSON of a request as a library makes it of any JSON.
func canonicalized(t rapid.TB, path string, body Document) []byte {
	t.Helper()
	encoded, err := json.Marshal(map[string]any{"path": path, "body": map[string]any(body)})
	if err != nil {
		t.Fatal(err)
	}
	canonical := jsontext.Value(encoded)
	if err := canonical.Canonicalize(); err != nil {
		t.Fatal(err)
	}
	return canonical
}

func judgeCanonical(t rapid.TB, path string, body Document) {
	t.Helper()
	op := &Operation{Operation: manifest.Operation{Path: path}}
	got, err := op.Canonical(body)
	if want := canonicalized(t, path, body); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("canonical\n%s, want\n%s (%v)", got, want, err)
	}
}

// What a request is known by is the same, byte for byte, as by a library of the format.
func TestCanonicalIsTheLibrarys(t *testing.T) {
	t.Parallel()
	numbers := []json.Number{
		"0", "-0", "0.0", "-0.0", "1", "-1", "10", "999999999999999", "1000000000000000", "9007199254740993", "-9007199254740993", "123456789012345678901234567890",
		"1.0", "1.50", "1e3", "1E3", "1e-7", "1e21", "1e30", "0.1", "100000000000000000000", "333333333.33333329", "4.50", "2e-3", "0.000000000000000000000000001", "1e-30",
	}
	text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-c\x{e000}\x{ffff}\x{10000}\x{10ffff}<&\x{2028}"\\/\x00-\x1f\x7f]{0,5}`))
	scalar := rapid.OneOf(
		rapid.Map(text, func(s string) any { return s }), rapid.SampledFrom([]any{nil, true, false, []any{}, map[string]any{}, map[string]any(nil)}),
		rapid.Map(rapid.SampledFrom(numbers), func(n json.Number) any { return n }),
		rapid.Map(rapid.StringMatching(`-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,10})?([eE][+-]?[0-9]{1,2})?`), func(s string) any { return json.Number(s) }),
	)
	array := rapid.Map(rapid.SliceOf(scalar), func(s []any) any { return s })
	object := rapid.Map(rapid.MapOf(text, rapid.OneOf(scalar, array)), func(m map[string]any) any { return m })
	bodies := rapid.MapOf(text, rapid.OneOf(scalar, array, object))
	rapid.Check(t, func(t *rapid.T) {
		judgeCanonical(t, rapid.SampledFrom([]string{"/payments/create", `/a"<é`}).Draw(t, "path"), bodies.Draw(t, "body"))
	})
	for _, number := range numbers {
		judgeCanonical(t, "/pay", Document{"n": number})
	}
	judgeCanonical(t, "/pay", nil)
}

// FuzzCanonical holds the same for whatever JSON there is.
func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"amount":25000,"note":"a \"b\" <c>","z":[1,-0,1.50,1e21,null,true,{"\ue000":1,"😀":2}],"é":"\u2028"}`, `{"n":9007199254740993}`, `{"😀":1,"\uffff":2,"a":{"b":{}}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !jsontext.Value(text).IsValid() { // as strict as a body is read: UTF-8, no name twice
			t.Skip()
		}
		decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
		decoder.UseNumber()
		var body Document
		if decoder.Decode(&body) != nil {
			t.Skip()
		}
		judgeCanonical(t, "/pay", body)
	})
}

// A number that is none is in no request.
func TestCanonicalRefuses(t *testing.T) {
	t.Parallel()
	op := &Operation{Operation: manifest.Operation{Path: "/pay"}}
	for _, value := range []any{json.Number("1x"), json.Number("01"), json.Number(""), json.Number("1,\"b\":2"), 1, struct{}{}} {
		if text, err := op.Canonical(Document{"a": value}); err == nil {
			t.Errorf("%#v: %s", value, text)
		}
	}
}
