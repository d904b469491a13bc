package movement_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

func TestFieldAndBody(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		request, field, body string
		given                bool
	}{
		{`{"path":"/payments/create","body":{"amount":15000,"note":"a \"b\""}}`, `15000`, `{"amount":15000,"note":"a \"b\""}`, true},
		{`{"body":{"amount":null}}`, `null`, `{"amount":null}`, true},
		{`{"body":{"Amount":1}}`, ``, `{"Amount":1}`, false},
		{`{"amount":1,"body":{}}`, ``, `{}`, false},
		{`{"path":"/payments/create"}`, ``, ``, false},
		{`{"body":[1]}`, ``, `[1]`, false},
		{`not JSON`, ``, ``, false},
		{``, ``, ``, false},
	} {
		m := movement.Movement{Request: json.RawMessage(c.request)}
		if field := m.Field("amount"); (field != nil) != c.given || string(field) != c.field {
			t.Errorf("%s: amount = %s", c.request, field)
		}
		if body := m.Body(); string(body) != c.body {
			t.Errorf("%s: Body = %s", c.request, body)
		}
	}
}

// The body is cut out of a canonical request as a parser reads it, whatever it holds.
func TestBodyIsWhatAParserReads(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{`,"path":"/pay"}`, `{"body":`, `"}`, `/pay`, `\`}))
		fields := rapid.MapOf(text, rapid.OneOf(rapid.Map(text, func(s string) any { return s }), rapid.Map(rapid.MapOf(text, text), func(m map[string]string) any { return m }))).Draw(t, "fields")
		path := rapid.SampledFrom([]string{"/pay", "/wallet1/transfer/bank", `/pa"th`, "/"}).Draw(t, "path")
		encoded, err := json.Marshal(map[string]any{"body": fields, "path": path})
		if err != nil {
			t.Fatal(err)
		}
		request := jsontext.Value(encoded)
		if err := request.Canonicalize(); err != nil {
			t.Fatal(err)
		}
		var want struct {
			Body json.RawMessage `json:"body"`
		}
		if err := json.Unmarshal(request, &want); err != nil {
			t.Fatal(err)
		}
		m := movement.Movement{Request: json.RawMessage(request), Operation: rapid.SampledFrom([]string{path, "/pay"}).Draw(t, "operation")}
		body := m.Body()
		if !bytes.Equal(body, want.Body) {
			t.Fatalf("%s: the body is %s, want %s", request, body, want.Body)
		}
		before := string(request)
		_ = append(body, "overwritten"...)
		if string(m.Request) != before {
			t.Fatalf("what was appended to the body stands in the request: %s", m.Request)
		}
	})
}

// A property is found in a canonical request as a parser finds it, whatever stands there.
func TestFieldIsWhatAParserReads(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.StringMatching(`[ab"\\{}\[\],: é<\x{7f}\n😀]{0,6}`), rapid.SampledFrom([]string{`a":1`, `":`, `,"a":`, `\`, `\"`, ""}))
		value := rapid.OneOf(
			rapid.Map(text, func(s string) any { return s }), rapid.Map(rapid.Int32(), func(n int32) any { return n }),
			rapid.SampledFrom([]any{nil, true, false, []any{}, map[string]any{}}),
			rapid.Map(rapid.SliceOf(rapid.MapOf(text, text)), func(s []map[string]string) any { return s }),
			rapid.Map(rapid.MapOf(text, rapid.SliceOf(text)), func(m map[string][]string) any { return m }),
		)
		encoded, err := json.Marshal(map[string]any{"body": rapid.MapOf(text, value).Draw(t, "fields"), "path": "/pay"})
		if err != nil {
			t.Fatal(err)
		}
		request := jsontext.Value(encoded)
		if err := request.Canonicalize(); err != nil {
			t.Fatal(err)
		}
		m := movement.Movement{Request: json.RawMessage(request), Operation: "/pay"}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(m.Body(), &fields); err != nil {
			t.Fatal(err)
		}
		for _, name := range append(slices.Collect(maps.Keys(fields)), text.Draw(t, "another")) {
			if got := m.Field(name); !bytes.Equal(got, fields[name]) || (got == nil) != (fields[name] == nil) {
				t.Fatalf("%s: %q is %s, want %s", request, name, got, fields[name])
			}
		}
	})
}

func TestSameRequest(t *testing.T) {
	t.Parallel()
	m := movement.Movement{Request: json.RawMessage(`{"body":{"amount":1}}`)}
	if !m.SameRequest(json.RawMessage(`{"body":{"amount":1}}`)) || m.SameRequest(json.RawMessage(`{"body":{"amount":10}}`)) {
		t.Error("requests are confused")
	}
}
