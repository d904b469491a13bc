package conformance

import (
	"maps"
	"testing"
)

func TestAlterationsChangeOneMemberEach(t *testing.T) {
	t.Parallel()
	got := map[string]string{}
	for pointer, document := range alterations([]byte(`{"a": "xy", "b": [1.50, {"c/d": false}], "e": "", "f": null, "g": "q\"", "h": "0f"}`)) {
		got[pointer] = string(document)
	}
	want := map[string]string{
		"/a":        `{"a": "xa", "b": [1.50, {"c/d": false}], "e": "", "f": null, "g": "q\"", "h": "0f"}`,
		"/b/0":      `{"a": "xy", "b": [1.51, {"c/d": false}], "e": "", "f": null, "g": "q\"", "h": "0f"}`,
		"/b/1/c~1d": `{"a": "xy", "b": [1.50, {"c/d": true}], "e": "", "f": null, "g": "q\"", "h": "0f"}`,
		"/e":        `{"a": "xy", "b": [1.50, {"c/d": false}], "e": "1", "f": null, "g": "q\"", "h": "0f"}`,
		"/g":        `{"a": "xy", "b": [1.50, {"c/d": false}], "e": "", "f": null, "g": "q\"1", "h": "0f"}`,
		"/h":        `{"a": "xy", "b": [1.50, {"c/d": false}], "e": "", "f": null, "g": "q\"", "h": "0a"}`,
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSecretsAreFoundInEachForm(t *testing.T) {
	t.Parallel()
	s := &secrets{forms: map[string]string{}, schema: []byte(`{
		"$defs": {"login": {"properties": {"phrase": {"writeOnly": true}, "again": {"$ref": "#/$defs/login"}}}},
		"properties": {
			"passphrase": {"type": "string", "writeOnly": true}, "hosts": {"items": {"writeOnly": true}}, "login": {"$ref": "#/$defs/login"},
			"reports": {"oneOf": [{"properties": {"directory": {"type": "string"}}}, {"properties": {"feed": {"writeOnly": true}}}]}
		}
	}`)}
	s.learn([]byte(`{
		"secret_key": "top+secret", "provider_public_key": "anybody may", "username": "somebody", "passphrase": "open sesame", "hosts": ["a hidden one"],
		"login": {"again": {"phrase": "said twice"}}, "reports": {"feed": "feed-of-mine", "directory": "/reports", "inner": [{"token": "far below"}]}
	}`))
	for text, want := range map[string]string{
		"a top+secret key": "secret_key", "a=top%2Bsecret": "secret_key",
		"Basic dG9wK3NlY3JldDo=": "secret_key", "anybody may, somebody, /reports": "", "open sesame": "passphrase", "a hidden one": "hosts",
		"said twice": "login/again/phrase", "feed-of-mine": "reports/feed", "far below": "reports/inner/token",
	} {
		if got := s.in([]byte(text)); got != want {
			t.Errorf("%q has %q, want %q", text, got, want)
		}
	}
}
