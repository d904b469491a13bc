package movement_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

func anyID() *rapid.Generator[movement.ID] {
	return rapid.Custom(func(t *rapid.T) movement.ID {
		return movement.ID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
	})
}

func TestUpstreamReferenceRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := movement.Movement{ID: anyID().Draw(t, "id"), Attempt: rapid.IntRange(1, 1<<31-1).Draw(t, "attempt")}
		text := m.UpstreamReference()
		id, attempt, ok := movement.ParseUpstreamReference(text)
		if !ok || id != m.ID || attempt != m.Attempt {
			t.Fatalf("%s reads as %s, %d, %v", text, id, attempt, ok)
		}
		if len(text) > 64 || strings.Trim(text, "0123456789abcdef-") != "" {
			t.Fatalf("%q suits no upstream", text)
		}
		again := m
		again.Attempt++
		if again.UpstreamReference() == text {
			t.Fatalf("two attempts are both %s", text)
		}
	})
}

func TestParseUpstreamReferenceRefuses(t *testing.T) {
	t.Parallel()
	const name = "00112233445566778899aabbccddeeff"
	if _, _, ok := movement.ParseUpstreamReference(name + "-1"); !ok {
		t.Fatal("the form that the others differ from is refused")
	}
	for _, text := range []string{
		"", "-", name, name + "-", name + "-0", name + "--1", name + "-+1", name + "-01", name + "-1 ", name + "-1-1",
		name + "-99999999999999999999", name + "-x", name[1:] + "-1", "0" + name + "-1",
		strings.ToUpper(name) + "-1", "g" + name[1:] + "-1", "INV/2026/#001",
	} {
		if id, attempt, ok := movement.ParseUpstreamReference(text); ok || id != (movement.ID{}) || attempt != 0 {
			t.Errorf("%q reads as %s, %d, %v", text, id, attempt, ok)
		}
	}
}

func FuzzParseUpstreamReference(f *testing.F) {
	f.Add("00112233445566778899aabbccddeeff-1")
	f.Add("00112233445566778899AABBCCDDEEFF-01")
	f.Add("-1")
	f.Fuzz(func(t *testing.T, text string) {
		id, attempt, ok := movement.ParseUpstreamReference(text)
		if m := (movement.Movement{ID: id, Attempt: attempt}); ok && m.UpstreamReference() != text {
			t.Errorf("%q reads as what is written %q", text, m.UpstreamReference())
		}
	})
}

func TestIDs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		id := anyID().Draw(t, "id")
		if back, err := movement.ParseID(id.String()); err != nil || back != id {
			t.Fatalf("%s reads as %s, %v", id, back, err)
		}
		if b := id.Bucket(); b < 0 || b >= movement.Buckets {
			t.Fatalf("bucket %d", b)
		}
	})
	if _, err := movement.ParseID("INV/2026/#001"); err == nil {
		t.Error("a reference passes for an id")
	}
	var count [movement.Buckets]int
	for range 200 * movement.Buckets {
		count[movement.NewID().Bucket()]++
	}
	for bucket, n := range count {
		if n < 100 || n > 300 { // seven deviations from the 200 that are expected
			t.Errorf("bucket %d has %d of %d", bucket, n, 200*movement.Buckets)
		}
	}
}

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
		if field, given := m.Fields()["amount"]; given != c.given || string(field) != c.field {
			t.Errorf("%s: amount = %s, %v", c.request, field, given)
		}
		if body := m.Body(); string(body) != c.body {
			t.Errorf("%s: Body = %s", c.request, body)
		}
	}
}

func TestSameRequest(t *testing.T) {
	t.Parallel()
	m := movement.Movement{Request: json.RawMessage(`{"body":{"amount":1}}`)}
	if !m.SameRequest(json.RawMessage(`{"body":{"amount":1}}`)) || m.SameRequest(json.RawMessage(`{"body":{"amount":10}}`)) {
		t.Error("requests are confused")
	}
}
