package movement_test

import (
	"encoding/json"
	"testing"

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
